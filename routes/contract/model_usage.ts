// What a model server reported, as callers hand it over: a usage in our own members, or the server's object as it
// came. Both become the same usage. Section 9 of beyond.md; src/domain/pricing/README.md has the table of members.

import { z } from "zod";
import { amountOf } from "../../src/domain/values/amount.ts";
import { readProviderUsage } from "../../src/domain/pricing/provider_usage.ts";
import { NO_USAGE, type Usage, usageFault } from "../../src/domain/pricing/usage.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { SHOWN_AS } from "./fields.ts";

const NAMES = [
  "inputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "outputTokens",
  "reasoningTokens",
  "seconds",
  "calls",
] as const;

const KNOWN: ReadonlySet<string> = new Set(NAMES);
const UNKNOWN = `is not a member of usage: it has ${NAMES.join(", ")}`;
const NO_AMOUNT = `must be a number from 0 to ${REQUEST_LIMITS.amountMax}`;
const SHOWN_AMOUNT = { type: ["number", "null"], minimum: 0, maximum: REQUEST_LIMITS.amountMax };

const object = z.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "must be an object",
);

/**
 * A usage in members of ours: at least one, none unknown, no part larger than its whole. Read by hand, since a schema
 * of an object that tells unknown members takes twice as long.
 */
export const usage = object.transform((sent, context): Usage => {
  const read: { -readonly [Name in keyof Usage]: Usage[Name] } = { ...NO_USAGE };
  let isFaulty = false;
  for (const name of Object.keys(sent)) {
    const value = sent[name];
    const message = !KNOWN.has(name) ? UNKNOWN : value === null || isAmount(value) ? null : NO_AMOUNT;
    if (message !== null) {
      context.addIssue({ code: "custom", message, path: [name] });
      isFaulty = true;
    } else if (isAmount(value)) read[name as typeof NAMES[number]] = amountOf(value);
  }
  const fault = isFaulty ? null : usageFault(read);
  if (fault !== null) addFault(context, fault);
  return read;
}).register(SHOWN_AS, {
  type: "object",
  properties: Object.fromEntries(NAMES.map((name) => [name, SHOWN_AMOUNT])),
  additionalProperties: false,
  minProperties: 1,
  description:
    "What the model server reported: final tokens, and cents by the model's prices. Cached tokens and " +
    "cache writes are parts of inputTokens, reasoningTokens is a part of outputTokens. Not beside costCents, nor " +
    "beside other amounts of tokens or cents",
});

function isAmount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= REQUEST_LIMITS.amountMax;
}

/** The usage object of OpenAI, Anthropic or Gemini, as it came. */
export const providerUsage = object.transform((sent, context): Usage => {
  const read = readProviderUsage(sent);
  if (!("path" in read)) return read;
  addFault(context, read);
  return NO_USAGE;
}).register(SHOWN_AS, {
  type: "object",
  additionalProperties: true,
  description: "The usage object of OpenAI (chat completions, responses), Anthropic (messages) or Gemini " +
    "(usageMetadata) as it came, in place of usage",
});

function addFault(
  context: z.RefinementCtx,
  fault: { readonly path: string; readonly message: string },
): void {
  const path = fault.path === "" ? [] : fault.path.split(".");
  context.addIssue({ code: "custom", message: fault.message, path });
}
