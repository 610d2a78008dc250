// A database is split under load: cells move to a standby, which becomes a database of its own. Servers of the test's own;
// where PostgreSQL is not installed there is nothing to test.

import assert from "node:assert/strict";
import { cellOf } from "../../src/tenant/cell_of.ts";
import { reconcile } from "../../src/storage/queries/reconcile.ts";
import { openPostgres } from "../../src/storage/postgres_database.ts";
import { OwnServer } from "../crash/own_server.ts";
import { CHILD_ENVIRONMENT, pause, Program, until } from "../crash/program.ts";
import { ADMIN_TOKEN, makeApp, Stage, untilReady } from "../crash/stage.ts";
import { answerOf, once } from "../crash/wire.ts";
import { isDeep } from "../support/depth.ts";
import { Callers } from "./callers.ts";

const READY_MS = 60_000;
/** Between two calls of a caller: in a split with hardly a wait, and in one that waits for each process that it starts. */
const REST_MS = isDeep ? [5, 5] as const : [150, 300] as const;

/** A database of the service. */
interface Place {
  readonly name: string;
  readonly url: string;
  readonly server: OwnServer;
  /** The cells that moved there from the first one. */
  readonly cells: readonly number[];
}

/** A database that is split, processes on it and on those that are split off, and apps that are called. */
class Split implements AsyncDisposable {
  readonly stage: Stage;
  readonly places: Place[];
  /** The workspaces that are called. */
  readonly callers = new Map<Callers, string>();
  readonly #workspaces: string[] = [];
  programs: { program: Program; origin: string }[] = [];

  private constructor(primary: OwnServer, stage: Stage) {
    this.stage = stage;
    this.places = [{ name: "eu1", url: stage.server.url, server: primary, cells: [] }];
  }

  static async open(): Promise<Split | null> {
    const primary = await OwnServer.open();
    if (primary === null) return null;
    const split = new Split(primary, await Stage.open(primary.url));
    await split.start(1);
    return split;
  }

  get #primary(): OwnServer {
    return (this.places[0] as Place).server;
  }

  get origin(): string {
    return (this.programs[0] as { origin: string }).origin;
  }

  storeOf(workspaceId: string): string {
    const cell = cellOf(workspaceId);
    return this.places.find(({ cells }) => cells.includes(cell))?.name ?? "eu1";
  }

  /** Adds a standby that gets some cells, and starts processes that know it. */
  async add(cells: readonly number[], processes: number): Promise<Place> {
    const server = await OwnServer.open(this.#primary) as OwnServer;
    const url = `postgres://postgres@${server.place}/${this.stage.server.name}`;
    const place = { name: `eu${this.places.length + 1}`, url, server, cells };
    this.places.push(place);
    await this.start(processes);
    return place;
  }

  /** Starts processes on all databases in place of those before, for which they wait. */
  async start(count: number): Promise<void> {
    const old = this.programs;
    const list = this.places.map(({ name, url }) => `${name}=${url}`).join();
    const settings = { DATABASE_URL: "", HOLDFAST_DATABASES: list };
    const added = Array.from({ length: count }, () => this.stage.start(settings));
    const starts = (program: Program) =>
      /Holdfast starts; (http:.*)\/readyz/.exec(program.stdout)?.[1] ?? null;
    const started = added.map(async (program) => ({
      program,
      origin: await until("a process starts", READY_MS, () => starts(program)),
    }));
    this.programs = await Promise.all(started);
    for (const { program } of old) program.signal("SIGTERM");
    for (const { origin } of this.programs) await untilReady(origin, READY_MS);
    for (const [place, callers] of [...this.callers.keys()].entries()) {
      callers.origin = (this.programs[place % count] as { origin: string }).origin;
    }
  }

  /** Makes apps until some are in each of these sets of cells, and begins to call those. */
  async load(areas: readonly (readonly number[])[], each: number, restMs: number): Promise<void> {
    const missing = areas.flatMap((cells) => Array<readonly number[]>(each).fill(cells));
    while (missing.length > 0) {
      const { workspaceId, secretKey: bearer } = await makeApp(this.origin, "App");
      this.#workspaces.push(workspaceId);
      const place = missing.findIndex((cells) => cells.includes(cellOf(workspaceId)));
      if (place < 0) continue;
      missing.splice(place, 1);
      for (const userId of ["u0", "u1"]) {
        const body = { userId, planId: "plan_wide" };
        const call = { method: "POST", path: "/api/v1/subscriptions", bearer, body };
        assert.equal(answerOf(await once(this.origin, call)).status, 200);
      }
      this.callers.set(new Callers(this.origin, bearer, restMs), workspaceId);
    }
  }

  /** The callers of workspaces that stay, or that move. */
  those(move: boolean): Callers[] {
    return [...this.callers].filter(([, id]) => (this.storeOf(id) !== "eu1") === move).map(([callers]) =>
      callers
    );
  }

  /** Runs the command. */
  command({ name, cells }: Place): Deno.ChildProcess {
    const args = ["stores", "split", "eu1", "--cells", cells.join(), "--to", name];
    return new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", "src/cli/admin.ts", "--url", this.origin, ...args],
      env: { ...CHILD_ENVIRONMENT, HOLDFAST_ADMIN_TOKEN: ADMIN_TOKEN },
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  }

  /** Ends the load: every acknowledged call is counted once, each workspace is listed once, all books add up. */
  async audit(): Promise<void> {
    for (const callers of this.callers.keys()) {
      callers.origin = this.origin;
      await callers.end();
      assert.equal(await callers.used(), callers.counted);
      assert.ok(callers.counted > 0);
    }
    const path = "/api/admin/v1/workspaces";
    const listed = answerOf(await once(this.origin, { method: "GET", path, bearer: ADMIN_TOKEN }));
    assert.equal(listed.status, 200, JSON.stringify(listed.body));
    const stores = listed.body.data.map((
      { workspaceId, store }: Record<string, string>,
    ) => [workspaceId, store]);
    const expected = this.#workspaces.toSorted().map((id) => [id, this.storeOf(id)]);
    assert.deepEqual(stores, expected);
    for (const { program } of this.programs) program.signal("SIGTERM");
    for (const { program } of this.programs) await program.exit(30_000);
    for (const { url } of this.places) await prove(url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.callers.keys()].map((callers) => callers.giveUp()));
    await Promise.all(this.programs.map(({ program }) => program.kill()));
    for (const { server } of this.places.slice(1)) await server[Symbol.asyncDispose]();
    await this.stage[Symbol.asyncDispose]();
    await this.#primary[Symbol.asyncDispose]();
  }
}

