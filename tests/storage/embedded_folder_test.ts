// The data folder of the embedded store belongs to its user alone, also one that was made by hand or by an earlier version.

import assert from "node:assert/strict";
import { openEmbedded } from "../../src/storage/embedded/embedded_folder.ts";
import { testServerUrl } from "../support/test_store.ts";

/** The entries of a tree that others may use, with their modes. */
function openToOthers(path: string): string[] {
  const { mode, isDirectory } = Deno.lstatSync(path);
  const inside = isDirectory ? [...Deno.readDirSync(path)] : [];
  const own = ((mode ?? 0) & 0o077) === 0 ? [] : [`${path} ${((mode ?? 0) & 0o777).toString(8)}`];
  return [...own, ...inside.flatMap(({ name }) => openToOthers(`${path}/${name}`))];
}

Deno.test({
  name: "no other user of the machine may use the data folder, new or old",
  ignore: testServerUrl() !== null || Deno.build.os === "windows",
  fn: async () => {
    const folder = await Deno.makeTempDir();
    try {
      await Deno.chmod(folder, 0o755);
      const database = await openEmbedded(folder);
      await database.script("create table later (at int); insert into later select generate_series(1, 1000)");
      await database.script("checkpoint");
      assert.deepEqual(openToOthers(folder), []);
      await database.close();
      await Deno.chmod(folder, 0o777);
      await Deno.chmod(`${folder}/pg/base`, 0o755);
      await Deno.chmod(`${folder}/pg/PG_VERSION`, 0o666);
      await (await openEmbedded(folder)).close();
      assert.deepEqual(openToOthers(folder), []);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
