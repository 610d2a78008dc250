// Several processes on one database: all of them answer. When one is killed, the others have its cells within seconds,
// and calls for what they own themselves never notice. A process that was stopped and woke answers nothing that is
// stale. On a server only.

import assert from "node:assert/strict";
import { auditServing } from "./audit.ts";
import { Load } from "./load.ts";
import {
  askWhileStopped,
  assertUnavailable,
  type ClusterNode,
  ownerOf,
  SILENT_TAKEOVER_MS,
  startNode,
  startNodes,
  TAKEOVER_MS,
  termOf,
  untilSpread,
} from "./nodes.ts";
import { pause, until } from "./program.ts";
import { Stage, untilReady, WIDE_USERS } from "./stage.ts";
import { Watch } from "./watch.ts";
import { answerOf, once } from "./wire.ts";
import { roundsOf } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";

const ROUNDS = roundsOf(1);
const ignore = testServerUrl() === null;

function others(nodes: readonly ClusterNode[], gone: ClusterNode): ClusterNode[] {
  return nodes.filter((node) => node !== gone);
}

async function audit(stage: Stage, load: Load, nodes: readonly ClusterNode[]): Promise<string[]> {
  load.origins = nodes.map(({ origin }) => origin);
  return await auditServing(stage, load, nodes[0]?.origin as string);
}

Deno.test({
  name: "kill -9 of one of three: its cells answer again within seconds, and calls to the others' never fail",
  ignore,
  fn: async () => {
    await using stage = await Stage.open();
    let nodes = await startNodes(stage, 3);
    const times: number[] = [];
    let calls = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const watch = await Watch.open(stage, nodes);
      const victim = nodes[round % nodes.length] as ClusterNode;
      nodes = others(nodes, victim);
      watch.start(nodes);
      await pause(500);
      const term = termOf(victim);
      victim.program.signal("SIGKILL");
      const diedAt = performance.now();
      times.push(await watch.backAfter(victim, diedAt, TAKEOVER_MS));
      await pause(1_000);
      await watch.stop();
      assert.deepEqual(watch.failuresBut(victim), [], "calls to workspaces of the others");
      assert.deepEqual(watch.failuresAfter(diedAt + (times.at(-1) ?? 0)), [], "calls after the return");
      calls += watch.calls;
      assert.ok((await stage.look.query("select from cells where term = $1", [term])).length === 0);
      if (round === ROUNDS - 1) break;
      nodes = [...nodes, await startNode(stage)];
      await untilSpread(stage, nodes);
    }
    console.log(`cells of the killed answered again after ms: ${times.join(", ")}; ${calls} calls watched`);
  },
});

Deno.test({
  name: "any process answers any call, kills of one after another lose nothing",
  ignore,
  fn: async () => {
    await using stage = await Stage.open();
    let nodes = await startNodes(stage, 2);
    await stage.populate(nodes[0]?.origin as string);
    const load = new Load(nodes[0]?.origin as string, stage.secretKey);
    for (let round = 0; round < 2 * ROUNDS; round++) {
      load.origins = nodes.map(({ origin }) => origin);
      load.start();
      await pause(500 + Math.random() * 2_000);
      const victim = nodes[Math.floor(Math.random() * nodes.length)] as ClusterNode;
      nodes = others(nodes, victim);
      load.origins = nodes.map(({ origin }) => origin);
      victim.program.signal("SIGKILL");
      await until(
        "everything is owned",
        TAKEOVER_MS,
        async () => await ownerOf(stage, nodes, stage.workspaceId),
      );
      await load.stop();
      assert.deepEqual(await audit(stage, load, nodes), [], load.record.summary());
      nodes = [...nodes, await startNode(stage)];
    }
    console.log(`${2 * ROUNDS} kills: ${load.record.summary()}`);
  },
});

Deno.test({
  name: "a process that is stopped for longer than its session lives answers nothing stale when it wakes",
  ignore,
  fn: async () => {
    await using stage = await Stage.open();
    let nodes = await startNodes(stage, 2);
    await stage.populate(nodes[0]?.origin as string);
    const load = new Load(nodes[0]?.origin as string, stage.secretKey);
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await untilSpread(stage, nodes);
      load.origins = nodes.map(({ origin }) => origin);
      load.start();
      await pause(500 + Math.random() * 1_500);
      const frozen = await ownerOf(stage, nodes, stage.workspaceId) as ClusterNode;
      nodes = others(nodes, frozen);
      frozen.program.signal("SIGSTOP");
      const stoppedAt = performance.now();
      load.origins = nodes.map(({ origin }) => origin);
      await until(
        "others own its cells",
        SILENT_TAKEOVER_MS,
        () => ownerOf(stage, nodes, stage.workspaceId),
      );
      times.push(Math.round(performance.now() - stoppedAt));
      await pause(500);
      const asked = await askWhileStopped(stage, frozen);
      frozen.program.signal("SIGCONT");
      for (const outcome of await Promise.all(asked)) assertUnavailable(outcome);
      // It joins again by itself, as another node, and answers what is true.
      await untilReady(frozen.origin, SILENT_TAKEOVER_MS);
      await load.stop();
      nodes = [frozen, ...nodes];
      assert.deepEqual(await audit(stage, load, nodes), [], load.record.summary());
    }
    console.log(
      `cells of a stopped process answered again after ms: ${times.join(", ")}; ${load.record.summary()}`,
    );
  },
});

Deno.test({
  name: "a process that is stopped for a few seconds goes on, with nothing lost",
  ignore,
  fn: async () => {
    await using stage = await Stage.open();
    const nodes = await startNodes(stage, 2);
    await stage.populate(nodes[0]?.origin as string);
    const load = new Load(nodes[0]?.origin as string, stage.secretKey);
    load.origins = nodes.map(({ origin }) => origin);
    load.start();
    for (let round = 0; round < 2 * ROUNDS; round++) {
      await pause(Math.random() * 500);
      const napper = nodes[round % 2] as ClusterNode;
      napper.program.signal("SIGSTOP");
      await pause(Math.random() * 4_000);
      napper.program.signal("SIGCONT");
      await untilReady(napper.origin, 60_000);
    }
    await load.stop();
    assert.deepEqual(await audit(stage, load, nodes), [], load.record.summary());
    const body = { userId: WIDE_USERS[0], event: "image.x" };
    for (const { origin } of nodes) {
      const call = { method: "POST", path: "/api/v1/can-use", bearer: stage.secretKey, body };
      assert.equal(answerOf(await once(origin, call)).status, 200);
    }
  },
});
