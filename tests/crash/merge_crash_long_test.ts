// A storm of merges between reserves, settlements, tracks and grants, with and without `kill -9` in its middle:
// the canonical user of the ids must show the answered calls in the end.

import assert from "node:assert/strict";
import { type Drift, reconcile } from "../../src/storage/queries/reconcile.ts";
import { pause, type Program } from "./program.ts";
import { Stage } from "./stage.ts";
import { Storm } from "./storm.ts";
import { isDeep, roundsOf } from "../support/depth.ts";

/** Clients that never rest would take both cores. */
const REST_MAX_MS = isDeep ? 0 : 40;
const STORM_MS = 2_000;
const ROUNDS = roundsOf(1);
const STOP_MS = 60_000;

/** Checks the books of the tables; the program must have ended. */
async function assertReconciled(stage: Stage): Promise<void> {
  await stage.withDatabase(async (database) => {
    const drifts: Drift[] = [];
    const { undrainedBatches, holds } = await reconcile(database, (drift) => drifts.push(drift));
    assert.deepEqual(drifts.slice(0, 5), []);
    assert.equal(undrainedBatches, 0);
    assert.ok(holds > 0, "some holds are open");
    const [left] = await database.query<{ rows: number }>("select count(*)::int as rows from history_moves");
    assert.equal(left?.rows, 0);
    for (
      const table of ["events", "credit_ledger", "subscription_events", "subscriptions", "credit_balances"]
    ) {
      const [lost] = await database.query<{ rows: number }>(
        `select count(*)::int as rows from ${table} t join users u on u.key = t.user_key where u.merged_into is not null`,
      );
      assert.equal(lost?.rows, 0, `rows of ${table} are filed under an alias`);
    }
  });
}

/** Lets the storm blow for some time, and on until it has done something. */
async function blowFor(storm: Storm, ms: number, callsMin: number): Promise<void> {
  const calls = storm.calls + callsMin;
  const mergeCalls = storm.mergeCalls + 2;
  await pause(ms);
  while (storm.calls < calls || storm.mergeCalls < mergeCalls) await pause(10);
}

// Both tests share a store, whose making takes long; each has an app of its own.
let stage: Stage;
Deno.test.beforeAll(async () => {
  stage = await Stage.open();
});
Deno.test.afterAll(() => stage[Symbol.asyncDispose]());
Deno.test.afterEach(async () => {
  for (const program of stage.programs) await program.kill();
});

/** Starts a process for the storm. */
async function start(storm: Storm): Promise<Program> {
  const { program, origin } = await stage.startReady();
  storm.origins = [origin];
  return program;
}

/** Moves what is left of histories and ends the program in good order, so that the tables hold everything. */
async function stop(storm: Storm, program: Program): Promise<void> {
  // The storm may have settled all it took; the books of open holds of merged users are to be proved too.
  for (const event of ["plan.x", "free.x"]) {
    await storm.must("POST", "/v1/reserve", { userId: storm.merges[0]?.from, event, count: 1 });
  }
  await storm.must("POST", "/admin/v1/move-history", {});
  program.signal("SIGTERM");
  const { code } = await program.exit(STOP_MS);
  assert.equal(code, 0, program.stderr);
}

Deno.test("merges amid reserves, settlements, tracks and grants lose nothing and count nothing twice", async () => {
  const storm = new Storm();
  const program = await start(storm);
  await storm.populate(50);
  const blowing = storm.blow(0.04, REST_MAX_MS);
  await blowFor(storm, STORM_MS, 100);
  storm.isOver = true;
  await blowing;
  assert.ok(storm.merges.every(({ isKnown }) => isKnown));
  assert.equal(
    await storm.audit(),
    storm.users.length - storm.merges.length,
    "every merge made one user of two",
  );
  await stop(storm, program);
  await assertReconciled(stage);
});

Deno.test("kill -9 amid merges leaves each merge complete or not begun, and every answer stays true", async () => {
  const storm = new Storm();
  let program = await start(storm);
  await storm.populate(40);
  for (let round = 0; round < ROUNDS; round++) {
    const blowing = storm.blow(0.04, REST_MAX_MS);
    await blowFor(storm, 300 + Math.random() * 300, 30);
    await program.kill();
    storm.isOver = true;
    await blowing;
    program = await start(storm);
    await storm.audit();
  }
  await stop(storm, program);
  await assertReconciled(stage);
});
