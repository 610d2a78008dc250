// What a call costs in credits by the rate card of the catalog: before the work at its worst, after it by what was
// reported. A hold keeps the row that it was made under.

import { divideHalfUp, fromNumber, larger, type Micros, ONE, toNumber, ZERO } from "./decimal.ts";
import { ANYTHING, type CatalogDocument, type RateRow, type WireData } from "./document.ts";
import type { Report } from "./reports.ts";
import { type Metadata, ruleMatches } from "./rules.ts";

/** What a rate looks at. */
export interface Work {
  input: Micros;
  /** The part of the input that came from a cache. */
  cached: Micros;
  output: Micros;
  calls: Micros;
  seconds: Micros;
  /** Null: nobody knows any. */
  cents: Micros | null;
}

export interface Rated {
  total: Micros;
  rated: boolean;
}

/** The first row that matches. */
export function rateOf(
  { rates = [] }: CatalogDocument,
  event: string,
  metadata: Metadata | null,
): RateRow | undefined {
  return rates.find((rate) => ruleMatches(rate, event, metadata));
}

/** The credits of some work. Choice: a row that asks for cents rates nothing where there are none. */
export function creditsOf(rate: RateRow | undefined, work: Work): Rated {
  const { cents } = work;
  if (rate === undefined || (rate.perCent !== undefined && cents === null)) {
    return { total: ZERO, rated: false };
  }
  const per = (price: number | undefined) => fromNumber(price ?? 0);
  const plain = per(rate.perMillionInputTokens);
  const cached = rate.perMillionCachedInputTokens === undefined
    ? plain
    : per(rate.perMillionCachedInputTokens);
  const ofTokens = (work.input - work.cached) * plain + work.cached * cached +
    work.output * per(rate.perMillionOutputTokens);
  const ofOthers = work.calls * per(rate.perCall ?? rate.perImage) + work.seconds * per(rate.perSecond) +
    (cents ?? ZERO) * per(rate.perCent);
  const total = divideHalfUp(ofTokens + ofOthers * 1_000_000n, ONE * 1_000_000n);
  return { total: larger(total, per(rate.minimum)), rated: true };
}

/** The work of a report; what it has no members for is unchanged. */
export function reportedWork(report: Report, before: Work): Work {
  const { speaksOfTokens, input, tokens, parts, calls, seconds } = report;
  const spoken = speaksOfTokens ? { input, cached: parts.cached, output: tokens - input } : {};
  return {
    ...before,
    ...spoken,
    ...(calls === null ? {} : { calls }),
    ...(seconds === null ? {} : { seconds }),
  };
}

/** What answers say of credits; nothing where the catalog rates nothing. */
export function creditsAnswer({ rates = [] }: CatalogDocument, { total, rated }: Rated): WireData {
  return rates.length === 0 ? {} : { credits: { total: toNumber(total), rated } };
}

/** What an explanation says of credits. Choice: of the parts only that they are there. */
export function rateAnswer(
  { rates = [] }: CatalogDocument,
  rate: RateRow | undefined,
  { total, rated }: Rated,
): WireData {
  if (rates.length === 0) return {};
  const row = { event: rate?.event ?? null, minimum: rate?.minimum ?? 0, parts: ANYTHING };
  return { rate: { total: toNumber(total), rated, ...row } };
}
