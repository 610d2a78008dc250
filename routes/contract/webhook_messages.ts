// The messages that webhook endpoints receive, by their types.

import { z } from "zod";
import type { MessageType } from "../../src/domain/state/message.ts";
import { mode } from "./fields.ts";
import { period, time, unit } from "./records.ts";

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
