// What one call means in each unit: the amounts of reserve and track. Cents come from the model's price row where the
// caller names none. Section 5 of the decisions, "Amounts by unit" and "Model row"; section 9 of beyond.md.

import { type Amount, larger, ONE } from "../values/amount.ts";
import type { Metadata } from "../values/match.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Unit } from "../catalog/plan.ts";
import { type PriceRow, pricesFor } from "../catalog/price_row.ts";
import { centsOf, finalAmounts, NO_USAGE, perMillion, type Usage } from "./usage.ts";

/** An amount for each unit. */
export type Amounts = Readonly<Record<Unit, Amount>>;

/** What a caller says of a call's size; absent members are null. */
export interface CallSize {
  readonly quantity: Amount | null;
  readonly count: Amount | null;
  readonly inputTokens: Amount | null;
  /** The cost of the input; without `maxOutputTokens` the cost of the call. */
  readonly inputCostCents: Amount | null;
  /** The most that the answer may have: held with the input, in tokens and in cents. */
  readonly maxOutputTokens?: Amount | null;
}

/** The price row of an event: the one `metadata.model` names, else the one named after the event's first dot. */
export function priceRowOf(catalog: Catalog, event: string, metadata: Metadata | null): PriceRow | null {
  const named = metadata?.members.model;
  if (typeof named === "string") {
    const row = catalog.models.get(named);
    if (row !== undefined) return row;
  }
  const dot = event.indexOf(".");
  return dot < 0 ? null : catalog.models.get(event.slice(dot + 1)) ?? null;
}

/** The amounts that reserve and can-use hold: the worst case. `quantity` sizes seconds only. */
export function reserveAmounts(size: CallSize, row: PriceRow | null): Amounts {
  const { inputTokens, maxOutputTokens = null } = size;
  const seconds = size.quantity ?? ONE;
  return {
    tokens: (inputTokens ?? 0n) + (maxOutputTokens ?? 0n),
    seconds,
    count: size.count ?? ONE,
    cents: heldCents(size, row, seconds),
  };
}

/**
 * The amounts that track counts: tokens and count fall back to `quantity`, and for a per_unit model the real
 * cost counts toward cents. What a usage makes final replaces them.
 */
export function trackAmounts(
  size: CallSize,
  { costCents, usage }: { readonly costCents: Amount | null; readonly usage: Usage | null },
  row: PriceRow | null,
): Amounts {
  const amounts = reserveAmounts(size, row);
  const tracked: Amounts = {
    ...amounts,
    tokens: size.inputTokens ?? size.quantity ?? 0n,
    count: size.count ?? size.quantity ?? ONE,
    cents: row?.amountMode === "per_unit" ? costCents ?? amounts.cents : amounts.cents,
  };
  return usage === null ? tracked : { ...tracked, ...finalAmounts(usage, row, amounts.seconds) };
}

/**
 * The cents that a hold takes: those that the caller named for the input, else the row's price of it, and the row's
 * price of the longest answer, as reasoning where that is dearer. The tier goes by the input alone. A per_token row
 * prices `inputTokens` alone, never a quantity that stands in for tokens.
 */
function heldCents(size: CallSize, row: PriceRow | null, seconds: Amount): Amount {
  const { inputTokens, inputCostCents, maxOutputTokens = null } = size;
  if (row === null) return inputCostCents ?? 0n;
  if (row.amountMode !== "per_token") return inputCostCents ?? centsOf(row, { ...NO_USAGE, seconds });
  const prices = pricesFor(row, inputTokens ?? 0n);
  const answer = [maxOutputTokens ?? 0n, larger(prices.output, prices.reasoning)] as const;
  if (inputCostCents !== null) return inputCostCents + perMillion([answer]);
  return perMillion([[inputTokens ?? 0n, prices.input], answer]);
}
