// Lost database connections: no unwritten answer gets out, and the same process serves again by itself within 20 s of
// the database's return. On a server only.

import assert from "node:assert/strict";
import { auditServing } from "./audit.ts";
import { Cable } from "./cable.ts";
import { Load } from "./load.ts";
import { termOf } from "./nodes.ts";
import { pause, until } from "./program.ts";
import { Stage, untilReady } from "./stage.ts";
import { roundsOf } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";

const ROUNDS = roundsOf(2);
const BACK_MS = 60_000;
const OUTAGE_MAX_MS = 4_000;

/** Sessions of the program; the appending session holds the locks of cells. */
const OF_PROGRAM = "datname = $1 and pid <> pg_backend_pid()";
const IS_LOCKING = "pid in (select pid from pg_locks where locktype = 'advisory' and granted)";

async function terminate(stage: Stage, which: string): Promise<void> {
  const { admin, name } = stage.server;
  await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where ${OF_PROGRAM} and ${which}`,
    [name],
  );
}

interface Scene {
  readonly stage: Stage;
  readonly cable: Cable;
}

/** What breaks connections, by what it does. */
const BREAKS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  "the session that appends is ended": ({ stage }) => terminate(stage, IS_LOCKING),
  "every session is ended": ({ stage }) => terminate(stage, "true"),
  "the cable is cut": ({ cable }) => Promise.resolve(cable.cut()),
  "the cable is cut for seconds": ({ cable }) => cable.cutFor(Math.random() * OUTAGE_MAX_MS),
  "the database refuses connections for seconds": async ({ stage }) => {
    const { admin, name } = stage.server;
    await admin.script(`alter database ${name} allow_connections false`);
    await terminate(stage, "true");
    await pause(Math.random() * OUTAGE_MAX_MS);
    await admin.script(`alter database ${name} allow_connections true`);
  },
};

Deno.test({
  name: "connections break in any way again and again: the same process serves again, and no answer is lost",
  ignore: testServerUrl() === null,
  fn: async (test) => {
    await using stage = await Stage.open();
    await using cable = new Cable(stage.server.url);
    const { program, origin } = await stage.startReady({ DATABASE_URL: cable.through(stage.server.url) });
    await stage.populate(origin);
    const load = new Load(origin, stage.secretKey);
    for (const [name, breakOnce] of Object.entries(BREAKS)) {
      await test.step(name, async () => {
        load.start();
        try {
          for (let round = 0; round < ROUNDS; round++) {
            await pause(Math.random() * 1_500);
            const term = termOf({ program, origin });
            await breakOnce({ stage, cable });
            // It may still be ready when it is asked: on a busy machine sessions end late.
            const isBack = () => termOf({ program, origin }) === term ? null : true;
            await until("it serves under another term", BACK_MS, isBack).catch((error) => {
              throw new Error(`${error.message}\n${program.stderr.slice(-4_000)}`);
            });
            await untilReady(origin, BACK_MS);
            assert.equal(program.hasEnded, false, program.stderr);
          }
        } finally {
          await load.stop();
        }
        const faults = await auditServing(stage, load, origin);
        assert.deepEqual(faults, [], `${load.record.summary()}\n${program.stderr.slice(-4_000)}`);
      });
    }
    console.log(`${Object.keys(BREAKS).length * ROUNDS} breaks: ${load.record.summary()}`);
  },
});
