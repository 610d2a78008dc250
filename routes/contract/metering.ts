// Metering: reserve quota and settle it, track finished work, and check what would be allowed.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { amount, anyId, cutAt, isAmount, isAnyId, loggedText, SHOWN_AS } from "./fields.ts";
import {
  actual,
  addFaults,
  conflictsOf,
  correctionFaults,
  extra,
  reportsUsage,
  usageConflicts,
} from "./member_conflicts.ts";
import {
  heldFaults,
  heldMembers,
  meteredCall,
  OF_CALL,
  PLAIN_CALL,
  PLAIN_HELD,
  plainOf,
} from "./metered_members.ts";
import { fit, fitFaults, fitted } from "./fit.ts";
import { providerUsage, usage } from "./model_usage.ts";
import { CAN_USE_SLIPS, COMMIT_SLIPS, RELEASE_SLIPS, RESERVE_SLIPS, TRACK_SLIPS } from "./slips.ts";
import {
  counter,
  levelsOf,
  overage,
  reasons,
  refusedBy,
  retryAfterMs,
  runs,
  sharedCounter,
  time,
  uncovered,
  unit,
} from "./records.ts";
import { ERROR_CODE_LENGTH_MAX, REASON_LENGTH_MAX } from "../../src/domain/values/texts.ts";
import { RATE_PARTS } from "../../src/domain/catalog/rate_row.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const COUNTED_COST = "Limit groups in cents count it only if the model is priced per second";

/** What a call costs in credits; absent where the catalog has no rates. */
const credits = z.strictObject({
  total: z.number(),
  rated: z.boolean().describe("Whether a rate of the catalog gives the credits"),
}).meta({ id: "CreditCost" }).optional().describe(
  "What the call costs in credits, of a hold at most; present if the catalog has rates",
);

/** Warnings of an answer; absent without any. */
export const warnings = z.array(
  z.string().register(SHOWN_AS, { type: "string", pattern: "^[a-z_]+(: |$)" }),
).optional().describe(
  '"unknown_member: metdata": the call has no such member and was answered without it. ' +
    "unpriced_model: a limit group in cents covers the event, but the call has no price. " +
    "unrated_event: credits are counted for the event, but no rate says how many. " +
    "tier_unpriced: the usage names another service tier than the standard one, and was priced as the standard one. " +
    "quantity_not_counted: quantity is above 1, but no matched limit group or balance counts it; use count",
);

const reserveInput = z.object({
  ...meteredCall,
  ...heldMembers,
  fit: fit.nullish(),
  ttlSeconds: z.number().min(REQUEST_LIMITS.ttlSecondsMin).max(REQUEST_LIMITS.ttlSecondsMax).nullish()
    .describe("How long the reservation lasts. Default: the app's reservationTtlSeconds"),
  prompt: loggedText.nullish().describe(
    "Stored while prompt logging is on, unless the user opted out of it",
  ),
}).superRefine((input, context) => addFaults(context, [...heldFaults(input), ...fitFaults(input)]));

/** A matched limit group in the answer to a reserve. */
const reservedGroup = z.strictObject({
  groupId: z.string(),
  unit,
  quota: z.number(),
  current: z.number(),
  headroomGate: z.number().optional().describe("The effective limit, where headroom is configured"),
  overage,
  label: z.string().optional().describe(
    "Present, like resetsAt, if the group has no room for a refused call",
  ),
  resetsAt: time.nullable().optional().describe(
    "When the window ends; null for a lifetime, a guard, and a session that has not begun",
  ),
});

