// The calls that ask for quota: reserve, can-use and track. One decision serves all three; they differ
// in the gate and in what they write. Settling a hold is in settlement.ts. (decisions.md 5.)
// The plan's share of a need is the whole need here; balances that cover a rest would join in `fits`.

import { type Input, type LimitGroup, type ModelReply, refusal, success, type Unit } from "./document.ts";
import { type Micros, ONE, toNumber, ZERO } from "./decimal.ts";
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
  type Counter,
  type EventRow,
  iso,
  isoOrNull,
  type Line,
  type Reservation,
  type SubscriptionRow,
  type User,
  type World,
} from "./state.ts";
import { counterAnswer } from "./reads.ts";
import type { Window } from "./windows.ts";

const DEFAULT_TTL_SECONDS = 600;

interface Asked {
  user: User;
  event: string;
  metadata: Metadata | null;
  amounts: Amounts;
  perUnit: boolean;
  /** The event's quantity. */
  quantity: Micros;
}

interface MatchedGroup {
  group: LimitGroup;
  counter: Counter;
  quota: Micros;
  gate: Micros;
  room: Micros;
  hasHeadroom: boolean;
}

interface Decision {
  primary: SubscriptionRow | null;
  window: Window | null;
  matched: MatchedGroup[];
  /** Null: allowed. */
  reason: "no_subscription" | "unmatched_event" | "limit_reached" | "reservation_headroom_exceeded" | null;
}

export function reserve(world: World, input: Input, now: number): ModelReply {
  const asked = readAsked(world, input, "reserve");
  const decision = decide(world, asked, "headroom", now);
  const { matched, reason, primary, window } = decision;
  if (reason !== null || !primary || !window) return success(refusedAnswer(decision));
  const lines = matched.map(({ group, counter }): Line => {
    const amount = asked.amounts[group.unit];
    counter.count += amount;
    return { planId: primary.planId, groupId: group.id, unit: group.unit, window, amount };
  });
  const setTtl = world.catalog.settings?.reservationTtlSeconds ?? DEFAULT_TTL_SECONDS;
  const ttlSeconds = typeof input["ttlSeconds"] === "number" ? input["ttlSeconds"] : setTtl;
  const { user, event, metadata, amounts, perUnit, quantity } = asked;
  const expiresAt = now + ttlSeconds * 1000;
  const made = { user, event, metadata, state: "held" as const, expiresAt, lines, perUnit, quantity };
  const reservation = world.name<Reservation>("rsv_", { ...made, reserved: amounts });
  world.reservations.push(reservation);
  return success({
    allowed: true,
    matched: true,
    reservationId: reservation.id,
    expiresAt: iso(expiresAt),
    groups: matched.map(groupAnswer),
  });
}

export function canUse(world: World, input: Input, now: number): ModelReply {
  const { matched, reason, window } = decide(world, readAsked(world, input, "reserve"), "headroom", now);
  return success({
    allowed: reason === null,
    matched: matched.length > 0,
    reasons: reason === null ? [] : [reason],
    details: matched.map(({ group, counter, quota }) => ({
      groupId: group.id,
      current: toNumber(counter.count),
      quota: toNumber(quota),
      resetsAt: isoOrNull(window?.end ?? null),
      creditAvailable: 0,
      creditPacks: [],
    })),
  });
}

export function track(world: World, input: Input, now: number, realNow: number): ModelReply {
  const asked = readAsked(world, input, "track");
  const { primary, window, matched, reason } = decide(world, asked, "quota", now);
  const cost = sent(input, "costCents") ?? asked.amounts.cents;
  const status = reason === null
    ? "matched"
    : reason === "no_subscription"
    ? "no_subscription"
    : reason === "unmatched_event"
    ? "unmatched"
    : "blocked";
  const counted = status === "matched" ? matched : [];
  for (const { group, counter } of counted) {
    counter.count += asked.amounts[group.unit];
    counter.cost += cost;
  }
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
  });
  world.events.push(event);
  if (status === "blocked") return refusal("limit_reached", { eventId: event.id });
  if (status === "matched") world.countOperation(realNow);
  return success({
    eventId: event.id,
    matchStatus: status,
    matchedGroupIds: event.matchedGroupIds,
    counters: primary && window
      ? counted.map(({ group }) => counterAnswer(world, primary, group, window))
      : [],
  });
}

function readAsked(world: World, input: Input, kind: "reserve" | "track"): Asked {
  const event = String(input["event"]);
  const metadata = (input["metadata"] ?? null) as Metadata | null;
  const row = modelRowOf(world.catalog, event, metadata);
  const amounts = amountsOf(input, row, kind);
  const perUnit = row?.amountMode === "per_unit";
  const quantity = perUnit ? amounts.seconds : sent(input, "quantity") ?? sent(input, "count") ?? ONE;
  return { user: world.user(String(input["userId"])), event, metadata, amounts, perUnit, quantity };
}

/** What a call would be answered, without changing anything. */
function decide(world: World, asked: Asked, gateKind: "headroom" | "quota", now: number): Decision {
  const primary = world.primary(asked.user, now);
  if (!primary) return { primary, window: null, matched: [], reason: "no_subscription" };
  const plan = world.plan(primary.planId);
  const window = world.window(primary, now);
  const matched = matchedGroups(plan, asked.event, asked.metadata).map((group): MatchedGroup => {
    const counter = world.counter(asked.user.id, plan.id, group.id, window);
    const quota = world.quota(primary, group);
    const headroom = gateKind === "headroom" ? headroomOf(plan, group) : undefined;
    const room = roomOf(quota, counter.count, headroom);
    return {
      group,
      counter,
      quota,
      gate: gateOf(quota, headroom),
      room,
      hasHeadroom: headroom !== undefined,
    };
  });
  if (matched.length === 0) return { primary, window, matched, reason: "unmatched_event" };
  const failing = matched.filter((each) => !fits(matched, each.group.unit, asked.amounts));
  const lacksQuota = failing.some(({ group, quota, counter }) => {
    const need = asked.amounts[group.unit];
    return need === ZERO ? counter.count >= quota : counter.count + need > quota;
  });
  if (failing.length === 0) return { primary, window, matched, reason: null };
  // Choice: one reason for the whole call, also when several units fail.
  return { primary, window, matched, reason: lacksQuota ? "limit_reached" : "reservation_headroom_exceeded" };
}

/** Whether the smallest room of a unit's groups takes the need; a need of 0 asks to be below each gate. */
function fits(matched: MatchedGroup[], unit: Unit, amounts: Amounts): boolean {
  const groups = matched.filter(({ group }) => group.unit === unit);
  const need = amounts[unit];
  if (need === ZERO) return groups.every(({ counter, gate }) => counter.count < gate);
  return groups.every(({ room }) => need <= room);
}

function refusedAnswer({ matched, reason }: Decision) {
  const answer = { allowed: false, matched: matched.length > 0, reasons: reason === null ? [] : [reason] };
  return matched.length > 0 ? { ...answer, groups: matched.map(groupAnswer) } : answer;
}

function groupAnswer({ group, counter, quota, gate, hasHeadroom }: MatchedGroup) {
  return {
    groupId: group.id,
    unit: group.unit,
    quota: toNumber(quota),
    current: toNumber(counter.count),
    ...(hasHeadroom ? { headroomGate: toNumber(gate) } : {}),
  };
}
