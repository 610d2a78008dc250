// Top-ups: packs that users buy by themselves.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { cursorPage, endUserId, nameOf, positiveAmount } from "./fields.ts";
import { time } from "./records.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

/** The most packs or units of one top-up, and the most money of a month. */
const QUANTITY_MAX = 1_000_000;
const AMOUNT_MAX = 1e12;

const ofUser = { userId: endUserId };
const path = "/v1/users/:userId/top-up";

const ids = {
  stripeCustomerId: nameOf(REQUEST_LIMITS.idLengthMax),
  stripePaymentMethodId: nameOf(REQUEST_LIMITS.idLengthMax),
};

const amountOfMoney = z.number().describe("In the smallest unit of the currency");

const setting = z.strictObject({
  userId: z.string(),
  packId: z.string(),
  below: z.number(),
  quantity: z.number(),
  maxPerMonth: amountOfMoney,
  enabled: z.boolean().describe(
    "false also after three failures in a row, and after a change of the currency: your backend's next PUT enables it",
  ),
  stripeCustomerId: z.string().optional().describe("Left out in answers to a user"),
  stripePaymentMethodId: z.string().optional().describe("Left out in answers to a user"),
  openIntentId: z.string().nullable().describe("The top-up that is under way"),
  nextTryAt: time.nullable().describe("No top-up is made before"),
  failures: z.number().describe("Failed top-ups since the last paid one"),
}).meta({ id: "TopUpSetting" });

/** `PUT /v1/users/{userId}/top-up` */
export const putTopUp = defineCall({
  id: "putTopUp",
  method: "PUT",
  path,
  access: "end_user",
  input: z.object({
    ...ofUser,
    packId: nameOf(REQUEST_LIMITS.idLengthMax).describe(
      "The id or the name of a pack with a price, and one item or none",
    ),
    below: positiveAmount.describe(
      "Buys when less than this is left of active balances with the pack's unit and rules",
    ),
    quantity: z.int().min(1).max(QUANTITY_MAX).nullish().describe(
      "Packs, default 1; units of a pack without items, where it is required",
    ),
    maxPerMonth: z.int().min(1).max(AMOUNT_MAX).describe(
      "The most that may be paid in a UTC month, in the smallest unit of the currency",
    ),
    stripeCustomerId: ids.stripeCustomerId.nullish().describe(
      "Required the first time. Only your backend may set it",
    ),
    stripePaymentMethodId: ids.stripePaymentMethodId.nullish().describe(
      "A saved card of the customer. Required the first time. Only your backend may set it",
    ),
    enabled: z.boolean().nullish().describe("Default true"),
  }),
  tag: "Top-ups",
  summary: "Let a user buy credits automatically",
  description:
    "When the user's credits run low, the pack is bought with the saved card, and its credits are granted once it is paid. " +
    "A failed payment is tried again after an hour, then after a day; the third failure disables the setting. The user may " +
    "change the setting with an end-user token, but not the card. Needs a key of Stripe, and the endpoint for its messages.",
  answer: setting,
  errors: ["not_implemented", "credit_pack_not_found", "invalid_quantity"],
});

/** `GET /v1/users/{userId}/top-up` */
export const getTopUp = defineCall({
  id: "getTopUp",
  method: "GET",
  path,
  access: "end_user",
  input: z.object(ofUser),
  tag: "Top-ups",
  summary: "Get a user's top-up setting",
  answer: setting,
  errors: ["not_found"],
});

/** `DELETE /v1/users/{userId}/top-up` */
export const deleteTopUp = defineCall({
  id: "deleteTopUp",
  method: "DELETE",
  path,
  access: "end_user",
  hasNoBody: true,
  input: z.object(ofUser),
  tag: "Top-ups",
  summary: "Remove a user's top-up setting",
  description:
    "A top-up that is not confirmed at Stripe is called off. One that may be paid already goes on.",
  answer: z.strictObject({
    userId: z.string(),
    underWay: z.boolean().describe("Whether a top-up is still being called off or paid"),
  }),
  errors: [],
});

/** `GET /v1/users/{userId}/top-ups` */
export const listTopUps = defineCall({
  id: "listTopUps",
  method: "GET",
  path: "/v1/users/:userId/top-ups",
  access: "end_user",
  input: z.object({
    ...ofUser,
    ...cursorPage(REQUEST_LIMITS.runsLimitMax, REQUEST_LIMITS.runsLimit),
  }),
  tag: "Top-ups",
  summary: "List a user's top-ups",
  description: "Newest first.",
  answer: z.strictObject({
    topUps: z.array(
      z.strictObject({
        topUpId: z.string(),
        status: z.enum(["open", "processing", "paid", "failed", "canceled"]),
        packId: z.string(),
        quantity: z.number(),
        amount: amountOfMoney,
        currency: z.string(),
        paymentIntentId: z.string().nullable().describe("Of Stripe"),
        reason: z.string().nullable().describe("Why it failed: a text for the customer"),
        createdAt: time,
        settledAt: time.nullable(),
      }).meta({ id: "TopUp" }),
    ),
    cursor: z.string().nullable(),
  }),
  errors: [],
});
