// Usage that a model server reported: in members of our own, or as the server's own object. Both become the same usage;
// src/domain/pricing/README.md has the table of members.

import { z } from "zod";
import { amountOf } from "../../src/domain/values/amount.ts";
import { readProviderUsage } from "../../src/domain/pricing/provider_usage.ts";
import { NO_USAGE, type Usage, usageFault } from "../../src/domain/pricing/usage.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { SHOWN_AS } from "./fields.ts";

const MEMBERS = {
  inputTokens: "The whole input, cached tokens and cache writes included",
  cachedInputTokens: "The part of the input read from the cache of the provider",
  cacheWriteTokens: "The part of the input written to the cache of the provider",
  cacheWrite1hTokens: "The part of cacheWriteTokens that is kept for an hour",
  outputTokens: "The whole output, reasoning included",
  reasoningTokens: "The part of the output spent on reasoning",
  seconds: "Default: the held seconds; in a track the quantity",
  calls: "Calls, or images, of a model with a price per call. Default: the count of the call",
};
const NAMES = Object.keys(MEMBERS) as (keyof typeof MEMBERS)[];

const KNOWN: ReadonlySet<string> = new Set(NAMES);
const UNKNOWN = `unknown parameter; usage has ${NAMES.join(", ")}`;
const NO_AMOUNT = `must be a number from 0 to ${REQUEST_LIMITS.amountMax}`;
const SHOWN_AMOUNT = { type: ["number", "null"], minimum: 0, maximum: REQUEST_LIMITS.amountMax };

const object = z.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "must be an object",
);

/**
 * A usage with at least one member, no unknown members, and no part larger than its whole. It is read by hand, because a
 * strict object schema takes twice as long.
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
    } else if (isAmount(value)) read[name as keyof typeof MEMBERS] = amountOf(value);
  }
  const fault = isFaulty ? null : usageFault(read);
  if (fault !== null) addFault(context, fault);
  return read;
}).register(SHOWN_AS, {
  type: "object",
  properties: Object.fromEntries(
    Object.entries(MEMBERS).map(([name, description]) => [name, { ...SHOWN_AMOUNT, description }]),
  ),
  additionalProperties: false,
  minProperties: 1,
  description:
    "Usage as the model server reported it: final tokens, priced in cents and credits by the catalog. Cached tokens and " +
    "cache writes are parts of inputTokens, reasoningTokens is a part of outputTokens. Not together with " +
    "costCents or with other amounts of tokens, cents or credits",
});

function isAmount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= REQUEST_LIMITS.amountMax;
}

/** The usage object of a model server or of the AI SDK, unchanged. */
export const providerUsage = object.transform((sent, context): Usage => {
  const read = readProviderUsage(sent);
  if (!("path" in read)) return read;
  addFault(context, read);
  return NO_USAGE;
}).register(SHOWN_AS, {
  type: "object",
  additionalProperties: true,
  description:
    "The usage object of OpenAI and servers compatible with it, Anthropic, Gemini (usageMetadata), Bedrock " +
    "or the AI SDK, unchanged, instead of usage. A part larger than its whole is added to it, and what a " +
    "total has above input and output is output",
});

function addFault(
  context: z.RefinementCtx,
  fault: { readonly path: string; readonly message: string },
): void {
  const path = fault.path === "" ? [] : fault.path.split(".");
  context.addIssue({ code: "custom", message: fault.message, path });
}
