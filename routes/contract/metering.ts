// Reserve, commit, release and track: hold quota before the work and settle it afterwards, or count work that is done.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { amount, anyId, cutAt, isAmount, isAnyId, isPositiveAmount, loggedText } from "./fields.ts";
import {
  actual,
  addFaults,
  conflictsOf,
  correctionFaults,
  extra,
  reportsUsage,
  usageConflicts,
} from "./member_conflicts.ts";
import { maxOutputTokens, meteredCall, OF_CALL, PLAIN_CALL, plainOf } from "./metered_members.ts";
import { providerUsage, usage } from "./model_usage.ts";
import { counter, nothing, reasons, time, unit } from "./records.ts";
import { ERROR_CODE_LENGTH_MAX, REASON_LENGTH_MAX } from "../../src/domain/values/texts.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const COUNTED_COST = "A cents group counts it only where the model is priced by the second";

/** Members that are easily written in the wrong place of a hold. */
export const HOLD_SLIPS = {
  outputTokens: "maxOutputTokens for the longest answer",
  tokens: "inputTokens, and maxOutputTokens for the longest answer",
  cost: "inputCostCents",
};
const COMMIT_SLIPS = {
  outputTokens: "usage.outputTokens, or extra.outputTokens",
  tokens: "usage, or actual.tokens",
  cost: "costCents",
};
const TRACK_SLIPS = {
  outputTokens: "usage.outputTokens",
  tokens: "inputTokens, or usage",
  cost: "costCents",
};

const reserveInput = z.object({
  ...meteredCall,
  maxOutputTokens,
  ttlSeconds: z.number().min(REQUEST_LIMITS.ttlSecondsMin).max(REQUEST_LIMITS.ttlSecondsMax).nullish()
    .describe("How long the hold lasts; default: the app's reservationTtlSeconds"),
  prompt: loggedText.nullish().describe(
    "Kept while prompt logging is on and the user has not opted out of it",
  ),
});

/** `POST /v1/reserve`: hold quota before the work. */
export const reserve = defineCall({
  id: "reserve",
  method: "POST",
  path: "/v1/reserve",
  access: "secret",
  input: reserveInput,
  plain: plainOf<typeof reserveInput>(OF_CALL, {
    ...PLAIN_CALL,
    maxOutputTokens: isPositiveAmount,
    ttlSeconds: isTtl,
  }),
  slips: HOLD_SLIPS,
  hasOptions: true,
  tag: "Metering",
  summary: "Hold quota before the work",
  description:
    "Holds what the call will use in every limit group that covers the event; credits take what the " +
    "plan has no room for. maxOutputTokens holds the longest answer too, in tokens and in cents by the " +
    "model's prices. At the limit the answer is data and nothing is held. A hold lapses after " +
    "ttlSeconds, by default the app's reservationTtlSeconds.",
  answer: z.strictObject({
    allowed: z.boolean(),
    matched: z.boolean().describe("false when nothing covers the event, or the user has no subscription"),
    reservationId: z.string().optional().describe("Present when allowed"),
    expiresAt: time.optional(),
    reasons: reasons.optional(),
    groups: z.array(z.strictObject({
      groupId: z.string(),
      unit,
      quota: z.number(),
      current: z.number(),
      headroomGate: z.number().optional().describe("The effective gate where headroom is configured"),
    })).optional(),
  }),
  errors: ["workspace_limit_reached", "test_quota_exceeded"],
});

function isTtl(value: unknown): boolean {
  return typeof value === "number" && value >= REQUEST_LIMITS.ttlSecondsMin &&
    value <= REQUEST_LIMITS.ttlSecondsMax;
}

/** The id of a reservation; one that was never given out is `not_found`, whatever its form. */
const reservationId = anyId(REQUEST_LIMITS.idLengthMax);

function isReservationId(value: unknown): boolean {
  return isAnyId(value, REQUEST_LIMITS.idLengthMax);
}

const PLAIN_SETTLEMENT = { reservationId: isReservationId };
const OF_SETTLEMENT = ["reservationId"];

/** What an event cost, and whether anything priced it. */
const cost = z.strictObject({
  cents: z.number(),
  priced: z.boolean().describe("Whether the model has a price row"),
  model: z.string().nullable().describe("The id of the price row"),
});

const warnings = z.array(z.enum(["unpriced_model"])).optional()
  .describe("unpriced_model: a cents group covers the event, and nothing says what it cost");

const commitInput = z.object({
  reservationId,
  extra: extra.nullish().describe("On top of what was held; not for a unit that actual has"),
  actual: actual.nullish().describe("In place of what was held"),
  costCents: amount.nullish().describe(
    `The event's whole cost, for reports; not with an extra or actual in cents. ${COUNTED_COST}`,
  ),
  usage: usage.nullish(),
  providerUsage: providerUsage.nullish(),
  response: loggedText.nullish(),
}).superRefine((input, context) => {
  addFaults(context, correctionFaults(input));
  if (reportsUsage(input)) addFaults(context, usageConflicts(input));
});

