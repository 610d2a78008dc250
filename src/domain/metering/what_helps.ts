// What would help after a refused call: plans with room for the call, and credit packs that cover it. It reads the
// catalog and the user's counts, and changes nothing. Waiting for the next window helps too: the windows say until when.

import type { Catalog, Pack } from "../catalog/catalog.ts";
import { leftUnderGate, type LimitGroup, pairGroups, type Plan, type Unit } from "../catalog/plan.ts";
import type { RefusedCall } from "../state/refused_call.ts";
import type { Amount } from "../values/amount.ts";
import { type MatchRule, type Metadata, patternCovers, ruleCovers } from "../values/match.ts";

/** A refused call with what its user has used. */
export interface CallForHelp {
  readonly event: string;
  /** Undefined for an unknown one: each rule for the event then counts as covering the call. */
  readonly metadata: Metadata | null | undefined;
  readonly reasons: RefusedCall["reasons"];
  /** What the call needs by unit; without an entry, some of the unit must be left. */
  readonly needs: ReadonlyMap<Unit, Amount>;
  /** The units with too little left: credits of one of them may pay. */
  readonly lacking: ReadonlySet<Unit>;
  /** The user's plan; null for none. */
  readonly planId: string | null;
  /** Seats of the user's subscription, which multiply quotas. */
  readonly seats: number;
  /** What each limit group of that plan counts now, with holds. */
  readonly counts: ReadonlyMap<string, Amount>;
}

/** What would allow a refused call. */
export interface Help {
  /** Plans on offer with room for the call, lowest rank first. */
  readonly plans: readonly Plan[];
  /** Packs on offer with credits for the call, in the order of the catalog. */
  readonly packs: readonly Pack[];
}

type Reason = RefusedCall["reasons"][number];

/** Reasons that another plan may remove. */
const OF_PLAN: ReadonlySet<Reason> = new Set<Reason>([
  "no_subscription",
  "unmatched_event",
  "limit_reached",
  "reservation_headroom_exceeded",
  "rate_limit_reached",
  "concurrency_limit_reached",
]);
/** Reasons that credits may remove: guards refuse also where credits pay. */
const OF_CREDITS: ReadonlySet<Reason> = new Set<Reason>([
  "no_subscription",
  "unmatched_event",
  "limit_reached",
  "reservation_headroom_exceeded",
]);

/** Finds the plans and packs on offer that would allow a refused call. */
export function whatHelps(catalog: Catalog, call: CallForHelp): Help {
  const mayHelp = (reasons: ReadonlySet<Reason>) => call.reasons.every((reason) => reasons.has(reason));
  const plans = mayHelp(OF_PLAN)
    ? [...catalog.plans.values()].filter((plan) => hasRoomIn(plan, call, catalog))
    : [];
  const packs = mayHelp(OF_CREDITS) ? [...catalog.packs.values()].filter((pack) => covers(pack, call)) : [];
  return { plans: plans.sort((one, other) => one.rank - other.rank), packs };
}

/** Whether each group of a plan that covers the call would have room for it after a change to this plan now. */
function hasRoomIn(plan: Plan, call: CallForHelp, { plans }: Catalog): boolean {
  if (plan.archived || plan.addon || plan.id === call.planId) return false;
  const old = call.planId === null ? undefined : plans.get(call.planId);
  // A plan that blocks starts with full counters.
  if (old !== undefined && plan.onPlanChange === "block") return false;
  const carried = old !== undefined && plan.onPlanChange === "carry" ? pairGroups(plan, old) : new Map();
  const covering = plan.groups.filter(({ matches }) => coversCall(matches, call));
  return covering.length > 0 && covering.every((group) => {
    const from: LimitGroup | undefined = carried.get(group.id);
    return fits(group, from === undefined ? 0n : call.counts.get(from.id) ?? 0n, call);
  });
}

function fits(group: LimitGroup, count: Amount, { needs, seats }: CallForHelp): boolean {
  const left = leftUnderGate(group, group.quota * BigInt(seats), count);
  const need = needs.get(group.unit) ?? 0n;
  if (need === 0n ? left > 0n : left >= need) return true;
  const { overage } = group;
  return overage !== null && (overage.max === null || need <= left + overage.max);
}

function covers({ archived, items, bucket }: Pack, call: CallForHelp): boolean {
  const parts = bucket === null ? items : [bucket];
  return !archived && parts.some(({ unit, matches }) => call.lacking.has(unit) && coversCall(matches, call));
}

function coversCall(rules: readonly MatchRule[], { event, metadata }: CallForHelp): boolean {
  return rules.some((rule) =>
    metadata === undefined ? patternCovers(rule.event, event) : ruleCovers(rule, event, metadata)
  );
}
