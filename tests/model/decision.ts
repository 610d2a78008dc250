// The decision of one call at one user: of each unit's need the plan takes what it has room for, in every matched group
// of the unit, and credit balances pay the rest. levels.ts puts those of a path together.

import type { Input, LimitGroup, ModelReply, ModelRow, RateRow, Unit } from "./document.ts";
import { atLeastZero, type Micros, ONE, smaller, ZERO } from "./decimal.ts";
import {
  type Amounts,
  amountsOf,
  gateOf,
  headroomOf,
  isGuard,
  matchedGroups,
  type Metadata,
  modelRowOf,
  roomOf,
  sent,
} from "./rules.ts";
import { overageRoom } from "./overage.ts";
import { creditsOf, type Rated, rateOf, type Work } from "./rates.ts";
import { runsOf } from "./runs.ts";
import {
  type Balance,
  type Counter,
  planShown,
  type RunRow,
  type SubscriptionRow,
  type User,
  type World,
} from "./state.ts";
import { sumOf, walletOf } from "./wallet.ts";
import type { Window } from "./windows.ts";

export interface Asked {
  user: User;
  /** What prices it. */
  row: ModelRow | undefined;
  /** Whether the caller named any cents. */
  toldCents: boolean;
  event: string;
  metadata: Metadata | null;
  amounts: Amounts;
  /** What rates it in credits, and by what. */
  rate: RateRow | undefined;
  work: Work;
  rated: Rated;
  perUnit: boolean;
  /** The event's quantity. */
  quantity: Micros;
  /** The run of the call and those around it, innermost first. */
  runs: RunRow[];
}

export interface MatchedGroup {
  planId: string;
  /** Null: a session that does not run. */
  window: Window | null;
  group: LimitGroup;
  counter: Counter;
  quota: Micros;
  gate: Micros;
  room: Micros;
  /** What may be sold past it. */
  sells: Micros;
  hasHeadroom: boolean;
}

/** How the need of one unit is met: by each matched group of the unit, and by the balances in a wallet. */
export interface Share {
  unit: Unit;
  need: Micros;
  byPlan: Micros;
  byCredits: Micros;
  /** What nothing else meets: each group takes it in the plan's room that is left, or sells it. */
  byOverage: Micros;
  wallet: Balance[];
}

export interface Decision {
  primary: SubscriptionRow | null;
  matched: MatchedGroup[];
  /** One for each unit among the matched groups; without a matched group one for the unit that credits pay. */
  shares: Share[];
  /** The matched groups without room: in their quota, else under their headroom. */
  blocking: MatchedGroup[];
  /** Null: allowed. */
  reason:
    | "no_subscription"
    | "unmatched_event"
    | "limit_reached"
    | "reservation_headroom_exceeded"
    | "unpriced_model"
    | null;
}

/** Reads a call; the refusal of its run in place of it. */
export function readAsked(
  world: World,
  input: Input,
  kind: "reserve" | "track",
  now: number,
): Asked | { reply: ModelReply } {
  const event = String(input["event"]);
  const metadata = (input["metadata"] ?? null) as Metadata | null;
  const row = modelRowOf(world.catalog, event, metadata);
  const { amounts: others, work } = amountsOf(input, row, kind);
  const rate = rateOf(world.catalog, event, metadata);
  const rated = creditsOf(rate, work);
  const amounts = { ...others, credits: rated.total };
  const perUnit = row?.amountMode === "per_unit";
  const quantity = perUnit ? amounts.seconds : sent(input, "quantity") ?? sent(input, "count") ?? ONE;
  const user = world.user(String(input["userId"]));
  // A cost in advance is no member of reserve, which lets it pass unread.
  const told = kind === "track" ? ["inputCostCents", "costCents"] : ["inputCostCents"];
  const toldCents = told.some((name) => sent(input, name) !== null);
  const found = runsOf(world, user, input["runId"], now);
  if (!found.ok) return found;
  const ofCall = { event, metadata, amounts, perUnit, quantity };
  return { user, row, toldCents, ...ofCall, rate, work, rated, runs: found.runs };
}

