// Commit and release: the transition table of reservations. A commit charges the correction on each
// line's counter in the window of the hold; after expiry it charges the final amount anew.
// (interface.md: Reservation; decisions.md 5: Commit, Release.)

import { type Input, type ModelReply, refusal, success, type Unit, type WireData } from "./document.ts";
import { atLeastZero, fromNumber, type Micros, toNumber, ZERO } from "./decimal.ts";
import { sent } from "./rules.ts";
import type { Counter, EventRow, Reservation, World } from "./state.ts";

export function commit(world: World, input: Input, now: number, realNow: number): ModelReply {
  const reservation = find(world, input);
  if (!reservation) return refusal("not_found");
  const { state, user, lines } = reservation;
  if (state !== "held" && state !== "expired") return refusal("reservation_not_pending");
  const cost = finalCost(reservation, input);
  const costed = new Set<Counter>();
  const groups = new Map<Counter, WireData>();
  for (const line of lines) {
    const counter = world.lineCounter(user, line);
    const delta = finalAmount(reservation, line.unit, input) - (state === "held" ? line.amount : ZERO);
    counter.count = atLeastZero(counter.count + delta);
    if (!costed.has(counter)) counter.cost += cost;
    costed.add(counter);
    const quota = world.lineQuota(user, line, now);
    // Choice: overflow says that this commit added something and the counter is now past its quota.
    const overflow = (delta > ZERO && counter.count > quota) || groups.get(counter)?.["overflow"] === true;
    groups.set(counter, {
      groupId: line.groupId,
      unit: line.unit,
      quota: toNumber(quota),
      current: toNumber(counter.count),
      overflow,
    });
  }
  reservation.state = "committed";
  const quantity = reservation.perUnit ? finalAmount(reservation, "seconds", input) : reservation.quantity;
  // Choice: the event names the groups that were charged, so a carried hold names the new ones.
  const matchedGroupIds = [...new Set(lines.map((line) => line.groupId))];
  const event = record(world, reservation, now, { matchStatus: "matched", quantity, cost, matchedGroupIds });
  world.countOperation(realNow);
  // Choice: the answer also names the event, beyond what the specification lists.
  return success({
    eventId: event.id,
    groups: [...groups.values()],
    ...(state === "expired" ? { recharged: true } : {}),
  });
}

export function release(world: World, input: Input, now: number): ModelReply {
  const reservation = find(world, input);
  if (!reservation) return refusal("not_found");
  if (reservation.state !== "held") return refusal("reservation_not_pending");
  for (const line of reservation.lines) {
    const counter = world.lineCounter(reservation.user, line);
    counter.count = atLeastZero(counter.count - line.amount);
  }
  reservation.state = "released";
  record(world, reservation, now, {
    matchStatus: "released",
    quantity: reservation.quantity,
    cost: ZERO,
    matchedGroupIds: [],
    reason: cut(input["reason"], 500),
    errorCode: cut(input["errorCode"], 100),
  });
  return success({});
}

function find(world: World, input: Input): Reservation | undefined {
  return world.reservations.find((reservation) => reservation.id === input["reservationId"]);
}

/** The amount that a unit comes to: what was reserved, corrected by `extra`, `actual` or `costCents`. */
function finalAmount(reservation: Reservation, unit: Unit, input: Input): Micros {
  const reserved = reservation.reserved[unit];
  if (unit === "seconds" && !reservation.perUnit) return reserved;
  const costCents = sent(input, "costCents");
  if (unit === "cents" && reservation.perUnit && costCents !== null) return costCents;
  return corrected(reserved, unit, input);
}

function corrected(reserved: Micros, unit: Unit, input: Input): Micros {
  const actual = (input["actual"] ?? {}) as Record<string, unknown>;
  if (typeof actual[unit] === "number") return fromNumber(actual[unit]);
  const extra = (input["extra"] ?? {}) as Record<string, unknown>;
  const aliases: Partial<Record<Unit, string>> = { tokens: "outputTokens", cents: "outputCostCents" };
  const given = extra[unit] ?? extra[aliases[unit] ?? ""];
  return atLeastZero(reserved + (typeof given === "number" ? fromNumber(given) : ZERO));
}

/** The event's cost: `costCents`, else actual cents, else the carried cents plus extra, never below 0. */
function finalCost(reservation: Reservation, input: Input): Micros {
  return sent(input, "costCents") ?? corrected(reservation.reserved.cents, "cents", input);
}

type Outcome = Pick<EventRow, "matchStatus" | "quantity" | "cost" | "matchedGroupIds"> & {
  reason?: string | null;
  errorCode?: string | null;
};

function record(world: World, reservation: Reservation, now: number, outcome: Outcome): EventRow {
  const event = world.name<EventRow>("evt_", {
    userId: reservation.user.id,
    eventType: reservation.event,
    createdAt: now,
    metadata: reservation.metadata,
    reservation,
    reason: null,
    errorCode: null,
    ...outcome,
  });
  world.events.push(event);
  return event;
}

/** The first code points of a text, or null. */
function cut(value: unknown, length: number): string | null {
  return typeof value === "string" ? [...value].slice(0, length).join("") : null;
}
