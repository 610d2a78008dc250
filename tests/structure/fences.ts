// Writes have a fence. A transaction outside of the appending session begins by holding the cell that it writes for,
// so only the code that makes those transactions may open one.

import assert from "node:assert/strict";
import { sourceFiles, textOf } from "./sources.ts";

/** Who may open a transaction: storage, reads in one snapshot, and changes of the registry, which hold its row. */
const MAY_OPEN = /^src\/storage\/|^src\/tenant\/registry_changes\.ts$/;

Deno.test("transactions are opened by storage, by reads and by changes of the registry alone", async () => {
  const faults: string[] = [];
  for (const path of await sourceFiles("src", "actors", "routes")) {
    if (MAY_OPEN.test(path)) continue;
    if (/\.transaction\b|\btransaction[,:} ].*= (world|serving|database)\b/.test(await textOf(path))) {
      faults.push(`${path}: write by inCell`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("what the stores write outside of the journal asks for the session of a transaction", async () => {
  const faults: string[] = [];
  for (const path of await sourceFiles("src/storage/stores", "src/storage/queries")) {
    // One statement of a pool has no fence: a function that writes takes a `Session`, which no pool is.
    const writes = /\b(reader|database)\.query(<[^(]*>)?\(\s*[`"](insert into|update|delete from) /g;
    for (const [found] of (await textOf(path)).matchAll(writes)) faults.push(`${path}: ${found}`);
  }
  assert.deepEqual(faults, []);
});
