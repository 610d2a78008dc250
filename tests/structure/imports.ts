// Who imports whom: layers, packages, and the one form of an import that every tool can follow.

import assert from "node:assert/strict";
import { PACKAGE_HOMES, readLayers, STRANGERS } from "./layers.ts";
import { folderOf, importGraph, SOURCE, sourceFiles, textOf } from "./sources.ts";

const isOwnFile = (target: string) => /^(src|actors|routes|sql|tests)\//.test(target);

Deno.test("a file imports its own folder and folders on lower lines of the picture in src/README.md", async () => {
  const layers = await readLayers();
  const faults = new Set<string>();
  for (const [file, imports] of await importGraph()) {
    if (file.startsWith("tests/") || !SOURCE.test(file)) continue;
    const folder = folderOf(file);
    const rank = layers.get(folder);
    if (rank === undefined) faults.add(`${folder} is on no line of the picture`);
    for (const { target } of imports) {
      const below = folderOf(target);
      if (!isOwnFile(target) || below === folder || !layers.has(below)) continue;
      if ((layers.get(below) as number) >= (rank ?? 0)) faults.add(`${file} -> ${target}`);
    }
  }
  assert.deepEqual([...faults], []);
});

Deno.test("folders do not import strangers", async () => {
  const faults: string[] = [];
  for (const [file, imports] of await importGraph()) {
    for (const [folder, strangers] of Object.entries(STRANGERS)) {
      if (!file.startsWith(folder)) continue;
      for (const { target } of imports) {
        if (!target.startsWith(folder) && strangers.some((stranger) => target.startsWith(stranger))) {
          faults.push(`${file} -> ${target}`);
        }
      }
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("the domain imports no package and no module of the runtime", async () => {
  const faults: string[] = [];
  for (const [file, imports] of await importGraph()) {
    if (!file.startsWith("src/domain/")) continue;
    for (const { target } of imports) {
      if (!target.startsWith("src/domain/")) faults.push(`${file} -> ${target}`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("each package has one home, and none but tests use the others", async () => {
  const faults: string[] = [];
  for (const [file, imports] of await importGraph()) {
    if (file.startsWith("tests/")) continue;
    for (const { target } of imports) {
      if (isOwnFile(target) || target.startsWith("node:")) continue;
      const name = Object.keys(PACKAGE_HOMES).find((known) =>
        target === known || target.startsWith(`${known}/`)
      );
      const homes = name === undefined ? [] : PACKAGE_HOMES[name] as readonly string[];
      if (!homes.some((home) => file.startsWith(home))) faults.push(`${file} -> ${target}`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("no module imports itself through others, types included", async () => {
  const graph = await importGraph();
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string, path: string[]) => {
    if (path.includes(file)) {
      circles.push([...path.slice(path.indexOf(file)), file].join(" -> "));
      return;
    }
    if (done.has(file)) return;
    for (const { target } of graph.get(file) ?? []) if (graph.has(target)) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) if (!file.startsWith("tests/")) visit(file, []);
  assert.deepEqual(circles, []);
});

Deno.test("a start loads neither the console nor the tools of agents, and no package that few need", async () => {
  const graph = await importGraph();
  const loaded = new Set(["src/main.ts"]);
  for (const file of loaded) {
    for (const { target, isLoadedFirst } of graph.get(file) ?? []) if (isLoadedFirst) loaded.add(target);
  }
  assert.ok(loaded.has("src/domain/decide.ts"));
  const late = ["routes/console/", "routes/mcp/tools.ts", "@electric-sql/pglite", "openai", "stripe"];
  assert.deepEqual([...loaded].filter((file) => late.some((place) => file.startsWith(place))), []);
});

Deno.test("an import of a file is a relative path; the import map names packages of npm and nothing else", async () => {
  const { imports: map } = JSON.parse(await textOf("deno.json")) as { imports: Record<string, string> };
  const faults = Object.entries(map).filter(([, target]) => !target.startsWith("npm:"))
    .map(([name, target]) => `deno.json: ${name} -> ${target}`);
  for (const [file, imports] of await importGraph()) {
    for (const { written } of imports) {
      const isKnown = Object.keys(map).some((name) =>
        written === name || name.endsWith("/") && written.startsWith(name)
      );
      // What the service does not need stays out of the map, which decides what a start fetches.
      const isInline = file.startsWith("tests/") || PACKAGE_HOMES[written]?.includes(file) === true;
      const isPackage = isKnown || isInline && written.startsWith("npm:");
      if (!/^(\.{1,2}\/|node:)/.test(written) && !isPackage) {
        faults.push(`${file} -> ${written}`);
      }
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("the independent model shares no code with the product", async () => {
  const faults: string[] = [];
  const graph = await importGraph();
  for (const file of await sourceFiles("tests/model")) {
    if (file.endsWith("_test.ts")) continue;
    for (const { target } of graph.get(file) ?? []) {
      if (isOwnFile(target) && !target.startsWith("tests/model/")) faults.push(`${file} -> ${target}`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("a start fetches the program's packages alone: the lock at the top has no other", async () => {
  // `deno task` fetches whatever the import map and this lock name, whichever task it runs.
  const { imports } = JSON.parse(await textOf("deno.json")) as { imports: Record<string, string> };
  const { specifiers } = JSON.parse(await textOf("deno.lock")) as { specifiers: Record<string, string> };
  const packages = Object.values(imports).map((target) => /^npm:@?[^@]+@[^/]+/.exec(target)?.[0]);
  assert.deepEqual(Object.keys(specifiers).sort(), [...new Set(packages)].sort());
});
