// The real program on two databases of a server, under load: what happens to one of them is not felt by the other, and none
// of its own acknowledged calls is lost. On a server only.

import assert from "node:assert/strict";
import { Cable } from "../crash/cable.ts";
import { pause, type Program, until } from "../crash/program.ts";
import { ADMIN_TOKEN, makeApp, readiness, Stage, untilReady } from "../crash/stage.ts";
import { answerOf, once } from "../crash/wire.ts";
import { reconcile } from "../../src/storage/queries/reconcile.ts";
import { roundsOf } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";
import { CALLERS, Callers } from "./callers.ts";

const ROUNDS = roundsOf(1);
const BACK_MS = 30_000;
const ignore = testServerUrl() === null;

/** Two databases, each behind a cable, with an app on each. */
class Two implements AsyncDisposable {
  readonly stages: readonly [Stage, Stage];
  readonly cables: readonly [Cable, Cable];
  readonly #programs: Program[] = [];
  callers: Callers[] = [];

  private constructor(stages: readonly [Stage, Stage]) {
    this.stages = stages;
    this.cables = [new Cable(stages[0].server.url), new Cable(stages[1].server.url)];
  }

  static async open(): Promise<Two> {
    return new Two([await Stage.open(), await Stage.open()]);
  }

  /** Starts a process; `more` are further databases of its list. */
  start(more = ""): Program {
    const urls = this.stages.map(({ server }, place) => (this.cables[place] as Cable).through(server.url));
    const program = this.stages[0].start({
      DATABASE_URL: "",
      HOLDFAST_DATABASES: `eu1=${urls[0]},eu2=${urls[1]}${more}`,
    });
    this.#programs.push(program);
    return program;
  }

  async startReady(): Promise<{ program: Program; origin: string }> {
    const program = this.start();
    const origin = await program.origin();
    await untilReady(origin, 60_000);
    return { program, origin };
  }

  /** Makes an app on each database, with two users who have a plan, and begins to call. */
  async load(origin: string): Promise<[Callers, Callers]> {
    const keys: string[] = [];
    for (const name of ["One", "Two"]) {
      const { secretKey } = await makeApp(origin, name);
      for (const userId of ["u0", "u1"]) {
        const call = { method: "POST", path: "/api/v1/subscriptions", bearer: secretKey };
        const answer = answerOf(await once(origin, { ...call, body: { userId, planId: "plan_wide" } }));
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
      }
      keys.push(secretKey);
    }
    const path = "/api/admin/v1/workspaces";
    const listed = answerOf(await once(origin, { method: "GET", path, bearer: ADMIN_TOKEN }));
    assert.deepEqual(listed.body.data.map(({ store }: { store: string }) => store), ["eu1", "eu2"]);
    const [one, two] = keys.map((key) => new Callers(origin, key)) as [Callers, Callers];
    this.callers = [one, two];
    return [one, two];
  }

