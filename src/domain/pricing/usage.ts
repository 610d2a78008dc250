// Usage: what a model server reports of a call, in one form for all servers, and its cost by a price row. Reserve,
// can-use, commit, track and compose price by these functions and by no others.

import { type Amount, ONE, weightedSum } from "../values/amount.ts";
import type { Unit } from "../catalog/plan.ts";
import { type FieldFault } from "../values/refusal.ts";
import { type PriceRow, pricesFor } from "../catalog/price_row.ts";

/**
 * What a call used. Null for what the report leaves out: tokens are then 0, seconds those held, calls the call's count.
 * Cached tokens and cache writes are parts of the input, one-hour writes a part of the cache writes, reasoning a part of
 * the output.
 */
export interface Usage {
  readonly inputTokens: Amount | null;
  readonly cachedInputTokens: Amount | null;
  readonly cacheWriteTokens: Amount | null;
  readonly cacheWrite1hTokens: Amount | null;
  readonly outputTokens: Amount | null;
  readonly reasoningTokens: Amount | null;
  readonly seconds: Amount | null;
  readonly calls: Amount | null;
  /** Whether the report names another service tier than the standard one, whose prices the catalog has. */
  readonly isOtherTier?: boolean;
}

/** An empty usage. */
export const NO_USAGE: Usage = {
  inputTokens: null,
  cachedInputTokens: null,
  cacheWriteTokens: null,
  cacheWrite1hTokens: null,
  outputTokens: null,
  reasoningTokens: null,
  seconds: null,
  calls: null,
};

/** Returns the fault of a usage that is empty, or has a part larger than its whole; null for a valid one. */
export function usageFault(usage: Usage): FieldFault | null {
  if (Object.values(usage).every((value) => value === null)) {
    return { path: "", message: "must have at least one member" };
  }
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage;
  if ((usage.cacheWrite1hTokens ?? 0n) > (cacheWriteTokens ?? 0n)) {
    return { path: "cacheWrite1hTokens", message: "is a part of cacheWriteTokens, and it is smaller" };
  }
  if ((cachedInputTokens ?? 0n) + (cacheWriteTokens ?? 0n) > (inputTokens ?? 0n)) {
    const path = cachedInputTokens === null ? "cacheWriteTokens" : "cachedInputTokens";
    return { path, message: "cached tokens and cache writes are parts of inputTokens, and it is smaller" };
  }
  if ((reasoningTokens ?? 0n) > (outputTokens ?? 0n)) {
    return { path: "reasoningTokens", message: "is a part of outputTokens, and it is smaller" };
  }
  return null;
}

/** Absolute final amounts by unit; a unit that the usage does not report is absent. */
export type FinalAmounts = Readonly<Partial<Record<Unit, Amount>>>;

/**
 * The amounts that a usage makes final, exactly as `actual` of a commit would.
 *
 * @param row the price row; null for an unpriced model, which leaves the cents unchanged
 * @param amounts the seconds that count where the usage has none, and the count that multiplies where it has no calls
 */
export function finalAmounts(
  usage: Usage,
  row: PriceRow | null,
  { seconds, count }: { readonly seconds: Amount; readonly count: Amount },
): FinalAmounts {
  const final: { -readonly [Name in Unit]?: Amount } = {};
  if (saysTokens(usage)) final.tokens = (usage.inputTokens ?? 0n) + (usage.outputTokens ?? 0n);
  if (usage.seconds !== null) final.seconds = usage.seconds;
  if (row !== null && (row.amountMode !== "per_token" || saysTokens(usage))) {
    final.cents = centsOf(row, { ...usage, seconds: usage.seconds ?? seconds, calls: usage.calls ?? count });
  }
  return final;
}

function saysTokens({ inputTokens, outputTokens }: Usage): boolean {
  return inputTokens !== null || outputTokens !== null;
}

/** What a usage costs by a price row, in cents; rounded once, on the total. */
export function centsOf(row: PriceRow, usage: Usage): Amount {
  switch (row.amountMode) {
    case "per_token":
      return tokenCents(row, usage);
    case "per_unit":
      return weightedSum([[usage.seconds ?? 0n, row.perSecond]]);
    case "per_call":
      return weightedSum([[usage.calls ?? ONE, row.perCall]]);
  }
}

const MILLION = 1_000_000n;

/** The cents of tokens at prices in cents a million; rounded once. */
export function perMillion(parts: readonly (readonly [tokens: Amount, price: Amount])[]): Amount {
  return weightedSum(parts, MILLION);
}

function tokenCents(row: PriceRow, usage: Usage): Amount {
  const input = usage.inputTokens ?? 0n;
  const cached = usage.cachedInputTokens ?? 0n;
  const writes = usage.cacheWriteTokens ?? 0n;
  const hourWrites = usage.cacheWrite1hTokens ?? 0n;
  const output = usage.outputTokens ?? 0n;
  const reasoning = usage.reasoningTokens ?? 0n;
  const prices = pricesFor(row, input);
  return perMillion([
    [input - cached - writes, prices.input],
    [cached, prices.cachedInput],
    [writes - hourWrites, prices.cacheWrite],
    [hourWrites, prices.cacheWrite1h],
    [output - reasoning, prices.output],
    [reasoning, prices.reasoning],
  ]);
}