/** What a call would be answered, without changing anything. */
export function decide(world: World, asked: Asked, gateKind: "headroom" | "quota", now: number): Decision {
  const primary = world.primary(asked.user, now);
  const matched = primary ? matchedOf(world, asked, gateKind, primary, now) : [];
  if (matched.length === 0) {
    const alone = creditsAlone(world, asked, now);
    const reason = primary ? "unmatched_event" : "no_subscription";
    return {
      primary,
      matched,
      shares: alone ? [alone] : [],
      blocking: [],
      reason: alone ? null : reason,
    };
  }
  const { settings } = world.catalog;
  const isUnpriced = asked.row === undefined && !asked.toldCents && matched.some(inCents);
  if (isUnpriced && settings?.unpricedModels === "refuse") {
    world.note("prices: an unpriced call is refused");
    return { primary, matched, shares: [], blocking: [], reason: "unpriced_model" };
  }
  const units = [...new Set(matched.map(({ group }) => group.unit))];
  const shares = units.map((unit) => shareOf(world, asked, matched, unit, now));
  const failing = shares.filter((share) => !isMet(share, matched));
  if (failing.length === 0) return { primary, matched, shares, blocking: [], reason: null };
  const without = (hasTooLittle: (group: MatchedGroup, left: Micros) => boolean) =>
    failing.flatMap(({ unit, need, wallet }) => {
      const left = need - sumOf(wallet);
      return groupsOf(matched, unit).filter((group) => hasTooLittle(group, left));
    });
  const byQuota = without(({ quota, counter, sells }, left) =>
    left === ZERO
      ? planShown(counter) >= quota && sells === ZERO
      : atLeastZero(quota - planShown(counter)) + sells < left
  );
  // Choice: one reason for the whole call, also when several units fail.
  if (byQuota.length > 0) {
    return { primary, matched, shares, blocking: byQuota, reason: "limit_reached" };
  }
  const byGate = without(({ gate, counter, room, sells }, left) =>
    left === ZERO ? planShown(counter) >= gate && sells === ZERO : room + sells < left
  );
  return { primary, matched, shares, blocking: byGate, reason: "reservation_headroom_exceeded" };
}

function matchedOf(
  world: World,
  asked: Asked,
  gateKind: "headroom" | "quota",
  primary: SubscriptionRow,
  now: number,
): MatchedGroup[] {
  const plan = world.plan(primary.planId);
  const groups = matchedGroups(plan, asked.event, asked.metadata).filter((group) => !isGuard(group));
  return groups.map((group) => {
    const window = world.windowOf(asked.user.id, primary, group, now);
    const counter = world.counterIn(asked.user.id, plan.id, group.id, window);
    const quota = world.quota(primary, group, now);
    const headroom = gateKind === "headroom" ? headroomOf(plan, group) : undefined;
    return {
      planId: plan.id,
      window,
      group,
      counter,
      quota,
      gate: gateOf(quota, headroom),
      room: roomOf(quota, planShown(counter), headroom, group.unit),
      sells: overageRoom(asked.user, group, counter),
      hasHeadroom: headroom !== undefined,
    };
  });
}

export function inCents({ group }: { group: LimitGroup }): boolean {
  return group.unit === "cents";
}

export function groupsOf(matched: MatchedGroup[], unit: Unit): MatchedGroup[] {
  return matched.filter(({ group }) => group.unit === unit);
}

/**
 * The plan takes as much of the need as its tightest group has room for; credits are asked for the rest. Where a group
 * sells, what credits leave is taken by each group.
 */
function shareOf(world: World, asked: Asked, matched: MatchedGroup[], unit: Unit, now: number): Share {
  const need = asked.amounts[unit];
  const taken = groupsOf(matched, unit).reduce((least, { room }) => smaller(least, room), need);
  const wallet = walletOf(world, asked, now, unit);
  const isSold = groupsOf(matched, unit).some(({ group }) => group.overage !== undefined);
  const byCredits = isSold ? smaller(need - taken, sumOf(wallet)) : need - taken;
  return { unit, need, byPlan: taken, byCredits, byOverage: need - taken - byCredits, wallet };
}

/** A need of 0 asks to be below each gate of the unit, or for any balance that has something left. */
function isMet(
  { unit, need, byPlan, byCredits, byOverage, wallet }: Share,
  matched: MatchedGroup[],
): boolean {
  const groups = groupsOf(matched, unit);
  if (need > ZERO) {
    return byCredits <= sumOf(wallet) &&
      groups.every(({ room, sells }) => byPlan + byOverage <= room + sells);
  }
  return groups.every(({ counter, gate, sells }) => planShown(counter) < gate || sells > ZERO) ||
    wallet.length > 0;
}

/** What a matched group takes of a call, and what of that it sells past its quota. */
export function takenBy({ group, room }: MatchedGroup, shares: Share[]): { amount: Micros; overage: Micros } {
  const share = shares.find(({ unit }) => unit === group.unit);
  const amount = share ? share.byPlan + share.byOverage : ZERO;
  return { amount, overage: group.overage === undefined ? ZERO : atLeastZero(amount - room) };
}

/** Without a group: the unit of the best balance whose need its unit's balances cover in full. */
function creditsAlone(world: World, asked: Asked, now: number): Share | null {
  for (const { unit } of walletOf(world, asked, now)) {
    const need = asked.amounts[unit];
    const wallet = walletOf(world, asked, now, unit);
    if (need > ZERO && need <= sumOf(wallet)) {
      return { unit, need, byPlan: ZERO, byCredits: need, byOverage: ZERO, wallet };
    }
  }
  return null;
}
