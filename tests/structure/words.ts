// Words that were given up, so that they do not come back. src/VOCABULARY.md says what each word means.

import assert from "node:assert/strict";
import { sourceFiles, textOf } from "./sources.ts";

interface Retired {
  readonly pattern: RegExp;
  /** Folders, or files, in which the word means something else than it should. */
  readonly where: readonly string[];
  /** The files where it is at home. */
  readonly home?: readonly string[];
  readonly use: string;
}

const CODE = ["src", "actors", "routes"];

const RETIRED: readonly Retired[] = [
  {
    pattern: /\b\w*Operation(Request|Doc|Handler)?\b(?!s)/,
    where: ["routes", "src/tenant"],
    use: "Endpoint; an operation is what is metered",
  },
  {
    pattern: /(?<!workspace's |their )\boperations?\b(?!\/| of the running| this month)/,
    where: ["routes", "src/tenant"],
    use: "endpoint; an operation is what is metered",
  },
  { pattern: /\bisHeld\b/, where: CODE, use: "isValid; held are amounts" },
  {
    pattern: /\brelease(Lock|Lease|Session|Connection)\b/,
    where: CODE,
    use: "unlock, end, close; a release settles a reservation",
  },
  { pattern: /\bcommit(Batch|Transaction)\b/, where: CODE, use: "append; a commit settles a reservation" },
  {
    pattern: /\bsettle(Batch|Append|Gate)\b/,
    where: CODE,
    use: "open, end; what is settled is a reservation",
  },
  { pattern: /\bbucket(Start|End)\b/, where: CODE, use: "windowStart, windowEnd" },
  {
    pattern: /\bmerge(Maps|Objects|Rows|Lists|Options)\b/,
    where: CODE,
    use: "join, addUp; a merge makes one user of two",
  },
  {
    pattern: /[cC]ell(s|\b)/,
    where: ["src/storage/rows"],
    home: ["src/storage/rows/registry_rows.ts"],
    use: "value; a cell is a share of the workspaces",
  },
  {
    pattern: /\b(type Cell|withLaterCells|toCell|fromCell)\b/,
    where: CODE,
    use: "ColumnValue, withLaterColumns, toColumn, fromColumn; a cell is a share of the workspaces",
  },
  {
    pattern: /\bthe (one|last|next) writer\b|\b(is|became|not) the writer\b/,
    where: ["actors", "src/cluster", "src/storage", "src/tenant"],
    use: "a node, the owner of the cell; every node has a writer",
  },
  { pattern: /\bforward(s|ed|ing)? (a|the) calls?\b/, where: CODE, use: "pass on" },
  {
    pattern: /\bServing\b/,
    where: ["routes"],
    home: ["routes/app.ts", "routes/console/parts/ask.ts"],
    use: "the parts that are needed, by their names",
  },
];

Deno.test("no word that was given up is back", async () => {
  const faults: string[] = [];
  for (const { pattern, where, home, use } of RETIRED) {
    for (const path of await sourceFiles(...where)) {
      if (home?.includes(path) === true) continue;
      const lines = (await textOf(path)).split("\n");
      lines.forEach((line, at) => {
        if (pattern.test(line)) faults.push(`${path}:${at + 1}: ${line.trim()} (use ${use})`);
      });
    }
  }
  assert.deepEqual(faults, []);
});
