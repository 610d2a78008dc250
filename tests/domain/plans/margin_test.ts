// Margins of 30 days: which periods and currencies have one, exactly.

import assert from "node:assert/strict";
import { marginOf } from "../../../src/domain/plans/margin.ts";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import type { Period } from "../../../src/domain/values/period.ts";

Deno.test("a margin is the price of 30 days for each seat without the cost, in dollars alone", () => {
  const usd = (amount: number) => ({ amount, currency: "usd" });
  const rows: [
    string,
    Parameters<typeof marginOf>[0],
    Period["type"],
    number,
    number,
    number | null,
    number | null,
  ][] = [
    ["a month is 30 days", usd(2000), "monthly", 3, 500.5, 6000, 5499.5],
    ["a year is 365", usd(36_500), "yearly", 1, 0, 3000, 3000],
    ["exact to six places", usd(100), "weekly", 1, 0, 428.571428, 428.571428],
    ["an hour", usd(1), "hourly", 1, 0, 720, 720],
    ["a loss", usd(0), "monthly", 5, 12, 0, -12],
    ["no seats", usd(2000), "daily", 0, 1, 0, -1],
    ["another currency", { amount: 900, currency: "eur" }, "daily", 1, 5, 27_000, null],
    ["a lifetime", usd(9900), "lifetime", 1, 5, null, null],
    ["no price", null, "monthly", 1, 5, null, null],
  ];
  for (const [name, price, type, seats, costCents, revenue, margin] of rows) {
    const found = marginOf(price, { type }, seats, amountOf(costCents));
    const shown = [found.revenue, found.margin].map((amount) => amount === null ? null : numberOf(amount));
    assert.deepEqual(shown, [revenue, margin], name);
  }
});
