// Compose: structured output of a model for one user.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { anyId, endUserId, nameOf, SHOWN_AS } from "./fields.ts";
import { runs } from "./records.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

/** Values of any kind by name, as JSON text. */
const vars = z.custom<Record<string, unknown>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  "must be an object",
).transform((members) =>
  new Map(Object.entries(members).map(([name, value]) => [name, JSON.stringify(value)]))
).register(SHOWN_AS, {
  type: "object",
  additionalProperties: true,
  description: "Values for the placeholders of the prompt",
});

/** `POST /v1/compose` */
export const compose = defineCall({
  id: "compose",
  method: "POST",
  path: "/v1/compose",
  access: "secret",
  input: z.object({
    type: nameOf(REQUEST_LIMITS.idLengthMax),
    userId: endUserId,
    vars: vars.nullish(),
    runId: anyId(REQUEST_LIMITS.idLengthMax).nullish().describe(
      "An open run of the user: the generation counts there",
    ),
  }),
  isLong: true,
  tag: "Compose",
  summary: "Generate structured output for a user",
  description:
    "type names a compose type of the catalog; vars fill its prompt. The tokens and cents of the " +
    "generation are metered as the event compose.<type>. For a user who opted out of ai_personalization " +
    "the status is opted_out, and no model is called.",
  answer: z.union([
    z.strictObject({
      status: z.literal("generated"),
      generationId: z.string(),
      output: z.record(z.string(), z.unknown()).describe("Matches the output schema of the type"),
      usage: z.strictObject({
        model: z.string(),
        inputTokens: z.number(),
        outputTokens: z.number(),
        costCents: z.number(),
        eventId: z.string(),
      }),
      runs,
    }).meta({ id: "Generated" }),
    z.strictObject({
      status: z.literal("opted_out"),
      generationId: z.null(),
      output: z.null(),
      usage: z.null(),
      runs,
    }).meta({ id: "OptedOut" }),
  ]),
  errors: [
    "not_found",
    "run_ended",
    "not_implemented",
    "workspace_limit_reached",
    "test_quota_exceeded",
    "ai_budget_exceeded",
    "generation_failed",
  ],
});
