// `deno task catalog:schema`: writes the JSON Schema of catalogs and the tables of their page, from the schemas that
// check catalogs. A test fails when the files are out of date.

import { catalogJsonSchema, withTables } from "../tenant/catalog/reference.ts";
import { makeProgram, openShell, runProgram, type Shell } from "./shell.ts";

const FOLDER = new URL("../tenant/catalog/", import.meta.url);

/** The text of each file by its name in the folder of the catalog. */
export async function catalogFiles(): Promise<Map<string, string>> {
  const page = await Deno.readTextFile(new URL("CATALOG.md", FOLDER));
  return new Map([
    ["catalog.schema.json", `${JSON.stringify(catalogJsonSchema(), null, 2)}\n`],
    ["CATALOG.md", withTables(page)],
  ]);
}

async function writeFiles(shell: Shell): Promise<void> {
  for (const [name, text] of await catalogFiles()) {
    await Deno.writeTextFile(new URL(name, FOLDER), text);
    shell.print(`Wrote src/tenant/catalog/${name}`);
  }
}

if (import.meta.main) {
  const shell = openShell([]);
  const program = makeProgram(
    shell,
    "deno task catalog:schema",
    "Writes the JSON Schema and the page of the catalog format.",
  ).action(() => writeFiles(shell));
  Deno.exit(await runProgram(program, Deno.args, shell));
}
