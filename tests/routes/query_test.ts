// Queries: whichever way one is read, it says what the platform reads in it.

import assert from "node:assert/strict";
import fc from "fast-check";
import { readQuery } from "../../routes/body.ts";

Deno.test("a query reads as URLSearchParams does, the first of a repeated name counts", () => {
  const piece = fc.constantFrom(
    "a",
    "userId",
    "=",
    "=",
    "&",
    "&",
    "x.y",
    "~1",
    ":@/",
    "-",
    "+",
    "%20",
    "%c3%a9",
    "?",
    "ü",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const request = new Request(`http://service.test/api/v1/usage?${pieces.join("")}`);
      const expected: Record<string, unknown> = Object.create(null);
      for (const [name, value] of new URL(request.url).searchParams) expected[name] ??= value;
      assert.deepEqual(readQuery(request).members, expected);
    }),
    { numRuns: 3000 },
  );
});

Deno.test("members named as those of objects are plain members of a query", () => {
  const { members } = readQuery(new Request("http://service.test/?__proto__=1&constructor=2"));
  assert.deepEqual(Object.entries(members), [["__proto__", "1"], ["constructor", "2"]]);
});
