// Prints the test files below the given folders that can open a store, long ones left out: `.ci/run` runs them on a server
// once more. The others would prove there what they have proved before.

import { importGraph } from "../structure/sources.ts";

const graph = await importGraph();
const stored = new Set(["tests/support/test_store.ts"]);
for (let known = 0; known !== stored.size;) {
  known = stored.size;
  for (const [file, imports] of graph) {
    if (imports.some(({ target }) => stored.has(target))) stored.add(file);
  }
}
const isAsked = (file: string) => Deno.args.some((folder) => file.startsWith(`${folder}/`));
const files = [...stored].filter((file) =>
  isAsked(file) && file.endsWith("_test.ts") && !file.endsWith("_long_test.ts")
);
console.log(files.sort().join("\n"));
