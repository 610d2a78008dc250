// Many events in one call, and many calls in one request.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { canUse, commit, release, reserve, track, warnings } from "./metering.ts";
import { BATCH_SLIPS, NO_SLIPS } from "./slips.ts";
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
  elements: "events",
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

/** `POST /v1/batch`. Each call is checked on its own, so an invalid one does not stop the others. */
export const batch = defineCall({
  id: "batch",
  method: "POST",
  path: "/v1/batch",
  access: "secret",
  input: z.object({
    calls: z.array(
      z.unknown().meta({
        type: "object",
        additionalProperties: true,
        description:
          "`call` is `reserve`, `commit`, `release`, `can-use` or `track`; the other members are the body of " +
          "this call, with an optional `idempotencyKey` of 1 to 200 characters.",
      }),
    ).min(1).max(REQUEST_LIMITS.batchCallsMax).describe("1 to 500 calls."),
  }),
  slips: NO_SLIPS,
  isBatch: true,
  elements: "calls",
  tag: "Metering",
  summary: "Make many calls in one request",
  description:
    "Reserve, commit, release, can-use and track, each with a result of its own. Calls are independent of " +
    "each other; those of one user are decided in the order of the list. Give a call an idempotencyKey if " +
    "it may be sent again: it is the Idempotency-Key of the call alone. A call with a key that is not " +
    "decided after a second is answered unavailable and finished all the same. With the header " +
    "Idempotency-Key each call without a key has one derived from it and its place. Each call counts as one " +
    "call for the rate limit. The body may have 8 MiB.",
  answer: z.strictObject({
    results: z.array(
      z.union([
        z.strictObject({
          status: z.literal(200),
          ok: z.literal(true),
          data: z.union([reserve.answer, commit.answer, canUse.answer, track.answer, release.answer]),
          replayed: z.boolean().optional().describe(
            "Present if this is the first answer to an earlier call with the key",
          ),
        }).meta({ id: "BatchedAnswer" }),
        z.strictObject({
          status: z.int(),
          ok: z.literal(false),
          error: z.strictObject({ code: z.string(), message: z.string(), details: z.unknown().optional() })
            .describe("The error of the call alone"),
          replayed: z.boolean().optional(),
          retryAfterSeconds: z.number().optional().describe("The Retry-After of the call alone"),
        }).meta({ id: "BatchedRefusal" }),
      ]),
    ).describe("In the order of the calls"),
    keyPrefix: z.string().describe(
      "What idempotency keys of new calls may begin with, followed by a random text: the service then knows " +
        "without a query that a key is new. It changes from time to time; every other key is as good",
    ),
    warnings: warnings.describe("About members beside calls; those of a call are in its result"),
  }),
  errors: [],
});
