// The cap on what people of the role agent grant: units in a UTC day. A unit is one of what a pack grants, and a dollar
// where it grants cents. A pack of several items is the sum of its items.

import type { Pack } from "../catalog/catalog.ts";
import type { Unit } from "../catalog/plan.ts";
import type { Amount } from "../values/amount.ts";
import type { Millis } from "../values/period.ts";

const CENTS_OF_UNIT = 100n;
const DAY_MS = 86_400_000;

/**
 * Returns the units of a grant.
 *
 * @param quantity the amount of a pack without items; not read for others
 */
export function grantedUnits({ bucket, items }: Pack, quantity: Amount): Amount {
  if (bucket !== null) return unitsOf(bucket.unit, quantity);
  return items.reduce((sum, { unit, amount }) => sum + unitsOf(unit, amount), 0n);
}

function unitsOf(unit: Unit, amount: Amount): Amount {
  return unit === "cents" ? (amount + CENTS_OF_UNIT - 1n) / CENTS_OF_UNIT : amount;
}

/** The UTC day of a moment, counted from 1970-01-01. */
export function grantDayOf(now: Millis): number {
  return Math.floor(now / DAY_MS);
}
