// Any character for texts of fast-check: the same as its unit "binary", which takes a second to list all of them.

import fc from "npm:fast-check@4.10.2";

const SURROGATES = { from: 0xd800, count: 0x800 };

/** Any code point but halves of surrogate pairs, as a string. */
export const anyChar: fc.Arbitrary<string> = fc.integer({ min: 0, max: 0x10ffff - SURROGATES.count }).map(
  (place) => String.fromCodePoint(place < SURROGATES.from ? place : place + SURROGATES.count),
  (text) => {
    const point = typeof text === "string" ? text.codePointAt(0) : undefined;
    if (point === undefined || String.fromCodePoint(point) !== text) throw new Error("It is no character");
    return point < SURROGATES.from ? point : point - SURROGATES.count;
  },
);
