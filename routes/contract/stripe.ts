// Stripe: the address that it sends its messages to, and the secret that signs them.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { appPath, endUserId, mode, SHOWN_AS } from "./fields.ts";
import { nothing, time } from "./records.ts";
import { STRIPE_LIMITS } from "../../src/process/limits.ts";

/** The signing secret of an endpoint in Stripe. */
const stripeSecret = z.string().refine(
  (text) =>
    /^whsec_[\x21-\x7e]+$/.test(text) && text.length >= STRIPE_LIMITS.secretLengthMin && text.length <= 200,
  `must be the signing secret that Stripe shows for the webhook endpoint (not the sk_ key): whsec_ and more, ${STRIPE_LIMITS.secretLengthMin} to 200 characters`,
).register(SHOWN_AS, {
  type: "string",
  pattern: "^whsec_",
  minLength: STRIPE_LIMITS.secretLengthMin,
  maxLength: 200,
});

const ofMode = z.strictObject({
  isSet: z.boolean().describe("Whether messages of this mode are accepted."),
  setAt: time.nullable(),
  path: z.string().describe("The path for Stripe's messages, below the address of this service."),
  lastMessage: z.strictObject({
    eventId: z.string(),
    type: z.string(),
    at: time,
    handled: z.boolean(),
    reason: z.string().nullable().describe("Why it changed nothing; null if it did something."),
  }).nullable().describe("The last message with a valid signature since the secret was set."),
});

/** The Stripe settings of an app, by mode. */
const stripeAnswer = z.strictObject({ live: ofMode, test: ofMode });

const subscriptionDone = z.strictObject({
  did: z.enum(["subscription_written", "subscription_ended"]),
  userId: z.string(),
  subscriptionId: z.string(),
  planId: z.string(),
  endsAt: time.nullable(),
});
const creditsDone = z.strictObject({
  did: z.enum(["credits_granted", "credits_revoked"]),
  userId: z.string(),
  externalRef: z.string(),
  balanceIds: z.array(z.string()),
});

/** The result of a message. */
const receivedAnswer = z.union([
  z.strictObject({
    handled: z.literal(true),
    done: z.array(z.union([subscriptionDone, creditsDone])),
    warnings: z.array(z.string()),
  }),
  z.strictObject({ handled: z.literal(false), reason: z.string() }),
]);

/** `POST /v1/stripe/{appId}/{mode}` */
export const receiveStripeMessage = defineCall({
  id: "receiveStripeMessage",
  method: "POST",
  path: "/v1/stripe/:appId/:mode",
  access: "open",
  about: "appId",
  input: z.object({ ...appPath, mode: z.string(), payload: z.string(), signature: z.string() }),
  signedBody: {
    text: "payload",
    signature: "signature",
    header: "Stripe-Signature",
    bytesMax: STRIPE_LIMITS.bodyBytesMax,
  },
  tag: "Stripe",
  summary: "Receive a Stripe message",
  description: "Use this URL for a webhook endpoint in Stripe. The header Stripe-Signature authenticates a " +
    "message; no key is needed. The answer has what was done, or why the message was ignored. Receiving " +
    "a message twice changes nothing. A 503 asks Stripe to send it again.",
  answer: receivedAnswer,
  errors: ["invalid_key", "payload_too_large"],
});

const unhandledMessage = z.strictObject({
  eventId: z.string(),
  type: z.string(),
  objectId: z.string().describe("The session, invoice or subscription."),
  reason: z.string().describe("Why it is not handled yet."),
  amount: z.number().nullable().describe(
    "What was paid and not handled, in the smallest unit of the currency; null if unknown.",
  ),
  currency: z.string().nullable(),
  createdAt: time.describe("When Stripe made the event."),
});

