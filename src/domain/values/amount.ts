// Exact amounts. An amount is a whole number of millionths (six decimal places) in a bigint, so that 0.1 added ten
// times is 1 and no sum drifts, however large it grows. Only this file knows the factor; all other code adds and
// compares plain bigints.

/** A quantity of any unit (count, tokens, seconds, cents) in millionths. More than six places are rounded half up. */
export type Amount = bigint;

/** How many millionths make one whole. */
export const ONE: Amount = 1_000_000n;

const DECIMALS = 6;
const SAFE_WHOLE_MAX = 9_000_000_000;
const EXACT_DOUBLE_MAX = 9_007_199_254_740_991n;
/** Up to here doubles are closer together than millionths, so the shortest text of the quotient is exact. */
const PRINTS_EXACTLY_MAX = 2n ** 50n;
const DECIMAL_FORM = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/**
 * The amount of a finite JSON number. Places past the sixth are rounded half up by magnitude, so that an
 * amount and its negative always cancel.
 *
 * @example Ten tenths are one
 * ```ts
 * import { amountOf, numberOf } from "./amount.ts";
 * import assert from "node:assert/strict";
 *
 * let sum = 0n;
 * for (let step = 0; step < 10; step++) sum += amountOf(0.1);
 * assert.equal(numberOf(sum), 1);
 * ```
 */
export function amountOf(value: number): Amount {
  if (Number.isInteger(value) && value <= SAFE_WHOLE_MAX && value >= -SAFE_WHOLE_MAX) {
    return BigInt(value * 1_000_000);
  }
  return parseAmount(String(value));
}

/** The amount of a decimal text such as "12", "-0.5" or "1e-7", as JavaScript or PostgreSQL writes it. */
export function parseAmount(text: string): Amount {
  const parts = DECIMAL_FORM.exec(text);
  if (parts === null) throw new TypeError(`Cannot read an amount from "${text}"`);
  const [, sign, whole = "0", fraction = "", exponent = "0"] = parts;
  const digits = BigInt(whole + fraction);
  const shift = DECIMALS - fraction.length + Number(exponent);
  const size = shift >= 0 ? digits * 10n ** BigInt(shift) : divideHalfUp(digits, 10n ** BigInt(-shift));
  return sign === "-" ? -size : size;
}

/** The JSON number nearest to an amount; exact for every amount that a double can hold. */
export function numberOf(amount: Amount): number {
  const small = amount <= EXACT_DOUBLE_MAX && amount >= -EXACT_DOUBLE_MAX;
  return small ? Number(amount) / 1_000_000 : Number(decimalOf(amount));
}

/** The shortest exact decimal text of an amount: "75", "0.000015", "-1.5". */
export function decimalOf(amount: Amount): string {
  if (amount === 0n) return "0";
  if (amount <= PRINTS_EXACTLY_MAX && amount >= -PRINTS_EXACTLY_MAX) {
    return String(Number(amount) / 1_000_000);
  }
  if (amount < 0n) return `-${decimalOf(-amount)}`;
  const whole = amount / ONE;
  const rest = amount % ONE;
  if (rest === 0n) return whole.toString();
  return `${whole}.${rest.toString().padStart(DECIMALS, "0").replace(/0+$/, "")}`;
}

/** The product of two amounts divided by a whole number (1 for none), rounded half up by magnitude. */
export function multiply(left: Amount, right: Amount, divisor = 1n): Amount {
  const product = left * right;
  const size = divideHalfUp(product < 0n ? -product : product, ONE * divisor);
  return product < 0n ? -size : size;
}

/** A sum of products of two amounts each, not negative, divided by a whole number; rounded half up. */
export function roundedSum(sum: bigint, divisor: bigint): Amount {
  return divideHalfUp(sum, ONE * divisor);
}

/** An amount divided by another (above zero), rounded down: never a millionth too much. */
export function divideDown(amount: Amount, by: Amount): Amount {
  return (amount * ONE) / by;
}

/** The whole part of an amount that is not negative. */
export function wholeOf(amount: Amount): Amount {
  return amount - amount % ONE;
}

/** The larger amount. */
export function larger(left: Amount, right: Amount): Amount {
  return left > right ? left : right;
}

/** The smaller amount. */
export function smaller(left: Amount, right: Amount): Amount {
  return left < right ? left : right;
}

function divideHalfUp(size: bigint, by: bigint): bigint {
  return (size * 2n + by) / (by * 2n);
}
