// Credits: what a call costs by the rate card. The amounts are those of the reading by which its cents are computed, so
// that both price books count one work.

import { type Amount, amountOf, larger, ONE } from "../values/amount.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { RatePart, RateRow } from "../catalog/rate_row.ts";
import { type Metadata, ruleCovers } from "../values/match.ts";
import { exactCost, exactProduct, NO_USAGE, rounded, saysTokens, type Usage } from "./usage.ts";

/** What a call costs in credits, as answers show it. */
export interface CreditCost {
  readonly total: Amount;
  /** Whether the call has a rate, and the cents that the rate needs are known. */
  readonly rated: boolean;
}

/** Finds the rate of an event: the first row that covers it. */
export function rateOf({ rates }: Catalog, event: string, metadata: Metadata | null): RateRow | null {
  for (const row of rates) {
    if (ruleCovers(row.document, event, metadata)) return row;
  }
  return null;
}

/** Whether a rate can be computed. @param cents those of the call; null for unknown */
export function canRate(rate: RateRow | null, cents: Amount | null): rate is RateRow {
  return rate !== null && (rate.perCent === null || cents !== null);
}

/** The credits of a call as answers show them; null where the catalog has no rates. */
export function creditCostOf(
  { rates }: Pick<Catalog, "rates">,
  { amounts, isRated }: { readonly amounts: { readonly credits: Amount }; readonly isRated: boolean },
): CreditCost | null {
  return rates.length === 0 ? null : { total: amounts.credits, rated: isRated };
}

/**
 * What a usage costs in credits; rounded once, on the sum of the parts. 0 for a call that is not rated.
 *
 * @param cents those of the call; null for unknown
 * @param heldTokens what the rate charges, exactly, for the tokens of a hold: they count where the usage reports none
 */
export function creditsOf(
  rate: RateRow | null,
  usage: Usage,
  cents: Amount | null,
  heldTokens = 0n,
): Amount {
  if (!canRate(rate, cents)) return 0n;
  const ofCents = rate.perCent === null || cents === null ? 0n : exactProduct(cents, rate.perCent);
  const held = saysTokens(usage) ? 0n : heldTokens;
  return larger(rate.minimum, rounded(exactCost(rate, rate.prices, usage) + held + ofCents));
}

const NO_PRICES = { perCall: 0n, perSecond: 0n };

/** What a rate charges for the tokens of a call alone, exactly. */
export function tokenCost({ prices }: RateRow, usage: Usage): bigint {
  return exactCost(NO_PRICES, prices, usage);
}

const NO_CREDITS: { readonly costCredits?: Amount } = {};

/** What an event keeps of its credits; nothing for an event without a rate and without credits. */
export function eventCredits(credits: Amount, isRated: boolean): typeof NO_CREDITS {
  return isRated || credits > 0n ? { costCredits: credits } : NO_CREDITS;
}

/** A part of what a call costs in credits. */
export interface RatedPart {
  /** The member of the rate. */
  readonly part: RatePart;
  /** The calls, tokens, seconds or cents. */
  readonly amount: Amount;
  readonly rate: Amount;
  /** Rounded by itself; the call's credits are rounded on the sum. */
  readonly credits: Amount;
}

const NO_WORK: Usage = { ...NO_USAGE, calls: 0n };

/** Lists the parts of a rated call: those that its rate names. Cache writes are input. */
export function ratedParts(rate: RateRow, usage: Usage, cents: Amount): RatedPart[] {
  const { document } = rate;
  const [calls, seconds] = [usage.calls ?? ONE, usage.seconds ?? 0n];
  const [cachedInputTokens, outputTokens] = [usage.cachedInputTokens ?? 0n, usage.outputTokens ?? 0n];
  const hasCached = document.perMillionCachedInputTokens !== undefined;
  const inputTokens = (usage.inputTokens ?? 0n) - (hasCached ? cachedInputTokens : 0n);
  const cached = { inputTokens: cachedInputTokens, cachedInputTokens };
  const work: readonly [RatePart, Amount, Usage][] = [
    ["perCall", calls, { ...NO_WORK, calls }],
    ["perImage", calls, { ...NO_WORK, calls }],
    ["perMillionInputTokens", inputTokens, { ...NO_WORK, inputTokens }],
    ["perMillionCachedInputTokens", cachedInputTokens, { ...NO_WORK, ...cached }],
    ["perMillionOutputTokens", outputTokens, { ...NO_WORK, outputTokens }],
    ["perSecond", seconds, { ...NO_WORK, seconds }],
  ];
  const parts = work.flatMap(([part, amount, ofPart]) => {
    const price = document[part];
    if (price === undefined) return [];
    return [{ part, amount, rate: amountOf(price), credits: rounded(exactCost(rate, rate.prices, ofPart)) }];
  });
  if (rate.perCent === null) return parts;
  const credits = rounded(exactProduct(cents, rate.perCent));
  return [...parts, { part: "perCent", amount: cents, rate: rate.perCent, credits }];
}