/** `POST /v1/reserve`: reserve quota before the work. */
export const reserve = defineCall({
  id: "reserve",
  method: "POST",
  path: "/v1/reserve",
  access: "secret",
  input: reserveInput,
  plain: plainOf<typeof reserveInput>(OF_CALL, {
    ...PLAIN_CALL,
    ...PLAIN_HELD,
    ttlSeconds: isTtl,
  }),
  slips: RESERVE_SLIPS,
  mayBeInBatch: true,
  hasOptions: true,
  tag: "Metering",
  summary: "Reserve quota before the work",
  description:
    "Reserves what the call will use in every limit group that covers the event; credits pay for what " +
    "the plan has no room for. maxOutputTokens reserves the maximum output too, in tokens and in cents. " +
    "If a limit is reached, the status is still 200: allowed is false, and nothing is reserved. A " +
    "reservation expires after ttlSeconds.",
  answer: z.strictObject({
    allowed: z.boolean(),
    matched: z.boolean().describe(
      "false if no limit group and no credits cover the event, or the user has no subscription",
    ),
    reservationId: z.string().optional().describe("Present if allowed"),
    expiresAt: time.optional(),
    reasons: reasons.optional(),
    groups: z.array(reservedGroup).optional(),
    refusedBy,
    retryAfterMs,
    levels: levelsOf({ groups: z.array(reservedGroup) }),
    runs,
    credits,
    fitted,
    warnings,
  }),
  errors: ["not_found", "run_ended", "workspace_limit_reached", "test_quota_exceeded"],
});

function isTtl(value: unknown): boolean {
  return typeof value === "number" && value >= REQUEST_LIMITS.ttlSecondsMin &&
    value <= REQUEST_LIMITS.ttlSecondsMax;
}

/** The id of a reservation. An unknown id is `not_found`, whatever its form. */
const reservationId = anyId(REQUEST_LIMITS.idLengthMax);

function isReservationId(value: unknown): boolean {
  return isAnyId(value, REQUEST_LIMITS.idLengthMax);
}

const PLAIN_SETTLEMENT = { reservationId: isReservationId };
const OF_SETTLEMENT = ["reservationId"];

/** The cost of an event, and whether the model has a price. */
const cost = z.strictObject({
  cents: z.number(),
  priced: z.boolean().describe("Whether the model has a price"),
  model: z.string().nullable().describe("The id of the price"),
});

const commitInput = z.object({
  reservationId,
  extra: extra.nullish().describe("Added to the reserved amounts; not for a unit that actual has"),
  actual: actual.nullish().describe("Replaces the reserved amounts"),
  costCents: amount.nullish().describe(
    `The total cost of the event, for reports; not together with cents in extra or actual. ${COUNTED_COST}`,
  ),
  usage: usage.nullish(),
  providerUsage: providerUsage.nullish(),
  response: loggedText.nullish(),
}).superRefine((input, context) => {
  addFaults(context, correctionFaults(input));
  if (reportsUsage(input)) addFaults(context, usageConflicts(input));
});

