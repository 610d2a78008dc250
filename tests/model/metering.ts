// The calls that ask for quota: reserve, can-use and track. One decision serves all three; they differ
// in the gate and in what they write. Of each unit's need the plan takes what it has room for, in every
// matched group of the unit, and credit balances pay the rest. Settling a hold is in settlement.ts.

import {
  type Input,
  type LimitGroup,
  type ModelReply,
  type ModelRow,
  refusal,
  success,
  type Unit,
} from "./document.ts";
import { type Micros, ONE, smaller, toNumber, ZERO } from "./decimal.ts";
import {
  type Amounts,
  amountsOf,
  gateOf,
  headroomOf,
  matchedGroups,
  type Metadata,
  modelRowOf,
  roomOf,
  sent,
} from "./rules.ts";
import {
  type Balance,
  type Counter,
  type CreditLine,
  type EventRow,
  iso,
  isoOrNull,
  type Line,
  type Reservation,
  shownCount,
  type SubscriptionRow,
  type User,
  type World,
} from "./state.ts";
import { costAnswer, counterAnswer } from "./reads.ts";
import { reportOf } from "./reports.ts";
import { drain, sumOf, walletOf, writeRow } from "./wallet.ts";
import type { Window } from "./windows.ts";

const DEFAULT_TTL_SECONDS = 600;

export interface Asked {
  user: User;
  /** What prices it. */
  row: ModelRow | undefined;
  /** Whether the caller named any cents. */
  toldCents: boolean;
  event: string;
  metadata: Metadata | null;
  amounts: Amounts;
  perUnit: boolean;
  /** The event's quantity. */
  quantity: Micros;
}

interface MatchedGroup {
  planId: string;
  window: Window;
  group: LimitGroup;
  counter: Counter;
  quota: Micros;
  gate: Micros;
  room: Micros;
  hasHeadroom: boolean;
}

/** How the need of one unit is met: by each matched group of the unit, and by the balances in a wallet. */
interface Share {
  unit: Unit;
  need: Micros;
  byPlan: Micros;
  byCredits: Micros;
  wallet: Balance[];
}

