// The `data` of each endpoint's 200 answer, as schemas of the records in `records.ts`. Handlers do not run them; the
// tests hold every answer that they see against them, and the API reference is made of them.

import { z } from "zod";
import { balance, counter, duplicates, event, period, subRef, subscription, time, unit } from "./records.ts";

/** An answer that says nothing but that the call was done. */
export const nothing = z.strictObject({});

const REASONS = [
  "limit_reached",
  "reservation_headroom_exceeded",
  "unmatched_event",
  "no_subscription",
  "unpriced_model",
] as const;

const reasons = z.array(z.enum(REASONS));

export const reserveAnswer = z.strictObject({
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
});

/** What an event cost, and whether anything priced it. */
const cost = z.strictObject({
  cents: z.number(),
  priced: z.boolean().describe("Whether the model has a price row"),
  model: z.string().nullable().describe("The id of the price row"),
});

const warnings = z.array(z.enum(["unpriced_model"])).optional()
  .describe("unpriced_model: a cents group covers the event, and nothing says what it cost");

export const commitAnswer = z.strictObject({
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
});

export const trackAnswer = z.strictObject({
  eventId: z.string(),
  matchStatus: z.enum(["matched", "matched_credits_only", "unmatched", "no_subscription"]),
  matchedGroupIds: z.array(z.string()),
  counters: z.array(counter),
  cost,
  warnings,
});

export const trackBatchAnswer = z.strictObject({
  results: z.array(
    z.union([
      z.strictObject({ ok: z.literal(true), data: trackAnswer }).meta({ id: "TrackedEvent" }),
      z.strictObject({
        ok: z.literal(false),
        error: z.strictObject({ code: z.string(), message: z.string(), details: z.unknown().optional() })
          .describe("What the event alone would have been refused with"),
      }).meta({ id: "RefusedEvent" }),
    ]),
  ).describe("In the order of the events: what `POST /v1/track` would have answered to each"),
});

