// The answers of the service as strict schemas, for the client's tests: real answers are parsed by them, and
// `agreement_test.ts` proves that each is exactly the client's type.

import { z } from "zod";
import type * as Client from "../../src/client/client.ts";

const unit = z.enum(["count", "tokens", "seconds", "cents"]);
const textOrNull = z.string().nullable();
const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const timeOrNull = time.nullable();
const mode = z.enum(["live", "test"]);
const matches = z.array(z.strictObject({
  event: z.string(),
  metadata: z.record(z.string(), z.string()).exactOptional(),
}));

const counter = z.strictObject({
  groupId: z.string(),
  event: z.string(),
  label: z.string(),
  unit,
  quota: z.number(),
  count: z.number(),
  remaining: z.number(),
  costCents: z.number(),
  filters: z.record(z.string(), z.array(z.string())),
});

const balance = z.strictObject({
  balanceId: z.string(),
  packId: z.string(),
  packName: z.string(),
  packItemId: textOrNull,
  kind: z.enum(["per_type", "generic"]),
  unit,
  remaining: z.number(),
  initial: z.number(),
  grantedAt: time,
  expiresAt: timeOrNull,
  status: z.enum(["active", "expired", "depleted", "revoked"]),
  matches,
  priority: z.number(),
});

const subscriptionRef = z.strictObject({
  subscriptionId: z.string(),
  planId: z.string(),
  planName: z.string(),
  provider: textOrNull,
  externalId: textOrNull,
  startedAt: time,
  endsAt: timeOrNull,
});

const duplicates = z.strictObject({ primary: subscriptionRef, duplicates: z.array(subscriptionRef) })
  .nullable();
const period = z.strictObject({ start: time, end: timeOrNull }).nullable();
const reason = z.enum([
  "limit_reached",
  "reservation_headroom_exceeded",
  "unmatched_event",
  "no_subscription",
]);

const standing = { groupId: z.string(), unit, quota: z.number(), current: z.number() };
const groups = z.array(z.strictObject({ ...standing, headroomGate: z.number().exactOptional() }))
  .exactOptional();
const absent = z.undefined().optional();

const reserve = z.union([
  z.strictObject({
    allowed: z.literal(true),
    matched: z.literal(true),
    reservationId: z.string(),
    expiresAt: time,
    groups,
    reasons: absent,
  }),
  z.strictObject({
    allowed: z.literal(false),
    matched: z.boolean(),
    reasons: z.array(reason),
    groups,
    reservationId: absent,
    expiresAt: absent,
  }),
]);

const commit = z.strictObject({
  eventId: z.string(),
  groups: z.array(z.strictObject({ ...standing, overflow: z.boolean() })),
  recharged: z.boolean(),
});

const track = z.strictObject({
  eventId: z.string(),
  matchStatus: z.enum(["matched", "matched_credits_only", "unmatched", "no_subscription"]),
  matchedGroupIds: z.array(z.string()),
  counters: z.array(counter),
});

const canUse = z.strictObject({
  allowed: z.boolean(),
  matched: z.boolean(),
  reasons: z.array(reason),
  details: z.array(z.strictObject({
    groupId: z.string(),
    current: z.number(),
    quota: z.number(),
    resetsAt: timeOrNull,
    creditAvailable: z.number(),
    creditPacks: z.array(
      z.strictObject({ packId: z.string(), packName: z.string(), available: z.number() }),
    ),
  })),
});

const usage = z.strictObject({
  userId: z.string(),
  period,
  counters: z.array(counter),
  credits: z.array(balance),
  duplicateActiveSubscriptions: duplicates.exactOptional(),
});

const subscription = z.strictObject({
  subscriptionId: z.string(),
  userId: z.string(),
  planId: z.string(),
  startedAt: time,
  endsAt: timeOrNull,
  cycleAnchorAt: timeOrNull,
  provider: textOrNull,
  externalId: textOrNull,
});

const canceled = z.strictObject({
  subscriptionId: z.string(),
  userId: z.string(),
  planId: z.string(),
  endsAt: time,
});

