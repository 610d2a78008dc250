// Plans: limit groups with exact quotas, their gates under headroom, and how the groups of two plans pair.

import { type Amount, divideDown, larger, multiply, smaller, wholeOf } from "../values/amount.ts";
import type { MatchRule, Metadata } from "../values/match.ts";
import { matchesAny, ruleText } from "../values/match.ts";
import type { GroupPeriod, Period } from "../values/period.ts";
import type { FeatureValues } from "./feature.ts";

export const UNITS = ["count", "tokens", "seconds", "cents", "credits"] as const;

/** What a limit group meters. */
export type Unit = (typeof UNITS)[number];

/** A safety buffer of a group: `percent` lowers the gate, `multiplier` requires a multiple of the need to be left. */
export interface Headroom {
  readonly mode: "percent" | "multiplier";
  readonly value: Amount;
}

/** A percent of a group's quota at which webhooks receive an alert, or its pace. */
export interface Alert {
  /** Above 0; PACE for the pace. */
  readonly percent: number;
  /** The percent as an amount. */
  readonly share: Amount;
}

/** In place of a percent: the pace, at which the quota is used up before the window ends. */
export const PACE = 0;

/** What a group sells past its quota. */
export interface Overage {
  /** The most of a window; null for no limit. */
  readonly max: Amount | null;
}

/** A limit group of a plan. */
export interface LimitGroup {
  readonly id: string;
  readonly label: string;
  readonly unit: Unit;
  readonly quota: Amount;
  readonly matches: readonly MatchRule[];
  readonly headroom: Headroom | null;
  /** What it sells past its quota; null for nothing, as for every guard and every group with headroom. */
  readonly overage: Overage | null;
  /** The percents ascending, then the pace. */
  readonly alerts: readonly Alert[];
  /** The most that each user below may use of it; null for no such limit. */
  readonly perMember: Amount | null;
  /** When it counts; null for the plan's period. */
  readonly period: GroupPeriod | null;
}

/** Whether a group is a guard: a rate or a concurrency limit, which only refuses. All other groups are quotas. */
export function isGuard({ period }: Pick<LimitGroup, "period">): boolean {
  return period?.type === "rolling" || period?.type === "concurrent";
}

/** Names how a group counts: groups of different kinds never continue each other. All calendar periods are one kind. */
export function kindOfGroup({ period }: Pick<LimitGroup, "period">): string {
  switch (period?.type) {
    case "session":
    case "rolling":
      return `${period.type} ${period.seconds}`;
    case "concurrent":
      return period.type;
    default:
      return "calendar";
  }
}

/** The trial of a plan: how long it is, and the plan after it; null if the subscription ends with it. */
interface PlanTrial {
  readonly lengthMs: number;
  readonly thenPlanId: string | null;
}

/** A pack that a plan includes in each window of a period. */
export interface Include {
  readonly packId: string;
  /** How many packs, or the amount of a pack without items; null for one pack. */
  readonly quantity: Amount | null;
  readonly period: Period;
  /** What is left at the end of a window goes on for so many windows, up to `max` at a time; null for nothing. */
  readonly rollover: { readonly max: Amount; readonly periods: number } | null;
}

/** A plan as decisions use it. */
export interface Plan {
  readonly id: string;
  readonly name: string;
  readonly rank: number;
  readonly period: Period;
  readonly onPlanChange: "carry" | "reset" | "block";
  readonly archived: boolean;
  /** Whether a payment provider's quantity is the number of seats. */
  readonly perSeat: boolean;
  /** Whether it adds to the quotas of a user's plan, and never is that plan. */
  readonly addon: boolean;
  /** What a trial of the plan is; null for none. */
  readonly trial: PlanTrial | null;
  readonly groups: readonly LimitGroup[];
  readonly includes: readonly Include[];
  /** Whether its period or that of a group is a lifetime. */
  readonly hasLifetime: boolean;
  readonly features: FeatureValues;
}

/** The groups of a plan that cover an event. */
export function matchingGroups(plan: Plan, event: string, metadata: Metadata | null): LimitGroup[] {
  return plan.groups.filter((group) => matchesAny(group.matches, event, metadata));
}

/** The effective limit of a group: its quota, or `quota x value / 100` under percent headroom. */
export function gateOf(group: LimitGroup, quota: Amount): Amount {
  if (group.headroom?.mode !== "percent") return quota;
  return smaller(quota, multiply(quota, group.headroom.value, 100n));
}

/**
 * What is left of a group: up to its gate, divided by the value under multiplier headroom. Never negative. A buffer that
 * ends within a count leaves whole ones.
 */
export function leftUnderGate(group: LimitGroup, quota: Amount, current: Amount): Amount {
  const { headroom, unit } = group;
  const left = larger(gateOf(group, quota) - current, 0n);
  if (headroom === null) return left;
  const share = headroom.mode === "multiplier" ? divideDown(left, headroom.value) : left;
  return unit === "count" ? wholeOf(share) : share;
}

/**
 * Pairs each group of the entered plan with the group of the old plan that it continues. Both have the same unit and kind
 * (with equal seconds), and the same id, else the same set of rules, else the same first event pattern. An old group is
 * paired at most once. Each pass covers the whole plan before the next begins, so that a better match is never lost to a
 * worse one.
 */
export function pairGroups(entered: Plan, old: Plan): Map<string, LimitGroup> {
  const pairs = new Map<string, LimitGroup>();
  const taken = new Set<string>();
  const passes: ((to: LimitGroup, from: LimitGroup) => boolean)[] = [
    (to, from) => to.id === from.id,
    (to, from) => ruleText(to.matches) === ruleText(from.matches),
    (to, from) => to.matches[0]?.event === from.matches[0]?.event,
  ];
  for (const fits of passes) {
    for (const to of entered.groups) {
      if (pairs.has(to.id)) continue;
      const from = old.groups.find((group) =>
        !taken.has(group.id) && group.unit === to.unit && kindOfGroup(group) === kindOfGroup(to) &&
        fits(to, group)
      );
      if (from === undefined) continue;
      pairs.set(to.id, from);
      taken.add(from.id);
    }
  }
  return pairs;
}