/** `GET /admin/v1/apps/{appId}/stripe/unhandled` */
export const listUnhandledStripe = defineCall({
  id: "listUnhandledStripe",
  method: "GET",
  path: "/admin/v1/apps/:appId/stripe/unhandled",
  access: "admin",
  about: "appId",
  input: z.object({ ...appPath, mode }),
  tag: "Stripe",
  summary: "List paid messages that are not handled",
  description:
    "Messages about something that was paid for and is not granted yet, newest first: paid checkouts, lines of " +
    "invoices, and subscriptions in force. They are kept for 30 days, at most " +
    `${STRIPE_LIMITS.unhandledMax} of an app and mode. Each is tried again within a minute after a change of the ` +
    "catalog, and when a later message is about the same objects.",
  answer: z.strictObject({ unhandled: z.array(unhandledMessage) }),
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/users/{userId}/stripe` */
export const listUserStripe = defineCall({
  id: "listUserStripe",
  method: "GET",
  path: "/admin/v1/apps/:appId/users/:userId/stripe",
  access: "admin",
  about: "appId",
  input: z.object({ ...appPath, userId: endUserId, mode }),
  tag: "Stripe",
  summary: "List what Stripe reported about a user",
  description:
    "Payments for credits of the user, its subscriptions, and paid messages that name it and are not handled, " +
    "newest first, at most 50 each. userId may be an alias. Empty while a deletion of the user is pending.",
  answer: z.strictObject({
    payments: z.array(z.strictObject({
      externalRef: z.string().describe("That of the grant"),
      source: z.string().describe("The session, invoice or top-up that was paid"),
      packId: z.string(),
      quantity: z.number(),
      amount: z.number().nullable().describe(
        "What the whole session or invoice cost, in the smallest unit of the currency; null if unknown",
      ),
      currency: z.string().nullable(),
      at: time.nullable().describe("When the first message about the payment was received; null if unknown"),
      isRefunded: z.boolean().describe("Whether it was refunded in full"),
      isDisputed: z.boolean().describe("Whether the funds were withdrawn by a dispute"),
    })),
    subscriptions: z.array(z.strictObject({
      subscriptionId: z.string(),
      at: time.describe("When Stripe made the newest event about it"),
      isEnded: z.boolean(),
    })),
    unhandled: z.array(unhandledMessage),
  }),
  errors: ["not_found"],
});

/** `POST /admin/v1/apps/{appId}/stripe/unhandled/{eventId}/retry` */
export const retryUnhandledStripe = defineCall({
  id: "retryUnhandledStripe",
  method: "POST",
  path: "/admin/v1/apps/:appId/stripe/unhandled/:eventId/retry",
  access: "admin",
  about: "appId",
  input: z.object({ ...appPath, eventId: z.string() }),
  hasNoBody: true,
  tag: "Stripe",
  summary: "Retry a message that is not handled",
  description: "Handles the message as if Stripe had sent it again. It leaves the list once it is handled.",
  answer: receivedAnswer,
  errors: ["not_found"],
});

/** `PUT /admin/v1/apps/{appId}/stripe` */
export const setStripe = defineCall({
  id: "setStripe",
  method: "PUT",
  path: "/admin/v1/apps/:appId/stripe",
  access: "admin",
  about: "appId",
  input: z.object({ ...appPath, mode, webhookSecret: stripeSecret }),
  tag: "Stripe",
  summary: "Set the Stripe signing secret",
  description:
    "The signing secret of the endpoint that you created in Stripe for this mode. It is never shown " +
    "again, and a new secret replaces it at once.",
  answer: stripeAnswer,
  errors: ["not_found"],
});

/** `GET /admin/v1/apps/{appId}/stripe` */
export const getStripe = defineCall({
  id: "getStripe",
  method: "GET",
  path: "/admin/v1/apps/:appId/stripe",
  access: "admin",
  about: "appId",
  input: z.object(appPath),
  tag: "Stripe",
  summary: "Get the Stripe settings of an app",
  description: "With the last message of each mode.",
  answer: stripeAnswer,
  errors: ["not_found"],
});

/** `DELETE /admin/v1/apps/{appId}/stripe` */
export const deleteStripe = defineCall({
  id: "deleteStripe",
  method: "DELETE",
  path: "/admin/v1/apps/:appId/stripe",
  access: "admin",
  about: "appId",
  input: z.object({ ...appPath, mode }),
  tag: "Stripe",
  summary: "Disconnect Stripe",
  description:
    "Messages of this mode are refused from then on. Subscriptions and credits from earlier messages " +
    "stay.",
  answer: nothing,
  errors: ["not_found"],
});
