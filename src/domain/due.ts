// What is due: lapsed holds and ended subscriptions, settled before every decision, each at its own moment, so that a
// lazy settlement equals an eager one; and the mark that says when a user is due next.

import type { Context } from "./context.ts";
import type { Draft } from "./draft.ts";
import { expire } from "./metering/release.ts";
import type { Reservation } from "./metering/reservation.ts";
import type { Millis } from "./plans/period.ts";
import { refreshEntitlement } from "./plans/standing.ts";
import { historyRow, type Subscription } from "./plans/subscription.ts";

/** What fell due and was settled. */
export interface SettleAnswer {
  readonly holds: number;
  readonly subscriptions: number;
}

/** Something that falls due: a hold that lapses or a subscription that ends. Holds come first at the same time. */
type Due =
  & { readonly at: Millis; readonly id: string }
  & (
    | { readonly kind: "hold" }
    | { readonly kind: "subscription" }
  );

/** Settles what is due, each at its own moment; answers how much it was. */
export function settleDue(draft: Draft, context: Context): SettleAnswer {
  const { dueAt } = draft.user;
  const settled = { holds: 0, subscriptions: 0 };
  if (dueAt !== null && dueAt <= context.now) {
    for (const due of listDue(draft, context.now)) {
      if (due.kind === "hold") {
        expire(draft, draft.reservation(due.id) as Reservation, context);
        settled.holds += 1;
      } else {
        endSubscription(draft, due.id, { ...context, now: due.at });
        settled.subscriptions += 1;
      }
    }
  }
  refreshEntitlement(draft, context, context.now);
  return settled;
}

function listDue(draft: Draft, now: Millis): Due[] {
  const { state } = draft;
  const due: Due[] = state.holds.due(now, state.isOpen).map(({ at, id }) => ({ at, id, kind: "hold" }));
  for (const row of state.subscriptions.values()) {
    if (!row.ended && row.endsAt !== null && row.endsAt <= now) {
      due.push({ at: row.endsAt, id: row.id, kind: "subscription" });
    }
  }
  const order = { hold: 0, subscription: 1 };
  return due.sort((a, b) => a.at - b.at || order[a.kind] - order[b.kind] || (a.id < b.id ? -1 : 1));
}

function endSubscription(draft: Draft, id: string, context: Context): void {
  const row: Subscription = { ...draft.subscription(id) as Subscription, ended: true };
  draft.putSubscription(row);
  draft.appendSubscriptionEvent(historyRow(row, "ended", context));
  // The end of another row changes nothing; the held one may end at this very moment, and its end is then to be seen.
  if (draft.user.entitlement?.subscriptionId === id) refreshEntitlement(draft, context, context.now, id);
}

/**
 * Keeps `dueAt` not later than what is due next. It moves earlier at once, and later only when its moment has
 * passed: an early `dueAt` costs one idle look, and most turns then write no user row at all.
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
