// What the READMEs promise: one in every folder with code, links that lead somewhere, a front page
// that can be read in one go.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { filesOf, folderOf, FOLDERS, ROOT, sourceFiles, textOf } from "./sources.ts";

const FRONT_BYTES_MAX = 12 * 1024;
/** Folders whose parts may share the README of the folder above. */
const MAY_SHARE = /^(tests|routes)\/[^/]+/;

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

Deno.test("links between documents lead to files and headings that are there", async () => {
  const documents = ["README.md"];
  for (const folder of FOLDERS) {
    for await (const path of filesOf(folder)) if (path.endsWith(".md")) documents.push(path);
  }
  const faults: string[] = [];
  for (const path of documents) {
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

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, "").replaceAll(/`[^`]*`/g, "");
}

/** The anchors of a document's headings, as forges make them. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-")
  );
}
