// SIGTERM and SIGINT: every call in flight ends as 200 or 503 and none is cut off, what was decided is in the tables,
// and the exit status is 0 within 20 s.

import assert from "node:assert/strict";
import { auditStopped } from "./audit.ts";
import { Load } from "./load.ts";
import { type ClusterNode, startNode, startNodes, untilSpread } from "./nodes.ts";
import { pause } from "./program.ts";
import { Stage, WIDE_USERS } from "./stage.ts";
import { Watch } from "./watch.ts";
import { answerOf, type Outcome, Wire } from "./wire.ts";
import { roundsOf } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";

const ROUNDS = roundsOf(1);
const EXIT_MS = 60_000;

Deno.test("on SIGTERM and on SIGINT under load no call is cut off and everything is drained", async () => {
  await using stage = await Stage.open();
  let { program, origin } = await stage.startReady();
  await stage.populate(origin);
  const load = new Load(origin, stage.secretKey);
  for (const signal of Array<readonly Deno.Signal[]>(ROUNDS).fill(["SIGTERM", "SIGINT"]).flat()) {
    load.start();
    await pause(200 + Math.random() * 800);
    program.signal(signal);
    const status = await program.exit(EXIT_MS);
    await load.stop();
    assert.equal(status.code, 0, program.stderr);
    assert.equal(load.record.answers.get("cut") ?? 0, 0, `${load.record.summary()}\n${program.stderr}`);
    const [journal] = await stage.withDatabase((database) =>
      database.query<{ left: number }>("select count(*)::bigint as left from journal")
    );
    assert.equal(journal?.left, 0, "the journal is drained");
    ({ program, origin } = await stage.startReady());
    load.origins = [origin];
    await load.finish(origin);
  }
  program.signal("SIGTERM");
  assert.equal((await program.exit(EXIT_MS)).code, 0);
  assert.deepEqual(await auditStopped(stage, load), [], load.record.summary());
  console.log(`${2 * ROUNDS} stops: ${load.record.summary()}`);
});

Deno.test("on SIGTERM calls that were sent on idle connections and at once on many are answered", async () => {
  await using stage = await Stage.open();
  const { program, origin } = await stage.startReady();
  await stage.populate(origin);
  const wires = Array.from({ length: 200 }, () => new Wire(origin));
  const call = (wire: Wire) =>
    wire.call({
      method: "POST",
      path: "/api/v1/track",
      bearer: stage.secretKey,
      body: { userId: WIDE_USERS[0], event: "image.x" },
    });
  await Promise.all(wires.map(call));
  const asked = wires.map(call);
  program.signal("SIGTERM");
  const kinds = Map.groupBy(await Promise.all(asked), nameOf);
  wires.forEach((wire) => wire.close());
  assert.equal((await program.exit(EXIT_MS)).code, 0);
  for (const kind of kinds.keys()) {
    assert.ok(["200", "503"].includes(kind), `${kind}: ${kinds.get(kind)?.length}`);
  }
  for (const outcome of kinds.get("503") ?? []) {
    assert.equal(answerOf(outcome).headers.get("connection"), "close", "the last answer on its connection");
  }
});

Deno.test({
  name: "one of three processes that ends by SIGTERM hands its cells over, and no call to any process fails",
  ignore: testServerUrl() === null,
  fn: async () => {
    await using stage = await Stage.open();
    let nodes = await startNodes(stage, 3);
    for (let round = 0; round < ROUNDS; round++) {
      const watch = await Watch.open(stage, nodes);
      const leaver = nodes[round % nodes.length] as ClusterNode;
      nodes = nodes.filter((node) => node !== leaver);
      watch.start(nodes);
      await pause(300);
      leaver.program.signal("SIGTERM");
      assert.equal((await leaver.program.exit(EXIT_MS)).code, 0, leaver.program.stderr);
      await pause(300);
      await watch.stop();
      assert.deepEqual(watch.failuresBut(null), []);
      assert.ok(watch.calls > 50, String(watch.calls));
      if (round === ROUNDS - 1) break;
      nodes = [...nodes, await startNode(stage)];
      await untilSpread(stage, nodes);
    }
  },
});

Deno.test("SIGTERM at any moment of a start ends the process in time", async () => {
  await using stage = await Stage.open(testServerUrl(), true);
  for (let round = 0; round < ROUNDS; round++) {
    const program = stage.start();
    await pause(Math.random() * 1_500);
    program.signal("SIGTERM");
    const { code, signal } = await program.exit(EXIT_MS);
    assert.ok(code === 0 || signal === "SIGTERM", `${code} ${signal}: ${program.stderr}`);
  }
  const { program } = await stage.startReady();
  program.signal("SIGTERM");
  assert.equal((await program.exit(EXIT_MS)).code, 0);
});

function nameOf(outcome: Outcome): string {
  return outcome.kind === "answer" ? String(outcome.answer.status) : outcome.kind;
}
