// The part of the catalog format about prices: a model's row, with its tiers; and what all parts share, labels and amounts.

import { z } from "zod";
import { REQUEST_LIMITS } from "../../process/limits.ts";
import { isLabel, isPattern } from "./forms.ts";

/** Text of 1 to 200 characters without control characters: ids, names and labels. */
export const label = z.string().refine(
  isLabel,
  "must be a text of 1 to 200 characters without control characters",
).meta({ minLength: 1, maxLength: REQUEST_LIMITS.idLengthMax });
/** An amount of a unit, or a price. */
export const amount = z.number().min(0).max(REQUEST_LIMITS.amountMax);
/** An amount above 0: amounts have six decimal places, and no balance is of 0. */
export const positiveAmount = amount.min(0.000001);
const cents = amount.optional();

const tokenPrices = {
  inputCentsPerMillionTokens: cents.meta({
    description: "Price of a million input tokens in cents. Needed with `per_token`.",
    examples: [300],
  }),
  cachedInputCentsPerMillionTokens: cents.meta({
    description: "Price of a million input tokens read from the provider's cache. Default: the input price.",
    examples: [30],
  }),
  cacheWriteCentsPerMillionTokens: cents.meta({
    description: "Price of a million input tokens written to the provider's cache. Default: the input price.",
    examples: [375],
  }),
  cacheWrite1hCentsPerMillionTokens: cents.meta({
    description:
      "Price of a million input tokens written to a cache kept for an hour. Default: the cache write price.",
    examples: [600],
  }),
  outputCentsPerMillionTokens: cents.meta({
    description: "Price of a million output tokens in cents.",
    default: 0,
    examples: [1500],
  }),
  reasoningCentsPerMillionTokens: cents.meta({
    description: "Price of a million output tokens spent on reasoning. Default: the output price.",
    examples: [1500],
  }),
};

const priceTier = z.strictObject({
  aboveInputTokens: amount.meta({
    description:
      "The tier holds for calls whose whole input, cached tokens and cache writes included, is larger.",
    examples: [200_000],
  }),
  ...tokenPrices,
}).meta({
  id: "CatalogPriceTier",
  title: "Price tier",
  description:
    "Prices that replace those of the row for a whole call, input and output. The highest tier that the " +
    "call is above counts; defaults are resolved after it.",
});

/** A price row. */
export const model = z.strictObject({
  id: label.meta({
    description:
      "The model's name, as `metadata.model` or the part of the event name after the first `.` has it.",
    examples: ["gpt-4o-mini"],
  }),
  aliases: z.array(
    z.string().refine(isPattern, 'must be a name, or a prefix followed by one final "*"')
      .meta({ minLength: 1, maxLength: REQUEST_LIMITS.idLengthMax }),
  ).max(100).optional().meta({
    description:
      "Further names that have these prices, and patterns of names: a prefix followed by one final `*`. An " +
      "exact name counts first, then the longest pattern. Each is listed once in the catalog.",
    default: [],
    examples: [["gpt-4o-mini-*"]],
  }),
  modality: z.enum(["text", "image", "audio", "video"]).meta({
    description: "What the model makes. For people; no rule reads it.",
    examples: ["text"],
  }),
  amountMode: z.enum(["per_token", "per_call", "per_unit"]).meta({
    description:
      "What is paid for: tokens, calls or images, or seconds of output. It decides which price is needed.",
    examples: ["per_token"],
  }),
  ...tokenPrices,
  tiers: z.array(priceTier).max(20).meta({
    description: "Dearer or cheaper prices of long calls; each `aboveInputTokens` once.",
  }).optional(),
  centsPerCall: cents.meta({
    description: "Price of a call in cents. This or `centsPerImage` is needed with `per_call`.",
    examples: [5],
  }),
  centsPerImage: cents.meta({
    description: "In place of `centsPerCall`: price of an image; the calls of a usage are then images.",
    examples: [4],
  }),
  centsPerSecond: cents.meta({
    description: "Price of a second in cents. Needed with `per_unit`.",
    examples: [40],
  }),
  source: label.optional().meta({
    description: "Where the prices were taken from. For people; no rule reads it.",
    examples: ["litellm"],
  }),
  checkedAt: z.iso.datetime("must be a time in UTC such as 2026-11-22T00:00:00.000Z").optional().meta({
    description: "When the prices were compared with their source. The doctor warns after 90 days.",
    examples: ["2026-11-22T00:00:00.000Z"],
  }),
}).meta({ id: "CatalogModel", title: "Model", description: "A price row, from which cents are derived." });
