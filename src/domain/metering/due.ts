// What is due: lapsed holds, ended trials, changes and ends of subscriptions, and expired credits. They are settled before
// every decision, each as of its own time, so it makes no difference when that happens. A user's `dueAt` is the next time
// to look.

import type { Context } from "../state/context.ts";
import { type CreditBalance, expiryDueOf } from "../state/credit.ts";
import { expireCredits } from "../credits/wallet.ts";
import { settlePassed } from "../includes/passed.ts";
import { settleIncluded } from "../includes/settle.ts";
import type { Draft } from "../state/draft.ts";
import { alertBase, fireAlerts } from "./alerts.ts";
import { expire } from "./release.ts";
import { reportSettled } from "./overage.ts";
import type { OverageWindow } from "../state/overage.ts";
import type { Reservation } from "../state/reservation.ts";
import type { UserState } from "../state/user.ts";
import type { Millis } from "../values/period.ts";
import { refreshEntitlement } from "../plans/entitlement.ts";
import { changePlan } from "../plans/schedule.ts";
import {
  endedAt,
  historyRow,
  nextDueOf,
  type ScheduledChange,
  type Subscription,
  type Trial,
} from "../state/subscription.ts";

export const DUE_LIMITS = {
  /** Expired balances that one turn settles; more stay due, and later turns settle them. */
  balancesMax: 5_000,
};

/** How much fell due and was settled. */
export interface SettleAnswer {
  readonly holds: number;
  readonly subscriptions: number;
}

/** The kinds of what falls due, in the order of one moment. */
const KINDS = ["hold", "providerTrial", "trial", "change", "end", "credits", "overage"] as const;

/** Something that falls due. */
interface Due {
  readonly at: Millis;
  readonly id: string;
  readonly kind: (typeof KINDS)[number];
}

/** Settles what is due, each as of its own time; returns how much it was. */
export function settleDue(draft: Draft, context: Context): SettleAnswer {
  draft.isSettlingDue = true;
  const settled = settleAll(draft, context);
  draft.isSettlingDue = false;
  return settled;
}

function settleAll(draft: Draft, context: Context): SettleAnswer {
  const { dueAt } = draft.user;
  const settled = { holds: 0, subscriptions: 0 };
  if (dueAt !== null && dueAt <= context.now) {
    for (const due of listDue(draft, context.now)) {
      if (due.kind === "hold") {
        const holdOf = () => draft.reservation(due.id) as Reservation;
        // A window that ends when a hold lapses has it back before. The hold may follow to another balance by that.
        if (holdOf().credits.length > 0) settleWindows(draft, { ...context, now: due.at - 1 });
        expire(draft, holdOf(), context);
        settled.holds += 1;
      } else if (due.kind === "credits") {
        expireCredits(draft, draft.balance(due.id) as CreditBalance, due.at);
      } else if (due.kind === "overage") {
        reportSettled(draft, draft.state.overages.get(due.id) as OverageWindow, due.at);
      } else if (dueOf(draft.subscription(due.id) as Subscription)[due.kind] === due.at) {
        const asOfThen = { ...context, now: due.at };
        const alerts = alertBase(draft, asOfThen);
        settlePassed(draft, asOfThen);
        settleSubscription(draft, due, asOfThen);
        settleIncluded(draft, asOfThen);
        fireAlerts(draft, alerts, asOfThen);
        if (due.kind !== "providerTrial") settled.subscriptions += 1;
      }
    }
  }
  settlePassed(draft, context);
  const { user } = draft;
  const counters = draft.changedCounters();
  refreshEntitlement(draft, context, context.now);
  settleIncluded(draft, context);
  // Most decisions enter no plan. Entering one changes counters, but not the state that alerts compare them with.
  if (draft.user !== user) fireAlerts(draft, alertBase(draft, context, counters), context);
  return settled;
}

/**
 * Whether time has put the user on another plan, which no turn has settled. The message about it has the features of the
 * users above too.
 */
