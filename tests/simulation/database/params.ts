// Values bound to statements, read back from the texts that the product binds.

import type { Param } from "../../../src/storage/database.ts";

/** The elements of an array that was bound as text. */
export function textsOf(param: Param | undefined): (string | null)[] {
  const text = String(param);
  const elements: (string | null)[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|([^{},]+)/g;
  for (const [, quoted, plain] of text.slice(1, -1).matchAll(pattern)) {
    if (quoted !== undefined) elements.push(quoted.replaceAll(/\\(.)/g, "$1"));
    else elements.push(plain === "NULL" ? null : plain as string);
  }
  return elements;
}

/** The elements of an array of numbers. */
export function numbersOf(param: Param | undefined): number[] {
  return textsOf(param).map(Number);
}

/** Orders rows by the values of a column. */
export function by<Row extends Record<string, unknown>>(column: string): (a: Row, b: Row) => number {
  return (a, b) => {
    const [left, right] = [a[column] as string | number, b[column] as string | number];
    return left < right ? -1 : left > right ? 1 : 0;
  };
}
