// Webhooks as schemas: bodies and answers of their admin API, and every message that a webhook may get. beyond.md,
// section 3.

import { z } from "zod";
import { isEventPattern, type MessageType } from "../../../src/domain/state/message.ts";
import { REQUEST_LIMITS, WEBHOOK_LIMITS } from "../../../src/process/limits.ts";
import { nameOf, SHOWN_AS, textOf, wholeNumber } from "./fields.ts";
import { period, time, unit } from "./records.ts";

const mode = z.enum(["live", "test"]);

const url = nameOf(WEBHOOK_LIMITS.urlLengthMax)
  .describe("An https URL without user and password, whose host is no private address");

const pattern = z.string().refine(
  isEventPattern,
  'must be a type of message, a prefix of types such as "credits.*", or "*"',
).register(SHOWN_AS, { type: "string", examples: ["usage.threshold_reached", "credits.*", "*"] });

const events = z.array(pattern).min(1).max(WEBHOOK_LIMITS.eventsMax)
  .transform((patterns) => [...new Set(patterns)])
  .describe('Types that it is told, prefixes of types that end in ".*", or "*" for all');

const description = textOf(WEBHOOK_LIMITS.descriptionLengthMax).nullish();

/** What makes a webhook. */
export const webhookInput = z.object({
  url,
  mode,
  events,
  description: description.transform((text) => text ?? null),
});

/** What changes a webhook. */
export const webhookPatch = z.object({
  url: url.nullish().transform((text) => text ?? undefined),
  events: events.nullish().transform((patterns) => patterns ?? undefined),
  description: description.describe("null: none"),
  disabled: z.boolean().nullish().transform((value) => value ?? undefined)
    .describe("Whether messages wait, and no new ones are recorded"),
});

const status = z.enum(["pending", "delivered", "failed"]);

/** Which messages of a webhook a page shows. */
export const messagesQuery = z.object({
  status: status.optional(),
  limit: wholeNumber(1, REQUEST_LIMITS.feedLimitMax).optional(),
  offset: wholeNumber(0, REQUEST_LIMITS.feedOffsetMax).optional(),
});

const shownWebhook = {
  url: z.string(),
  mode,
  events: z.array(z.string()),
  description: z.string().nullable(),
  disabled: z.boolean().describe("By you, by an answer of 410, or after five days of nothing but failures"),
  createdAt: time,
  lastSuccessAt: time.nullable().describe("null before the first delivery"),
  failingSince: time.nullable().describe("The first failure since the last delivery; null for none"),
  pending: z.int().min(0).describe(
    `Messages that wait; ${WEBHOOK_LIMITS.pendingCountMax} stands for that many or more`,
  ),
};

export const webhookAnswer = z.strictObject({ webhookId: z.string(), ...shownWebhook })
  .meta({ id: "Webhook" });

const secret = z.string().describe('Signs messages; shown once: "whsec_" and the base64 of 32 bytes');

export const newWebhookAnswer = z.strictObject({ webhookId: z.string(), secret, ...shownWebhook });

export const newSecretAnswer = z.strictObject({ secret });

export const pingAnswer = z.strictObject({ messageId: z.string() });

const ofApp = { appId: z.string(), mode };
const ofUser = { ...ofApp, userId: z.string() };

const threshold = z.strictObject({
  ...ofUser,
  groupId: z.string(),
  label: z.string(),
  unit,
  thresholdPercent: z.number(),
  quota: z.number().describe("The quota in force"),
  current: z.number().describe("What is used and held"),
  period,
}).meta({ id: "ThresholdData" });

const credits = z.strictObject({
  ...ofUser,
  balanceId: z.string(),
  packId: z.string(),
  packItemId: z.string().nullable().describe("null for a pack without items"),
  remaining: z.number(),
  externalRef: z.string().nullable(),
}).meta({ id: "CreditsData" });

const subscription = z.strictObject({
  ...ofUser,
  subscriptionId: z.string(),
  planId: z.string(),
  previousPlanId: z.string().nullable(),
  reason: z.string().nullable(),
}).meta({ id: "SubscriptionData" });

const merged = z.strictObject({ ...ofApp, from: z.string(), to: z.string(), mergeId: z.string() })
  .meta({ id: "MergedData" });
const expired = z.strictObject({ ...ofUser, reservationId: z.string(), event: z.string() })
  .meta({ id: "ReservationExpiredData" });
const erased = z.strictObject({ ...ofApp, jobId: z.string().describe("Of the erasure; no id of the person") })
  .meta({ id: "PersonErasedData" });
const ping = z.strictObject(ofApp).meta({ id: "PingData" });

/** What the reference says of a type of message. */
interface MessageDoc {
  readonly meaning: string;
  readonly data: z.ZodType;
}

/** Every type of message: when it is sent, and what it says. */
export const MESSAGES: Readonly<Record<MessageType, MessageDoc>> = {
  "usage.threshold_reached": {
    meaning: "A user's usage, holds included, reached a percent of a quota that the group's alerts name",
    data: threshold,
  },
  "credits.granted": { meaning: "A credit balance was granted", data: credits },
  "credits.low": { meaning: "No more is left of a balance than the pack's lowAt", data: credits },
  "credits.depleted": { meaning: "Nothing is left of a balance", data: credits },
  "credits.expired": { meaning: "A balance expired with something left in it", data: credits },
  "credits.revoked": { meaning: "A balance was revoked", data: credits },
  "subscription.created": { meaning: "A user got a subscription", data: subscription },
  "subscription.plan_changed": { meaning: "A subscription has another plan", data: subscription },
  "subscription.canceled": {
    meaning: "A subscription was canceled, now or as of its end",
    data: subscription,
  },
  "subscription.reactivated": { meaning: "A canceled subscription goes on", data: subscription },
  "subscription.ended": { meaning: "A subscription ended", data: subscription },
  "subscription.merged": {
    meaning: "Two users became one: what grants the entitlement from then on",
    data: subscription,
  },
  "subscription.promoted": {
    meaning: "Another subscription of the user grants the entitlement now",
    data: subscription,
  },
  "user.merged": { meaning: "One id became an alias of another user", data: merged },
  "reservation.expired": {
    meaning: "A reservation was neither committed nor released in time",
    data: expired,
  },
  "person.erased": { meaning: "The erasure of a person is complete", data: erased },
  ping: { meaning: "You asked for a ping", data: ping },
};

/** The body of a message of a type. */
export function messageBody(type: MessageType): z.ZodType {
  return z.strictObject({
    type: z.literal(type),
    timestamp: time.describe("When it happened, on the app's clock"),
    data: MESSAGES[type].data,
  });
}

export const messageAnswer = z.strictObject({
  messageId: z.string().describe("The webhook-id of every attempt"),
  type: z.string(),
  status,
  attempts: z.int().min(0),
  nextAttemptAt: time.nullable().describe(
    "The earliest time of the next attempt; null where there is none: it ended, or the webhook is disabled",
  ),
  lastStatus: z.int().nullable().describe("The HTTP status of the last answer; null where none came"),
  lastError: z.string().nullable().describe("Why the last attempt failed"),
  createdAt: time,
  data: z.union([...new Set(Object.values(MESSAGES).map(({ data }) => data))])
    .describe("As in the body of the message"),
}).meta({ id: "Message" });

export const messagesAnswer = z.strictObject({ messages: z.array(messageAnswer) });
