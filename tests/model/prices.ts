// What a call costs by a price row of the catalog: before the work the longest answer, after it what the model server
// reported. A hold keeps the row that it was made under.

import { divideHalfUp, fromNumber, larger, type Micros, multiply, ONE, toNumber, ZERO } from "./decimal.ts";
import type { Input, ModelRow, TokenPrices, Unit } from "./document.ts";

/** What a model server reported, each token in one part only. */
export interface Report {
  /** Whether it speaks of tokens at all. */
  speaksOfTokens: boolean;
  input: Micros;
  tokens: Micros;
  parts: Record<Kind, Micros>;
  seconds: Micros | null;
  calls: Micros | null;
}

type Kind = "plain" | "cached" | "write" | "hourWrite" | "text" | "reasoning";

/** The report of a commit or a track, from `usage` or `providerUsage`; null for none. */
export function reportOf(input: Input): Report | null {
  const usage = input["usage"] as Input | undefined;
  if (usage !== undefined) return ownReport(usage, ZERO);
  const provider = input["providerUsage"] as Input | undefined;
  if (provider === undefined) return null;
  return provider["prompt_tokens"] === undefined ? ofAnthropic(provider) : ofOpenAi(provider);
}

function ofOpenAi(usage: Input): Report {
  const prompt = (usage["prompt_tokens_details"] ?? {}) as Input;
  const completion = (usage["completion_tokens_details"] ?? {}) as Input;
  return ownReport({
    inputTokens: usage["prompt_tokens"],
    outputTokens: usage["completion_tokens"],
    cachedInputTokens: prompt["cached_tokens"],
    reasoningTokens: completion["reasoning_tokens"],
  }, ZERO);
}

/** Anthropic counts what is cached beside the input, and of what is written says how much stays for an hour. */
function ofAnthropic(usage: Input): Report {
  const creation = (usage["cache_creation"] ?? {}) as Input;
  const [read, written] = [usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]];
  // Each is rounded to an amount before they are added: the sum of doubles may be rounded to another one.
  const names = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
  const input = names.reduce((sum, name) => sum + tokensOf(usage, name), ZERO);
  return ownReport({
    inputTokens: toNumber(input),
    outputTokens: usage["output_tokens"],
    cachedInputTokens: read,
    cacheWriteTokens: written,
  }, tokensOf(creation, "ephemeral_1h_input_tokens"));
}

function ownReport(usage: Input, hourWrite: Micros): Report {
  const cached = tokensOf(usage, "cachedInputTokens");
  const writes = tokensOf(usage, "cacheWriteTokens");
  const reasoning = tokensOf(usage, "reasoningTokens");
  const input = tokensOf(usage, "inputTokens");
  const output = tokensOf(usage, "outputTokens");
  const optional = (name: string) => typeof usage[name] === "number" ? tokensOf(usage, name) : null;
  return {
    speaksOfTokens: typeof usage["inputTokens"] === "number" || typeof usage["outputTokens"] === "number",
    input,
    tokens: input + output,
    parts: {
      plain: input - cached - writes,
      cached,
      write: writes - hourWrite,
      hourWrite,
      text: output - reasoning,
      reasoning,
    },
    seconds: optional("seconds"),
    calls: optional("calls"),
  };
}

function tokensOf(usage: Input, name: string): Micros {
  return typeof usage[name] === "number" ? fromNumber(usage[name]) : ZERO;
}

/** The final amounts that a report settles; the other units are unchanged. */
export function settledBy(
  report: Report,
  row: ModelRow | undefined,
  seconds: Micros,
): Partial<Record<Unit, Micros>> {
  const { speaksOfTokens, tokens } = report;
  const cents = row === undefined || (row.amountMode === "per_token" && !speaksOfTokens)
    ? {}
    : { cents: costOf(row, report, report.seconds ?? seconds) };
  return {
    ...(speaksOfTokens ? { tokens } : {}),
    ...(report.seconds === null ? {} : { seconds: report.seconds }),
    ...cents,
  };
}

function costOf(row: ModelRow, { input, parts, calls }: Report, seconds: Micros): Micros {
  if (row.amountMode === "per_unit") return multiply(seconds, fromNumber(row.centsPerSecond ?? 0));
  if (row.amountMode === "per_call") return multiply(calls ?? ONE, perCall(row));
  const prices = pricesAt(row, input);
  const kinds = Object.keys(parts) as Kind[];
  return perMillion(kinds.reduce((sum, kind) => sum + parts[kind] * prices[kind], 0n));
}

/** The cents that a hold takes: at most what the call will cost, going by its input and its longest answer. */
export function heldCents(
  row: ModelRow | undefined,
  sent: { tokens: Micros; answer: Micros; cents: Micros | null; seconds: Micros },
): Micros {
  const { tokens, answer, cents, seconds } = sent;
  if (row?.amountMode === "per_unit") return cents ?? multiply(seconds, fromNumber(row.centsPerSecond ?? 0));
  if (row?.amountMode === "per_call") return cents ?? perCall(row);
  if (row === undefined) return cents ?? ZERO;
  const prices = pricesAt(row, tokens);
  const dearest = answer * larger(prices.text, prices.reasoning);
  return cents === null ? perMillion(tokens * prices.plain + dearest) : cents + perMillion(dearest);
}

function perCall(row: ModelRow): Micros {
  return fromNumber(row.centsPerCall ?? row.centsPerImage ?? 0);
}

/** Millionths of tokens times millionths of cents for a million tokens. */
function perMillion(product: bigint): Micros {
  return divideHalfUp(product, ONE * 1_000_000n);
}

/** Every price of a call with so much input: the highest tier below it speaks first, then the row, then defaults. */
function pricesAt(row: ModelRow, input: Micros): Record<Kind, Micros> {
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
