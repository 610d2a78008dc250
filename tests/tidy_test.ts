// The structure of the project as tests: who may import whom, what each folder may touch, sizes, and words. A rule
// that only a document states is forgotten; these are checked at every run.

import assert from "node:assert/strict";
import { MIGRATIONS } from "../sql/migrations.ts";
import { createHash } from "node:crypto";

const ROOT = new URL("..", import.meta.url).pathname;
const FILE_LINES_MAX = 450;
const FOLDERS = ["src", "actors", "routes", "sql", "tests"];

interface Dependency {
  readonly specifier: string;
  readonly code?: { readonly specifier: string };
  readonly type?: { readonly specifier: string };
}

interface ModuleInfo {
  readonly kind?: string;
  readonly specifier: string;
  readonly dependencies?: readonly Dependency[];
}

/** Every source file with what it imports, files as paths from the root, packages as "npm:name". */
async function importGraph(): Promise<Map<string, string[]>> {
  const roots = ["src/main.ts", "src/client/client.ts"];
  for await (const path of sourceFiles("src/tasks")) if (path.endsWith(".ts")) roots.push(path);
  const modules = (await Promise.all(roots.map(modulesOf))).flat();
  const graph = new Map<string, string[]>();
  for (const { specifier, dependencies = [] } of modules) {
    if (!specifier.startsWith(`file://${ROOT}`)) continue;
    graph.set(
      specifier.slice(`file://${ROOT}`.length),
      dependencies.map(({ specifier: written, code, type }) => {
        const target = code?.specifier ?? type?.specifier ?? written;
        return target.startsWith(`file://${ROOT}`) ? target.slice(`file://${ROOT}`.length) : written;
      }),
    );
  }
  return graph;
}

async function modulesOf(root: string): Promise<ModuleInfo[]> {
  const output = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", root],
    cwd: ROOT,
    stdout: "piped",
    stderr: "null",
  }).output();
  return (JSON.parse(new TextDecoder().decode(output.stdout)) as { modules: ModuleInfo[] }).modules;
}

async function* sourceFiles(folder: string): AsyncIterable<string> {
  for await (const entry of Deno.readDir(`${ROOT}${folder}`)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) yield* sourceFiles(path);
    else yield path;
  }
}

/** What every part may use: rules, bounds, time and logs. */
const GROUND = ["src/domain/", "src/process/"];

/** Which folders a file of a folder may import beside itself; the longest folder that fits decides. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  "src/domain/": [],
  "src/process/": ["src/domain/"],
  "src/secrets/": ["src/process/"],
  "actors/": [...GROUND, "src/observability/runtime_counts.ts", "src/observability/spans.ts"],
  "src/observability/": ["src/domain/", "src/service/"],
  "src/storage/": [...GROUND, "actors/port.ts", "src/tenant/registry.ts", "sql/"],
  "src/read/": [...GROUND, "src/storage/", "src/tenant/registry.ts"],
  "src/compose/": [...GROUND, "actors/", "src/read/", "src/service/", "src/storage/"],
  "src/privacy/": [...GROUND, "actors/", "src/read/", "src/service/", "src/storage/"],
  "src/doctor/": [...GROUND, "sql/", "src/read/", "src/service/", "src/storage/"],
  "src/service/": [...GROUND, "actors/", "sql/", "src/observability/", "src/storage/", "src/tenant/"],
  "src/housekeeping/": [
    ...GROUND,
    "actors/",
    "src/observability/",
    "src/privacy/",
    "src/service/",
    "src/storage/",
  ],
  "src/tenant/": [
    ...GROUND,
    "actors/",
    "src/compose/",
    "src/secrets/",
    "src/service/",
    "src/storage/",
  ],
  "src/mcp/": [],
  "src/client/": [],
  "routes/": [
    ...GROUND,
    "actors/",
    "src/compose/",
    "src/doctor/",
    "src/housekeeping/",
    "src/mcp/",
    "src/observability/",
    "src/privacy/",
    "src/read/",
    "src/secrets/",
    "src/service/",
    "src/tenant/",
  ],
  "sql/": [],
};

/** Packages with one home: only these places may import them. */
const PACKAGE_HOMES: Readonly<Record<string, readonly string[]>> = {
  hono: ["routes/"],
  zod: ["routes/", "src/process/settings.ts", "src/tenant/catalog/"],
  postgres: ["src/storage/"],
  "@electric-sql/pglite": ["src/storage/"],
  commander: ["src/tasks/"],
  openai: ["src/compose/"],
  ajv: ["src/compose/"],
  "@modelcontextprotocol/sdk": ["src/mcp/"],
  typescript: ["src/tasks/"],
  "prom-client": ["src/observability/"],
  "@opentelemetry/api": ["src/observability/"],
};

