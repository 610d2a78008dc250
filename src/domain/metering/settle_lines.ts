// The lines of a reservation and their counters: what a settlement changes on each counter, in the window of the hold.
// Shared by commit, release and expiry.

import { type Amount, larger } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { ownerOf } from "../values/ids.ts";
import { activePlanOf } from "../plans/entitlement.ts";
import { quotaOf } from "../state/subscription.ts";
import { adjustedTo, counted, type Counter, keyOf } from "../state/counter.ts";
import { overageMaxOf } from "./overage.ts";
import { isOfGuard, type Millis, type Window } from "../values/period.ts";
import { countersOf, type HoldLine, type Line, type Reservation } from "../state/reservation.ts";

/** Returns the reservation that callers settle by an id; undefined also for the part of a user above. */
export function callersReservation(draft: Draft, id: string): Reservation | undefined {
  const row = draft.reservation(id);
  return row?.partOf === undefined ? row : undefined;
}

/** The part of a hold at one user above. */
export interface Part {
  readonly draft: Draft;
  readonly row: Reservation;
}

/** The parts of a hold at users above, nearest first, without those of users that were erased. */
export function partsOf(draft: Draft, { parts, status }: Reservation): Part[] {
  const found: Part[] = [];
  for (const id of parts ?? NO_PARTS) {
    const owner = ownerOf("reservation", id);
    const level = owner === null ? null : draft.levelOf(owner);
    const row = level?.reservation(id);
    if (level != null && row !== undefined && row.status === status) found.push({ draft: level, row });
  }
  return found;
}

const NO_PARTS: readonly string[] = [];

/** Gives back what a hold took, in the window where it was taken. */
export function refundLines(draft: Draft, row: Reservation, at: Millis): void {
  for (const line of row.lines) {
    if (!isSettled(line.window, at)) continue;
    const { taken, overage = 0n } = line;
    draft.putCounter(counted(draft.counter(line), -taken, -overage));
    correctLeft(draft, line, overage - taken, at);
  }
}

/**
 * Whether a settlement changes the counter of a window. What a concurrency limit counts follows from the holds. The slot
 * of a rate is left unchanged once it no longer counts.
 */
export function isSettled(window: Window, at: Millis): boolean {
  return !isOfGuard(window) || (window.kind === "rate" && window.end !== null && window.end > at);
}

/**
 * Corrects the counters that a line left. The hold is not one of their holds, so the delta is booked as adjusted. Overage
 * is no part of it: it moved along with the hold.
 */
export function correctLeft(
  draft: Draft,
  { left }: HoldLine,
  delta: Amount,
  at: Millis,
  spared: SparedCounters = NONE_SPARED,
): void {
  if (left === undefined || delta === 0n) return;
  for (const ref of left) {
    if (spared.has(keyOf(ref)) || !isSettled(ref.window, at)) continue;
    const counter = draft.counter(ref);
    const count = larger(counter.count + delta, counter.overage ?? 0n);
    draft.putCounter(adjustedTo(counter, count, counter.costCents, 0n));
  }
}

/** What a settlement adds to a counter. */
interface Added {
  readonly delta: Amount;
  /** The part of `delta` that is overage. */
  readonly overage: Amount;
  readonly costCents: Amount;
}

/** Changes the counter of a line; returns it. */
export function chargeLine(
  draft: Draft,
  line: Line,
  { delta, overage, costCents }: Added,
  before: Counter = draft.counter(line),
): Counter {
  const row = counted(before, delta, overage);
  const counter = costCents === 0n ? row : { ...row, costCents: row.costCents + costCents };
  draft.putCounter(counter);
  return counter;
}

/** The keys of counters that a settlement leaves unchanged. */
export type SparedCounters = ReadonlySet<string>;

export const NONE_SPARED: SparedCounters = new Set();

/** Lists the counters of a hold that were reset after it was made: a late commit counts nothing on them. */
export function resetSince(draft: Draft, row: Reservation): SparedCounters {
  const reset = countersOf(row).filter((ref) => (draft.counter(ref).resetAt ?? -Infinity) > row.createdAt);
  return reset.length === 0 ? NONE_SPARED : new Set(reset.map(keyOf));
}

/** The present limit of a line's group. */
export interface LineLimit {
  /** 0 where the catalog no longer has the group. */
  readonly quota: Amount;
  /** Whether the line's plan is the active one. */
  readonly isCurrent: boolean;
  /** The most overage in force, null for no limit; absent where the group sells none. */
  readonly overageMax?: Amount | null;
}

/** Returns the present quota of each line's group: the primary row's if its plan is active, else the catalog's. */
export function limitsOf(draft: Draft, context: Context, lines: readonly Line[]): LineLimit[] {
  const active = activePlanOf(draft, context);
  return lines.map((line) => {
    const isCurrent = active?.plan.id === line.planId;
    const plan = isCurrent ? active.plan : context.catalog.plans.get(line.planId);
    const group = plan?.groups.find(({ id }) => id === line.groupId);
    if (group === undefined) return { quota: 0n, isCurrent };
    if (!isCurrent) return { quota: group.quota, isCurrent };
    const limit = { quota: quotaOf(active, group), isCurrent };
    const overageMax = overageMaxOf(draft.user, group);
    return overageMax === undefined ? limit : { ...limit, overageMax };
  });
}