/** A limit group in the answer to a commit. */
const committedGroup = z.strictObject({
  groupId: z.string(),
  unit,
  quota: z.number(),
  current: z.number(),
  overflow: z.boolean().describe("Whether this commit took the counter above its quota, beyond what is sold"),
  overage,
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
  mayBeInBatch: true,
  repeats: ["userId"],
  hasOptions: true,
  tag: "Metering",
  summary: "Commit a reservation",
  description:
    "Settles the reservation with the work done, and records the event. usage, or the model server's " +
    "own usage object as providerUsage, sets the final tokens and cents, at the prices of the time of " +
    "the reserve. Otherwise extra adds to the reserved amounts and actual replaces them, unit by unit; " +
    "without either, the reserved amounts are charged. A commit above the reserved amounts succeeds, " +
    "because the work is done. A commit of an expired reservation charges it again.",
  answer: z.strictObject({
    eventId: z.string(),
    groups: z.array(committedGroup),
    levels: levelsOf({ groups: z.array(committedGroup), uncovered }),
    recharged: z.boolean().describe("Whether the reservation had expired and was charged again"),
    cost,
    credits,
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

/** `POST /v1/release`: return the quota of a reservation. */
export const release = defineCall({
  id: "release",
  method: "POST",
  path: "/v1/release",
  access: "secret",
  input: releaseInput,
  plain: plainOf<typeof releaseInput>(OF_SETTLEMENT, PLAIN_SETTLEMENT),
  slips: RELEASE_SLIPS,
  mayBeInBatch: true,
  repeats: ["userId"],
  hasOptions: true,
  tag: "Metering",
  summary: "Release a reservation",
  description:
    "Returns quota and credits, and counts nothing. reason, errorCode and response are stored with the " +
    "event.",
  answer: z.strictObject({ warnings }),
  errors: ["not_found", "reservation_not_pending"],
});

const trackInput = z.object({
  ...meteredCall,
  costCents: amount.nullish().describe("The cost of the event, for reports. " + COUNTED_COST),
  usage: usage.nullish(),
  providerUsage: providerUsage.nullish(),
  prompt: loggedText.nullish(),
  response: loggedText.nullish(),
}).superRefine((input, context) => {
  if (!reportsUsage(input)) return;
  addFaults(context, conflictsOf(input, input, ["inputTokens", "inputCostCents", "costCents"]));
});

/** `POST /v1/track`: count work that needs no reservation. */
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
  summary: "Track work without a reservation",
  description:
    "Counts finished work: the same decision as reserve and commit in one call. usage, or the model " +
    "server's own usage object as providerUsage, says what was used, at the prices of the catalog. If a " +
    "limit is reached, nothing is counted and a blocked event is recorded: details.eventId is its id, " +
    "and details.groups are the limit groups without room, with quota and current.",
  answer: z.strictObject({
    eventId: z.string(),
    matchStatus: z.enum(["matched", "matched_credits_only", "unmatched", "no_subscription"]),
    matchedGroupIds: z.array(z.string()),
    counters: z.array(counter),
    levels: levelsOf({ counters: z.array(sharedCounter) }),
    runs,
    cost,
    credits,
    warnings,
  }),
  errors: [
    "not_found",
    "run_ended",
    "limit_reached",
    "member_limit_reached",
    "no_subscription",
    "unmatched_event",
    "unpriced_model",
    "run_limit_reached",
    "rate_limit_reached",
    "workspace_limit_reached",
    "test_quota_exceeded",
  ],
});

const canUseInput = z.object({ ...meteredCall, ...heldMembers })
  .superRefine((input, context) => addFaults(context, heldFaults(input)));
const plainCanUse = plainOf<typeof canUseInput>(OF_CALL, { ...PLAIN_CALL, ...PLAIN_HELD });

/** A matched limit group in the answer to a can-use. */
const checkedGroup = z.strictObject({
  groupId: z.string(),
  current: z.number(),
  quota: z.number(),
  overage,
  resetsAt: time.nullable(),
  creditAvailable: z.number(),
  creditPacks: z.array(z.strictObject({
    packId: z.string(),
    packName: z.string(),
    available: z.number(),
  })),
});

/** `POST /v1/can-use`: check what reserve would answer now. */
export const canUse = defineCall({
  id: "canUse",
  method: "POST",
  isRead: true,
  path: "/v1/can-use",
  access: "secret",
  input: canUseInput,
  plain: plainCanUse,
  slips: CAN_USE_SLIPS,
  mayBeInBatch: true,
  hasOptions: true,
  tag: "Metering",
  summary: "Check whether a call is allowed",
  description: "Answers what reserve would answer now, except for the workspace's cap. Reserves and counts " +
    "nothing, and is free.",
  answer: z.strictObject({
    allowed: z.boolean(),
    matched: z.boolean(),
    reasons,
    details: z.array(checkedGroup),
    refusedBy,
    retryAfterMs,
    levels: levelsOf({ details: z.array(checkedGroup) }),
    runs,
    credits,
    warnings,
  }),
  errors: ["not_found", "run_ended"],
});

/** A limit group of the plan in force as an explanation shows it. */
const explainedGroup = z.strictObject({
  groupId: z.string(),
  label: z.string(),
  unit,
  covers: z.boolean().describe("Whether a rule of the group matches the call"),
  why: z.enum(["matched", "event", "metadata"])
    .describe(
      "event: no rule matches the event; metadata: a rule matches the event, but requires other metadata",
    ),
  metadata: z.record(z.string(), z.strictObject({ wanted: z.string(), given: z.string().nullable() }))
    .optional().describe("If why is metadata: the keys with other values than the closest rule requires"),
  quota: z.number(),
  isCustom: z.boolean().describe("Whether the quota comes from the customLimits of the subscription"),
  quotaParts: z.strictObject({
    own: z.number().describe("The custom limit, else the plan's quota times quantity"),
    quantity: z.number(),
    addOns: z.array(z.strictObject({
      subscriptionId: z.string(),
      planId: z.string(),
      quantity: z.number(),
      quota: z.number().describe("What it adds: its quota times its quantity"),
    })),
  }).optional().describe("What the quota is made of; absent for one seat without add-ons"),
  headroom: z.strictObject({ mode: z.enum(["percent", "multiplier"]), value: z.number() }).nullable()
    .describe("Of the group, else of the plan"),
  gate: z.number().describe(
    "The effective limit of reserves: the quota, less the headroom where it is configured",
  ),
  current: z.number(),
  overage,
  held: z.number().describe("The part of current that open reservations hold"),
  need: z.number().nullable().describe("null, like room and fits, if the group does not cover the call"),
  room: z.number().nullable().describe("What remains under the effective limit, without credits"),
  fits: z.boolean().nullable().describe("Whether need fits into room, or with overage is sold past it"),
});

/** A balance as an explanation shows it. */
const explainedBalance = z.strictObject({
  balanceId: z.string(),
  packId: z.string(),
  packName: z.string(),
  unit,
  remaining: z.number(),
  expiresAt: time.nullable(),
  matches: z.boolean().describe("Whether a rule of the balance matches the call"),
  wouldPay: z.number().describe("Amount that a reserve would take now; 0 if the call is refused"),
});

/** What a call costs in credits as an explanation shows it. */
const explainedRate = z.strictObject({
  total: z.number(),
  rated: z.boolean().describe("Whether a rate of the catalog gives the credits"),
  event: z.string().nullable().describe("The pattern of the rate; null if none covers the event"),
  minimum: z.number().describe("The least that the call costs; the sum of the parts may be lower"),
  parts: z.array(z.strictObject({
    part: z.enum(RATE_PARTS).describe("The member of the rate"),
    amount: z.number().describe("The calls, tokens, seconds or cents"),
    rate: z.number(),
    credits: z.number(),
  })),
}).meta({ id: "ExplainedRate" }).optional().describe(
  "The most that the call costs in credits, and how that adds up; present if the catalog has rates",
);

/** `POST /v1/explain`: the answer of can-use, and why. */
export const explain = defineCall({
  id: "explain",
  method: "POST",
  isRead: true,
  path: "/v1/explain",
  access: "secret",
  input: canUseInput,
  plain: plainCanUse,
  slips: CAN_USE_SLIPS,
  hasOptions: true,
  tag: "Metering",
  summary: "Explain why a call is allowed or refused",
  description:
    "The answer of can-use, with every limit group of the plan, every balance with remaining credits, " +
    "and a text for support. Reserves and counts nothing, and is free.",
  answer: z.strictObject({
    allowed: z.boolean(),
    matched: z.boolean(),
    reasons,
    text: z.string().describe("One or two sentences for a support person"),
    subscription: z.strictObject({ subscriptionId: z.string(), planId: z.string(), planName: z.string() })
      .nullable().describe("The subscription that grants the plan in force"),
    groups: z.array(explainedGroup).describe("Every limit group of the plan, in its order"),
    credits: z.array(explainedBalance).describe("Every balance with remaining credits, in the order of use"),
    refusedBy,
    retryAfterMs,
    levels: levelsOf({ groups: z.array(explainedGroup), credits: z.array(explainedBalance) }),
    runs,
    rate: explainedRate,
    warnings,
  }),
  errors: ["not_found", "run_ended"],
});
