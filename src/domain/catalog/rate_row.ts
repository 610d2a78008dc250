// Rates: what a call costs in credits, as an administrator writes it in the catalog and as decisions compute with it. The
// first row that covers an event is its rate.

import { type Amount, amountOf } from "../values/amount.ts";
import type { MatchRule } from "../values/match.ts";
import { type TokenPrices, withRows } from "./price_row.ts";

/** The members of a rate that make the parts of a call's cost. */
export const RATE_PARTS = [
  "perCall",
  "perImage",
  "perMillionInputTokens",
  "perMillionCachedInputTokens",
  "perMillionOutputTokens",
  "perSecond",
  "perCent",
] as const;

export type RatePart = (typeof RATE_PARTS)[number];

/** A row of the rate card as the catalog document has it. The cost of a call is the sum of its parts. */
export interface RateDocument extends MatchRule {
  /** Credits a call. */
  readonly perCall?: number | undefined;
  /** In place of `perCall`: calls are then images. */
  readonly perImage?: number | undefined;
  readonly perMillionInputTokens?: number | undefined;
  /** Input read from the provider's prompt cache. Default: the input rate. */
  readonly perMillionCachedInputTokens?: number | undefined;
  readonly perMillionOutputTokens?: number | undefined;
  readonly perSecond?: number | undefined;
  /** Credits for each cent that the call costs. */
  readonly perCent?: number | undefined;
  /** The least that a call costs. */
  readonly minimum?: number | undefined;
}

/** A row of the rate card with exact amounts, every default resolved. */
export interface RateRow {
  /** The row's place among all rates that the app's catalogs ever had; holds store it. */
  readonly number: number;
  readonly document: RateDocument;
  /** Credits for a million tokens: cache writes cost what input costs, reasoning what output costs. */
  readonly prices: TokenPrices;
  /** Credits a call, or an image. */
  readonly perCall: Amount;
  readonly perSecond: Amount;
  /** Credits a cent; null where cents do not matter, and need not be known. */
  readonly perCent: Amount | null;
  readonly minimum: Amount;
}

/** Compiles a row of a well-formed document. */
export function compileRateRow(document: RateDocument, number: number): RateRow {
  const { perCall, perImage, perSecond, perCent } = document;
  const { perMillionInputTokens, perMillionCachedInputTokens, perMillionOutputTokens } = document;
  const input = amountOf(perMillionInputTokens ?? 0);
  const cachedInput = amountOf(perMillionCachedInputTokens ?? perMillionInputTokens ?? 0);
  const output = amountOf(perMillionOutputTokens ?? 0);
  return {
    number,
    document,
    prices: { input, cachedInput, cacheWrite: input, cacheWrite1h: input, output, reasoning: output },
    perCall: amountOf(perCall ?? perImage ?? 0),
    perSecond: amountOf(perSecond ?? 0),
    perCent: perCent === undefined ? null : amountOf(perCent),
    minimum: amountOf(document.minimum ?? 0),
  };
}

/** Adds the rates of a new catalog to all that an app's catalogs ever had; known ones keep their numbers. */
export function withRateRows(
  known: readonly RateDocument[],
  rates: readonly RateDocument[],
): readonly RateDocument[] {
  return withRows(known, rates, rateText);
}

/** A row as one text that does not depend on the order of its members. */
export function rateText({ metadata, ...rest }: RateDocument): string {
  const sorted = (members: object) =>
    Object.entries(members).filter(([, value]) => value !== undefined).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([sorted(rest), sorted(metadata ?? {})]);
}
