// A database is split under load: cells move to a standby, which becomes a database of its own. Two servers of the test's
// own; where PostgreSQL is not installed there is nothing to test.

import assert from "node:assert/strict";
import { cellOf } from "../../src/tenant/cell_of.ts";
import { reconcile } from "../../src/storage/queries/reconcile.ts";
import { openPostgres } from "../../src/storage/postgres_database.ts";
import { OwnServer } from "../crash/own_server.ts";
import { pause, Program, until } from "../crash/program.ts";
import { ADMIN_TOKEN, makeApp, Stage, untilReady } from "../crash/stage.ts";
import { answerOf, once } from "../crash/wire.ts";
import { Callers } from "./callers.ts";

const READY_MS = 60_000;
const APPS = 6;
const MOVED = Array.from({ length: 32 }, (_, place) => 32 + place);

/** A database with a standby, processes on both, and apps that are called. */
class Split implements AsyncDisposable {
  readonly primary: OwnServer;
  readonly standby: OwnServer;
  readonly stage: Stage;
  /** Callers of workspaces that stay, and of those that move. */
  readonly staying: Callers[] = [];
  readonly moving: Callers[] = [];
  programs: { program: Program; origin: string }[] = [];

  private constructor(primary: OwnServer, standby: OwnServer, stage: Stage) {
    this.primary = primary;
    this.standby = standby;
    this.stage = stage;
  }

  static async open(): Promise<Split | null> {
    const primary = await OwnServer.open();
    if (primary === null) return null;
    await primary.tell("alter system set max_connections = 200");
    const stage = await Stage.open(primary.url);
    const first = await stage.startReady({ DATABASE_URL: "", HOLDFAST_DATABASES: `eu1=${stage.server.url}` });
    const split = new Split(primary, await OwnServer.open(primary) as OwnServer, stage);
    await split.load(first.origin);
    await split.start(2, () => first.program.signal("SIGTERM"));
    return split;
  }

  get urls(): readonly [string, string] {
    const { url, name } = this.stage.server;
    return [url, `postgres://postgres@${this.standby.place}/${name}`];
  }

  /** Starts processes on both databases; `then` ends those before, for which they wait. */
  async start(count: number, then = () => {}): Promise<void> {
    const [eu1, eu2] = this.urls;
    const added = Array.from(
      { length: count },
      () => this.stage.start({ DATABASE_URL: "", HOLDFAST_DATABASES: `eu1=${eu1},eu2=${eu2}` }),
    );
    const starts = added.map((program) =>
      until(
        "a process starts",
        READY_MS,
        () => /Holdfast starts; (http:\/\/[^/]+)\/readyz/.exec(program.stdout)?.[1] ?? null,
      )
    );
    const origins = await Promise.all(starts);
    then();
    for (const [place, program] of added.entries()) {
      const origin = origins[place] as string;
      await untilReady(origin, READY_MS);
      this.programs.push({ program, origin });
    }
    this.spread();
  }

  /** Spreads the callers over the processes. */
  spread(): void {
    for (const [place, callers] of [...this.staying, ...this.moving].entries()) {
      callers.origin = (this.programs[place % this.programs.length] as { origin: string }).origin;
    }
  }

  async load(origin: string): Promise<void> {
    while (this.staying.length < APPS / 2 || this.moving.length < APPS / 2) {
      const { workspaceId, secretKey } = await makeApp(
        origin,
        `App ${this.staying.length + this.moving.length}`,
      );
      for (const userId of ["u0", "u1"]) {
        const call = { method: "POST", path: "/api/v1/subscriptions", bearer: secretKey };
        assert.equal(
          answerOf(await once(origin, { ...call, body: { userId, planId: "plan_wide" } })).status,
          200,
        );
      }
      const callers = new Callers(origin, secretKey);
      (MOVED.includes(cellOf(workspaceId)) ? this.moving : this.staying).push(callers);
    }
  }

  /** Runs the command; answers its exit status. */
  async command(): Promise<{ code: number; text: string }> {
    const origin = (this.programs[0] as { origin: string }).origin;
    const args = [
      "run",
      "-A",
      "--no-check",
      "src/cli/admin.ts",
      "--url",
      origin,
      "stores",
      "split",
      "eu1",
      "--cells",
      "32-63",
    ];
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [...args, "--to", "eu2"],
      env: { HOLDFAST_ADMIN_TOKEN: ADMIN_TOKEN },
    }).output();
    const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    return { code, text };
  }

  /** Ends the load: every acknowledged call is there and counted once, each workspace is listed once, the books add up. */
  async audit(): Promise<void> {
    const all = [...this.staying, ...this.moving];
    for (const callers of all) {
      await callers.end();
      assert.equal(await callers.used(), callers.counted);
      assert.ok(callers.counted > 0);
    }
    const origin = (this.programs[0] as { origin: string }).origin;
    const path = "/api/admin/v1/workspaces";
    const listed = answerOf(await once(origin, { method: "GET", path, bearer: ADMIN_TOKEN }));
    assert.equal(listed.status, 200, JSON.stringify(listed.body));
    for (const { workspaceId, store } of listed.body.data) {
      assert.equal(store, MOVED.includes(cellOf(workspaceId)) ? "eu2" : "eu1");
    }
    const ids = listed.body.data.map(({ workspaceId }: { workspaceId: string }) => workspaceId);
    assert.ok(new Set(ids).size === ids.length && ids.length === all.length, String(ids));
    for (const { program } of this.programs) program.signal("SIGTERM");
    for (const { program } of this.programs) await program.exit(30_000);
    for (const url of this.urls) {
      const database = openPostgres(url, 2);
      const drifts: string[] = [];
      const { undrainedBatches } = await reconcile(database, ({ text }) => drifts.push(text));
      await database.close();
      assert.deepEqual(drifts, []);
      assert.equal(undrainedBatches, 0);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.staying, ...this.moving].map((callers) => callers.end()));
    await Promise.all(this.programs.map(({ program }) => program.kill()));
    await this.standby[Symbol.asyncDispose]();
    await this.stage[Symbol.asyncDispose]();
    await this.primary[Symbol.asyncDispose]();
  }
}

Deno.test("workspaces that stay do not feel a split, and those that move lose no answer", async () => {
  await using split = await Split.open();
  if (split === null) return;
  await pause(2_000);
  for (const callers of [...split.staying, ...split.moving]) callers.begin();
  const { code, text } = await split.command();
  assert.equal(code, 0, text);
  console.log(text);
  await pause(3_000);
  for (const { faults } of split.staying) assert.deepEqual(faults, []);
  for (const { faults } of split.moving) assert.deepEqual([...new Set(faults)], ["503"]);
  console.log(`silent for ${Math.round(Math.max(...split.moving.map(({ silentMs }) => silentMs)))} ms`);
  await split.audit();
});
