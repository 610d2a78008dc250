// Usage: what a model server reports of a call, in one form for all servers, and its cost by a price row. Reserve,
// can-use, commit, track and compose price by these functions and by no others.

import { type Amount, ONE, roundedSum } from "../values/amount.ts";
import type { Unit } from "../catalog/plan.ts";
import { type FieldFault } from "../values/refusal.ts";
import { type PriceRow, pricesFor, type TokenPrices } from "../catalog/price_row.ts";

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
type FinalAmounts = Readonly<Partial<Record<Unit, Amount>>>;

/**
 * The amounts that a usage makes final, exactly as `actual` of a commit would.
 *
 * @param row the price row; null for an unpriced model, which leaves the cents unchanged
 */
export function finalAmounts(
  usage: Usage,
  row: PriceRow | null,
  work: CallWork,
): FinalAmounts {
  const final: { -readonly [Name in Unit]?: Amount } = {};
  if (saysTokens(usage)) final.tokens = (usage.inputTokens ?? 0n) + (usage.outputTokens ?? 0n);
  if (usage.seconds !== null) final.seconds = usage.seconds;
  if (row !== null && (row.amountMode !== "per_token" || saysTokens(usage))) {
    final.cents = centsOf(row, workOfUsage(usage, work));
  }
  return final;
}

/** The seconds that count where a usage has none, and the count that multiplies where it has no calls. */
interface CallWork {
  readonly seconds: Amount;
  readonly count: Amount;
}

/** A usage with the seconds and calls of its call where the report has none. */
export function workOfUsage(usage: Usage, { seconds, count }: CallWork): Usage {
  return { ...usage, seconds: usage.seconds ?? seconds, calls: usage.calls ?? count };
}

/** Whether a usage reports tokens. Absent ones are then 0. */
export function saysTokens({ inputTokens, outputTokens }: Usage): boolean {
  return inputTokens !== null || outputTokens !== null;
}

/** What a usage costs by a price row, in cents; rounded once, on the total. */
export function centsOf(row: PriceRow, usage: Usage): Amount {
  return rounded(exactCost(row, pricesFor(row, usage.inputTokens ?? 0n), usage));
}

const MILLION = 1_000_000n;

/** What a work costs by the prices of a price book beside those of tokens. */
interface WorkPrices {
  /** The price of a call or an image. */
  readonly perCall: Amount;
  readonly perSecond: Amount;
}

/**
 * What a usage costs by the prices of a row, exactly: the one computation of both price books. `rounded` makes an amount
 * of it.
 */
export function exactCost({ perCall, perSecond }: WorkPrices, prices: TokenPrices, usage: Usage): bigint {
  const input = usage.inputTokens ?? 0n;
  const cached = usage.cachedInputTokens ?? 0n;
  const writes = usage.cacheWriteTokens ?? 0n;
  const hourWrites = usage.cacheWrite1hTokens ?? 0n;
  const output = usage.outputTokens ?? 0n;
  const reasoning = usage.reasoningTokens ?? 0n;
  const ofTokens = (input - cached - writes) * prices.input + cached * prices.cachedInput +
    (writes - hourWrites) * prices.cacheWrite + hourWrites * prices.cacheWrite1h +
    (output - reasoning) * prices.output + reasoning * prices.reasoning;
  return ofTokens + exactProduct(usage.calls ?? ONE, perCall) + exactProduct(usage.seconds ?? 0n, perSecond);
}

/** The exact product of an amount and its price. */
export function exactProduct(amount: Amount, price: Amount): bigint {
  return amount * price * MILLION;
}

/** The amount of an exact cost: the one rounding of a call's cost in cents, and of that in credits. */
export function rounded(exact: bigint): Amount {
  return roundedSum(exact, MILLION);
}
