// Fit: the members of a reserve that may be made smaller until it is allowed.

import { z } from "zod";
import type { Fit } from "../../src/domain/metering/reserve.ts";
import { amountOf } from "../../src/domain/values/amount.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { nameOf } from "./fields.ts";
import type { MemberFault } from "./member_conflicts.ts";

const FIT_MODELS_MAX = 20;

/** How a reserve may be made smaller. */
export const fit = z.strictObject({
  minOutputTokens: z.int().min(1).max(REQUEST_LIMITS.amountMax)
    .describe("The fewest output tokens that are of use; at most maxOutputTokens"),
  models: z.array(nameOf(REQUEST_LIMITS.idLengthMax)).max(FIT_MODELS_MAX).nullish()
    .describe(
      `Models to try after metadata.model, in order of preference; at most ${FIT_MODELS_MAX}, each once`,
    ),
}).describe(
  "Makes the call smaller until it is allowed: the first model that passes with minOutputTokens, with the most output " +
    "tokens up to maxOutputTokens",
);

/** The same as a command takes it. */
export function fitOf({ minOutputTokens, models }: z.output<typeof fit>): Fit {
  return { minOutputTokens: amountOf(minOutputTokens), models: models ?? [] };
}

/** What a reserve was made to fit to. */
export const fitted = z.strictObject({ model: z.string().nullable(), maxOutputTokens: z.number() }).optional()
  .describe("With fit, if allowed: the model and the output tokens that are held");

interface FitInput {
  readonly maxOutputTokens?: number | null | undefined;
  readonly fit?: z.output<typeof fit> | null | undefined;
}

/** Faults of a call that asks to fit. */
export function fitFaults({ maxOutputTokens, fit }: FitInput): MemberFault[] {
  if (fit == null) return [];
  const { minOutputTokens, models } = fit;
  if (maxOutputTokens == null) return [{ path: ["maxOutputTokens"], message: "is required with fit" }];
  if (!Number.isInteger(maxOutputTokens)) {
    return [{ path: ["maxOutputTokens"], message: "must be an integer with fit" }];
  }
  if (minOutputTokens > maxOutputTokens) {
    return [{ path: ["fit", "minOutputTokens"], message: "must not be greater than maxOutputTokens" }];
  }
  const isTwice = new Set(models).size < (models?.length ?? 0);
  return isTwice ? [{ path: ["fit", "models"], message: "must not name a model twice" }] : [];
}
