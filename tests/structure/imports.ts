// Who imports whom: layers, packages, and the one form of an import that every tool can follow.

import assert from "node:assert/strict";
import { MAY_IMPORT, PACKAGE_HOMES } from "./layers.ts";
import { folderOf, importGraph, SOURCE, sourceFiles, textOf } from "./sources.ts";

/** The layer of a file: its own entry, or that of its folder. Tests have none. */
function layerOf(file: string): string | null {
  if (file.startsWith("tests/")) return null;
  return file in MAY_IMPORT ? file : folderOf(file);
}

const isOwnFile = (target: string) => /^(src|actors|routes|sql|tests)\//.test(target);

Deno.test("every folder has its layer, and imports only what its layer lists", async () => {
  const faults: string[] = [];
  for (const [file, imports] of await importGraph()) {
    const layer = layerOf(file);
    if (layer === null || !SOURCE.test(file)) continue;
    const allowed = MAY_IMPORT[layer];
    if (allowed === undefined) {
      faults.push(`${layer} stands in no layer`);
      continue;
    }
    for (const { target } of imports) {
      if (!isOwnFile(target) || folderOf(target) === layer) continue;
      if (!allowed.includes(folderOf(target)) && !allowed.includes(target)) {
        faults.push(`${file} -> ${target}`);
      }
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("no layer lists what it does not need", async () => {
  const needed = new Set<string>();
  for (const [file, imports] of await importGraph()) {
    const layer = layerOf(file);
    for (const { target } of imports) {
      needed.add(`${layer} -> ${target}`).add(`${layer} -> ${folderOf(target)}`);
    }
  }
  const listed = Object.entries(MAY_IMPORT).flatMap(([layer, targets]) =>
    targets.map((target) => `${layer} -> ${target}`)
  );
  assert.deepEqual(listed.filter((entry) => !needed.has(entry)), []);
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
