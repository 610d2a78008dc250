// The part of the catalog format about what covers an event, a match rule, and what it costs in credits, a rate.

import { z } from "zod";
import { REQUEST_LIMITS } from "../../process/limits.ts";
import { hasNoPrototype, isPattern } from "./forms.ts";
import { amount } from "./price_schema.ts";

/** Which events a limit group, a balance or a rate covers. */
export const matchRule = z.strictObject({
  event: z.string().refine(isPattern, 'must be an event name, a prefix followed by one final "*", or "*"')
    .meta({
      minLength: 1,
      maxLength: REQUEST_LIMITS.eventLengthMax,
      description:
        "The event name, a prefix followed by one final `*`, or `*` for every event. Case-sensitive.",
      examples: ["image.*"],
    }),
  metadata: z.unknown().refine(hasNoPrototype, 'must not have the member "__proto__"')
    .pipe(z.record(z.string(), z.string())).meta({
      type: "object",
      additionalProperties: { type: "string" },
      description:
        "Members that the metadata of the call must have, with these values. Open: any name is allowed.",
      examples: [{ model: "flux-pro" }],
    }).optional(),
}).meta({
  id: "CatalogMatchRule",
  title: "Match rule",
  description: "Which events a limit group or a balance covers.",
});

const credits = amount.optional();

/** A row of the rate card. */
export const rate = z.strictObject({
  ...matchRule.shape,
  perCall: credits.meta({
    description: "Credits a call: times `usage.calls`, else the count of the call.",
    examples: [5],
  }),
  perImage: credits.meta({
    description: "In place of `perCall`: credits an image; the calls of a usage are then images.",
    examples: [5],
  }),
  perMillionInputTokens: credits.meta({
    description: "Credits for a million input tokens, those written to the provider's cache included.",
    examples: [200],
  }),
  perMillionCachedInputTokens: credits.meta({
    description:
      "Credits for a million input tokens read from the provider's cache. Default: the input rate.",
    examples: [20],
  }),
  perMillionOutputTokens: credits.meta({
    description: "Credits for a million output tokens, those spent on reasoning included.",
    examples: [800],
  }),
  perSecond: credits.meta({
    description: "Credits a second: times `usage.seconds`, else the quantity of the call.",
    examples: [10],
  }),
  perCent: credits.meta({
    description:
      "Credits for each cent that the call costs by the models' prices, or by `inputCostCents`, `extra.cents` " +
      "and `actual.cents`; never by `costCents`. Without any of these the call has no rate.",
    examples: [1.3],
  }),
  minimum: credits.meta({
    description: "The least that a call costs, also where its parts are 0. Nothing is charged for a release.",
    default: 0,
    examples: [0.1],
  }),
}).meta({
  id: "CatalogRate",
  title: "Rate",
  description:
    "What a call costs in credits: the sum of the parts, rounded once to six places. It needs at least one part, " +
    "or a minimum.",
});
