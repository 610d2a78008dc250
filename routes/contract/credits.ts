// Credit packs: grant, extend, revoke, balances and the ledger.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, eventPattern, moment, nameOf, SHOWN_AS, textOf, wholeNumber } from "./fields.ts";
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
    packId: nameOf(REQUEST_LIMITS.idLengthMax),
    quantity: z.unknown().register(SHOWN_AS, { type: ["number", "null"], exclusiveMinimum: 0 }).optional(),
    externalRef: nameOf(REQUEST_LIMITS.externalRefLengthMax).nullish(),
    expiresAt: moment.nullish(),
    source: z.enum(["purchase", "grant", "refund", "manual"]).nullish(),
    notes: textOf(REQUEST_LIMITS.notesLengthMax).nullish(),
  }),
  tag: "Credits",
  summary: "Issue credits of a pack",
  description:
    "packId is a pack's id or its name. A pack with items gives one balance for each and ignores " +
    "quantity; one without needs it. externalRef makes a retry harmless: a known one answers with the " +
    "balances as they are now. Without expiresAt the pack's default holds; null is evergreen.",
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
  summary: "End a balance",
  description: "What was consumed stays accounted for.",
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
    expiresAt: moment.nullable(),
    reason: textOf(REQUEST_LIMITS.notesLengthMax).nullish(),
  }),
  tag: "Credits",
  summary: "Give a balance a later expiry",
  description:
    "expiresAt is never before the expiry that the balance has; null is evergreen. A balance that has " +
    "expired can be spent again, one that was revoked stays so.",
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
    event: eventPattern.optional(),
    includeExpired: z.enum(["true", "false"]).optional(),
  }),
  tag: "Credits",
  summary: "A user's balances in the order of use",
  description:
    "Active and depleted ones; includeExpired adds those expired and revoked. event, a name or a glob, " +
    "narrows to balances that cover it.",
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
    limit: wholeNumber(1, REQUEST_LIMITS.ledgerLimitMax).optional(),
    cursor: z.string().optional(),
    balanceId: nameOf(REQUEST_LIMITS.idLengthMax).optional(),
  }),
  tag: "Credits",
  summary: "A user's credit ledger, newest first",
  description: "cursor is the nextCursor of the page before.",
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
    nextCursor: z.string().nullable(),
  }),
  errors: ["credit_balance_not_found"],
});
