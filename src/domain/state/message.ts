// Messages: what webhooks receive about a user. A decision records what happened, and each webhook that wants the type
// gets a row of the outbox. The row is one of the decision's changes, so it is recorded exactly once.

import { type Amount, numberOf } from "../values/amount.ts";
import type { CreditBalance } from "./credit.ts";
import type { IdSource, UserKey } from "../values/ids.ts";
import type { Millis, Window } from "../values/period.ts";
import type { Unit } from "../catalog/plan.ts";
import type { SubscriptionEvent, SubscriptionEventType } from "./subscription.ts";
import type { OverageWindow } from "./overage.ts";
import type { Listener, Outbox } from "./outbox.ts";

interface OfUser {
  readonly userId: string;
}

/** The data of a message about a credit balance. */
interface CreditsData extends OfUser {
  readonly balanceId: string;
  readonly packId: string;
  readonly packItemId: string | null;
  readonly remaining: number;
  readonly externalRef: string | null;
}

/** The data of a message about a purchase that a user's setting makes. */
interface TopUpData extends OfUser {
  /** Null where the cap let none be made. */
  readonly topUpId: string | null;
  readonly packId: string;
  readonly quantity: number;
  /** In the smallest unit of the currency. */
  readonly amount: number;
  readonly currency: string;
  readonly reason: string | null;
}

/** The data of a message about a subscription. */
export interface SubscriptionData extends OfUser {
  readonly subscriptionId: string;
  readonly planId: string;
  readonly previousPlanId: string | null;
  readonly reason: string | null;
  /** Features in force after a change of plan; absent for any other message, and for a catalog without features. */
  readonly features?: Readonly<Record<string, unknown>>;
}

interface ShownPeriod {
  readonly start: string;
  readonly end: string | null;
}

/** A group and window whose alert a message is about. */
interface OfQuota extends OfUser {
  readonly groupId: string;
  readonly label: string;
  readonly unit: Unit;
  readonly quota: number;
  readonly current: number;
  readonly period: ShownPeriod;
}

/** A group and window whose overage a message is about. */
interface OfOverage extends OfUser {
  readonly groupId: string;
  readonly unit: Unit;
  readonly period: ShownPeriod;
}

/** The data of a message about overage, open holds included; `max` is the one in force. */
interface OverageSold extends OfOverage {
  readonly max: number | null;
  readonly overage: number;
}

/** The data of each type of message, beside app and mode. Amounts and times as on the wire. */
export type MessageData =
  & {
    readonly "usage.threshold_reached": OfQuota & { readonly thresholdPercent: number };
    readonly "usage.pace_exceeded": OfQuota & { readonly projectedAt: string };
    readonly "usage.overage": OfOverage & {
      readonly hour: string;
      readonly amount: number;
      readonly total: number;
    };
    readonly "usage.overage_started": OverageSold;
    readonly "usage.cap_reached": OverageSold;
    readonly "user.merged": { readonly from: string; readonly to: string; readonly mergeId: string };
    readonly "reservation.expired": OfUser & { readonly reservationId: string; readonly event: string };
    readonly "person.erased": { readonly jobId: string };
    readonly "topup.paid": TopUpData;
    readonly "topup.failed": TopUpData;
    readonly "topup.capped": TopUpData;
    readonly ping: Readonly<Record<never, never>>;
  }
  & { readonly [Type in `credits.${CreditsNews}`]: CreditsData }
  & { readonly [Type in `subscription.${SubscriptionEventType}`]: SubscriptionData };

type CreditsNews = "granted" | "low" | "depleted" | "expired" | "revoked";

export type MessageType = keyof MessageData;

/** Every type of message, as webhooks subscribe to it. */
export const MESSAGE_TYPES = Object.keys(
  {
    "usage.threshold_reached": true,
    "usage.pace_exceeded": true,
    "usage.overage": true,
    "usage.overage_started": true,
    "usage.cap_reached": true,
    "credits.granted": true,
    "credits.low": true,
    "credits.depleted": true,
    "credits.expired": true,
    "credits.revoked": true,
    "subscription.created": true,
    "subscription.plan_changed": true,
    "subscription.canceled": true,
    "subscription.reactivated": true,
    "subscription.ended": true,
    "subscription.merged": true,
    "subscription.promoted": true,
    "user.merged": true,
    "reservation.expired": true,
    "topup.paid": true,
    "topup.failed": true,
    "topup.capped": true,
    "person.erased": true,
    ping: true,
  } satisfies Record<MessageType, true>,
) as readonly MessageType[];

/** Something that happened, before it is addressed to webhooks. */
export interface Message<Type extends MessageType = MessageType> {
  readonly type: Type;
  /** When it happened. */
  readonly at: Millis;
  readonly data: MessageData[Type];
}

/** A recorded message for one webhook; immutable. The table keeps its delivery state in columns of their own. */
export interface WebhookMessage {
  readonly id: string;
  readonly webhookId: string;
  /** The user within whose order it is delivered; null for a message outside every order. */
  readonly userKey: UserKey | null;
  readonly realm: number;
  readonly type: MessageType;
  /** The whole body; each attempt sends the same bytes. */
  readonly body: string;
  /** On the realm's clock. */
  readonly createdAt: Millis;
  /** The user below whose call caused it, and whom the body names; null for none. */
  readonly causedBy: UserKey | null;
}

