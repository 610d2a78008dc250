// Exact amounts: reading, printing and rounding, at any size.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import {
  amountOf,
  decimalOf,
  divideDown,
  multiply,
  numberOf,
  ONE,
  parseAmount,
} from "../../../src/domain/values/amount.ts";

Deno.test("an amount is read exactly, and rounded half up by magnitude past six places", () => {
  const rows: [number, bigint][] = [
    [0, 0n],
    [-0, 0n],
    [1, ONE],
    [0.1, 100_000n],
    [-2.5, -2_500_000n],
    [0.000001, 1n],
    [0.0000005, 1n],
    [0.00000049, 0n],
    [-0.0000005, -1n],
    [1.0000015, 1_000_002n],
    [1e-7, 0n],
    [5e-324, 0n],
    [9_000_000_000, 9_000_000_000_000_000n],
    [9_000_000_001, 9_000_000_001_000_000n],
    [1e12, 1_000_000_000_000_000_000n],
    [999_999_999_999.9999, 999_999_999_999_999_900n],
    [1e21, 10n ** 27n],
    [-1e21, -(10n ** 27n)],
  ];
  for (const [value, amount] of rows) assert.equal(amountOf(value), amount, String(value));
});

Deno.test("a decimal text is read as JavaScript and PostgreSQL write it", () => {
  const rows: [string, bigint][] = [
    ["12", 12_000_000n],
    ["-0.5", -500_000n],
    ["1e-6", 1n],
    ["1.5e+3", 1_500_000_000n],
    ["0.0000000", 0n],
    ["100000000000000000000.000001", 100_000_000_000_000_000_000_000_001n],
  ];
  for (const [text, amount] of rows) assert.equal(parseAmount(text), amount, text);
  for (const text of ["", "x", "1.", ".5", "NaN", "Infinity", "1e", "0x1", " 1"]) {
    assert.throws(() => parseAmount(text), TypeError, text);
  }
});

Deno.test("0.1 ten times is 1, and 0.1 x 10 is 1", () => {
  let sum = 0n;
  for (let times = 0; times < 10; times++) sum += amountOf(0.1);
  assert.equal(numberOf(sum), 1);
  assert.equal(multiply(amountOf(0.1), amountOf(10)), ONE);
});

Deno.test("products round half up by magnitude, quotients down", () => {
  assert.equal(multiply(1n, 500_000n), 1n);
  assert.equal(multiply(1n, 499_999n), 0n);
  assert.equal(multiply(-1n, 500_000n), -1n);
  assert.equal(multiply(amountOf(200), amountOf(90), 100n), amountOf(180));
  assert.equal(divideDown(amountOf(10), amountOf(3)), 3_333_333n);
  assert.equal(divideDown(amountOf(0.000001), amountOf(2)), 0n);
});

Deno.test("what is printed is read back as the same amount, however large", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), (amount) => {
      const text = decimalOf(amount);
      assert.equal(parseAmount(text), amount);
      assert.match(text, /^-?(0|[1-9]\d*)(\.\d{0,5}[1-9])?$/);
    }),
    { numRuns: 2_000 },
  );
});

Deno.test("what is printed is the shortest exact text around every power of two and ten", () => {
  const near = [...Array(70).keys()].flatMap((power) => [2n ** BigInt(power), 10n ** BigInt(power % 25)]);
  for (const middle of near) {
    for (let step = -3n; step <= 3n; step++) {
      for (const amount of [middle + step, -middle - step]) {
        assert.equal(parseAmount(decimalOf(amount)), amount);
      }
    }
  }
});

Deno.test("an amount with up to six places and twelve digits is shown as the number that was sent", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -999_999, max: 999_999 }),
      fc.integer({ min: 0, max: 999_999 }),
      (whole, part) => {
        const value = Number(`${whole}.${String(part).padStart(6, "0")}`);
        assert.equal(numberOf(amountOf(value)), value === 0 ? 0 : value);
      },
    ),
    { numRuns: 2_000 },
  );
});
