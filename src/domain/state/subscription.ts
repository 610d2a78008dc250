// Subscriptions: the rows that give a user a plan, and their history. Several may be active at once. The primary one
// decides the user's plan: the best by the plan's rank, then by the latest start.

import type { Amount } from "../values/amount.ts";
import type { Context } from "./context.ts";
import type { UserKey } from "../values/ids.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { contains, type Millis, type Period, type Window, windowAt } from "../values/period.ts";
import type { LimitGroup } from "../catalog/plan.ts";
import type { FeatureValues } from "../catalog/feature.ts";

/** A subscription row. A default row has neither provider nor external id; a paid row has both. */
export interface Subscription {
  readonly id: string;
  readonly userKey: UserKey;
  readonly planId: string;
  readonly provider: string | null;
  readonly externalId: string | null;
  readonly startedAt: Millis;
  readonly endsAt: Millis | null;
  /** Whether the end has been settled. An end in the past that is not settled is due. */
  readonly ended: boolean;
  /** The anchor of its windows; null for the start. */
  readonly cycleAnchorAt: Millis | null;
  /** Quotas that replace those of the plan, by group id. */
  readonly customLimits: Readonly<Record<string, Amount>>;
  /** Features that replace those of the plan, by key. */
  readonly customFeatures: FeatureValues;
}

export type SubscriptionEventType =
  | "created"
  | "plan_changed"
  | "canceled"
  | "reactivated"
  | "ended"
  | "merged"
  | "promoted";

/** A row of a user's subscription history; immutable. */
export interface SubscriptionEvent {
  readonly id: string;
  readonly userKey: UserKey;
  readonly type: SubscriptionEventType;
  readonly subscriptionId: string;
  readonly planId: string;
  readonly previousPlanId: string | null;
  readonly reason: string | null;
  readonly at: Millis;
}

/** Whether a row entitles to its plan at a moment. */
export function isActive(row: Subscription, at: Millis): boolean {
  return !row.ended && (row.endsAt === null || row.endsAt > at);
}

/** Whether a row came from a payment provider. */
export function isPaid(row: Subscription): boolean {
  return row.provider !== null;
}

/** Returns the anchor from which a row's windows are stepped. */
export function anchorOf(row: Subscription): Millis {
  return row.cycleAnchorAt ?? row.startedAt;
}

interface KnownWindow {
  readonly period: Period;
  readonly window: Window;
}

/**
 * The newest window of a row or, for calendar periods, of all rows that share one. Rows and periods never change in place,
 * so this is only a shortcut.
 */
const lastWindows = new WeakMap<Subscription | Period, KnownWindow>();

/** Returns the running window of a row, under the period of its plan or of a group. */
export function windowOf(row: Subscription, period: Period, at: Millis): Window {
  const owner = period.anchor === "calendar" && period.type !== "lifetime" ? period : row;
  const known = lastWindows.get(owner);
  if (known !== undefined && known.period === period && contains(known.window, at)) return known.window;
  const window = windowAt(period, at, anchorOf(row), row.startedAt);
  lastWindows.set(owner, { period, window });
  return window;
}

/** Returns the quota of a group under a row: its custom limit, else the plan's quota. */
export function quotaOf(row: Subscription, group: LimitGroup): Amount {
  return Object.hasOwn(row.customLimits, group.id) ? row.customLimits[group.id] as Amount : group.quota;
}

/** Active rows, best first: by plan rank, then latest start, then latest id. */
export function activeRows(rows: Iterable<Subscription>, catalog: Catalog, at: Millis): Subscription[] {
  const active: Subscription[] = [];
  for (const row of rows) if (isActive(row, at)) active.push(row);
  return active.length < 2 ? active : active.sort((a, b) => compareRows(a, b, catalog));
}

/** Returns the primary row: the best active one; null for none. */
export function primaryOf(rows: Iterable<Subscription>, catalog: Catalog, at: Millis): Subscription | null {
  let best: Subscription | null = null;
  for (const row of rows) {
    if (isActive(row, at) && (best === null || compareRows(row, best, catalog) < 0)) best = row;
  }
  return best;
}

function compareRows(a: Subscription, b: Subscription, catalog: Catalog): number {
  const rank = rankOf(b, catalog) - rankOf(a, catalog);
  if (rank !== 0 && !Number.isNaN(rank)) return rank;
  if (a.startedAt !== b.startedAt) return b.startedAt - a.startedAt;
  return a.id < b.id ? 1 : -1;
}

/** Returns the rank of a row's plan; the lowest for a plan that the catalog no longer has. */
export function rankOf(row: Subscription, catalog: Catalog): number {
  return catalog.plans.get(row.planId)?.rank ?? -Infinity;
}

/** Finds the row of a key: after a merge several may have it, then the best active one, else the latest start. */
export function findRow(
  rows: Iterable<Subscription>,
  key: { readonly provider: string | null; readonly externalId: string | null },
  { catalog, now }: Pick<Context, "catalog" | "now">,
): Subscription | null {
  const ofKey = [...rows].filter((row) => row.provider === key.provider && row.externalId === key.externalId);
  return activeRows(ofKey, catalog, now)[0] ?? ofKey.sort(latestFirst)[0] ?? null;
}

function latestFirst(a: Subscription, b: Subscription): number {
  return b.startedAt - a.startedAt || (a.id < b.id ? 1 : -1);
}

/** Makes a history row of a subscription. */
export function historyRow(
  row: Subscription,
  type: SubscriptionEventType,
  context: Pick<Context, "now" | "ids">,
  reason: string | null = null,
): SubscriptionEvent {
  return {
    id: context.ids.next("subscriptionEvent"),
    userKey: row.userKey,
    type,
    subscriptionId: row.id,
    planId: row.planId,
    previousPlanId: null,
    reason,
    at: context.now,
  };
}