/** Whether a webhook wants messages of a type. */
export function wants({ events }: Listener, type: MessageType): boolean {
  return events.some((pattern) =>
    pattern === "*" || pattern === type || (pattern.endsWith(".*") && type.startsWith(pattern.slice(0, -1)))
  );
}

/** Whether a text names a type or types: "credits.low", "credits.*" or "*". */
export function isEventPattern(text: string): boolean {
  return MESSAGE_TYPES.some((type) => wants({ webhookId: "", events: [text] }, type));
}

/** The user and realm of a message, and when it is recorded. */
export interface Origin {
  readonly userKey: UserKey | null;
  readonly realm: number;
  readonly now: Millis;
  /** The user below whose call caused the messages; absent for none. */
  readonly causedBy?: { readonly key: UserKey; readonly id: string } | null;
}

/** Makes a row for each message and each webhook that wants it. */
export function addressed(
  messages: readonly Message[],
  outbox: Outbox,
  { userKey, realm, now, causedBy = null }: Origin,
  ids: IdSource,
): WebhookMessage[] {
  const rows: WebhookMessage[] = [];
  for (const message of messages) {
    const { type } = message;
    let body: string | null = null;
    for (const listener of outbox.listeners) {
      if (!wants(listener, type)) continue;
      body ??= bodyOf(message, outbox, causedBy?.id);
      rows.push({
        id: ids.next("webhookMessage"),
        webhookId: listener.webhookId,
        userKey,
        realm,
        type,
        body,
        createdAt: now,
        causedBy: causedBy?.key ?? null,
      });
    }
  }
  return rows;
}

/**
 * Makes the body of a message in the form of Standard Webhooks.
 *
 * @param causedBy the id of the user below whose call caused it; undefined for none
 */
export function bodyOf(
  { type, at, data }: Message,
  { appId, mode }: Omit<Outbox, "listeners">,
  causedBy?: string,
): string {
  return JSON.stringify({ type, timestamp: timeText(at), data: { appId, mode, ...data, causedBy } });
}

/** Makes the data of a message about a balance. */
export function creditsData(userId: string, row: CreditBalance): CreditsData {
  const { id, packId, packItemId, remaining, externalRef } = row;
  return { userId, balanceId: id, packId, packItemId, remaining: numberOf(remaining), externalRef };
}

/** Makes the data of a message about a subscription. */
export function subscriptionData(
  userId: string,
  row: SubscriptionEvent,
  features: SubscriptionData["features"] | null = null,
): SubscriptionData {
  const { subscriptionId, planId, previousPlanId, reason } = row;
  const shown = features === null ? {} : { features };
  return { userId, subscriptionId, planId, previousPlanId, reason, ...shown };
}

/** A counter with an alert. */
interface AlertedCounter {
  readonly group: { readonly id: string; readonly label: string; readonly unit: Unit };
  readonly quota: Amount;
  readonly current: Amount;
  readonly window: Window;
}

/** Makes the data of a message about a threshold. */
export function thresholdData(
  userId: string,
  counter: AlertedCounter,
  percent: number,
): MessageData["usage.threshold_reached"] {
  return alertData(userId, counter, { thresholdPercent: percent });
}

/** Makes the data of a message about a pace that uses up a quota before the window ends. */
export function paceData(
  userId: string,
  counter: AlertedCounter,
  projectedAt: Millis,
): MessageData["usage.pace_exceeded"] {
  return alertData(userId, counter, { projectedAt: timeText(projectedAt) });
}

function alertData<Cause>(userId: string, { group, quota, current, window }: AlertedCounter, cause: Cause) {
  return {
    userId,
    groupId: group.id,
    label: group.label,
    unit: group.unit,
    ...cause,
    quota: numberOf(quota),
    current: numberOf(current),
    period: periodOf(window),
  };
}

/** Makes the data of a message about the settled overage of an hour. */
export function overageData(
  userId: string,
  { row, hour, amount }: { readonly row: OverageWindow; readonly hour: Millis; readonly amount: Amount },
): MessageData["usage.overage"] {
  const { groupId, unit, total } = row;
  return {
    userId,
    groupId,
    unit,
    hour: timeText(hour),
    amount: numberOf(amount),
    total: numberOf(total),
    period: periodOf({ start: row.windowStart, end: row.windowEnd }),
  };
}

/** Makes the data of a message about overage, open holds included. */
export function overageSoldData(
  userId: string,
  { row, max, overage }: {
    readonly row: OverageWindow;
    readonly max: Amount | null;
    readonly overage: Amount;
  },
): OverageSold {
  const { groupId, unit } = row;
  return {
    userId,
    groupId,
    unit,
    max: max === null ? null : numberOf(max),
    overage: numberOf(overage),
    period: periodOf({ start: row.windowStart, end: row.windowEnd }),
  };
}

function periodOf({ start, end }: Window): ShownPeriod {
  return { start: timeText(start), end: end === null ? null : timeText(end) };
}

function timeText(at: Millis): string {
  return new Date(at).toISOString();
}
