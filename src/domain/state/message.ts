// Messages: what webhooks receive about a user. A decision records what happened, and each webhook that wants the type
// gets a row of the outbox. The row is one of the decision's changes, so it is recorded exactly once.

import { type Amount, numberOf } from "../values/amount.ts";
import type { CreditBalance } from "./credit.ts";
import type { IdSource, UserKey } from "../values/ids.ts";
import type { Millis, Window } from "../values/period.ts";
import type { Unit } from "../catalog/plan.ts";
import type { SubscriptionEvent, SubscriptionEventType } from "./subscription.ts";
import type { Listener, Outbox } from "./outbox.ts";

interface OfUser {
  readonly userId: string;
}

/** The data of a message about a credit balance. */
export interface CreditsData extends OfUser {
  readonly balanceId: string;
  readonly packId: string;
  readonly packItemId: string | null;
  readonly remaining: number;
  readonly externalRef: string | null;
}

/** The data of a message about a purchase that a user's setting makes. */
export interface TopUpData extends OfUser {
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

/** The data of each type of message, beside app and mode. Amounts and times as on the wire. */
export type MessageData =
  & {
    readonly "usage.threshold_reached": OfUser & {
      readonly groupId: string;
      readonly label: string;
      readonly unit: Unit;
      readonly thresholdPercent: number;
      readonly quota: number;
      readonly current: number;
      readonly period: { readonly start: string; readonly end: string | null };
    };
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

/** A counter past one of its thresholds. */
export interface Threshold {
  readonly group: { readonly id: string; readonly label: string; readonly unit: Unit };
  readonly percent: number;
  readonly quota: Amount;
  readonly current: Amount;
  readonly window: Window;
}

/** Makes the data of a message about a threshold. */
export function thresholdData(
  userId: string,
  { group, percent, quota, current, window }: Threshold,
): MessageData["usage.threshold_reached"] {
  return {
    userId,
    groupId: group.id,
    label: group.label,
    unit: group.unit,
    thresholdPercent: percent,
    quota: numberOf(quota),
    current: numberOf(current),
    period: { start: timeText(window.start), end: window.end === null ? null : timeText(window.end) },
  };
}

function timeText(at: Millis): string {
  return new Date(at).toISOString();
}
