// The range of an index that has all texts with a prefix.

const LAST_CODE_POINT = 0x10FFFF;
const BEFORE_SURROGATES = 0xD7FF;
const AFTER_SURROGATES = 0xE000;

/** The first text, by code points, after all texts with a prefix, or null. */
export function endOfRange(prefix: string): string | null {
  const points = [...prefix].map((character) => character.codePointAt(0) as number);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return null;
  return String.fromCodePoint(...points, last === BEFORE_SURROGATES ? AFTER_SURROGATES : last + 1);
}
