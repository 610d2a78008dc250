// What the READMEs promise: one in every folder with code that names its files, links and tasks that are there, a front
// page that can be read in one go.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { filesOf, folderOf, FOLDERS, ROOT, SOURCE, sourceFiles, textOf } from "./sources.ts";

const FRONT_BYTES_MAX = 12 * 1024;
/** A folder with more files than this names each of them in its README. */
const UNNAMED_FILES_MAX = 3;
/** Folders whose parts may share the README of the folder above. */
const MAY_SHARE = /^(tests|routes)\/[^/]+/;
/** A source file, by its path from the root or by its name alone. */
const NAMED_FILE =
  /(?<![\w/.-])(?:(?:src|actors|routes|sql|tests)\/[\w./-]*\w\.(?:tsx?|md|json|sql)|[a-z]\w*\.tsx?)\b/g;
const COMMENT = /^\s*(?:\/\/|\/?\*).*$/gm;

Deno.test("the front README can be read in one go", async () => {
  const bytes = new TextEncoder().encode(await textOf("README.md")).length;
  assert.ok(bytes <= FRONT_BYTES_MAX, `README.md has ${bytes} bytes, ${FRONT_BYTES_MAX} at most`);
});

Deno.test("every folder with code says in a README what it owns", async () => {
  const folders = new Set((await sourceFiles(...FOLDERS)).map(folderOf));
  const missing = [...folders].filter((folder) => {
    const parent = folder.replace(/[^/]+\/$/, "");
    const places = MAY_SHARE.test(folder) ? [folder, parent] : [folder];
    return !places.some((place) => existsSync(`${ROOT}${place}README.md`));
  });
  assert.deepEqual(missing, []);
});

Deno.test("a README of the sources names every file of its folder", async () => {
  const files = Map.groupBy(await sourceFiles("src", "actors", "routes"), folderOf);
  const faults: string[] = [];
  for (const [folder, paths] of files) {
    if (paths.length <= UNNAMED_FILES_MAX || !existsSync(`${ROOT}${folder}README.md`)) continue;
    const text = await textOf(`${folder}README.md`);
    for (const path of paths) {
      const file = path.slice(folder.length);
      const name = file.replace(SOURCE, "");
      if (!new RegExp(`\`${name}(\\.tsx?)?\``).test(text)) faults.push(`${folder}README.md: ${file}`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("the map of the sources leads to every folder, and the list of decisions to every file", async () => {
  const [map, list] = await Promise.all(["src/README.md", "src/decisions/README.md"].map(textOf));
  const missing: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(`${ROOT}src`)) {
    if (isDirectory && !map?.includes(`](${name}/README.md)`)) missing.push(`src/${name}`);
  }
  for await (const { name } of Deno.readDir(`${ROOT}src/decisions`)) {
    if (name !== "README.md" && !list?.includes(`](${name})`)) missing.push(`src/decisions/${name}`);
  }
  assert.deepEqual(missing, []);
});

Deno.test("every task that a document names is there", async () => {
  const { tasks } = JSON.parse(await textOf("deno.json")) as { tasks: Record<string, string> };
  const faults: string[] = [];
  for (const path of await documents()) {
    for (const [, name = ""] of (await textOf(path)).matchAll(/\bdeno task ([a-z][a-z:-]*)/g)) {
      if (!(name in tasks)) faults.push(`${path}: deno task ${name}`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("links between documents lead to files and headings that are there", async () => {
  const faults: string[] = [];
  for (const path of await documents()) {
    for (const [, target = ""] of withoutCode(await textOf(path)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file = "", heading] = target.split("#");
      const found = file === "" ? `${ROOT}${path}` : new URL(file, `file://${ROOT}${path}`).pathname;
      const isThere = existsSync(found) &&
        (heading === undefined || headingsOf(await Deno.readTextFile(found)).includes(heading));
      if (!isThere) faults.push(`${path} -> ${target}`);
    }
  }
  assert.deepEqual(faults, []);
});

Deno.test("a file that a document or a comment names is there", async () => {
  const sources = await sourceFiles(...FOLDERS);
  const names = new Set(sources.map((path) => path.slice(folderOf(path).length)));
  const faults: string[] = [];
  for (const path of [...await documents(), ...sources]) {
    const text = await textOf(path);
    const said = SOURCE.test(path) ? (text.match(COMMENT) ?? []).join("\n") : text;
    for (const [named = ""] of said.matchAll(NAMED_FILE)) {
      const isThere = named.includes("/") ? existsSync(`${ROOT}${named}`) : names.has(named);
      if (!isThere) faults.push(`${path}: ${named}`);
    }
  }
  assert.deepEqual(faults, []);
});

async function documents(): Promise<string[]> {
  const found = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
  for (const folder of FOLDERS) {
    for await (const path of filesOf(folder)) if (path.endsWith(".md")) found.push(path);
  }
  return found;
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, "").replaceAll(/`[^`]*`/g, "");
}

/** The anchors of a document's headings, as forges make them. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-")
  );
}
