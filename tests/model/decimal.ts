// Exact decimals for the model: a number on the wire is a whole count of millionths in a BigInt.
// Owns reading a JavaScript number, writing it back, and two roundings: half up by magnitude, and down
// (for room under a multiplier). No floating point inside.

/** A decimal with six places: 1 is 1_000_000n. */
export type Micros = bigint;

export const ZERO: Micros = 0n;
export const ONE: Micros = 1_000_000n;

/** Reads a finite number by its shortest decimal form, so 0.1 is exactly a tenth. */
export function fromNumber(value: number): Micros {
  // Most of them.
  if (Number.isSafeInteger(value)) return BigInt(value) * ONE;
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value));
  if (!parts) throw new Error(`not a finite number: ${value}`);
  const [, sign, whole, fraction = "", exponent = "0"] = parts;
  const digits = BigInt(whole + fraction);
  const places = Number(exponent) - fraction.length + 6;
  const size = places >= 0 ? digits * 10n ** BigInt(places) : divideHalfUp(digits, 10n ** BigInt(-places));
  return sign === "-" ? -size : size;
}

/** The nearest JavaScript number, read from the decimal text and not by division. */
export function toNumber(value: Micros): number {
  const size = value < 0n ? -value : value;
  const text = `${size / ONE}.${(size % ONE).toString().padStart(6, "0")}`;
  return Number(value < 0n ? `-${text}` : text);
}

/** Choice: half up by magnitude, so -0.0000005 becomes -0.000001. */
export function divideHalfUp(value: bigint, by: bigint): bigint {
  const size = value < 0n ? -value : value;
  const rounded = (2n * size + by) / (2n * by);
  return value < 0n ? -rounded : rounded;
}

/** The product of two decimals, rounded half up to six places. */
export function multiply(a: Micros, b: Micros): Micros {
  return divideHalfUp(a * b, ONE);
}

/** The quotient of two decimals that are not negative, rounded down to six places. */
export function divideDown(a: Micros, b: Micros): Micros {
  return (a * ONE) / b;
}

export function atLeastZero(value: Micros): Micros {
  return value < 0n ? 0n : value;
}

export function smaller(a: Micros, b: Micros): Micros {
  return a < b ? a : b;
}

export function larger(a: Micros, b: Micros): Micros {
  return a > b ? a : b;
}