  /** Ends the load; every acknowledged call is counted once, and the books of both databases add up. */
  async audit(program: Program): Promise<void> {
    for (const callers of this.callers) {
      await callers.end();
      assert.equal(await callers.used(), callers.counted);
      assert.ok(callers.counted > 0);
    }
    program.signal("SIGTERM");
    await program.exit(30_000);
    for (const stage of this.stages) {
      await stage.withDatabase(async (database) => {
        const drifts: string[] = [];
        const { undrainedBatches } = await reconcile(database, ({ text }) => drifts.push(text));
        assert.deepEqual(drifts, []);
        assert.equal(undrainedBatches, 0);
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.callers.map((callers) => callers.giveUp()));
    for (const stage of this.stages) await stage[Symbol.asyncDispose]();
    for (const cable of this.cables) await cable[Symbol.asyncDispose]();
  }
}

async function stateOf(origin: string, store: string): Promise<string | undefined> {
  const { body } = answerOf(await once(origin, { method: "GET", path: "/readyz" }));
  return (body.data ?? body.error.details).stores[store];
}

function untilState(origin: string, store: string, state: string): Promise<unknown> {
  const what = `${store} is ${state}`;
  return until(what, BACK_MS, async () => await stateOf(origin, store) === state ? true : null);
}

Deno.test({
  name:
    "a database that is cut off, silent, killed or closed costs the other no answer, and loses none of its own",
  ignore,
  fn: async () => {
    await using two = await Two.open();
    const { program, origin } = await two.startReady();
    const [one, other] = await two.load(origin);
    const [, cable] = two.cables;
    const { admin, name } = two.stages[1].server;
    const terminate = () =>
      admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
    const faults: Record<string, () => Promise<unknown>> = {
      cut: () => Promise.resolve(cable.cut()),
      cutFor: () => cable.cutFor(3_000),
      lostAnswers: () => cable.swallow("answer", 1_000),
      lostStatements: () => cable.swallow("query", 1_000),
      frozen: () => cable.swallow("answer", 10_000),
      killed: terminate,
      closed: async () => {
        await admin.query(`alter database ${name} allow_connections false`);
        await terminate();
        await pause(3_000);
        await admin.query(`alter database ${name} allow_connections true`);
      },
    };
    for (let round = 0; round < ROUNDS; round++) {
      for (const [fault, inflict] of Object.entries(faults)) {
        await pause(500);
        const [before, lost] = [one.counted, other.faults.length];
        await inflict();
        await until(`calls end at ${fault}`, BACK_MS, () => other.faults.length > lost ? true : null)
          .catch((error) => assert.ok(fault === "cut" || fault === "killed", String(error)));
        await untilState(origin, "eu2", "serving");
        assert.deepEqual(one.faults, [], fault);
        assert.ok(one.counted > before, fault);
      }
    }
    await two.audit(program);
  },
});

Deno.test({
  name: "kill -9 of one of two processes on two databases loses no acknowledged call of either",
  ignore,
  fn: async () => {
    await using two = await Two.open();
    let first = await two.startReady();
    const all = await two.load(first.origin);
    for (let round = 0; round < ROUNDS; round++) {
      const second = await two.startReady();
      await pause(7_000);
      first.program.signal("SIGKILL");
      for (const callers of all) callers.origin = second.origin;
      const counted = all.map((callers) => callers.counted);
      await until(
        "both databases answer again",
        BACK_MS,
        () =>
          all.every((callers, place) => callers.counted > (counted[place] as number) + CALLERS) ? true : null,
      );
      first = second;
    }
    await two.audit(first.program);
  },
});

Deno.test({
  name: "a database is added while the old process serves: the new one waits, is not ready, and takes over",
  ignore,
  fn: async () => {
    await using two = await Two.open();
    await using third = await Stage.open();
    const old = await two.startReady();
    const all = await two.load(old.origin);
    const next = two.start(`,eu3=${third.server.url}`);
    const starts = () => /Holdfast starts; (http:\/\/[^/]+)\/readyz/.exec(next.stdout)?.[1] ?? null;
    const origin = await until("the new process starts", BACK_MS, starts);
    await untilState(origin, "eu3", "serving");
    for (const store of ["eu1", "eu2"]) assert.equal(await stateOf(origin, store), "standby");
    assert.equal(await readiness(origin), 503);
    old.program.signal("SIGTERM");
    for (const callers of all) callers.origin = origin;
    await untilReady(origin, BACK_MS);
    const alone = third.start({ DATABASE_URL: two.stages[0].server.url });
    assert.equal((await alone.exit(30_000)).code, 1);
    await two.audit(next);
  },
});

Deno.test({
  name: "a process that stops while one database is frozen hands the other over: no call of it is refused",
  ignore,
  fn: async () => {
    await using two = await Two.open();
    const first = await two.startReady();
    const [one, other] = await two.load(first.origin);
    const second = await two.startReady();
    await pause(7_000);
    one.begin();
    const frozen = two.cables[1].swallow("answer", 12_000);
    await pause(100);
    first.program.signal("SIGTERM");
    await first.program.exit(30_000);
    // Calls after the port has closed have no answer.
    assert.deepEqual(one.faults.filter((fault) => fault === "503"), []);
    for (const callers of [one, other]) callers.origin = second.origin;
    await frozen;
    await untilState(second.origin, "eu2", "serving");
    await two.audit(second.program);
  },
});
