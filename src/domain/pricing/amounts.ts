// The amount of one call in each unit, for reserve and for track. Cents come from the model's price row where the caller
// names none.

import { type Amount, larger, ONE } from "../values/amount.ts";
import type { Metadata } from "../values/match.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Unit } from "../catalog/plan.ts";
import { type PriceRow, pricesFor, type TokenPrices } from "../catalog/price_row.ts";
import type { RateRow } from "../catalog/rate_row.ts";
import { creditsOf } from "./credits.ts";
import { exactCost, finalAmounts, NO_USAGE, rounded, type Usage, workOfUsage } from "./usage.ts";

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

/** By what a call is priced: in cents by the row, in credits by the rate; null for none. */
export interface Pricing {
  readonly row: PriceRow | null;
  readonly rate: RateRow | null;
}

/** The amounts that reserve holds and can-use checks: the worst case. `quantity` sizes seconds only. */
export function reserveAmounts(size: CallSize, { row, rate }: Pricing): Amounts {
  const { inputTokens, maxOutputTokens = null } = size;
  const usage = row === null && rate === null ? NO_USAGE : heldUsage(size);
  const cents = heldCents(size, row, usage);
  return {
    tokens: (inputTokens ?? 0n) + (maxOutputTokens ?? 0n),
    seconds: size.quantity ?? ONE,
    count: size.count ?? ONE,
    cents,
    credits: rate === null ? 0n : creditsOf(rate, usage, knownCents(size, row, cents)),
  };
}

/** The cents of a call; null where neither a price row nor the caller says how many. */
export function knownCents({ inputCostCents }: CallSize, row: PriceRow | null, cents: Amount): Amount | null {
  return row === null && inputCostCents === null ? null : cents;
}

/**
 * The amounts that track counts: tokens and count fall back to `quantity`, and for a per_unit model `costCents` counts
 * toward cents, though never for a rate. Amounts that a usage makes final replace them.
 */
export function trackAmounts(
  size: CallSize,
  { costCents, usage }: { readonly costCents: Amount | null; readonly usage: Usage | null },
  { row, rate }: Pricing,
): Amounts {
  const counted = { ...size, count: size.count ?? size.quantity };
  const amounts = reserveAmounts(counted, { row, rate });
  const tracked: Amounts = {
    ...amounts,
    tokens: size.inputTokens ?? size.quantity ?? 0n,
    cents: row?.amountMode === "per_unit" ? costCents ?? amounts.cents : amounts.cents,
  };
  if (usage === null) return tracked;
  const final = finalAmounts(usage, row, tracked);
  if (rate === null) return { ...tracked, ...final };
  const cents = knownCents(size, row, final.cents ?? amounts.cents);
  return { ...tracked, ...final, credits: creditsOf(rate, workOfUsage(usage, tracked), cents) };
}

/** The size of a call as a usage: the most that it may be. */
export function heldUsage(size: CallSize): Usage {
  return {
    inputTokens: size.inputTokens,
    cachedInputTokens: null,
    cacheWriteTokens: size.cacheWriteTokens ?? null,
    cacheWrite1hTokens: size.cacheWrite1hTokens ?? null,
    outputTokens: size.maxOutputTokens ?? null,
    reasoningTokens: null,
    seconds: size.quantity ?? ONE,
    calls: size.count ?? ONE,
  };
}

/**
 * The cents that a hold takes: those that the caller named for the input, else the row's price of the input, and the
 * row's price of the longest answer, as reasoning where that is dearer. The input alone decides the tier. A per_token
 * row prices `inputTokens` alone, never a quantity in place of tokens.
 */
function heldCents({ inputCostCents }: CallSize, row: PriceRow | null, usage: Usage): Amount {
  if (row === null) return inputCostCents ?? 0n;
  if (row.amountMode !== "per_token" && inputCostCents !== null) return inputCostCents;
  const prices = dearest(pricesFor(row, usage.inputTokens ?? 0n));
  if (inputCostCents === null) return rounded(exactCost(row, prices, usage));
  const { outputTokens } = usage;
  return inputCostCents + rounded(exactCost(row, prices, { ...NO_USAGE, outputTokens }));
}

/** The prices of the worst case: an answer may be reasoning, and a cache may be dearer or cheaper than the input. */
function dearest(prices: TokenPrices): TokenPrices {
  const { input, cacheWrite, cacheWrite1h, output, reasoning } = prices;
  return {
    ...prices,
    cacheWrite: larger(input, cacheWrite),
    cacheWrite1h: larger(input, cacheWrite1h),
    output: larger(output, reasoning),
  };
}