export const canUseAnswer = z.strictObject({
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

export const explainAnswer = z.strictObject({
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
});

const usageMembers = {
  userId: z.string(),
  period: period.nullable(),
  counters: z.array(counter),
  credits: z.array(balance),
};

export const usageAnswer = z.strictObject({
  ...usageMembers,
  duplicateActiveSubscriptions: duplicates.nullable().optional().describe("With a secret key only"),
});

export const usageStreamAnswer = z.string()
  .describe("Events: usage, with the object that getUsage answers as its data, and end, with { reason }");

export const usageMeAnswer = z.strictObject(usageMembers);

export const userAnswer = z.strictObject({
  userId: z.string().describe("The canonical id"),
  aliases: z.array(z.string()),
  subscription: subscription.nullable(),
  history: z.array(z.strictObject({
    id: z.string(),
    type: z.enum(["created", "plan_changed", "canceled", "reactivated", "ended", "merged", "promoted"]),
    subscriptionId: z.string(),
    planId: z.string(),
    previousPlanId: z.string().nullable(),
    reason: z.string().nullable(),
    at: time,
  })).describe("Newest first, at most 50"),
  period: period.nullable(),
  counters: z.array(counter),
  credits: z.array(balance),
  duplicateActiveSubscriptions: duplicates.nullable(),
});

export const cancelAnswer = z.strictObject({
  subscriptionId: z.string(),
  userId: z.string(),
  planId: z.string(),
  endsAt: time,
});

const issued = {
  balanceId: z.string(),
  remaining: z.number(),
  expiresAt: time.nullable(),
};

export const grantAnswer = z.strictObject({
  balances: z.array(z.strictObject({ ...issued, packItemId: z.string().nullable() }))
    .describe("One for each item of the pack"),
  ...issued,
}).describe("balanceId, remaining and expiresAt are those of the first balance.");

export const extendAnswer = z.strictObject(issued);

export const revokeAnswer = z.strictObject({ balanceId: z.string(), remaining: z.literal(0) });

export const creditsAnswer = z.strictObject({ credits: z.array(balance).describe("In the order of use") });

export const ledgerAnswer = z.strictObject({
  entries: z.array(z.strictObject({
    id: z.string(),
    balanceId: z.string(),
    packId: z.string(),
    delta: z.number().describe("Negative: consumed; positive: granted or refunded"),
    reason: z.enum([
      "event_committed",
      "reservation_held",
      "reservation_released",
      "reservation_expired",
      "grant",
      "admin_adjust",
      "merged_from_alias",
      "merge_dedupe",
    ]),
    eventId: z.string().nullable(),
    reservationId: z.string().nullable(),
    occurredAt: time,
    notes: z.string().nullable(),
  })).describe("Newest first"),
  nextCursor: z.string().nullable(),
});

const rowCount = z.int().min(0);

/** The report of a merge. */
export const aliasReport = z.strictObject({
  mergeId: z.string().nullable().describe("null on a dry run"),
  from: z.string(),
  to: z.string(),
  mode: z.enum(["live", "test"]),
  dryRun: z.boolean(),
  alreadyMerged: z.boolean(),
  historyPending: z.boolean().describe("History is still moving in the background"),
  billableOperations: rowCount,
  moved: z.strictObject({
    events: rowCount,
    eventLogs: rowCount,
    counters: rowCount,
    reservations: rowCount,
    subscriptions: rowCount,
    subscriptionEvents: rowCount,
    creditBalances: rowCount,
    creditLedger: rowCount,
    mediaAssets: rowCount,
    composeGenerations: rowCount,
    aliasesRepointed: rowCount,
  }),
  conflicts: z.strictObject({
    counters: z.strictObject({
      summed: rowCount,
      carried: z.array(z.strictObject({ fromGroupId: z.string(), toGroupId: z.string() })),
      unpaired: z.array(z.string()),
    }),
    subscriptions: duplicates.nullable(),
    endedSubscriptions: z.array(subRef),
    credits: z.array(z.strictObject({
      externalRef: z.string(),
      survivorId: z.string(),
      droppedId: z.string(),
      remaining: z.number(),
      overage: z.number(),
    })),
  }),
  analytics: z.enum(["linked", "already_linked", "skipped_consent_required"]),
}).meta({ id: "AliasReport" });

/** What a pair brought is shown as it came, also where it is no text. */
const asSent = z.unknown().describe("As it was sent");

export const aliasBatchAnswer = z.strictObject({
  results: z.array(z.union([
    z.strictObject({
      from: asSent,
      to: asSent,
      ok: z.literal(true),
      report: aliasReport,
      billableOperations: rowCount,
    }).meta({ id: "MergedPair" }),
    z.strictObject({
      from: asSent,
      to: asSent,
      ok: z.literal(false),
      error: z.strictObject({
        code: z.enum([
          "invalid_request",
          "alias_conflict",
          "alias_cycle",
          "workspace_limit_reached",
          "test_quota_exceeded",
          "unavailable",
          "internal_error",
          "not_processed",
        ]),
        message: z.string(),
      }),
      billableOperations: z.literal(0),
    }).meta({ id: "RefusedPair" }),
  ])).describe("In the order of the pairs"),
  billableOperations: rowCount,
});

export const customerAnswer = z.strictObject({
  canonicalId: z.string(),
  aliases: z.array(z.string()),
  duplicateActiveSubscriptions: duplicates.nullable(),
});

export const composeAnswer = z.union([
  z.strictObject({
    status: z.literal("generated"),
    generationId: z.string(),
    output: z.record(z.string(), z.unknown()).describe("Matches the type's output schema"),
    usage: z.strictObject({
      model: z.string(),
      inputTokens: z.number(),
      outputTokens: z.number(),
      costCents: z.number(),
      eventId: z.string(),
    }),
  }).meta({ id: "Generated" }),
  z.strictObject({
    status: z.literal("opted_out"),
    generationId: z.null(),
    output: z.null(),
    usage: z.null(),
  }).meta({ id: "OptedOut" }),
]);

export const eventsAnswer = z.strictObject({
  events: z.array(event).describe("Newest first"),
  limit: z.int(),
  offset: z.int(),
  logPromptsEnabled: z.boolean(),
});

export const refusalsAnswer = z.strictObject({
  refusals: z.array(z.strictObject({
    userId: z.string(),
    event: z.string(),
    reasons: z.array(
      z.enum([...REASONS, "workspace_limit_reached", "test_quota_exceeded", "ai_budget_exceeded"]),
    ),
    groupIds: z.array(z.string())
      .describe("The groups without room for the newest call, in the plan's order"),
    count: z.int().min(1),
    firstAt: time,
    lastAt: time,
  })).describe("Newest first by lastAt"),
  limit: z.int(),
  offset: z.int(),
});

export const captureAnswer = z.strictObject({ accepted: z.literal(true) });

export const identifyAnswer = z.strictObject({ personId: z.string(), merged: z.boolean() });

export const aliasPeopleAnswer = z.strictObject({ personId: z.string() });

export const optedOutAnswer = z.strictObject({ optedOut: z.boolean() });

export const exportPersonAnswer = z.strictObject({
  downloadUrl: z.url(),
  expiresAt: time.describe("24 hours from now"),
  format: z.literal("json"),
});

const properties = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]));

/** The export document itself, which is answered without the envelope. */
export const exportDocumentAnswer = z.strictObject({
  format: z.literal("json"),
  exportedAt: time,
  appId: z.string(),
  mode: z.enum(["live", "test"]),
  distinctId: z.string(),
  person: z.strictObject({
    personId: z.string(),
    distinctIds: z.array(z.string()),
    properties,
    identifiedAt: time.nullable(),
    createdAt: time,
  }).nullable(),
  events: z.strictObject({
    analytics: z.array(z.strictObject({
      id: z.string(),
      event: z.string(),
      properties,
      timestamp: time,
    })),
    metering: z.array(event),
  }),
  consentLog: z.array(z.strictObject({
    id: z.string(),
    action: z.enum(["opt_out", "opt_in"]),
    scope: z.enum(["analytics", "ai_personalization", "all", "prompt_logging"]),
    consentGiven: z.boolean(),
    createdAt: time,
  })),
});

export const deletePersonAnswer = z.strictObject({ jobId: z.string() });

export const deletionStatusAnswer = z.strictObject({
  status: z.enum(["queued", "in_progress", "completed", "failed"]),
  requestedAt: time,
  startedAt: time.nullable(),
  completedAt: time.nullable(),
  errorMessage: z.string().nullable(),
});

export const testClockAnswer = z.strictObject({ now: time });