const user = z.strictObject({
  userId: z.string(),
  aliases: z.array(z.string()),
  subscription: subscription.nullable(),
  history: z.array(z.strictObject({
    id: z.string(),
    type: z.enum(["created", "plan_changed", "canceled", "reactivated", "ended", "merged", "promoted"]),
    subscriptionId: z.string(),
    planId: z.string(),
    previousPlanId: textOrNull,
    reason: textOrNull,
    at: time,
  })),
  period,
  counters: z.array(counter),
  credits: z.array(balance),
  duplicateActiveSubscriptions: duplicates,
});

const plans = z.array(z.strictObject({
  id: z.string(),
  name: z.string(),
  period: z.strictObject({
    type: z.enum(["daily", "weekly", "monthly", "lifetime"]),
    anchor: z.enum(["subscription_start", "calendar"]),
  }),
  limits: z.array(
    z.strictObject({
      id: z.string(),
      label: z.string(),
      unit,
      quota: z.number(),
      event: z.string(),
      matches,
    }),
  ),
}));

const report = z.strictObject({
  mergeId: textOrNull,
  from: z.string(),
  to: z.string(),
  mode,
  dryRun: z.boolean(),
  alreadyMerged: z.boolean(),
  historyPending: z.boolean(),
  billableOperations: z.number(),
  moved: z.strictObject({
    events: z.number(),
    eventLogs: z.number(),
    counters: z.number(),
    reservations: z.number(),
    subscriptions: z.number(),
    subscriptionEvents: z.number(),
    creditBalances: z.number(),
    creditLedger: z.number(),
    mediaAssets: z.number(),
    composeGenerations: z.number(),
    aliasesRepointed: z.number(),
  }),
  conflicts: z.strictObject({
    counters: z.strictObject({
      summed: z.number(),
      carried: z.array(z.strictObject({ fromGroupId: z.string(), toGroupId: z.string() })),
      unpaired: z.array(z.string()),
    }),
    subscriptions: duplicates,
    endedSubscriptions: z.array(subscriptionRef),
    credits: z.array(z.strictObject({
      externalRef: z.string(),
      survivorId: z.string(),
      droppedId: z.string(),
      remaining: z.number(),
      overage: z.number(),
    })),
  }),
  analytics: z.enum(["linked", "already_linked", "skipped_consent_required"]),
});

const pair = { from: textOrNull, to: textOrNull, billableOperations: z.number() };
const aliasMany = z.strictObject({
  results: z.array(z.union([
    z.strictObject({ ...pair, ok: z.literal(true), report, error: absent }),
    z.strictObject({
      ...pair,
      ok: z.literal(false),
      error: z.strictObject({
        code: z.custom<Client.AliasErrorCode>((code) => typeof code === "string"),
        message: z.string(),
      }),
      report: absent,
    }),
  ])),
  billableOperations: z.number(),
});

const customer = z.strictObject({
  canonicalId: z.string(),
  aliases: z.array(z.string()),
  duplicateActiveSubscriptions: duplicates,
});

const granted = {
  balanceId: z.string(),
  remaining: z.number(),
  expiresAt: timeOrNull,
};
const grant = z.strictObject({
  balances: z.array(z.strictObject({ ...granted, packItemId: textOrNull })),
  ...granted,
});

const revoke = z.strictObject({ balanceId: z.string(), remaining: z.literal(0) });

const ledger = z.strictObject({
  entries: z.array(z.strictObject({
    id: z.string(),
    balanceId: z.string(),
    packId: z.string(),
    delta: z.number(),
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
    eventId: textOrNull,
    reservationId: textOrNull,
    occurredAt: time,
    notes: textOrNull,
  })),
  nextCursor: textOrNull,
});

const event = z.strictObject({
  id: z.string(),
  endUserId: z.string(),
  eventType: z.string(),
  quantity: z.number(),
  costCents: z.number(),
  matchStatus: z.enum([
    "matched",
    "matched_credits_only",
    "unmatched",
    "blocked",
    "no_subscription",
    "released",
  ]),
  createdAt: time,
  hasLog: z.boolean(),
  promptPreview: textOrNull,
});

const eventPage = z.strictObject({
  events: z.array(event),
  limit: z.number(),
  offset: z.number(),
  logPromptsEnabled: z.boolean(),
});

