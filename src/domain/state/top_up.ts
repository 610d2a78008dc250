// Top-ups: a user's setting to buy a pack by itself, and each purchase (intent) that it makes. The setting is a part of the
// user's row. An intent keeps what it buys and costs as of its creation, whatever catalog and setting say later.

import type { PackKind } from "../catalog/catalog.ts";
import type { Unit } from "../catalog/plan.ts";
import type { Amount } from "../values/amount.ts";
import type { UserKey } from "../values/ids.ts";
import type { MatchRule } from "../values/match.ts";
import type { Millis } from "../values/period.ts";

/** What a user buys by itself, and when. */
export interface TopUpSetting {
  readonly packId: string;
  /** Buys where less than this is left. */
  readonly below: Amount;
  /** Packs, or units of a pack without items. */
  readonly quantity: number;
  /** The most that may be paid in a UTC month, in the smallest unit of the price's currency. */
  readonly maxPerMonth: number;
  readonly customerId: string;
  readonly paymentMethodId: string;
  /** What the caller asked for; `stopped` may overrule it. */
  readonly enabled: boolean;
}

/** A user's top-ups as a whole. It stays after the setting is removed, so that neither cap nor waits begin anew. */
export interface TopUp {
  /** Null once it is removed. */
  readonly setting: TopUpSetting | null;
  /** The currency that the backend's last PUT accepted. */
  readonly currency: string;
  /** Failed intents since the last paid one. */
  readonly failures: number;
  /** No intent is made before this time of the app's clock; null for no wait. */
  readonly nextTryAt: Millis | null;
  /** The payment method for which `nextTryAt` holds; null for none. */
  readonly failedMethodId: string | null;
  /** Why it is disabled until the backend's next PUT; null for not. */
  readonly stopped: "failures" | "currency_changed" | null;
  /** The real UTC month of `spent`: "2026-11". */
  readonly month: string;
  /** What open, processing and paid intents of the month cost, by currency. */
  readonly spent: Readonly<Record<string, number>>;
  /** The month in which `topup.capped` was sent; null for none. */
  readonly cappedIn: string | null;
}

export type TopUpStatus = "open" | "processing" | "paid" | "failed" | "canceled";

/** What an intent grants once it is paid. */
export interface TopUpTerms {
  readonly packName: string;
  readonly packItemId: string | null;
  readonly kind: PackKind;
  readonly unit: Unit;
  readonly matches: readonly MatchRule[];
  readonly priority: number;
  readonly units: Amount;
  /** From the payment on; null for evergreen. */
  readonly expiryDays: number | null;
}

/** One purchase. */
export interface TopUpIntent {
  readonly id: string;
  readonly userKey: UserKey;
  readonly realm: number;
  readonly status: TopUpStatus;
  readonly packId: string;
  readonly quantity: number;
  /** In the smallest unit of the currency. */
  readonly amount: number;
  readonly currency: string;
  readonly terms: TopUpTerms;
  readonly customerId: string;
  readonly paymentMethodId: string;
  /** Stripe's PaymentIntent; null until its id is stored. */
  readonly paymentIntentId: string | null;
  /** The number of keys under which a PaymentIntent may have been created; 0 before the first. */
  readonly attempt: number;
  /** When the present key was first used, in real time; null before the first. */
  readonly attemptedAt: Millis | null;
  /** Whether a confirmation may have been sent. */
  readonly isConfirmed: boolean;
  /** Whether it was called off before it was confirmed. */
  readonly isCalledOff: boolean;
  /** Why it failed; null for any other status. */
  readonly reason: string | null;
  /** The real UTC month in which it was made, and counts. */
  readonly month: string;
  /** On the app's clock. */
  readonly createdAt: Millis;
  readonly settledAt: Millis | null;
}

/** Whether an intent may still change by itself. */
export function isUnderWay({ status }: Pick<TopUpIntent, "status">): boolean {
  return status === "open" || status === "processing";
}

/** Whether intents may be made. */
export function isEnabled({ setting, stopped }: TopUp): boolean {
  return setting !== null && setting.enabled && stopped === null;
}

/** The UTC month of a real moment: "2026-11". */
export function monthOf(realNow: Millis): string {
  return new Date(realNow).toISOString().slice(0, 7);
}

/** Adds to what was spent in a month. A month before the one that is counted changes nothing. */
export function withSpent(topUp: TopUp, month: string, currency: string, amount: number): TopUp {
  if (month < topUp.month) return topUp;
  const spent = month === topUp.month ? topUp.spent : {};
  return { ...topUp, month, spent: { ...spent, [currency]: (spent[currency] ?? 0) + amount } };
}

/** What was spent in a month, by currency. */
export function spentIn({ month: counted, spent }: TopUp, month: string): Readonly<Record<string, number>> {
  return month === counted ? spent : {};
}

/**
 * Joins the top-ups of two merged users: the setting of `to` counts, also where it was removed, and both have spent. A user
 * who never had a setting takes that of the alias.
 */
export function joinedTopUp(from: TopUp | null, to: TopUp | null): TopUp | null {
  if (from === null || to === null) return to ?? from;
  let joined = to;
  for (const [currency, amount] of Object.entries(from.spent)) {
    joined = withSpent(joined, from.month, currency, amount);
  }
  return joined;
}