export interface Decision {
  primary: SubscriptionRow | null;
  window: Window | null;
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

export function reserve(world: World, input: Input, now: number): ModelReply {
  const asked = readAsked(world, input, "reserve");
  const decision = decide(world, asked, "headroom", now);
  const { matched, reason, shares } = decision;
  const told = sizeWarnings(input, asked, decision);
  if (reason !== null) return success({ ...refusedAnswer(decision), ...told });
  const lines = matched.map(({ planId, window, group, counter }): Line => {
    const amount = byPlan(shares, group.unit);
    counter.count += amount;
    return { planId, groupId: group.id, unit: group.unit, window, amount, left: [] };
  });
  const credits = takeCredits(world, shares, now);
  noteShares(world, decision);
  const setTtl = world.catalog.settings?.reservationTtlSeconds ?? DEFAULT_TTL_SECONDS;
  const ttlSeconds = typeof input["ttlSeconds"] === "number" ? input["ttlSeconds"] : setTtl;
  const { user, row, toldCents, event, metadata, amounts, perUnit, quantity } = asked;
  const expiresAt = now + Math.round(ttlSeconds * 1000);
  const made = {
    user,
    row,
    toldCents,
    event,
    metadata,
    state: "held" as const,
    madeAt: now,
    expiresAt,
    lines,
    credits,
    perUnit,
    quantity,
  };
  const reservation = world.name<Reservation>("rsv_", { ...made, reserved: amounts });
  world.reservations.push(reservation);
  for (const { balance, taken } of credits) {
    writeRow(world, balance, -taken, { reason: "reservation_held", reservation, at: now });
  }
  return success({
    allowed: true,
    matched: true,
    reservationId: reservation.id,
    expiresAt: iso(expiresAt),
    ...(matched.length > 0 ? { groups: matched.map(groupAnswer) } : {}),
    ...told,
  });
}

/** Warns of a quantity above 1 where nothing that the call takes, or would take, is measured in seconds. */
function sizeWarnings(input: Input, asked: Asked, { matched, shares, reason }: Decision): Input {
  const quantity = sent(input, "quantity");
  const isCovered = matched.length > 0 || reason === null;
  if (quantity === null || quantity <= ONE || !isCovered) return {};
  const units = matched.length > 0 ? matched.map(({ group }) => group.unit) : shares.map(({ unit }) => unit);
  const bySeconds = [
    "seconds",
    ...(asked.perUnit && sent(input, "inputCostCents") === null ? ["cents"] : []),
  ];
  return units.some((unit) => bySeconds.includes(unit)) ? {} : { warnings: ["quantity_not_counted"] };
}

export function canUse(world: World, input: Input, now: number): ModelReply {
  const asked = readAsked(world, input, "reserve");
  const decision = decide(world, asked, "headroom", now);
  const { matched, reason } = decision;
  return success({
    ...sizeWarnings(input, asked, decision),
    allowed: reason === null,
    matched: matched.length > 0 || reason === null,
    reasons: reason === null ? [] : [reason],
    details: matched.map(({ group, counter, quota, window }) => ({
      groupId: group.id,
      current: toNumber(shownCount(counter)),
      quota: toNumber(quota),
      resetsAt: isoOrNull(window.end),
      ...creditOffer(walletOf(world, asked, now, group.unit)),
    })),
  });
}

/** What a wallet has, in all and by pack; packs in the order of their first balance. */
function creditOffer(wallet: Balance[]) {
  const packs = [...new Set(wallet.map(({ pack }) => pack))];
  return {
    creditAvailable: toNumber(sumOf(wallet)),
    creditPacks: packs.map((pack) => ({
      packId: pack.id,
      packName: pack.name,
      available: toNumber(sumOf(wallet.filter((balance) => balance.pack === pack))),
    })),
  };
}

export function track(world: World, input: Input, now: number, realNow: number): ModelReply {
  const asked = readAsked(world, input, "track");
  const decision = decide(world, asked, "quota", now);
  const { primary, window, matched, shares, reason } = decision;
  const cost = sent(input, "costCents") ?? asked.amounts.cents;
  const status = reason === null
    ? matched.length > 0 ? "matched" : "matched_credits_only"
    : reason === "no_subscription"
    ? "no_subscription"
    : reason === "unmatched_event"
    ? "unmatched"
    : "blocked";
  const counted = status === "matched" ? matched : [];
  for (const { group, counter } of counted) {
    counter.count += byPlan(shares, group.unit);
    counter.cost += cost;
  }
  const credits = reason === null ? takeCredits(world, shares, now) : [];
  if (reason === null) noteShares(world, decision);
  // Choice: an event that is not counted keeps its cost on the record; only counters leave it out.
  const event = world.name<EventRow>("evt_", {
    userId: asked.user.id,
    eventType: asked.event,
    quantity: asked.quantity,
    cost,
    matchStatus: status,
    createdAt: now,
    metadata: asked.metadata,
    matchedGroupIds: counted.map(({ group }) => group.id),
    reservation: null,
    reason: null,
    errorCode: null,
    amounts: [
      ...counted.map(({ group }) => ({
        groupId: group.id,
        unit: group.unit,
        amount: byPlan(shares, group.unit),
      })),
      ...credits.map(({ balance, taken }) => ({ balance, unit: balance.unit, amount: taken })),
    ],
    uncovered: {},
  });
  world.events.push(event);
  for (const { balance, taken } of credits) {
    writeRow(world, balance, -taken, { reason: "event_committed", event, at: now });
  }
  if (status === "blocked") {
    const groups = decision.blocking.map(({ group, counter, quota }) => ({
      groupId: group.id,
      unit: group.unit,
      quota: toNumber(quota),
      current: toNumber(shownCount(counter)),
    }));
    const why = reason === "unpriced_model" ? { reasons: [reason] } : {};
    return refusal("limit_reached", { eventId: event.id, groups, ...why });
  }
  if (reason === null) world.countOperation(realNow);
  return success({
    eventId: event.id,
    matchStatus: status,
    matchedGroupIds: event.matchedGroupIds,
    counters: primary && window
      ? counted.map(({ group }) => counterAnswer(world, primary, group, window))
      : [],
    ...costAnswer(asked.row, cost, counted.some(inCents) && !asked.toldCents, reportOf(input)),
  });
}

export function readAsked(world: World, input: Input, kind: "reserve" | "track"): Asked {
  const event = String(input["event"]);
  const metadata = (input["metadata"] ?? null) as Metadata | null;
  const row = modelRowOf(world.catalog, event, metadata);
  const amounts = amountsOf(input, row, kind);
  const perUnit = row?.amountMode === "per_unit";
  const quantity = perUnit ? amounts.seconds : sent(input, "quantity") ?? sent(input, "count") ?? ONE;
  const user = world.user(String(input["userId"]));
  // A cost in advance is no member of reserve, which lets it pass unread.
  const told = kind === "track" ? ["inputCostCents", "costCents"] : ["inputCostCents"];
  const toldCents = told.some((name) => sent(input, name) !== null);
  return { user, row, toldCents, event, metadata, amounts, perUnit, quantity };
}

/** What a call would be answered, without changing anything. */
export function decide(world: World, asked: Asked, gateKind: "headroom" | "quota", now: number): Decision {
  const primary = world.primary(asked.user, now);
  const window = primary && world.window(primary, now);
  const matched = primary && window ? matchedOf(world, asked, gateKind, primary, window) : [];
  if (matched.length === 0) {
    const alone = creditsAlone(world, asked, now);
    const reason = primary ? "unmatched_event" : "no_subscription";
    return {
      primary,
      window,
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
    return { primary, window, matched, shares: [], blocking: [], reason: "unpriced_model" };
  }
  const units = [...new Set(matched.map(({ group }) => group.unit))];
  const shares = units.map((unit) => shareOf(world, asked, matched, unit, now));
  const failing = shares.filter((share) => !isMet(share, matched));
  if (failing.length === 0) return { primary, window, matched, shares, blocking: [], reason: null };
  const without = (hasTooLittle: (group: MatchedGroup, left: Micros) => boolean) =>
    failing.flatMap(({ unit, need, wallet }) => {
      const left = need - sumOf(wallet);
      return groupsOf(matched, unit).filter((group) => hasTooLittle(group, left));
    });
  const byQuota = without(({ quota, counter }, left) =>
    left === ZERO ? shownCount(counter) >= quota : quota - shownCount(counter) < left
  );
  // Choice: one reason for the whole call, also when several units fail.
  if (byQuota.length > 0) {
    return { primary, window, matched, shares, blocking: byQuota, reason: "limit_reached" };
  }
  const byGate = without(({ gate, counter, room }, left) =>
    left === ZERO ? shownCount(counter) >= gate : room < left
  );
  return { primary, window, matched, shares, blocking: byGate, reason: "reservation_headroom_exceeded" };
}

function matchedOf(
  world: World,
  asked: Asked,
  gateKind: "headroom" | "quota",
  primary: SubscriptionRow,
  window: Window,
): MatchedGroup[] {
  const plan = world.plan(primary.planId);
  return matchedGroups(plan, asked.event, asked.metadata).map((group) => {
    const counter = world.counter(asked.user.id, plan.id, group.id, window);
    const quota = world.quota(primary, group);
    const headroom = gateKind === "headroom" ? headroomOf(plan, group) : undefined;
    return {
      planId: plan.id,
      window,
      group,
      counter,
      quota,
      gate: gateOf(quota, headroom),
      room: roomOf(quota, shownCount(counter), headroom, group.unit),
      hasHeadroom: headroom !== undefined,
    };
  });
}

function inCents({ group }: { group: LimitGroup }): boolean {
  return group.unit === "cents";
}

function groupsOf(matched: MatchedGroup[], unit: Unit): MatchedGroup[] {
  return matched.filter(({ group }) => group.unit === unit);
}

/** The plan takes as much of the need as its tightest group has room for; credits are asked for the rest. */
function shareOf(world: World, asked: Asked, matched: MatchedGroup[], unit: Unit, now: number): Share {
  const need = asked.amounts[unit];
  const taken = groupsOf(matched, unit).reduce((least, { room }) => smaller(least, room), need);
  const wallet = walletOf(world, asked, now, unit);
  return { unit, need, byPlan: taken, byCredits: need - taken, wallet };
}

/** A need of 0 asks to be below each gate of the unit, or for any balance that has something left. */
function isMet({ unit, need, byCredits, wallet }: Share, matched: MatchedGroup[]): boolean {
  if (need > ZERO) return byCredits <= sumOf(wallet);
  return groupsOf(matched, unit).every(({ counter, gate }) => shownCount(counter) < gate) ||
    wallet.length > 0;
}

/** Without a group: the unit of the best balance whose need its unit's balances cover in full. */
function creditsAlone(world: World, asked: Asked, now: number): Share | null {
  for (const { unit } of walletOf(world, asked, now)) {
    const need = asked.amounts[unit];
    const wallet = walletOf(world, asked, now, unit);
    if (need > ZERO && need <= sumOf(wallet)) return { unit, need, byPlan: ZERO, byCredits: need, wallet };
  }
  return null;
}

function byPlan(shares: Share[], unit: Unit): Micros {
  return shares.find((share) => share.unit === unit)?.byPlan ?? ZERO;
}

function takeCredits(world: World, shares: Share[], now: number): CreditLine[] {
  return shares.flatMap(({ wallet, byCredits }) => drain(world, wallet, byCredits, now));
}

function noteShares(world: World, { primary, matched, shares }: Decision): void {
  const paid = shares.filter((share) => share.byCredits > ZERO);
  if (matched.length === 0) {
    world.note(`credits: alone, ${primary ? "no group matches" : "no subscription"}`);
  } else if (paid.some((share) => share.byPlan > ZERO)) {
    world.note("credits: plan and credits share a need");
  } else if (paid.length > 0) {
    world.note("credits: the whole need where the plan is full");
  }
  if (paid.length > 1) world.note("credits: needs of several units");
  const isFull = ({ counter, gate }: MatchedGroup) => shownCount(counter) >= gate;
  const nothing = shares.some(({ unit, need }) => need === ZERO && groupsOf(matched, unit).some(isFull));
  if (nothing) world.note("credits: a need of 0 on a full plan");
  const hasFraction = matched.some(({ group, counter, gate, hasHeadroom, room }) =>
    hasHeadroom && group.unit === "count" && room % ONE === ZERO &&
    (gate - shownCount(counter)) % ONE !== ZERO
  );
  if (hasFraction && paid.some(({ unit }) => unit === "count")) {
    world.note("credits: headroom leaves a fraction of a count");
  }
}

function refusedAnswer({ matched, blocking, reason }: Decision) {
  const answer = { allowed: false, matched: matched.length > 0, reasons: reason === null ? [] : [reason] };
  if (matched.length === 0) return answer;
  const groups = matched.map((each) => ({
    ...groupAnswer(each),
    ...(blocking.includes(each) ? { label: each.group.label, resetsAt: isoOrNull(each.window.end) } : {}),
  }));
  return { ...answer, groups };
}

function groupAnswer({ group, counter, quota, gate, hasHeadroom }: MatchedGroup) {
  return {
    groupId: group.id,
    unit: group.unit,
    quota: toNumber(quota),
    current: toNumber(shownCount(counter)),
    ...(hasHeadroom ? { headroomGate: toNumber(gate) } : {}),
  };
}