Deno.test("imports point downwards: domain imports nothing, actors know no storage, routes know no SQL", async () => {
  const faults: string[] = [];
  for (const [file, imports] of await importGraph()) {
    const folder = Object.keys(MAY_IMPORT).filter((place) => file.startsWith(place))
      .sort((a, b) => b.length - a.length)[0];
    if (folder === undefined) continue;
    const allowed = [folder, ...MAY_IMPORT[folder] as readonly string[]];
    for (const target of imports) {
      const isFile = /^(src|actors|routes|sql|tests)\//.test(target);
      if (isFile && !allowed.some((place) => target.startsWith(place))) faults.push(`${file} -> ${target}`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("the domain imports no package and no runtime module", async () => {
  const faults: string[] = [];
  for (const [file, imports] of await importGraph()) {
    if (!file.startsWith("src/domain/")) continue;
    faults.push(
      ...imports.filter((target) => !target.startsWith("src/domain/")).map((to) => `${file} -> ${to}`),
    );
  }
  assert.deepEqual(faults, []);
});

Deno.test("each package has one home", async () => {
  const faults: string[] = [];
  for (const [file, imports] of await importGraph()) {
    for (const target of imports) {
      const name = Object.keys(PACKAGE_HOMES).find((known) =>
        target === known || target.startsWith(`${known}/`)
      );
      const homes = name === undefined ? undefined : PACKAGE_HOMES[name];
      if (homes !== undefined && !homes.some((home) => file.startsWith(home))) {
        faults.push(`${file} -> ${target}`);
      }
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("no module imports itself through others", async () => {
  const graph = await importGraph();
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (file: string, path: string[]) => {
    if (path.includes(file)) {
      cycles.push([...path.slice(path.indexOf(file)), file].join(" -> "));
      return;
    }
    if (done.has(file)) return;
    for (const target of graph.get(file) ?? []) if (graph.has(target)) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  assert.deepEqual(cycles, []);
});

Deno.test("files stay short and open with what they own", async () => {
  const faults: string[] = [];
  for (const folder of FOLDERS) {
    for await (const path of sourceFiles(folder)) {
      if (!path.endsWith(".ts")) continue;
      const text = await Deno.readTextFile(ROOT + path);
      const lines = text.split("\n").length;
      if (lines > FILE_LINES_MAX) faults.push(`${path}: ${lines} lines`);
      if (!text.startsWith("// ")) faults.push(`${path}: does not open with what it owns`);
      if (/^export \* from/m.test(text)) faults.push(`${path}: is a barrel`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("the domain has no await, no clock and no chance", async () => {
  const faults: string[] = [];
  for await (const path of sourceFiles("src/domain")) {
    if (!path.endsWith(".ts")) continue;
    const code = (await Deno.readTextFile(ROOT + path)).replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, "");
    for (
      const banned of [
        /\bawait\b/,
        /\basync\b/,
        /Date\.now/,
        /new Date\(\)/,
        /Math\.random/,
        /\bDeno\./,
        /crypto\./,
      ]
    ) {
      if (banned.test(code)) faults.push(`${path}: ${banned}`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("every folder with code says in a README what it owns", async () => {
  const folders = new Set<string>();
  for (const folder of FOLDERS) {
    for await (const path of sourceFiles(folder)) {
      if (path.endsWith(".ts")) folders.add(path.replace(/\/[^/]+$/, ""));
    }
  }
  const missing: string[] = [];
  for (const folder of folders) {
    const parent = folder.replace(/\/[^/]+$/, "");
    const places = /^(tests|routes)\/[^/]+/.test(folder) ? [folder, parent] : [folder];
    const found = await Promise.all(places.map((place) => exists(`${ROOT}${place}/README.md`)));
    if (!found.includes(true)) missing.push(folder);
  }
  assert.deepEqual(missing, []);
});

Deno.test("landed migrations are never edited", () => {
  const landed: Record<string, string> = {
    "0001_core": "2a0e841b97075a9de1bd7ef141ea57d14a1280f137deb058600894e589658364",
    "0002_credits": "c017099454c56448e109283d4508ff479a990aa83f531f14ea4d3e37334ebded",
    "0003_aliases": "b55020bf5615249024743a864b132d19e4ecb14643f3a4986c273475be1f53b3",
    "0004_logs": "b09558bb9962605e337facf331d2f388ec37f0307ba01cdeef65310508015879",
    "0005_people": "9e0076e9a7134799c4f764ac23cba34e2715c83492c49c4c99c2395387684f17",
    "0006_compose": "f346fc648722a33b172c6fab1e3f4206a956257c5bd831734c68f345529e2b5c",
    "0007_large_tables": "2c38a00dbb25475dc8ade7f04b8013205c3246a2ad13dbfe4e77b89cde2c1355",
    "0008_identity_secrets": "bae78ea9e9f47c78678138b84b8f0b2eeb3f5ecdf7ecdffdb46de941b199da1c",
  };
  for (const { name, sql } of MIGRATIONS) {
    const known = landed[name];
    assert.ok(known !== undefined, `Add the checksum of "${name}" to this list`);
    assert.equal(createHash("sha256").update(sql).digest("hex"), known, `"${name}" has changed`);
  }
});

Deno.test("tasks list their permissions", async () => {
  const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`)) as {
    tasks: Record<string, string>;
  };
  for (const [name, command] of Object.entries(tasks)) {
    assert.ok(!/(^|\s)(-A|--allow-all)(\s|$)/.test(command), `The task "${name}" allows everything`);
  }
});

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
