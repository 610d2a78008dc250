// `kill -9` at any moment, then start: every answer that a client got is in the state, no hold is lost or doubled,
// nothing is counted twice. A real process is killed many times, under load and during its start.

import assert from "node:assert/strict";
import { auditServing, auditStopped } from "./audit.ts";
import { Load } from "./load.ts";
import { pause } from "./program.ts";
import { Stage } from "./stage.ts";
import { answerOf, once } from "./wire.ts";
import { isKept } from "../../src/process/secrets/data_folder.ts";
import { roundsOf } from "../support/depth.ts";
import { copyEmptyStore } from "../support/kept_stores.ts";

const ROUNDS = roundsOf(3);
const FIRST_STARTS = roundsOf(1);
/** From the token on a first start makes the demo for about so long. */
const DEMO_MS = 150;
const LOAD_MS = 1_500;
const START_MS = 1_500;
/** The embedded store can be looked into only while its program is stopped, which takes its time. */
const TABLES_EVERY = 3;

Deno.test("kill -9 at any moment loses and doubles nothing", async () => {
  await using stage = await Stage.open();
  let { program, origin } = await stage.startReady();
  await stage.populate(origin);
  const load = new Load(origin, stage.secretKey);
  for (let round = 1; round <= ROUNDS; round++) {
    load.start();
    await pause(Math.random() * LOAD_MS);
    await program.kill();
    await load.stop();
    while (Math.random() < 0.4) {
      const early = stage.start();
      await pause(Math.random() * START_MS);
      await early.kill();
    }
    ({ program, origin } = await stage.startReady());
    load.origins = [origin];
    const faults = await auditServing(stage, load, origin);
    if (stage.isEmbedded && (round % TABLES_EVERY === 0 || round === ROUNDS)) {
      program.signal("SIGTERM");
      assert.equal((await program.exit(60_000)).code, 0);
      faults.push(...await auditStopped(stage, load));
      ({ program, origin } = await stage.startReady());
      load.origins = [origin];
    }
    assert.deepEqual(faults, [], `round ${round}: ${load.record.summary()}\n${program.stderr.slice(-2_000)}`);
  }
  console.log(`${ROUNDS} kills: ${load.record.summary()}`);
});

Deno.test("a kill during the first start leaves a folder whose demo and token are whole after the next one", async () => {
  for (let round = 0; round < FIRST_STARTS; round++) {
    await using stage = await Stage.open(null);
    await copyEmptyStore(stage.folder);
    const first = stage.start({ HOLDFAST_ADMIN_TOKEN: "" });
    // The demo is made soon after the token, and before the program serves.
    const isBegun = () => isKept(stage.folder, "admin-token");
    const deadline = performance.now() + 30_000;
    while (!await isBegun() && !first.hasEnded && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await new Promise((resolve) => setTimeout(resolve, Math.random() * DEMO_MS));
    await first.kill();
    const { origin } = await stage.startReady({ HOLDFAST_ADMIN_TOKEN: "" });
    const token = (await Deno.readTextFile(`${stage.folder}/admin-token`)).trim();
    assert.ok(token.length >= 16);
    assert.equal(
      answerOf(await once(origin, { method: "GET", path: "/api/admin/v1/workspaces", bearer: token }))
        .status,
      200,
    );
    const demo = JSON.parse(await Deno.readTextFile(`${stage.folder}/demo.json`));
    const bearer = demo.keys.find((key: { class: string; mode: string }) =>
      key.class === "secret" && key.mode === "live"
    ).key;
    const body = { userId: demo.userId, event: "image.render" };
    const answer = answerOf(await once(origin, { method: "POST", path: "/api/v1/reserve", bearer, body }));
    assert.equal(answer.body.data?.allowed, true, JSON.stringify(answer.body));
  }
});