async function prove(url: string): Promise<void> {
  const database = openPostgres(url, 2);
  const drifts: string[] = [];
  const { undrainedBatches } = await reconcile(database, ({ text }) => drifts.push(text));
  await database.close();
  assert.deepEqual(drifts, []);
  assert.equal(undrainedBatches, 0);
}

async function untilServed(origin: string, store: string): Promise<void> {
  await until(`${store} serves`, READY_MS, async () => {
    const { body } = answerOf(await once(origin, { method: "GET", path: "/readyz" }));
    return (body.data ?? body.error.details).stores[store] === "serving" ? true : null;
  });
}

Deno.test("workspaces that stay do not feel a split, and those that move lose no answer", async () => {
  await using split = await Split.open();
  if (split === null) return;
  const halves = [0, 32].map((first) => Array.from({ length: 32 }, (_, cell) => first + cell));
  const place = await split.add(halves[1] as number[], 2);
  await split.load(halves, 3, REST_MS[0]);
  await pause(6_000);
  for (const callers of split.callers.keys()) callers.begin();
  const { code, stdout, stderr } = await split.command(place).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  console.log(new TextDecoder().decode(stdout));
  await pause(2_000);
  for (const { faults } of split.those(false)) assert.deepEqual(faults, []);
  for (const { faults } of split.those(true)) assert.deepEqual([...new Set(faults)], ["503"]);
  console.log(`silent for ${Math.round(Math.max(...split.those(true).map(({ silentMs }) => silentMs)))} ms`);
  await split.audit();
});

/** A step of a split, as the tables of the old or the new database have it. */
const STEPS: Readonly<Record<string, readonly [on: "old" | "new", when: string]>> = {
  asked: ["old", "exists (select from cells where moves_to = $1::int)"],
  handedOver: ["old", "exists (select from cells where store = $1::int)"],
  released: ["old", "(select state from stores where number = $1::int) = 'released'"],
  promoted: ["new", "not pg_is_in_recovery() and $1::int > 0"],
  open: ["new", "(select state from stores where number = $1::int) = 'open'"],
};

/** Which steps a run tries: each needs a server and two processes with a database more, so that a few are drawn. */
function stepsOfRun() {
  const steps = Object.entries(STEPS);
  while (!isDeep && steps.length > 3) steps.splice(Math.floor(Math.random() * steps.length), 1);
  return steps;
}

Deno.test("a split whose command and process are killed at a step goes on with the next process", async () => {
  await using split = await Split.open();
  if (split === null) return;
  const steps = stepsOfRun();
  console.log(`killed when ${steps.map(([step]) => step).join(", ")}`);
  const cellsOf = (place: number) => Array.from({ length: 8 }, (_, cell) => 8 * (place + 1) + cell);
  await split.load([...steps.map((_, place) => cellsOf(place)), cellsOf(steps.length)], 1, REST_MS[1]);
  for (const [index, [step, [on, when]]] of steps.entries()) {
    const place = await split.add(cellsOf(index), 1);
    const look = openPostgres(on === "old" ? split.stage.server.url : place.url, 1);
    const command = split.command(place);
    await until(step, READY_MS, async () => {
      const [row] = await look.query<{ is: boolean }>(`select coalesce(${when}, false) as is`, [index + 1]);
      return row?.is === true ? true : null;
    });
    await split.programs[0]?.program.kill();
    try {
      command.kill("SIGKILL");
    } catch {
      // It ended by itself, without the process.
    }
    await command.output();
    await look.close();
    await split.start(1);
    await untilServed(split.origin, place.name);
    assert.equal((await split.command(place).output()).code, 0, `the command again, after ${step}`);
  }
  await split.audit();
});
