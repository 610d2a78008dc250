// The part of the catalog format for packs that come with a plan.

import { z } from "zod";
import { period } from "./period_schema.ts";
import { label, positiveAmount } from "./price_schema.ts";

export const include = z.strictObject({
  packId: label.meta({
    description: "The id of the pack. A plan includes each pack once; an archived one too.",
    examples: ["cpk_image_topup"],
  }),
  quantity: positiveAmount.optional().meta({
    description:
      "The amount in each window of a pack without items, which needs it; otherwise how many packs. Default: one pack.",
    examples: [500],
  }),
  period: period.optional().meta({
    description: "How often the credits come. Default: the plan's period. A `lifetime` gives them once.",
    examples: [{ type: "weekly", anchor: "calendar" }],
  }),
  rollover: z.strictObject({
    max: positiveAmount.meta({
      description: "The most that all rollovers of the pack's credits have together, after each roll.",
      examples: [1000],
    }),
    periods: z.int().min(1).max(12).meta({
      description: "For how many windows more the rest of a window can be used.",
      examples: [2],
    }),
  }).meta({
    id: "CatalogRollover",
    title: "Rollover",
    description: "What happens to what is left at the end of a window.",
  }).optional().meta({
    description: "Without it, what is left at the end of a window is lost. Not with a `lifetime`.",
    examples: [{ max: 1000, periods: 2 }],
  }),
}).meta({
  id: "CatalogIncludedPack",
  title: "Included pack",
  description:
    "In each window the user has the pack as one balance (one for each item) that ends with the window. Seats " +
    "multiply it, and an add-on includes its own. A change of plan takes along what was used in the window. A trial " +
    "includes credits once for each user and plan.",
});
