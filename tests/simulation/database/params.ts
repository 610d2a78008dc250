// Values bound to statements, read back from the texts that the product binds.

import type { Param } from "../../../src/storage/database.ts";

/** The array that was read last: a statement asks for the same one row by row. */
let read: { text: string; texts: readonly (string | null)[]; numbers: readonly number[] | null } = {
  text: "{}",
  texts: [],
  numbers: null,
};

/** The elements of an array that was bound as text. */
export function textsOf(param: Param | undefined): readonly (string | null)[] {
  const text = String(param);
  if (text !== read.text) read = { text, texts: elementsOf(text), numbers: null };
  return read.texts;
}

/** The elements of an array of numbers. */
export function numbersOf(param: Param | undefined): readonly number[] {
  const texts = textsOf(param);
  return read.numbers ??= texts.map(Number);
}

function elementsOf(text: string): (string | null)[] {
  const elements: (string | null)[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|([^{},]+)/g;
  for (const [, quoted, plain] of text.slice(1, -1).matchAll(pattern)) {
    if (quoted !== undefined) elements.push(quoted.replaceAll(/\\(.)/g, "$1"));
    else elements.push(plain === "NULL" ? null : plain as string);
  }
  return elements;
}

/** Orders rows by the values of a column. */
export function by<Row extends Record<string, unknown>>(column: string): (a: Row, b: Row) => number {
  return (a, b) => {
    const [left, right] = [a[column] as string | number, b[column] as string | number];
    return left < right ? -1 : left > right ? 1 : 0;
  };
}
