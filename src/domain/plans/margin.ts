// Margins: what a plan brings in 30 days against what its calls cost. The cost is in US cents, so only prices in US dollars
// are compared with it.

import { type Amount, amountOf } from "../values/amount.ts";
import type { PlanPrice } from "../catalog/catalog.ts";
import type { Period } from "../values/period.ts";

/** The days of a margin, the present one included. */
export const MARGIN_DAYS = 30;

/** Hours of a period. A month has 30 days, a year 365; a lifetime is paid once, and so has no price a day. */
const HOURS: Readonly<Record<Period["type"], number | null>> = {
  hourly: 1,
  daily: 24,
  weekly: 7 * 24,
  monthly: 30 * 24,
  yearly: 365 * 24,
  lifetime: null,
};

/** What seats of a plan bring in, and what is left after the cost. */
interface Margin {
  /** In the smallest unit of the price's currency; null for a plan without a price, or for a lifetime. */
  readonly revenue: Amount | null;
  /** In US cents; null where the revenue is not in US dollars. */
  readonly margin: Amount | null;
}

/**
 * Computes the margin of 30 days: price x 30 / days of the period x seats - cost.
 *
 * @param seats the seats that pay, trials left out
 * @param costCents the cost of the calls of 30 days
 */
export function marginOf(
  price: PlanPrice | null,
  { type }: Pick<Period, "type">,
  seats: number,
  costCents: Amount,
): Margin {
  const hours = HOURS[type];
  if (price === null || hours === null) return { revenue: null, margin: null };
  const revenue = amountOf(price.amount) * BigInt(seats) * BigInt(MARGIN_DAYS * 24) / BigInt(hours);
  return { revenue, margin: price.currency === "usd" ? revenue - costCents : null };
}
