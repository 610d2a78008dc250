// The cost that commit and track return, and the warning for an event without a price.

import type { Amount } from "../values/amount.ts";
import type { PriceRow } from "../catalog/price_row.ts";

/** What an event cost. */
export interface Cost {
  readonly cents: Amount;
  /** Whether the model has a price row. */
  readonly priced: boolean;
  /** The row's id; null for none. */
  readonly model: string | null;
}

export type Warning = "unpriced_model";

/** The cost of an event under a price row, null for none. */
export function costOf(cents: Amount, row: PriceRow | null): Cost {
  return { cents, priced: row !== null, model: row?.id ?? null };
}

const NONE: readonly Warning[] = [];
const UNPRICED: readonly Warning[] = ["unpriced_model"];

/** Warns of an event that counts cents, where neither a price row nor the caller says how many. */
export function warningsOf(
  row: PriceRow | null,
  { countsCents, toldCents }: { readonly countsCents: boolean; readonly toldCents: boolean },
): readonly Warning[] {
  return row === null && countsCents && !toldCents ? UNPRICED : NONE;
}
