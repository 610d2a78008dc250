// Words that were given up, so that they do not come back. src/VOCABULARY.md says what each word means.

import assert from "node:assert/strict";
import { sourceFiles, textOf } from "./sources.ts";

interface Retired {
  readonly pattern: RegExp;
  /** Folders, or files, in which the word means something else than it should. */
  readonly where: readonly string[];
  readonly use: string;
}

const CODE = ["src", "actors", "routes"];

const RETIRED: readonly Retired[] = [
  {
    pattern: /\bAdminOperation\b|\bOperationRequest\b|\bOperationDoc\b|\boperation\(/,
    where: CODE,
    use: "endpoint; an operation is what is metered",
  },
  { pattern: /\bisHeld\b/, where: CODE, use: "isValid; held are amounts" },
  {
    pattern: /\breleaseLock\b|\breleaseLease\b/,
    where: CODE,
    use: "unlock, end; a release settles a reservation",
  },
  { pattern: /\b(flush|commit)Batch\b/, where: CODE, use: "append; a commit settles a reservation" },
  { pattern: /\bbucket(Start|End)\b/, where: CODE, use: "windowStart, windowEnd" },
];

Deno.test("no word that was given up is back", async () => {
  const faults: string[] = [];
  for (const { pattern, where, use } of RETIRED) {
    for (const path of await sourceFiles(...where)) {
      const lines = (await textOf(path)).split("\n");
      lines.forEach((line, at) => {
        if (pattern.test(line)) faults.push(`${path}:${at + 1}: ${line.trim()} (use ${use})`);
      });
    }
  }
  assert.deepEqual(faults, []);
});
