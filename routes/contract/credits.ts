// Credit packs: grant, extend, revoke, balances and the ledger.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, eventPattern, moment, nameOf, pageLimit, SHOWN_AS, textOf } from "./fields.ts";
import { balance, time } from "./records.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const issued = {
  balanceId: z.string(),
  remaining: z.number(),
  expiresAt: time.nullable(),
};

/** `POST /v1/credits/grant` */
export const grantCredits = defineCall({
  id: "grantCredits",
  method: "POST",
  path: "/v1/credits/grant",
  access: "credit_write",
  input: z.object({
    userId: endUserId,
    packId: nameOf(REQUEST_LIMITS.idLengthMax).describe("The id or the name of the pack"),
    quantity: z.unknown().register(SHOWN_AS, { type: ["number", "null"], exclusiveMinimum: 0 }).optional()
      .describe("Required for a pack without items, otherwise ignored"),
    externalRef: nameOf(REQUEST_LIMITS.externalRefLengthMax).nullish()
      .describe(
        "Your own reference, such as an order id: a second grant with it returns the balances of the first",
      ),
    expiresAt: moment.nullish().describe("Default: the expiry of the pack; null: never"),
    source: z.enum(["purchase", "grant", "refund", "manual"]).nullish().describe("Default purchase"),
    notes: textOf(REQUEST_LIMITS.notesLengthMax).nullish(),
  }),
  tag: "Credits",
  summary: "Grant credits",
  description:
    "packId is the id or the name of a credit pack. A pack with items grants one balance for each item " +
    "and ignores quantity; a pack without items requires quantity. externalRef makes a retry safe: a " +
    "known one returns its balances in their current state. Without expiresAt the pack's default " +
    "applies; null means that the credits never expire.",
  answer: z.strictObject({
    balances: z.array(z.strictObject({ ...issued, packItemId: z.string().nullable() }))
      .describe("One for each item of the pack"),
    ...issued,
  }).describe("balanceId, remaining and expiresAt are those of the first balance."),
  errors: ["credit_pack_not_found", "invalid_quantity", "test_quota_exceeded"],
});

/** `POST /v1/credits/revoke` */
export const revokeCredits = defineCall({
  id: "revokeCredits",
  method: "POST",
  path: "/v1/credits/revoke",
  access: "credit_write",
  input: z.object({
    balanceId: nameOf(REQUEST_LIMITS.idLengthMax),
    reason: textOf(REQUEST_LIMITS.notesLengthMax).nullish(),
  }),
  tag: "Credits",
  summary: "Revoke a credit balance",
  description: "Ends the balance. Consumed credits stay accounted for.",
  answer: z.strictObject({ balanceId: z.string(), remaining: z.literal(0) }),
  errors: ["credit_balance_not_found"],
});

/** `POST /v1/credits/extend` */
export const extendCredits = defineCall({
  id: "extendCredits",
  method: "POST",
  path: "/v1/credits/extend",
  access: "credit_write",
  input: z.object({
    balanceId: nameOf(REQUEST_LIMITS.idLengthMax),
    expiresAt: moment.nullable().describe("Not before the current expiry; null: never"),
    reason: textOf(REQUEST_LIMITS.notesLengthMax).nullish(),
  }),
  tag: "Credits",
  summary: "Extend a credit balance",
  description:
    "Sets a later expiry; null means that the credits never expire. expiresAt must not be before the " +
    "current expiry. An expired balance can be used again, a revoked balance cannot.",
  answer: z.strictObject(issued),
  errors: ["credit_balance_not_found"],
});

/** `GET /v1/credits` */
export const listCredits = defineCall({
  id: "listCredits",
  method: "GET",
  path: "/v1/credits",
  access: "end_user",
  input: z.object({
    userId: endUserId,
    event: eventPattern.optional().describe("An event type or pattern: selects balances that cover it"),
    includeExpired: z.enum(["true", "false"]).optional()
      .describe("Whether to list expired and revoked balances too"),
  }),
  tag: "Credits",
  summary: "List a user's credit balances",
  description:
    "In the order of use: active and depleted balances, and with includeExpired also expired and " +
    "revoked ones. event, an event type or a pattern, selects the balances that cover it.",
  answer: z.strictObject({ credits: z.array(balance).describe("In the order of use") }),
  errors: [],
});

/** `GET /v1/credits/history` */
export const listLedger = defineCall({
  id: "listLedger",
  method: "GET",
  path: "/v1/credits/history",
  access: "secret",
  input: z.object({
    userId: endUserId,
    limit: pageLimit(REQUEST_LIMITS.ledgerLimitMax, REQUEST_LIMITS.ledgerLimitDefault),
    cursor: z.string().optional().describe("nextCursor of the previous page"),
    balanceId: nameOf(REQUEST_LIMITS.idLengthMax).optional(),
  }),
  tag: "Credits",
  summary: "List a user's credit ledger",
  description: "Newest first. cursor is the nextCursor of the previous page.",
  answer: z.strictObject({
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
    nextCursor: z.string().nullable().describe("null on the last page"),
  }),
  errors: ["credit_balance_not_found"],
});