/** `POST /v1/commit`: settle a reservation with the work done. */
export const commit = defineCall({
  id: "commit",
  method: "POST",
  path: "/v1/commit",
  access: "secret",
  input: commitInput,
  plain: plainOf<typeof commitInput>(OF_SETTLEMENT, { ...PLAIN_SETTLEMENT, costCents: isAmount }),
  slips: COMMIT_SLIPS,
  hasOptions: true,
  tag: "Metering",
  summary: "Settle a reservation with the work done",
  description:
    "Records the event. usage, or the model server's own usage object as providerUsage, makes tokens and " +
    "cents final, by the prices at the time of the reserve. Otherwise extra adds to what was held, actual " +
    "replaces it, each by unit, and without any of them the cost stays what was held. A commit of more " +
    "than was held succeeds, since the work is done; one of an expired hold charges it again.",
  answer: z.strictObject({
    eventId: z.string(),
    groups: z.array(z.strictObject({
      groupId: z.string(),
      unit,
      quota: z.number(),
      current: z.number(),
      overflow: z.boolean().describe("This commit took the counter past its quota"),
    })),
    recharged: z.boolean().describe("The hold had expired and was charged again"),
    cost,
    warnings,
  }),
  errors: ["not_found", "reservation_not_pending"],
});

const releaseInput = z.object({
  reservationId,
  reason: cutAt(REASON_LENGTH_MAX).nullish(),
  errorCode: cutAt(ERROR_CODE_LENGTH_MAX).nullish(),
  response: loggedText.nullish(),
});

/** `POST /v1/release`: give a hold back. */
export const release = defineCall({
  id: "release",
  method: "POST",
  path: "/v1/release",
  access: "secret",
  input: releaseInput,
  plain: plainOf<typeof releaseInput>(OF_SETTLEMENT, PLAIN_SETTLEMENT),
  hasOptions: true,
  tag: "Metering",
  summary: "Give a hold back",
  description:
    "Returns quota and credits. Nothing is counted; reason, errorCode and response are kept for the feed.",
  answer: nothing,
  errors: ["not_found", "reservation_not_pending"],
});

const trackInput = z.object({
  ...meteredCall,
  costCents: amount.nullish().describe("The event's cost, for reports. " + COUNTED_COST),
  usage: usage.nullish(),
  providerUsage: providerUsage.nullish(),
  prompt: loggedText.nullish(),
  response: loggedText.nullish(),
}).superRefine((input, context) => {
  if (!reportsUsage(input)) return;
  addFaults(context, conflictsOf(input, input, ["inputTokens", "inputCostCents", "costCents"]));
});

/** `POST /v1/track`: count work done without a reservation. */
export const track = defineCall({
  id: "track",
  method: "POST",
  path: "/v1/track",
  access: "secret",
  input: trackInput,
  plain: plainOf<typeof trackInput>(OF_CALL, { ...PLAIN_CALL, costCents: isAmount }),
  slips: TRACK_SLIPS,
  hasOptions: true,
  mayBeInBatch: true,
  tag: "Metering",
  summary: "Count work done without a reservation",
  description:
    "The same decision as reserve and commit in one. usage, or the model server's own usage object as " +
    "providerUsage, is what was used, priced by the catalog. At the limit a blocked event is recorded, " +
    "nothing is counted; details.eventId names it, and details.groups the groups without room, with quota " +
    "and current.",
  answer: z.strictObject({
    eventId: z.string(),
    matchStatus: z.enum(["matched", "matched_credits_only", "unmatched", "no_subscription"]),
    matchedGroupIds: z.array(z.string()),
    counters: z.array(counter),
    cost,
    warnings,
  }),
  errors: ["limit_reached", "workspace_limit_reached", "test_quota_exceeded"],
});

/** `POST /v1/track/batch`: many events in one call. Each is checked by itself, so that a wrong one refuses itself alone. */
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
        description:
          "A body of `POST /v1/track`, with an `idempotencyKey` of 1 to 200 characters if you like.",
      }),
    ).min(1).max(REQUEST_LIMITS.batchEventsMax).describe("1 to 500 events."),
  }),
  isBatch: true,
  tag: "Metering",
  summary: "Count many events in one call",
  description:
    "Each event is a body of track, with an idempotencyKey of its own where it may be sent again: alone or " +
    "in another batch, it then gets its first result. Events are independent of each other; those of one " +
    "user are counted in the order in which they stand. Each takes one call of the rate limit.",
  answer: z.strictObject({
    results: z.array(
      z.union([
        z.strictObject({ ok: z.literal(true), data: track.answer }).meta({ id: "TrackedEvent" }),
        z.strictObject({
          ok: z.literal(false),
          error: z.strictObject({ code: z.string(), message: z.string(), details: z.unknown().optional() })
            .describe("What the event alone would have been refused with"),
        }).meta({ id: "RefusedEvent" }),
      ]),
    ).describe("In the order of the events: what `POST /v1/track` would have answered to each"),
  }),
  errors: [],
});
