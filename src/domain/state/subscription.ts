// Subscriptions: the rows that give a user a plan, and their history. Several may be active at once. The primary one
// decides the user's plan: the best by the plan's rank, then by the latest start.

import type { Amount } from "../values/amount.ts";
import type { Context } from "./context.ts";
import type { UserKey } from "../values/ids.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Millis } from "../values/period.ts";
import { kindOfGroup, type LimitGroup, type Plan } from "../catalog/plan.ts";
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
  /** Seats: the quotas of the plan are multiplied by it. */
  readonly quantity: number;
  /** The change of plan that was asked for ahead; null for none. */
  readonly scheduled: ScheduledChange | null;
  /** The running trial of its plan; null for none. */
  readonly trial: Trial | null;
  /** The ids of all plans that it had on trial, the present one too. */
  readonly trials: readonly string[];
  /** When its trial at the payment provider ends; null where none runs. */
  readonly providerTrialEndsAt: Millis | null;
  /** When a trial of each plan included credits, by the plan's id: in the windows of then, once for user and plan. */
  readonly trialCredits: Readonly<Record<string, Millis>>;
  /** When it first had each plan, by the plan's id. A plan that is missing began with the row. */
  readonly firstHeld: Readonly<Record<string, Millis>>;
  /** Features that replace those of the plan, by key. */
  readonly customFeatures: FeatureValues;
}

/** A running trial, and the plan after it; null if the row ends with it. */
export interface Trial {
  readonly endsAt: Millis;
  readonly thenPlanId: string | null;
}

/** A change of plan, and when it is made. */
export interface ScheduledChange {
  readonly at: Millis;
  readonly planId: string;
}

/** The most seats of a subscription. */
export const SEATS_MAX = 10_000;

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

/** When something happens to a row by time alone; infinity for never. */
export function nextDueOf(row: Subscription): Millis {
  const { ended, endsAt, scheduled, trial, providerTrialEndsAt } = row;
  if (ended) return Infinity;
  const next = Math.min(endsAt ?? Infinity, scheduled?.at ?? Infinity, trial?.endsAt ?? Infinity);
  return Math.min(next, providerTrialEndsAt ?? Infinity);
}

/** Whether its plan is on trial, ours or the payment provider's. */
export function isOnTrial({ trial, providerTrialEndsAt }: Subscription): boolean {
  return trial !== null || providerTrialEndsAt !== null;
}

/** Gives a row its end, which drops what was asked for ahead; a trial runs until then. */
export function endedAt(row: Subscription, endsAt: Millis, now: Millis): Subscription {
  const ended = endsAt <= now;
  const trials = ended ? { trial: null, providerTrialEndsAt: null } : {};
  return { ...row, endsAt, ended, scheduled: null, ...trials };
}

/** Puts a row on another plan at a moment, which clears what was of the plan before. */
export function onPlan(row: Subscription, planId: string, at: Millis): Subscription {
  const before = { [row.planId]: heldSince(row, row.planId) ?? row.startedAt };
  const firstHeld = { ...row.firstHeld, ...before, [planId]: heldSince(row, planId) ?? at };
  return { ...row, planId, firstHeld, customLimits: {}, customFeatures: {}, scheduled: null, trial: null };
}

/** When a row first had a plan; null for never. */
export function heldSince(
  { planId: present, startedAt, firstHeld }: Subscription,
  planId: string,
): Millis | null {
  if (Object.hasOwn(firstHeld, planId)) return firstHeld[planId] as Millis;
  return planId === present ? startedAt : null;
}

/** Whether a row came from a payment provider. */
export function isPaid(row: Subscription): boolean {
  return row.provider !== null;
}

/** Returns the anchor from which a row's windows are stepped. */
export function anchorOf(row: Subscription): Millis {
  return row.cycleAnchorAt ?? row.startedAt;
}

/** An active row of an add-on, with its plan. */
export interface AddOn {
  readonly row: Subscription;
  readonly plan: Plan;
}

/** What gives a user its quotas: the primary row, and the add-ons beside it. */
interface QuotaSource {
  readonly row: Subscription;
  readonly addOns: readonly AddOn[];
}

/** Returns the quota of a group in force: that of the primary row, and what add-ons add to it. */
export function quotaOf({ row, addOns }: QuotaSource, group: LimitGroup): Amount {
  let quota = ownQuotaOf(row, group);
  for (const addOn of addOns) quota += addedBy(addOn, group) ?? 0n;
  return quota;
}

/** Returns the quota of a group under a row alone: its custom limit, else the plan's quota for each seat. */
export function ownQuotaOf({ customLimits, quantity }: Subscription, group: LimitGroup): Amount {
  if (Object.hasOwn(customLimits, group.id)) return customLimits[group.id] as Amount;
  return quantity === 1 ? group.quota : group.quota * BigInt(quantity);
}

/** Returns what an add-on adds to a group: the quota of its group of the same id, unit and kind; null for none. */
export function addedBy({ row, plan }: AddOn, to: LimitGroup): Amount | null {
  const group = plan.groups.find((each) =>
    each.id === to.id && each.unit === to.unit && kindOfGroup(each) === kindOfGroup(to)
  );
  return group === undefined ? null : ownQuotaOf(row, group);
}

/** The active add-ons of a user, by the ids of their rows. */
export function addOnsOf(rows: Iterable<Subscription>, catalog: Catalog, at: Millis): readonly AddOn[] {
  if (!catalog.hasAddOns) return NO_ADD_ONS;
  const addOns: AddOn[] = [];
  for (const row of rows) {
    const plan = catalog.plans.get(row.planId);
    if (plan?.addon === true && isActive(row, at)) addOns.push({ row, plan });
  }
  return addOns.length === 0 ? NO_ADD_ONS : addOns.sort((a, b) => (a.row.id < b.row.id ? -1 : 1));
}

const NO_ADD_ONS: readonly AddOn[] = [];

/** Whether a row gives its user a plan at a moment; an add-on does not. */
function givesPlan(row: Subscription, { hasAddOns, plans }: Catalog, at: Millis): boolean {
  return isActive(row, at) && !(hasAddOns && plans.get(row.planId)?.addon === true);
}

/** Active rows that give a plan, best first: by plan rank, then latest start, then latest id. */
export function activeRows(rows: Iterable<Subscription>, catalog: Catalog, at: Millis): Subscription[] {
  const active: Subscription[] = [];
  for (const row of rows) if (givesPlan(row, catalog, at)) active.push(row);
  return active.length < 2 ? active : active.sort((a, b) => compareRows(a, b, catalog));
}

/** Returns the primary row: the best active one that gives a plan; null for none. */
export function primaryOf(rows: Iterable<Subscription>, catalog: Catalog, at: Millis): Subscription | null {
  let best: Subscription | null = null;
  for (const row of rows) {
    if (givesPlan(row, catalog, at) && (best === null || compareRows(row, best, catalog) < 0)) best = row;
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
  const active = ofKey.filter((row) => isActive(row, now)).sort((a, b) => compareRows(a, b, catalog));
  return active[0] ?? ofKey.sort(latestFirst)[0] ?? null;
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
