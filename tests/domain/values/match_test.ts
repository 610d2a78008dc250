// Which events a rule covers.

import assert from "node:assert/strict";
import {
  matchesAny,
  type MatchRule,
  nearestDifferences,
  patternCovers,
} from "../../../src/domain/values/match.ts";

Deno.test("a pattern is a name, a prefix with one final star, or a star", () => {
  const rows: [pattern: string, other: string, covers: boolean][] = [
    ["image.make", "image.make", true],
    ["image.make", "image.Make", false],
    ["image.make", "image.make2", false],
    ["image.*", "image.make", true],
    ["image.*", "image.", true],
    ["image.*", "image", false],
    ["image*", "image", true],
    ["*", "anything", true],
    ["*", "*", true],
    ["image.*", "image.*", true],
    ["image.*", "image.fast.*", true],
    ["image.fast.*", "image.*", false],
    ["image.make", "image.*", false],
    ["image.*", "*", false],
    ["", "", true],
  ];
  for (const [pattern, other, covers] of rows) {
    assert.equal(patternCovers(pattern, other), covers, `${pattern} over ${other}`);
  }
});

Deno.test("metadata of a rule is met by the string form of a string, number or boolean", () => {
  const rule: MatchRule = { event: "x", metadata: { a: "1", b: "true" } };
  const rows: [members: Record<string, unknown> | null, matches: boolean][] = [
    [{ a: "1", b: "true" }, true],
    [{ a: 1, b: true, other: null }, true],
    [{ a: 1.0, b: true }, true],
    [{ a: "1.0", b: true }, false],
    [{ a: 1 }, false],
    [{ a: 1, b: null }, false],
    [{ a: [1], b: true }, false],
    [{ a: { toString: "1" }, b: true }, false],
    [{}, false],
    [null, false],
  ];
  for (const [members, matches] of rows) {
    const metadata = members === null ? null : { text: JSON.stringify(members), members };
    assert.equal(matchesAny([rule], "x", metadata), matches, JSON.stringify(members));
  }
});

Deno.test("a rule that asks for an inherited name is not met by an object's prototype", () => {
  const rule: MatchRule = { event: "*", metadata: { constructor: "x" } };
  assert.equal(matchesAny([rule], "e", { text: "{}", members: {} }), false);
});

Deno.test("any rule of a group is enough, and a rule without metadata covers every metadata", () => {
  const rules: MatchRule[] = [{ event: "a", metadata: { k: "v" } }, { event: "b" }];
  assert.equal(matchesAny(rules, "b", { text: "{}", members: { k: "w" } }), true);
  assert.equal(matchesAny(rules, "a", null), false);
  assert.equal(matchesAny([], "a", null), false);
});

Deno.test("the nearest rule names the event and differs in the fewest keys; on a tie it is the first", () => {
  const rules: MatchRule[] = [
    { event: "b" },
    { event: "a", metadata: { size: "5", fast: "true" } },
    { event: "a", metadata: { size: "6", fast: "true" } },
    { event: "a", metadata: { style: "hd" } },
  ];
  const rows: [
    members: Record<string, unknown> | null,
    differences: Record<string, [string, string | null]>,
  ][] = [
    [null, { style: ["hd", null] }],
    [{ style: "hd" }, {}],
    [{ size: 5, style: [1] }, { fast: ["true", null] }],
    [{ size: 6, fast: true, style: "sd" }, {}],
    [{ size: 7, fast: true }, { size: ["5", "7"] }],
    [{ fast: true, style: { deep: 1 } }, { size: ["5", null] }],
  ];
  for (const [members, expected] of rows) {
    const metadata = members === null ? null : { text: "", members };
    const differences = [...nearestDifferences(rules, "a", metadata) ?? []];
    const shown = Object.fromEntries(differences.map(([name, { wanted, given }]) => [name, [wanted, given]]));
    assert.deepEqual(shown, expected, JSON.stringify(members));
    assert.equal(differences.length === 0, matchesAny(rules, "a", metadata));
  }
  assert.equal(nearestDifferences(rules, "c", null), null);
});
