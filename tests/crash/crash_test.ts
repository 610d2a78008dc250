// One kill and one stop of a real process under load: `kill -9` neither loses nor doubles an answered call, and
// SIGTERM cuts no call off. The storms and the campaign in the `_long_test.ts` files beside this one go further.

import assert from "node:assert/strict";
import { auditServing, auditStopped } from "./audit.ts";
import { Load } from "./load.ts";
import { until } from "./program.ts";
import { Stage } from "./stage.ts";

const EXIT_MS = 60_000;
const READY_MS = 60_000;
const HOLDS = 50;

Deno.test("a process under load is killed, started and stopped, and every answer stays true", async () => {
  await using stage = await Stage.open();
  const killed = await stage.startReady();
  await stage.populate(killed.origin);
  const load = new Load(killed.origin, stage.secretKey);
  load.start();
  await until("holds were made", READY_MS, () => load.record.holds.size > HOLDS ? true : null);
  await killed.program.kill();
  await load.stop();

  const { program, origin } = await stage.startReady();
  load.origins = [origin];
  const faults = await auditServing(stage, load, origin);
  assert.deepEqual(faults, [], `after the kill: ${load.record.summary()}\n${program.stderr}`);

  const cutBefore = load.record.answers.get("cut") ?? 0;
  load.start();
  await until("more holds were made", READY_MS, () => load.record.holds.size > 2 * HOLDS ? true : null);
  program.signal("SIGTERM");
  assert.equal((await program.exit(EXIT_MS)).code, 0, program.stderr);
  await load.stop();
  assert.equal(load.record.answers.get("cut") ?? 0, cutBefore, `${load.record.summary()}\n${program.stderr}`);

  assert.deepEqual(await auditStopped(stage, load), [], load.record.summary());
});
