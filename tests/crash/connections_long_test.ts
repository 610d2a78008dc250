// Lost database connections: no unwritten answer gets out, and the same process serves again by itself within 20 s of
// the database's return. On a server only.

import assert from "node:assert/strict";
import { auditServing } from "./audit.ts";
import { Cable } from "./cable.ts";
import { Load } from "./load.ts";
import { pause, type Program } from "./program.ts";
import { Stage, untilReady } from "./stage.ts";
import { roundsOf } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";

const BREAKS = roundsOf(2);
const BACK_MS = 60_000;
const ignore = testServerUrl() === null;

/** Sessions of the program; the appending session holds the locks of cells. */
const OF_PROGRAM = "datname = $1 and pid <> pg_backend_pid()";
const IS_LOCKING = "pid in (select pid from pg_locks where locktype = 'advisory' and granted)";

async function terminate(stage: Stage, which: string): Promise<void> {
  const { admin, name } = stage.server;
  await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where ${OF_PROGRAM} and ${which}`,
    [
      name,
    ],
  );
}

interface Scene {
  readonly stage: Stage;
  readonly cable: Cable;
  readonly program: Program;
  readonly origin: string;
  readonly load: Load;
}

/** Breaks connections under load again and again; each time the same process must serve again by itself. */
async function breakOften(breakOnce: (scene: Scene) => Promise<void>): Promise<void> {
  await using stage = await Stage.open();
  await using cable = new Cable(stage.server.url);
  const { program, origin } = await stage.startReady({ DATABASE_URL: cable.through(stage.server.url) });
  await stage.populate(origin);
  const load = new Load(origin, stage.secretKey);
  const scene = { stage, cable, program, origin, load };
  load.start();
  try {
    for (let round = 0; round < BREAKS; round++) {
      await pause(Math.random() * 1_500);
      await breakOnce(scene);
      await untilReady(origin, BACK_MS).catch((error) => {
        throw new Error(`${error.message}\n${program.stderr.slice(-4_000)}`);
      });
      assert.equal(program.hasEnded, false, program.stderr);
    }
  } finally {
    await load.stop();
  }
  await untilReady(origin, BACK_MS);
  const faults = await auditServing(stage, load, origin);
  assert.deepEqual(faults, [], `${load.record.summary()}\n${program.stderr.slice(-4_000)}`);
  console.log(`${BREAKS} breaks: ${load.record.summary()}`);
}

Deno.test({
  name: "the session that appends is ended again and again and no answer is lost",
  ignore,
  fn: () => breakOften(({ stage }) => terminate(stage, IS_LOCKING)),
});

Deno.test({
  name: "every session is ended again and again and no answer is lost",
  ignore,
  fn: () => breakOften(({ stage }) => terminate(stage, "true")),
});

Deno.test({
  name: "the cable is cut again and again and no answer is lost",
  ignore,
  fn: () => breakOften(({ cable }) => Promise.resolve(cable.cut())),
});

Deno.test({
  name: "the cable is cut for seconds and the same process serves again",
  ignore,
  fn: () => breakOften(({ cable }) => cable.cutFor(Math.random() * 4_000)),
});

Deno.test({
  name: "the database refuses connections for seconds and the same process serves again",
  ignore,
  fn: () =>
    breakOften(async ({ stage }) => {
      const { admin, name } = stage.server;
      await admin.script(`alter database ${name} allow_connections false`);
      await terminate(stage, "true");
      await pause(Math.random() * 4_000);
      await admin.script(`alter database ${name} allow_connections true`);
    }),
});
