// An embedded store as the first start makes it, before its migrations. Making one takes seconds and each of many
// tests wants its own, so one is kept in the folder for temporary files and copied.

import { existsSync } from "node:fs";
import { cp } from "node:fs/promises";
import { openEmbedded } from "../../src/storage/embedded/embedded_folder.ts";

/** Puts an empty store into a data folder that has none. */
export async function copyEmptyStore(folder: string): Promise<void> {
  await cp(`${await keptStore()}/pg`, `${folder}/pg`, { recursive: true });
}

async function keptStore(): Promise<string> {
  const { imports } = JSON.parse(await Deno.readTextFile(new URL("../../deno.json", import.meta.url)));
  const version = imports["@electric-sql/pglite"].split("@").at(-1);
  const kept = `${Deno.env.get("TMPDIR") ?? "/tmp"}/holdfast_test_store_${version}`;
  if (existsSync(kept)) return kept;
  const fresh = `${kept}.${crypto.randomUUID()}`;
  await (await openEmbedded(fresh)).close();
  try {
    await Deno.rename(fresh, kept);
  } catch (error) {
    // Another process was faster.
    if (!existsSync(kept)) throw error;
    await Deno.remove(fresh, { recursive: true });
  }
  return kept;
}
