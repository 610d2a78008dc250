// How much of a text is kept. A row a text.

import assert from "node:assert/strict";
import { cutCharacters, cutText } from "../../../src/domain/values/texts.ts";

const MARK = "…[truncated]";
const MAX = 32_768;

const TEXTS: readonly (readonly [name: string, text: string | null | undefined, kept: string | null])[] = [
  ["none", undefined, null],
  ["null", null, null],
  ["empty", "", ""],
  ["as long as is kept", "a".repeat(MAX), "a".repeat(MAX)],
  ["one byte longer", "a".repeat(MAX + 1), "a".repeat(MAX) + MARK],
  ["of two bytes a character", "é".repeat(MAX / 2), "é".repeat(MAX / 2)],
  ["one character longer", "é".repeat(MAX / 2 + 1), "é".repeat(MAX / 2) + MARK],
  [
    "cut before a character that does not fit whole",
    `a${"€".repeat(MAX / 3 + 1)}`,
    `a${"€".repeat(10_922)}${MARK}`,
  ],
  ["four bytes a character, as long as is kept", "😀".repeat(MAX / 4), "😀".repeat(MAX / 4)],
  ["four bytes a character, across by three", "aaa" + "😀".repeat(8192), "aaa" + "😀".repeat(8191) + MARK],
  ["three bytes a character, as long as is kept", "aa" + "€".repeat(10_922), "aa" + "€".repeat(10_922)],
  ["with a mark of its own", "a".repeat(32_700) + MARK, "a".repeat(32_700) + MARK],
  ["cut before a pair of surrogates", `a${"𝄞".repeat(MAX / 4)}`, `a${"𝄞".repeat(MAX / 4 - 1)}${MARK}`],
];

for (const [name, text, kept] of TEXTS) {
  Deno.test(`a prompt or response, ${name}`, () => assert.equal(cutText(text), kept));
}

// deno-fmt-ignore: a row a case
const SHORT: readonly (readonly [text: string | null, max: number, kept: string | null])[] = [
  [null, 3, null],
  ["abc", 3, "abc"],
  ["abcd", 3, "abc"],
  ["𝄞𝄞𝄞", 3, "𝄞𝄞𝄞"],
  ["𝄞𝄞𝄞a", 3, "𝄞𝄞𝄞"],
  ["a𝄞b𝄞c", 3, "a𝄞b"],
];

Deno.test("a reason or an error code is cut by characters, never within one", () => {
  for (const [text, max, kept] of SHORT) assert.equal(cutCharacters(text, max), kept);
});
