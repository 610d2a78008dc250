// What a call costs by a price row of the catalog: before the work the longest answer, after it what the model server
// reported. A hold keeps the row that it was made under.

import { divideHalfUp, fromNumber, larger, type Micros, multiply, ONE, ZERO } from "./decimal.ts";
import type { ModelRow, TokenPrices, Unit } from "./document.ts";
import type { Report, TokenKind } from "./reports.ts";

/** The final amounts that a report settles; the other units are unchanged. */
export function settledBy(
  report: Report,
  row: ModelRow | undefined,
  { seconds, count }: { seconds: Micros; count: Micros },
): Partial<Record<Unit, Micros>> {
  const { speaksOfTokens, tokens } = report;
  const cents = row === undefined || (row.amountMode === "per_token" && !speaksOfTokens)
    ? {}
    : { cents: costOf(row, report, report.seconds ?? seconds, count) };
  return {
    ...(speaksOfTokens ? { tokens } : {}),
    ...(report.seconds === null ? {} : { seconds: report.seconds }),
    ...cents,
  };
}

function costOf(row: ModelRow, { input, parts, calls }: Report, seconds: Micros, count: Micros): Micros {
  if (row.amountMode === "per_unit") return multiply(seconds, fromNumber(row.centsPerSecond ?? 0));
  if (row.amountMode === "per_call") return multiply(calls ?? count, perCall(row));
  const prices = pricesAt(row, input);
  const kinds = Object.keys(parts) as TokenKind[];
  return perMillion(kinds.reduce((sum, kind) => sum + parts[kind] * prices[kind], 0n));
}

/** The cents that a hold takes: at most what the call will cost, going by its input and its longest answer. */
export function heldCents(
  row: ModelRow | undefined,
  sent: {
    tokens: Micros;
    writes: Micros;
    hourWrites: Micros;
    answer: Micros;
    cents: Micros | null;
    seconds: Micros;
    count: Micros;
  },
): Micros {
  const { tokens, writes, hourWrites, answer, cents, seconds, count } = sent;
  if (row?.amountMode === "per_unit") return cents ?? multiply(seconds, fromNumber(row.centsPerSecond ?? 0));
  if (row?.amountMode === "per_call") return cents ?? multiply(count, perCall(row));
  if (row === undefined) return cents ?? ZERO;
  const prices = pricesAt(row, tokens);
  const dearest = answer * larger(prices.text, prices.reasoning);
  if (cents !== null) return cents + perMillion(dearest);
  // A cheap cache is not counted on: nobody knows before the call what will be written.
  const dearerBy = (price: Micros) => larger(ZERO, price - prices.plain);
  const ofWrites = (writes - hourWrites) * dearerBy(prices.write) + hourWrites * dearerBy(prices.hourWrite);
  return perMillion(tokens * prices.plain + ofWrites + dearest);
}

/** The cents of so many calls or images; null for a row of another kind. */
export function centsOfCalls(row: ModelRow | undefined, count: Micros): Micros | null {
  return row?.amountMode === "per_call" ? multiply(count, perCall(row)) : null;
}

function perCall(row: ModelRow): Micros {
  return fromNumber(row.centsPerCall ?? row.centsPerImage ?? 0);
}

/** Millionths of tokens times millionths of cents for a million tokens. */
function perMillion(product: bigint): Micros {
  return divideHalfUp(product, ONE * 1_000_000n);
}

/** Every price of a call with so much input: the highest tier below it speaks first, then the row, then defaults. */
function pricesAt(row: ModelRow, input: Micros): Record<TokenKind, Micros> {
  let tier: ({ aboveInputTokens: number } & TokenPrices) | undefined;
  for (const each of row.tiers ?? []) {
    const isBelow = fromNumber(each.aboveInputTokens) < input;
    if (isBelow && each.aboveInputTokens > (tier?.aboveInputTokens ?? -1)) tier = each;
  }
  const price = (name: keyof TokenPrices, otherwise: Micros) => {
    const value = tier?.[name] ?? row[name];
    return value === undefined ? otherwise : fromNumber(value);
  };
  const plain = price("inputCentsPerMillionTokens", ZERO);
  const write = price("cacheWriteCentsPerMillionTokens", plain);
  const text = price("outputCentsPerMillionTokens", ZERO);
  return {
    plain,
    cached: price("cachedInputCentsPerMillionTokens", plain),
    write,
    hourWrite: price("cacheWrite1hCentsPerMillionTokens", write),
    text,
    reasoning: price("reasoningCentsPerMillionTokens", text),
  };
}
