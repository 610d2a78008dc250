// Two processes on one database: one serves, the other answers 503 and takes over within 5 s of the first one's
// death. A writer that was stopped and woke beside its successor answers nothing. On a server only.

import assert from "node:assert/strict";
import { auditServing } from "./audit.ts";
import { Load } from "./load.ts";
import { pause } from "./program.ts";
import { ADMIN_TOKEN, readiness, Stage, untilReady, WIDE_USERS } from "./stage.ts";
import {
  askWhileStopped,
  assertStandby,
  type Node,
  SILENT_TAKEOVER_MS,
  startStandby,
  TAKEOVER_MS,
} from "./standby.ts";
import { answerOf, once, Wire } from "./wire.ts";
import { testServerUrl } from "../support/test_store.ts";

const ROUNDS = Number(Deno.env.get("HOLDFAST_CRASH_ROUNDS") || 4);
const ignore = testServerUrl() === null;

Deno.test({
  name:
    "a standby answers 503 on readiness and on the API and takes over within 5 s of a kill, again and again",
  ignore,
  fn: async () => {
    await using stage = await Stage.open();
    let writer: Node = await stage.startReady();
    await stage.populate(writer.origin);
    const load = new Load(writer.origin, stage.secretKey);
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const standby = await startStandby(stage);
      await assertStandbyAnswers(stage, standby);
      load.origins = [writer.origin, standby.origin];
      load.start();
      await pause(500 + Math.random() * 2_000);
      writer.program.signal("SIGKILL");
      const diedAt = performance.now();
      await untilReady(standby.origin, TAKEOVER_MS);
      times.push(Math.round(performance.now() - diedAt));
      await load.stop();
      writer = standby;
      assert.deepEqual(await audit(stage, load, writer), [], load.record.summary());
    }
    console.log(`takeover in ms: ${times.join(", ")}; ${load.record.summary()}`);
  },
});

async function assertStandbyAnswers(stage: Stage, { origin }: Node): Promise<void> {
  const get = (path: string, bearer?: string) => once(origin, { method: "GET", path, bearer });
  assertStandby(await get("/readyz"));
  assertStandby(await get("/api/v1/plans", stage.secretKey));
  assertStandby(await get("/api/v1/plans", "sk_live_nobody"));
  assertStandby(await get("/api/v1/no-such-route"));
  assertStandby(await get("/api/admin/v1/workspaces", ADMIN_TOKEN));
  assertStandby(await get("/api/admin/v1/workspaces"));
  const body = { userId: WIDE_USERS[0], event: "image.x" };
  assertStandby(await once(origin, { method: "POST", path: "/api/v1/track", bearer: stage.secretKey, body }));
  assert.equal(answerOf(await get("/healthz")).status, 200);
}

async function audit(stage: Stage, load: Load, { origin }: Node): Promise<string[]> {
  load.origins = [origin];
  return await auditServing(stage, load, origin);
}

Deno.test({
  name: "a writer that is stopped for longer than its lease answers nothing beside its successor",
  ignore,
  fn: async () => {
    await using stage = await Stage.open();
    let writer: Node = await stage.startReady();
    await stage.populate(writer.origin);
    const load = new Load(writer.origin, stage.secretKey);
    const times: number[] = [];
    for (let round = 0; round < ROUNDS / 2; round++) {
      const standby = await startStandby(stage);
      load.start();
      await pause(500 + Math.random() * 1_500);
      writer.program.signal("SIGSTOP");
      const stoppedAt = performance.now();
      load.origins = [standby.origin];
      await untilReady(standby.origin, SILENT_TAKEOVER_MS).catch((error) => {
        throw new Error(`${error.message}\n${standby.program.stderr.slice(-4_000)}`);
      });
      times.push(Math.round(performance.now() - stoppedAt));
      await pause(500);
      const asked = await askWhileStopped(stage, writer);
      writer.program.signal("SIGCONT");
      for (const outcome of await Promise.all(asked)) assertStandby(outcome);
      assert.equal(await readiness(writer.origin), 503);
      await load.stop();
      assert.deepEqual(await audit(stage, load, standby), [], load.record.summary());
      await writer.program.kill();
      writer = standby;
    }
    console.log(`takeover of a stopped writer in ms: ${times.join(", ")}; ${load.record.summary()}`);
  },
});

Deno.test({
  name: "a writer that is stopped for less than its lease goes on, with nothing lost",
  ignore,
  fn: async () => {
    await using stage = await Stage.open();
    const writer: Node = await stage.startReady();
    await stage.populate(writer.origin);
    const load = new Load(writer.origin, stage.secretKey);
    load.start();
    for (let round = 0; round < ROUNDS; round++) {
      await pause(Math.random() * 500);
      writer.program.signal("SIGSTOP");
      await pause(Math.random() * 4_000);
      writer.program.signal("SIGCONT");
      await untilReady(writer.origin, 20_000);
    }
    await load.stop();
    assert.deepEqual(await audit(stage, load, writer), [], load.record.summary());
    const wire = new Wire(writer.origin);
    assert.equal(answerOf(await wire.call({ method: "GET", path: "/readyz" })).status, 200);
    wire.close();
  },
});
