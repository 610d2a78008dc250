// What is due: lapsed holds, ended subscriptions and expired credits. They are settled before every decision, each as of
// its own time, so it makes no difference when that happens. A user's `dueAt` is the next time to look.

import type { Context } from "../state/context.ts";
import { type CreditBalance, expiryDueOf } from "../state/credit.ts";
import { expireCredits } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import { alertBase, fireAlerts } from "./alerts.ts";
import { expire } from "./release.ts";
import type { Reservation } from "../state/reservation.ts";
import type { Millis } from "../values/period.ts";
import { refreshEntitlement } from "../plans/entitlement.ts";
import { historyRow, type Subscription } from "../state/subscription.ts";

/** How much fell due and was settled. */
export interface SettleAnswer {
  readonly holds: number;
  readonly subscriptions: number;
}

/** Something that falls due. At the same time holds lapse first, then subscriptions end, then credits expire. */
type Due =
  & { readonly at: Millis; readonly id: string }
  & (
    | { readonly kind: "hold" }
    | { readonly kind: "subscription" }
    | { readonly kind: "credits" }
  );

/** Settles what is due, each as of its own time; returns how much it was. */
export function settleDue(draft: Draft, context: Context): SettleAnswer {
  const { dueAt } = draft.user;
  const settled = { holds: 0, subscriptions: 0 };
  if (dueAt !== null && dueAt <= context.now) {
    for (const due of listDue(draft, context.now)) {
      if (due.kind === "hold") {
        expire(draft, draft.reservation(due.id) as Reservation, context);
        settled.holds += 1;
      } else if (due.kind === "subscription") {
        const asOfThen = { ...context, now: due.at };
        const alerts = alertBase(draft, asOfThen);
        endSubscription(draft, due.id, asOfThen);
        fireAlerts(draft, alerts, asOfThen);
        settled.subscriptions += 1;
      } else expireCredits(draft, draft.balance(due.id) as CreditBalance, due.at);
    }
  }
  const { user } = draft;
  const counters = draft.changedCounters();
  refreshEntitlement(draft, context, context.now);
  // Most decisions enter no plan. Entering one changes counters, but not the state that alerts compare them with.
  if (draft.user !== user) fireAlerts(draft, alertBase(draft, context, counters), context);
  return settled;
}

function listDue(draft: Draft, now: Millis): Due[] {
  const { state } = draft;
  const due: Due[] = state.holds.due(now, (id, at) => state.lapsesAt(id, at)).map(({ at, id }) => ({
    at,
    id,
    kind: "hold",
  }));
  for (const row of state.subscriptions.values()) {
    if (!row.ended && row.endsAt !== null && row.endsAt <= now) {
      due.push({ at: row.endsAt, id: row.id, kind: "subscription" });
    }
  }
  for (const row of state.balances.values()) {
    const at = expiryDueOf(row);
    if (at !== null && at <= now) due.push({ at, id: row.id, kind: "credits" });
  }
  const order = { hold: 0, subscription: 1, credits: 2 };
  return due.sort((a, b) => a.at - b.at || order[a.kind] - order[b.kind] || (a.id < b.id ? -1 : 1));
}

function endSubscription(draft: Draft, id: string, context: Context): void {
  const row: Subscription = { ...draft.subscription(id) as Subscription, ended: true };
  draft.putSubscription(row);
  draft.appendSubscriptionEvent(historyRow(row, "ended", context));
  // The end of a row that is not primary changes nothing. If the primary row ends at the same time, its own end must be
  // settled before it is replaced, or no promotion would be written.
  if (draft.user.entitlement?.subscriptionId === id) refreshEntitlement(draft, context, context.now, id);
}

/**
 * Keeps `dueAt` not later than what is due next. It moves earlier at once, but later only when its time has passed. A
 * `dueAt` that is too early costs one look; in return most decisions write no user row.
 */
export function updateDueAt(draft: Draft, now: Millis): void {
  const { dueAt } = draft.user;
  if (dueAt !== null && dueAt <= now) {
    draft.putUser({ dueAt: draft.nextDue() });
    return;
  }
  const written = draft.nextDueWritten();
  if (written < (dueAt ?? Infinity)) draft.putUser({ dueAt: written });
}
