// Many events in one call.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { track, warnings } from "./metering.ts";
import { BATCH_SLIPS } from "./slips.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

/** `POST /v1/track/batch`. Each event is checked on its own, so an invalid event does not stop the others. */
export const trackBatch = defineCall({
  id: "trackBatch",
  method: "POST",
  path: "/v1/track/batch",
  access: "secret",
  input: z.object({
    events: z.array(
      z.unknown().meta({
        type: "object",
        additionalProperties: true,
        description: "A body of `POST /v1/track`, with an optional `idempotencyKey` of 1 to 200 characters.",
      }),
    ).min(1).max(REQUEST_LIMITS.batchEventsMax).describe("1 to 500 events."),
  }),
  slips: BATCH_SLIPS,
  isBatch: true,
  tag: "Metering",
  summary: "Track many events in one call",
  description:
    "Each event is a body of track. Give an event an idempotencyKey if it may be sent again: alone or " +
    "in another batch, it then gets its first result. Events are independent of each other; those of " +
    "one user are counted in the order of the list. Each event counts as one call for the rate limit.",
  answer: z.strictObject({
    results: z.array(
      z.union([
        z.strictObject({ ok: z.literal(true), data: track.answer }).meta({ id: "TrackedEvent" }),
        z.strictObject({
          ok: z.literal(false),
          error: z.strictObject({ code: z.string(), message: z.string(), details: z.unknown().optional() })
            .describe("The error of `POST /v1/track` for this event"),
        }).meta({ id: "RefusedEvent" }),
      ]),
    ).describe("In the order of the events: the answer of `POST /v1/track` to each"),
    warnings: warnings.describe("About members beside events; those of an event are in its result"),
  }),
  errors: [],
});
