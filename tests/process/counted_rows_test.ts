// Counts in memory: alike things are one row, and nothing passes the bounds of all parts and of one.

import assert from "node:assert/strict";
import { CountedRows, countOf } from "../../src/process/counts/counted_rows.ts";

interface Row {
  readonly kind: string;
  readonly count: number;
}

Deno.test("rows are bounded for all parts and for each; what has no room is lost", () => {
  let lost = 0;
  const rows = new CountedRows<string, Row>({
    kindOf: ({ kind }) => kind,
    addUp: (row, { count }) => ({ ...row, count: row.count + count }),
    rowsMax: 5,
    partRowsMax: 3,
    onLost: (count) => lost += count,
  });
  for (const part of ["a", "b"]) {
    for (let kind = 0; kind < 6; kind++) rows.add(part, { kind: String(kind % 4), count: 1 });
  }
  assert.deepEqual([rows.size, rows.sizeOf("a"), rows.sizeOf("b"), lost], [5, 3, 2, 3]);
  assert.deepEqual(rows.take(["a", "unknown"]).map((each) => countOf(each.rows)), [5]);
  assert.deepEqual([rows.size, rows.parts], [2, ["b"]]);
});