const eventDetail = z.strictObject({
  ...event.shape,
  metadata: z.record(z.string(), z.unknown()).nullable(),
  matchedGroupIds: z.array(z.string()),
  amounts: z.array(z.union([
    z.strictObject({ groupId: z.string(), unit, amount: z.number() }),
    z.strictObject({ balanceId: z.string(), unit, amount: z.number() }),
  ])),
  prompt: textOrNull,
  response: textOrNull,
  errorCode: textOrNull,
  reservationId: textOrNull,
  reason: textOrNull,
  uncovered: z.strictObject({
    count: z.number().exactOptional(),
    tokens: z.number().exactOptional(),
    seconds: z.number().exactOptional(),
    cents: z.number().exactOptional(),
  }),
});

const compose = z.union([
  z.strictObject({
    status: z.literal("generated"),
    generationId: z.string(),
    output: z.record(z.string(), z.unknown()),
    usage: z.strictObject({
      model: z.string(),
      inputTokens: z.number(),
      outputTokens: z.number(),
      costCents: z.number(),
      eventId: z.string(),
    }),
  }),
  z.strictObject({
    status: z.literal("opted_out"),
    generationId: z.null(),
    output: z.null(),
    usage: z.null(),
  }),
]);

const capture = z.strictObject({ accepted: z.literal(true) });
const identify = z.strictObject({ personId: z.string(), merged: z.boolean() });
const personAlias = z.strictObject({ personId: z.string() });
const nothing = z.strictObject({});
const optedOut = z.strictObject({ optedOut: z.boolean() });
const exportLink = z.strictObject({ downloadUrl: z.string(), expiresAt: time, format: z.literal("json") });
const deletion = z.strictObject({ jobId: z.string() });
const deletionStatus = z.strictObject({
  status: z.enum(["queued", "in_progress", "completed", "failed"]),
  requestedAt: time,
  startedAt: timeOrNull,
  completedAt: timeOrNull,
  errorMessage: textOrNull,
});
const testClock = z.strictObject({ now: time });

const properties = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]));

/** The document behind an export link, which has no envelope. */
export const EXPORT_DOCUMENT = z.strictObject({
  format: z.literal("json"),
  exportedAt: time,
  appId: z.string(),
  mode,
  distinctId: z.string(),
  person: z.strictObject({
    personId: z.string(),
    distinctIds: z.array(z.string()),
    properties,
    identifiedAt: timeOrNull,
    createdAt: time,
  }).nullable(),
  events: z.strictObject({
    analytics: z.array(
      z.strictObject({ id: z.string(), event: z.string(), properties, timestamp: time }),
    ),
    metering: z.array(event),
  }),
  consentLog: z.array(z.strictObject({
    id: z.string(),
    action: z.enum(["opt_out", "opt_in"]),
    scope: z.enum(["analytics", "ai_personalization", "prompt_logging", "all"]),
    consentGiven: z.boolean(),
    createdAt: time,
  })),
});

/** The data of each operation's success, by method and path. */
export const ANSWERS = {
  "POST /v1/reserve": reserve,
  "POST /v1/commit": commit,
  "POST /v1/release": nothing,
  "POST /v1/track": track,
  "POST /v1/can-use": canUse,
  "GET /v1/usage": usage,
  "GET /v1/usage/me": usage,
  "GET /v1/users/:userId": user,
  "GET /v1/plans": plans,
  "POST /v1/subscriptions": subscription,
  "DELETE /v1/subscriptions": canceled,
  "POST /v1/credits/grant": grant,
  "POST /v1/credits/revoke": revoke,
  "GET /v1/credits": z.strictObject({ credits: z.array(balance) }),
  "GET /v1/credits/history": ledger,
  "POST /v1/customers/alias": report,
  "POST /v1/customers/alias/batch": aliasMany,
  "GET /v1/customers/:id": customer,
  "POST /v1/compose": compose,
  "POST /v1/capture": capture,
  "POST /v1/identify": identify,
  "POST /v1/alias": personAlias,
  "POST /v1/opt-out": nothing,
  "POST /v1/opt-in": nothing,
  "GET /v1/opted-out": optedOut,
  "POST /v1/delete-person": deletion,
  "GET /v1/deletion-status": deletionStatus,
  "POST /v1/export-person": exportLink,
  "GET /v1/events": eventPage,
  "GET /v1/events/:eventId": eventDetail,
  "GET /v1/test-clock": testClock,
  "POST /v1/test-clock": testClock,
} as const satisfies Readonly<Record<string, z.ZodType>>;
