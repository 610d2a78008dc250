// Sentences that a stranger understands: no citation of a document that is not in the repository, and none of the turns
// that made comments, pages, errors and help texts hard to read. Looked for in comments, documents and texts of the code.

import assert from "node:assert/strict";
import { filesOf, FOLDERS, textOf } from "./sources.ts";

/** Documents, or numbered parts of them, that no reader can open. */
const CITATION =
  /beyond\.md|interface\.md|decisions\.md|\b[Ss]ections? \d+\b|\b[Ss]pecification[,:] |\brules? \d+ of\b|\(rules? \d+|cluster's design|of the decisions\b/;

/** Turns to avoid, each with what to write. */
const AVOIDED: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bcomes? to\b(?! an end\b)/, "the result; becomes"],
  [/\b[Ww]hoever\b|\bof whom\b|\bof which\b/, "split the sentence; name the thing"],
  [/\bwhose [a-z]+ (?:is|are|has|was|were)\b/, "split the sentence; name the thing"],
  [/\bst(?:ands?|ood) (?:in|for|at|as|there)\b/, "is, is stored in, means"],
  [/\b(?:is|are|was|were|be|been) told\b|\btells\b/, "reports, receives, is sent"],
  [/\b(?:[Nn]|[Ss]ome|[Aa]ny)body\b/, "no user, another process, any caller"],
  [/\bwhat became of\b/, "status, result"],
  [/\bas (?:it|they) (?:is|are|was|were|stands?)\b/, "unchanged"],
  [/\bon (?:its|their) way\b/, "in flight"],
  [/\bat the moment\b/, "now; currently"],
  [/\bthat (?:is|are) to be\b/, "pending"],
  [/\bis none\b(?![.*]| \*)/, "is not a"],
];

const CODE = /\.(?:tsx?|js)$/;
const TEXT = /\.(?:tsx?|js|md|ya?ml|sh|cfg|service)$/;
const COMMENT_LINE = /^\s*(?:\/\/|\/?\*)/;
/** Strings, text between tags, and comments at the end of a line. */
const TEXTS_IN_CODE = /"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`?|>[^<>{}]+<|\s\/\/ .*$/g;

/** Files that quote what others wrote, or list the patterns themselves. */
const QUOTES = /^tests\/structure\/english\.ts$|_LICENSE$|^sql\/\d/;

interface Line {
  readonly place: string;
  readonly text: string;
}

async function readLines(): Promise<Line[]> {
  const lines: Line[] = [];
  const paths = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", ".ci/run"];
  for (const folder of FOLDERS) for await (const path of filesOf(folder)) paths.push(path);
  for (const path of paths) {
    if (!TEXT.test(path) && path !== ".ci/run" || QUOTES.test(path)) continue;
    const isCode = CODE.test(path);
    (await textOf(path)).split("\n").forEach((line, index) => {
      const text = !isCode || COMMENT_LINE.test(line) ? line : (line.match(TEXTS_IN_CODE) ?? []).join(" ");
      if (text !== "") lines.push({ place: `${path}:${index + 1}`, text });
    });
  }
  return lines;
}

const lines = readLines();

Deno.test("no comment, document or text cites what is not in the repository", async () => {
  const faults = (await lines).filter(({ text }) => CITATION.test(text));
  assert.deepEqual(faults.map(({ place, text }) => `${place}: ${text.trim()}`), []);
});

Deno.test("no sentence has a turn that strangers stumble over", async () => {
  const faults: string[] = [];
  for (const { place, text } of await lines) {
    for (const [pattern, instead] of AVOIDED) {
      if (pattern.test(text)) faults.push(`${place}: ${text.trim()} (write: ${instead})`);
    }
  }
  assert.deepEqual(faults, []);
});
