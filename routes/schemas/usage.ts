// What a model server reported, as callers hand it over: a usage in our own members, or the server's object as it
// came. Both become the same usage. Section 9 of beyond; src/domain/pricing/README.md has the table of members.

import { z } from "zod";
import { amountOf } from "../../src/domain/amount.ts";
import { readProviderUsage } from "../../src/domain/pricing/provider_usage.ts";
import { NO_USAGE, type Usage, usageFault } from "../../src/domain/pricing/usage.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { amount, SHOWN_AS } from "./fields.ts";

const member = amount.nullish();

const members = z.looseObject({
  inputTokens: member,
  cachedInputTokens: member,
  cacheWriteTokens: member,
  outputTokens: member,
  reasoningTokens: member,
  seconds: member,
  calls: member,
});

const NAMES: ReadonlySet<string> = new Set(Object.keys(members.shape));
const UNKNOWN = `is not a member of usage: it has ${[...NAMES].join(", ")}`;
const SHOWN_AMOUNT = { type: ["number", "null"], minimum: 0, maximum: REQUEST_LIMITS.amountMax };

/** A usage in members of ours: at least one, none unknown, no part larger than its whole. */
export const usage = members.transform((sent, context): Usage => {
  const entries = Object.entries(sent).flatMap(([name, value]) => {
    if (!NAMES.has(name)) context.addIssue({ code: "custom", message: UNKNOWN, path: [name] });
    return typeof value === "number" ? [[name, amountOf(value)]] : [];
  });
  const read: Usage = { ...NO_USAGE, ...Object.fromEntries(entries) };
  const fault = usageFault(read);
  if (fault !== null) addFault(context, fault);
  return read;
}).register(SHOWN_AS, {
  type: "object",
  properties: Object.fromEntries([...NAMES].map((name) => [name, SHOWN_AMOUNT])),
  additionalProperties: false,
  minProperties: 1,
  description:
    "What the model server reported: final tokens, and cents by the model's prices. Cached tokens and " +
    "cache writes are parts of inputTokens, reasoningTokens is a part of outputTokens. Not beside costCents, nor " +
    "beside other amounts of tokens or cents",
});

/** The usage object of OpenAI, Anthropic or Gemini, as it came. */
export const providerUsage = z.custom<Record<string, unknown>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "must be an object",
).transform((sent, context): Usage => {
  const read = readProviderUsage(sent);
  if (!("path" in read)) return read;
  addFault(context, read);
  return NO_USAGE;
}).register(SHOWN_AS, {
  type: "object",
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
