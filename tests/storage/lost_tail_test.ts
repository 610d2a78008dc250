// A drain's commit does not wait for the disk. On the embedded store a copy of the folder of a running store is the state
// after a kill; on a server this needs a crash (tests/crash, the fault "tail").

import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import type { Database } from "../../src/storage/database.ts";
import { openEmbedded } from "../../src/storage/embedded/embedded_folder.ts";
import { copyMigratedStore } from "../support/kept_stores.ts";
import { testServerUrl } from "../support/test_store.ts";
import { counter, joinAlone } from "./sample.ts";

/** Opens the store as it would be after a kill at this moment. */
async function ifKilled(folder: string, look: (database: Database) => Promise<void>): Promise<void> {
  const left = await Deno.makeTempDir({ prefix: "holdfast_left_" });
  try {
    await cp(`${folder}/pg`, `${left}/pg`, { recursive: true });
    const database = await openEmbedded(left);
    await look(database);
    await database.close();
  } finally {
    await Deno.remove(left, { recursive: true });
  }
}

async function stateOf(database: Database) {
  const [journal] = await database.query<{ seqs: string }>("select count(*)::text as seqs from journal");
  const rows = await database.query<{ count: string }>("select count from counters");
  return { inJournal: Number(journal?.seqs), counts: rows.map(({ count }) => count) };
}

Deno.test({
  name:
    "a kill may undo the last drain, and its batch is then in the journal; a later append makes it durable",
  // This test uses a folder, whichever store the other tests use.
  ignore: testServerUrl() !== null,
  fn: async () => {
    const folder = await Deno.makeTempDir({ prefix: "holdfast_tail_" });
    try {
      await copyMigratedStore(folder);
      const database = await openEmbedded(folder);
      const writer = await joinAlone(database, await database.pin(() => {}));
      const first = await writer.append([{ verb: "put", table: "counters", row: counter() }]);
      await writer.drain([first]);
      assert.deepEqual(await stateOf(database), { inJournal: 0, counts: ["1"] });
      await ifKilled(folder, async (left) => {
        assert.deepEqual(await stateOf(left), { inJournal: 1, counts: [] });
        const next = await joinAlone(left, await left.pin(() => {}));
        await next.replay(writer.term);
        assert.deepEqual(await stateOf(left), { inJournal: 0, counts: ["1"] });
        await next.close();
      });
      await writer.append([{ verb: "put", table: "counters", row: counter({ count: 2_000_000n }) }]);
      await ifKilled(folder, async (left) => {
        assert.deepEqual(await stateOf(left), { inJournal: 1, counts: ["1"] });
      });
      await writer.close();
      await database.close();
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
