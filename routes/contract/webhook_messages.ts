// The messages that webhook endpoints receive, by their types.

import { z } from "zod";
import type { MessageType } from "../../src/domain/state/message.ts";
import { mode } from "./fields.ts";
import { features, period, time, unit } from "./records.ts";

const ofApp = { appId: z.string(), mode };
const ofUser = { ...ofApp, userId: z.string() };

/** Of messages about a user that a call of another one, below it, may cause. */
const caused = {
  causedBy: z.string().optional().describe(
    "Present if a call of a user below userId caused the message: the id of that user",
  ),
};

const group = { ...ofUser, groupId: z.string(), label: z.string(), unit };
const used = {
  quota: z.number().describe("The quota in force"),
  current: z.number().describe("Used and held"),
  period,
  ...caused,
};

const threshold = z.strictObject({ ...group, thresholdPercent: z.number(), ...used })
  .meta({ id: "ThresholdData" });
const pace = z.strictObject({
  ...group,
  projectedAt: time.describe("When the quota is used up, if usage goes on as since the start of the period"),
  ...used,
}).meta({ id: "PaceData" });

const credits = z.strictObject({
  ...ofUser,
  balanceId: z.string(),
  packId: z.string(),
  packItemId: z.string().nullable().describe("null for a pack without items"),
  remaining: z.number(),
  externalRef: z.string().nullable(),
  ...caused,
}).meta({ id: "CreditsData" });

const subscription = z.strictObject({
  ...ofUser,
  subscriptionId: z.string(),
  planId: z.string(),
  previousPlanId: z.string().nullable(),
  reason: z.string().nullable(),
  features: features.optional().describe(
    "Of a change of plan, if the catalog has features: those in force after it, by key",
  ),
}).meta({ id: "SubscriptionData" });

const topUp = z.strictObject({
  ...ofUser,
  topUpId: z.string().nullable().describe("null where the cap let none be made"),
  packId: z.string(),
  quantity: z.number(),
  amount: z.number().describe("In the smallest unit of the currency"),
  currency: z.string(),
  reason: z.string().nullable().describe(
    "Of topup.failed: a text for the customer. Of topup.capped: max_per_month or currency_changed",
  ),
  ...caused,
}).meta({ id: "TopUpData" });

const ofOverage = {
  ...ofUser,
  groupId: z.string(),
  unit,
  period: period.describe("The window of the group"),
};

const overage = z.strictObject({
  ...ofOverage,
  hour: time.describe("The beginning of the UTC hour of settling, by the app's clock"),
  amount: z.number().describe("Settled in the hour and not reported before"),
  total: z.number().describe("All settled overage of the window, up to and with this message"),
}).meta({ id: "OverageData" });

const sold = z.strictObject({
  ...ofOverage,
  max: z.number().nullable().describe("The most in force; null for no limit"),
  overage: z.number().describe("Sold so far, open holds included"),
  ...caused,
}).meta({ id: "OverageSoldData" });

const merged = z.strictObject({ ...ofApp, from: z.string(), to: z.string(), mergeId: z.string() })
  .meta({ id: "MergedData" });
const expired = z.strictObject({ ...ofUser, reservationId: z.string(), event: z.string() })
  .meta({ id: "ReservationExpiredData" });
const erased = z.strictObject({
  ...ofApp,
  jobId: z.string().describe("Id of the deletion job; not an id of the person"),
})
  .meta({ id: "PersonErasedData" });
const ping = z.strictObject(ofApp).meta({ id: "PingData" });

/** A message type, as the reference shows it. */
interface MessageDoc {
  readonly meaning: string;
  readonly data: z.ZodType;
}

/** Every message type: when it is sent, and its data. */
export const MESSAGES: Readonly<Record<MessageType, MessageDoc>> = {
  "usage.threshold_reached": {
    meaning: "A user's usage, open holds included, reached an alert threshold of a limit group",
    data: threshold,
  },
  "usage.pace_exceeded": {
    meaning:
      "A user's usage, open holds included, rises so fast that the quota of a limit group is used up before the period ends. " +
      "Sent once a period, for groups with the alert `pace`",
    data: pace,
  },
  "usage.overage": {
    meaning:
      "What a user used past a quota and settled in an hour, or in its part within a window: to be billed. Sent once, after " +
      "the hour or the window has ended",
    data: overage,
  },
  "usage.overage_started": {
    meaning: "A user's usage, open holds included, first went past a quota in a window, as overage",
    data: sold,
  },
  "usage.cap_reached": {
    meaning: "A user's overage, open holds included, reached the most in force, once a window",
    data: sold,
  },
  "credits.granted": { meaning: "A credit balance was granted", data: credits },
  "credits.low": { meaning: "A credit balance fell to the pack's lowAt or below", data: credits },
  "credits.depleted": { meaning: "A credit balance is used up", data: credits },
  "credits.expired": { meaning: "A credit balance expired with credits remaining", data: credits },
  "credits.revoked": { meaning: "A credit balance was revoked", data: credits },
  "subscription.created": { meaning: "A subscription was created", data: subscription },
  "subscription.plan_changed": { meaning: "A subscription changed its plan", data: subscription },
  "subscription.canceled": {
    meaning: "A subscription was canceled, at once or for a later end",
    data: subscription,
  },
  "subscription.reactivated": { meaning: "A canceled subscription was reactivated", data: subscription },
  "subscription.ended": { meaning: "A subscription ended", data: subscription },
  "subscription.merged": {
    meaning: "Two users were merged: the subscription that grants the plan from then on",
    data: subscription,
  },
  "subscription.promoted": {
    meaning: "Another subscription of the user now grants the plan",
    data: subscription,
  },
  "user.merged": { meaning: "An id became an alias of another user", data: merged },
  "reservation.expired": {
    meaning: "A reservation expired without a commit or release",
    data: expired,
  },
  "topup.paid": { meaning: "A top-up was paid, and its credits are granted", data: topUp },
  "topup.failed": {
    meaning: "A top-up could not be paid. The third failure in a row disables the setting",
    data: topUp,
  },
  "topup.capped": {
    meaning: "A user's credits ran low, and the cap of the month, or another currency, let no top-up be made",
    data: topUp,
  },
  "person.erased": { meaning: "The erasure of a person is complete", data: erased },
  ping: { meaning: "A test message that you requested", data: ping },
};

/** The body of a message of a type. */
export function messageBody(type: MessageType): z.ZodType {
  return z.strictObject({
    type: z.literal(type),
    timestamp: time.describe("When it happened, by the app's clock"),
    data: MESSAGES[type].data,
  });
}
