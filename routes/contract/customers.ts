// Aliases: one user with several ids.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, mode, SHOWN_AS } from "./fields.ts";
import { duplicates, subRef } from "./records.ts";
import { REWRITE_LIMITS } from "../../src/domain/state/open_holds.ts";
import { MERGE_LIMITS } from "../../src/process/limits.ts";

const options = {
  consentGiven: z.boolean().nullish()
    .describe("Whether the person agreed to link analytics; required for ids that start with anon_"),
  dryRun: z.boolean().nullish().describe("Whether to only report the result, and merge nothing"),
};

const rowCount = z.int().min(0);

/** The report of a merge. */
const aliasReport = z.strictObject({
  mergeId: z.string().nullable().describe("null on a dry run"),
  from: z.string(),
  to: z.string(),
  mode,
  dryRun: z.boolean(),
  alreadyMerged: z.boolean().describe("Whether the pair was merged before; this is then the first report"),
  historyPending: z.boolean().describe("Whether history is still moving in the background"),
  billableOperations: rowCount.describe("How much the merge counts towards the monthly cap"),
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
    movedChildren: rowCount.optional().describe(
      "If one of the users has a parent or children: users directly below from, now below to",
    ),
  }).describe("Rows that now belong to the remaining user"),
  conflicts: z.strictObject({
    counters: z.strictObject({
      summed: rowCount,
      carried: z.array(z.strictObject({ fromGroupId: z.string(), toGroupId: z.string() }))
        .describe("Groups with their usage moved to a group of the remaining plan"),
      unpaired: z.array(z.string()).describe(
        "Groups without a match in that plan: kept as history, not counted",
      ),
    }),
    subscriptions: duplicates.nullable(),
    endedSubscriptions: z.array(subRef)
      .describe(
        "Subscriptions without provider that ended, because of a paid one or of a better one without provider",
      ),
    credits: z.array(z.strictObject({
      externalRef: z.string(),
      survivorId: z.string(),
      droppedId: z.string(),
      remaining: z.number(),
      overage: z.number(),
    })).describe("Grants that both ids had, by their externalRef"),
  }),
  analytics: z.enum(["linked", "already_linked", "skipped_consent_required"]),
}).meta({ id: "AliasReport" });

/** The ids of a pair are returned as sent, also if they are not strings. */
const asSent = z.unknown().describe("As sent");

/** A valid pair of a batch. */
export const PAIR = z.object({ from: endUserId, to: endUserId });
/** A pair is checked on its own, so an invalid pair does not stop the others. */
const pair = z.unknown().register(SHOWN_AS, {
  type: "object",
  properties: { from: SHOWN_AS.get(endUserId), to: SHOWN_AS.get(endUserId) },
  required: ["from", "to"],
});

/** `POST /v1/customers/alias` */
export const aliasCustomer = defineCall({
  id: "aliasCustomer",
  method: "POST",
  path: "/v1/customers/alias",
  access: "secret",
  input: z.object({ from: endUserId, to: endUserId, ...options }),
  tag: "Customers",
  summary: "Make an id an alias of another user",
  description:
    "Merges usage, reservations, subscriptions, credits and history. From then on both ids name the " +
    "same user. A repeated call returns the first report with alreadyMerged. consentGiven is required " +
    "only to link analytics people when an id starts with anon_. A merge that would move more than " +
    `${REWRITE_LIMITS.holdsMax} open holds is refused with unavailable: retry it when they are settled or have lapsed.`,
  answer: aliasReport,
  errors: [
    "alias_conflict",
    "alias_cycle",
    "path_too_long",
    "workspace_limit_reached",
    "test_quota_exceeded",
  ],
});

/** `POST /v1/customers/alias/batch` */
export const aliasCustomers = defineCall({
  id: "aliasCustomers",
  method: "POST",
  path: "/v1/customers/alias/batch",
  access: "secret",
  input: z.object({
    pairs: z.array(pair).min(1).max(MERGE_LIMITS.batchPairsMax),
    ...options,
  }),
  elements: "pairs",
  isLong: true,
  tag: "Customers",
  summary: "Make many aliases in one call",
  description:
    "Each pair is merged on its own: a pair that fails does not stop the others. If the workspace's cap " +
    "is reached, every remaining pair gets that error code. A pair with not_processed was not reached; " +
    "send it again.",
  answer: z.strictObject({
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
            "idempotency_conflict",
            "alias_conflict",
            "alias_cycle",
            "path_too_long",
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
  }),
  errors: [],
});

/** `GET /v1/customers/{id}` */
export const getCustomer = defineCall({
  id: "getCustomer",
  method: "GET",
  path: "/v1/customers/:id",
  access: "hidden",
  input: z.object({ id: endUserId }),
  tag: "Customers",
  summary: "Get the user of an id",
  description: "The canonical id with all aliases. To a public key the path is unknown.",
  answer: z.strictObject({
    canonicalId: z.string(),
    aliases: z.array(z.string()),
    duplicateActiveSubscriptions: duplicates.nullable(),
  }),
  errors: [],
});
