// The amount of one call in each unit, for reserve and for track. Cents come from the model's price row where the caller
// names none.

import { type Amount, larger, ONE } from "../values/amount.ts";
import type { Metadata } from "../values/match.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Unit } from "../catalog/plan.ts";
import { type PriceRow, pricesFor, type TokenPrices } from "../catalog/price_row.ts";
import { centsOf, finalAmounts, NO_USAGE, perMillion, type Usage } from "./usage.ts";

/** An amount for each unit. */
export type Amounts = Readonly<Record<Unit, Amount>>;

/** The size of a call as the caller sent it; absent members are null. */
export interface CallSize {
  readonly quantity: Amount | null;
  readonly count: Amount | null;
  readonly inputTokens: Amount | null;
  /** The cost of the input; without `maxOutputTokens` the cost of the call. */
  readonly inputCostCents: Amount | null;
  /** The most that the answer may have: held with the input, in tokens and in cents. */
  readonly maxOutputTokens?: Amount | null;
  /** The part of the input that may be written to the provider's cache, one-hour writes included. */
  readonly cacheWriteTokens?: Amount | null;
  /** The part of those writes that is kept for an hour. */
  readonly cacheWrite1hTokens?: Amount | null;
}

/**
 * Finds the price row of an event: of the model in `metadata.model`, else of the one after the event's first dot. Either
 * is named by its id or by an alias.
 */
export function priceRowOf({ models }: Catalog, event: string, metadata: Metadata | null): PriceRow | null {
  const named = metadata?.members.model;
  if (typeof named === "string") {
    const row = models.get(named);
    if (row !== undefined) return row;
  }
  const dot = event.indexOf(".");
  return dot < 0 ? null : models.get(event.slice(dot + 1)) ?? null;
}

/** The amounts that reserve holds and can-use checks: the worst case. `quantity` sizes seconds only. */
export function reserveAmounts(size: CallSize, row: PriceRow | null): Amounts {
  const { inputTokens, maxOutputTokens = null } = size;
  const seconds = size.quantity ?? ONE;
  const count = size.count ?? ONE;
  return {
    tokens: (inputTokens ?? 0n) + (maxOutputTokens ?? 0n),
    seconds,
    count,
    cents: heldCents(size, row, { seconds, calls: count }),
  };
}

/**
 * The amounts that track counts: tokens and count fall back to `quantity`, and for a per_unit model `costCents` counts
 * toward cents. Amounts that a usage makes final replace them.
 */
export function trackAmounts(
  size: CallSize,
  { costCents, usage }: { readonly costCents: Amount | null; readonly usage: Usage | null },
  row: PriceRow | null,
): Amounts {
  const amounts = reserveAmounts({ ...size, count: size.count ?? size.quantity }, row);
  const tracked: Amounts = {
    ...amounts,
    tokens: size.inputTokens ?? size.quantity ?? 0n,
    cents: row?.amountMode === "per_unit" ? costCents ?? amounts.cents : amounts.cents,
  };
  return usage === null ? tracked : { ...tracked, ...finalAmounts(usage, row, tracked) };
}

/**
 * The cents that a hold takes: those that the caller named for the input, else the row's price of the input, and the
 * row's price of the longest answer, as reasoning where that is dearer. The input alone decides the tier. A per_token
 * row prices `inputTokens` alone, never a quantity in place of tokens.
 */
function heldCents(
  size: CallSize,
  row: PriceRow | null,
  work: { readonly seconds: Amount; readonly calls: Amount },
): Amount {
  const { inputCostCents, maxOutputTokens = null } = size;
  if (row === null) return inputCostCents ?? 0n;
  if (row.amountMode !== "per_token") return inputCostCents ?? centsOf(row, { ...NO_USAGE, ...work });
  const prices = pricesFor(row, size.inputTokens ?? 0n);
  const answer = [maxOutputTokens ?? 0n, larger(prices.output, prices.reasoning)] as const;
  if (inputCostCents !== null) return inputCostCents + perMillion([answer]);
  return perMillion([...inputParts(size, prices), answer]);
}

/** The input by its prices: what may be written to a cache at the dearer of both prices. */
function inputParts(
  { inputTokens, cacheWriteTokens = null, cacheWrite1hTokens = null }: CallSize,
  { input, cacheWrite, cacheWrite1h }: TokenPrices,
): [tokens: Amount, price: Amount][] {
  const writes = cacheWriteTokens ?? 0n;
  const hourWrites = cacheWrite1hTokens ?? 0n;
  return [
    [(inputTokens ?? 0n) - writes, input],
    [writes - hourWrites, larger(input, cacheWrite)],
    [hourWrites, larger(input, cacheWrite1h)],
  ];
}
