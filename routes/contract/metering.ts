// Metering: hold quota before the work and settle it afterwards, count work that is done, or ask what would be allowed.

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

const HOLD_SLIPS = {
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

const canUseInput = z.object({ ...meteredCall, maxOutputTokens });
const plainCanUse = plainOf<typeof canUseInput>(OF_CALL, {
  ...PLAIN_CALL,
  maxOutputTokens: isPositiveAmount,
});

/** `POST /v1/can-use`: what reserve would answer now. */
export const canUse = defineCall({
  id: "canUse",
  method: "POST",
  path: "/v1/can-use",
  access: "secret",
  input: canUseInput,
  plain: plainCanUse,
  slips: HOLD_SLIPS,
  hasOptions: true,
  tag: "Metering",
  summary: "Ask what reserve would answer now",
  description: "Holds nothing, counts nothing and is free; the workspace's cap is left out.",
  answer: z.strictObject({
    allowed: z.boolean(),
    matched: z.boolean(),
    reasons,
    details: z.array(z.strictObject({
      groupId: z.string(),
      current: z.number(),
      quota: z.number(),
      resetsAt: time.nullable(),
      creditAvailable: z.number(),
      creditPacks: z.array(z.strictObject({
        packId: z.string(),
        packName: z.string(),
        available: z.number(),
      })),
    })),
  }),
  errors: [],
});

/** A limit group of the plan in force as an explanation shows it. */
const explainedGroup = z.strictObject({
  groupId: z.string(),
  label: z.string(),
  unit,
  covers: z.boolean().describe("Whether a rule of the group matches the call"),
  why: z.enum(["matched", "event", "metadata"])
    .describe("event: no rule names the event; metadata: a rule names it and asks for other metadata"),
  metadata: z.record(z.string(), z.strictObject({ wanted: z.string(), given: z.string().nullable() }))
    .optional().describe("With metadata: the keys in which the call differs from the nearest rule"),
  quota: z.number(),
  isCustom: z.boolean().describe("The subscription has a quota of its own"),
  headroom: z.strictObject({ mode: z.enum(["percent", "multiplier"]), value: z.number() }).nullable()
    .describe("The group's, else the plan's"),
  gate: z.number().nullable().describe("The effective limit of reserves where headroom is configured"),
  current: z.number(),
  held: z.number().describe("What open reservations hold of current"),
  need: z.number().nullable().describe("null, as room and fits, where the group does not cover the call"),
  room: z.number().nullable().describe("What the group alone can take under its gate, without credits"),
  fits: z.boolean().nullable().describe("Whether the need fits into that room"),
});

/** `POST /v1/explain`: what can-use says, and why. */
export const explain = defineCall({
  id: "explain",
  method: "POST",
  path: "/v1/explain",
  access: "secret",
  input: canUseInput,
  plain: plainCanUse,
  slips: HOLD_SLIPS,
  hasOptions: true,
  tag: "Metering",
  summary: "Ask why a call is allowed or refused",
  description:
    "What can-use says, with every limit group of the plan, every balance that has something left, and " +
    "a text for whoever must tell a customer. Like can-use it holds nothing, counts nothing and is free.",
  answer: z.strictObject({
    allowed: z.boolean(),
    matched: z.boolean(),
    reasons,
    text: z.string().describe("One or two sentences for a support person"),
    subscription: z.strictObject({ subscriptionId: z.string(), planId: z.string(), planName: z.string() })
      .nullable().describe("The one that the plan in force comes from"),
    groups: z.array(explainedGroup).describe("Every limit group of the plan, in its order"),
    credits: z.array(z.strictObject({
      balanceId: z.string(),
      packId: z.string(),
      packName: z.string(),
      unit,
      remaining: z.number(),
      expiresAt: time.nullable(),
      matches: z.boolean().describe("Whether a rule of the balance matches the call"),
      wouldPay: z.number().describe("What a reserve would take from it now; 0 where the call is refused"),
    })).describe("Every balance that can be spent, in the order of use"),
  }),
  errors: [],
});