export function isPlanChangeDue({ user: { dueAt }, subscriptions }: UserState, now: Millis): boolean {
  if (dueAt === null || dueAt > now) return false;
  return subscriptions.values().some((row) => {
    const { trial, change } = dueOf(row);
    return Math.min(trial ?? Infinity, change ?? Infinity) <= now;
  });
}

/** Settles what plans include, as of a moment at which no subscription changes. The catalog may have changed since. */
function settleWindows(draft: Draft, context: Context): void {
  settlePassed(draft, context);
  settleIncluded(draft, context, "next");
}

function listDue(draft: Draft, now: Millis): Due[] {
  const { state } = draft;
  const due: Due[] = state.holds.due(now, (id, at) => state.lapsesAt(id, at)).map(({ at, id }) => ({
    at,
    id,
    kind: "hold",
  }));
  for (const row of state.subscriptions.values()) {
    if (nextDueOf(row) > now) continue;
    for (const [kind, at] of Object.entries(dueOf(row))) {
      if (at !== null && at <= now) due.push({ at, id: row.id, kind: kind as keyof SubscriptionDue });
    }
  }
  let balances = 0;
  for (const row of state.balances.values()) {
    const at = expiryDueOf(row);
    if (at === null || at > now) continue;
    // An expired balance can't be spent, settled or not.
    if (++balances > DUE_LIMITS.balancesMax) break;
    due.push({ at, id: row.id, kind: "credits" });
  }
  for (const { key, dueAt } of state.overages.values()) {
    if (dueAt !== null && dueAt <= now) due.push({ at: dueAt, id: key, kind: "overage" });
  }
  const order = (a: Due, b: Due) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind);
  return due.sort((a, b) => a.at - b.at || order(a, b) || (a.id < b.id ? -1 : 1));
}

/** When each thing happens to a row by time alone; null for never. One of them may undo a later one. */
type SubscriptionDue = Readonly<Record<"providerTrial" | "trial" | "change" | "end", Millis | null>>;

const NOTHING_DUE: SubscriptionDue = { providerTrial: null, trial: null, change: null, end: null };

function dueOf({ ended, endsAt, scheduled, trial, providerTrialEndsAt }: Subscription): SubscriptionDue {
  if (ended) return NOTHING_DUE;
  const [trialEnds, changes] = [trial?.endsAt ?? null, scheduled?.at ?? null];
  return { providerTrial: providerTrialEndsAt, trial: trialEnds, change: changes, end: endsAt };
}

function settleSubscription(draft: Draft, { id, kind }: Due, context: Context): void {
  const row = draft.subscription(id) as Subscription;
  if (kind === "end") endSubscription(draft, row, null, context);
  else if (kind === "providerTrial") draft.putSubscription({ ...row, providerTrialEndsAt: null });
  else if (kind === "trial" && row.trial !== null) endTrial(draft, row, row.trial, context);
  else if (row.scheduled !== null) makeChange(draft, row, row.scheduled, context);
}

/** Changes to the plan after the trial; ends the row where there is none. */
function endTrial(draft: Draft, row: Subscription, { thenPlanId }: Trial, context: Context): void {
  if (thenPlanId !== null && context.catalog.plans.has(thenPlanId)) {
    changePlan(draft, row, thenPlanId, context, "trial_ended");
  } else endSubscription(draft, row, "trial_ended", context);
}

/** Makes the change that was asked for; drops it where the catalog no longer has the plan. */
function makeChange(draft: Draft, row: Subscription, { planId }: ScheduledChange, context: Context): void {
  if (context.catalog.plans.has(planId)) changePlan(draft, row, planId, context, "scheduled");
  else draft.putSubscription({ ...row, scheduled: null });
}

/** Ends a row at its moment. */
function endSubscription(
  draft: Draft,
  before: Subscription,
  reason: "trial_ended" | null,
  context: Context,
): void {
  const { id } = before;
  const row = endedAt(before, context.now, context.now);
  draft.putSubscription(row);
  draft.appendSubscriptionEvent(historyRow(row, "ended", context, reason));
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
