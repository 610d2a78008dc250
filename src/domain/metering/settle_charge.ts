// What a commit takes from one user of the path: final parts of the plan's lines and of balances, in place of the held ones.

import type { Amount } from "../values/amount.ts";
import type { Metadata } from "../values/match.ts";
import type { Context } from "../state/context.ts";
import type { CreditLine } from "../state/credit.ts";
import type { Charge } from "../state/event.ts";
import type { HoldLine, Line, Reservation, ReservationStatus } from "../state/reservation.ts";
import type { Draft } from "../state/draft.ts";
import type { Unit } from "../catalog/plan.ts";
import { counterIn } from "../plans/windows.ts";
import { counted, keyOf, opened, planCount, shownCount } from "../state/counter.ts";
import { isOfGuard, type Millis } from "../values/period.ts";
import type { Movement } from "../credits/ledger.ts";
import { moveCredit, takeCredits } from "../credits/wallet.ts";
import { finalParts } from "./final_parts.ts";
import { noteSold, settleOverage } from "./overage.ts";
import {
  chargeLine,
  correctLeft,
  isSettled,
  limitsOf,
  type LineLimit,
  NONE_SPARED,
  resetSince,
  type SparedCounters,
} from "./settle_lines.ts";

/** A counter of the hold's window after the commit; `overflow`: this commit took the counter past its quota, unsold. */
export interface ChargedGroup {
  readonly groupId: string;
  readonly unit: Unit;
  readonly quota: Amount;
  readonly current: Amount;
  readonly overflow: boolean;
  /** The part of `current` that was sold past the quota; absent for a counter without any. */
  readonly overage?: Amount;
}

/** A commit as every level settles it. */
export interface Settlement {
  readonly status: ReservationStatus;
  /** Whether the hold had lapsed, so that everything is charged anew. */
  readonly isRecharge: boolean;
  readonly metadata: Metadata | null;
  readonly costCents: Amount;
  readonly eventId: string;
  /** Returns the final amount of a unit. */
  readonly finalOf: (unit: Unit) => Amount;
}

/** The counters of one user that a commit has charged, by key. Each gets the event's cost once. */
export type ChargedCounters = Map<string, ChargedGroup>;

/**
 * Settles the hold of one user by its final amounts.
 *
 * @param charged receives the counters; a merge may have brought several parts of a hold to one user
 */
export function settleCharge(
  draft: Draft,
  row: Reservation,
  settlement: Settlement,
  context: Context,
  charged: ChargedCounters,
): Charge {
  const { isRecharge, metadata, eventId, status, finalOf } = settlement;
  const { now } = context;
  const limits = limitsOf(draft, context, row.lines);
  const purchase = { event: row.event, metadata, now };
  const parts = finalParts(draft, { row, isRecharge, limits, purchase, finalOf });
  const { credits, uncovered } = parts;
  const spared = isRecharge ? resetSince(draft, row) : NONE_SPARED;
  chargeLines(draft, row, limits, { ...settlement, spared, now }, parts.lines, charged);
  const settled = settledLines(row.lines, parts.lines, isRecharge, now);
  const lines = spared.size === 0 ? settled : settled.map((line) => sparing(line, spared));
  settleOverage(draft, lines, now);
  noteSales(draft, row.lines, parts.lines, { isRecharge, spared });
  chargeCredits(draft, context, isRecharge ? [] : row.credits, credits, {
    reason: "event_committed",
    eventId,
    reservationId: row.partOf ?? row.id,
    at: now,
  });
  const paid = credits.map(withoutLeftBalances);
  draft.putReservation({ ...row, lines, credits: paid, prompt: null, status, settledAt: now });
  return { lines, credits: paid.filter(({ taken }) => taken > 0n), uncovered };
}

/** An event is paid in one place. */
function withoutLeftBalances(line: CreditLine): CreditLine {
  if (line.left === undefined) return line;
  const { left: _, ...rest } = line;
  return rest;
}

function withoutLeft(line: HoldLine): Line {
  if (line.left === undefined && line.isLeftBehind === undefined) return line;
  const { left: _left, isLeftBehind: _isLeftBehind, ...rest } = line;
  return rest;
}

/**
 * Removes the counters that a line left, since an event is counted in one place, and lines of concurrency limits, which
 * count open holds. A slot that no longer counts keeps what the hold took of it.
 */
function settledLines(
  held: readonly HoldLine[],
  lines: readonly HoldLine[],
  isRecharge: boolean,
  now: Millis,
): Line[] {
  return lines.flatMap((line, place) => {
    const { window } = line;
    if (window.kind === "concurrency" || (line.isLeftBehind === true && line.taken === 0n)) return [];
    const settled = withoutLeft(line);
    if (isSettled(window, now)) return [settled];
    return [{ ...settled, taken: isRecharge ? 0n : (held[place] as HoldLine).taken }];
  });
}

/** An event takes nothing from a counter that is left unchanged. */
function sparing(line: Line, spared: SparedCounters): Line {
  if (!spared.has(keyOf(line))) return line;
  const { overage: _, ...rest } = line;
  return { ...rest, taken: 0n };
}

/** Notes what a commit sold beyond its hold, or gave back. */
function noteSales(
  draft: Draft,
  held: readonly HoldLine[],
  lines: readonly Line[],
  { isRecharge, spared }: Pick<Settlement, "isRecharge"> & { readonly spared: SparedCounters },
): void {
  lines.forEach((line, place) => {
    if (spared.has(keyOf(line))) return;
    const before = isRecharge ? 0n : held[place]?.overage ?? 0n;
    noteSold(draft, line, (line.overage ?? 0n) - before);
  });
}

/** Changes the counters from the held to the final amounts. */
function chargeLines(
  draft: Draft,
  row: Reservation,
  limits: readonly LineLimit[],
  { isRecharge, costCents, spared, now }: Settlement & {
    readonly spared: SparedCounters;
    readonly now: Millis;
  },
  lines: readonly Line[],
  charged: ChargedCounters,
): void {
  const heldBy = (place: number) => isRecharge ? 0n : (row.lines[place] as HoldLine).taken;
  const soldBy = (place: number) => isRecharge ? 0n : (row.lines[place] as HoldLine).overage ?? 0n;
  lines.forEach(({ taken, overage = 0n }, place) => {
    const ofPlan = taken - overage - (heldBy(place) - soldBy(place));
    correctLeft(draft, row.lines[place] as HoldLine, ofPlan, now, spared);
  });
  lines.forEach((line, place) => {
    const before = heldBy(place);
    // Plan changes and merges can bring two lines onto one counter, which gets the event's cost once and is listed once.
    const key = keyOf(line);
    if (isOfGuard(line.window)) {
      const held = isRecharge ? 0n : before;
      charged.set(key, chargeGuard(draft, line, held, (limits[place] as LineLimit).quota, now));
      return;
    }
    if ((line as HoldLine).isLeftBehind === true) {
      const delta = spared.has(key) ? 0n : line.taken - before;
      if (delta !== 0n) chargeLine(draft, line, { delta, overage: delta, costCents: 0n });
      return;
    }
    const known = charged.get(key);
    const isSpared = spared.has(key);
    const counter = chargeLine(draft, line, {
      delta: isSpared ? 0n : line.taken - before,
      overage: isSpared ? 0n : (line.overage ?? 0n) - soldBy(place),
      costCents: isSpared || known !== undefined ? 0n : costCents,
    });
    const { quota, overageMax } = limits[place] as LineLimit;
    const rises = line.taken - (line.overage ?? 0n) > before - soldBy(place);
    const overflow = known?.overflow === true || (!isSpared && rises && planCount(counter) > quota);
    const group = { groupId: line.groupId, unit: line.unit, quota, current: shownCount(counter), overflow };
    const { overage = overageMax === undefined ? undefined : 0n } = counter;
    charged.set(key, overage === undefined ? group : { ...group, overage });
  });
}

/** Changes the slot of a rate, while it counts, from the held to the final amount; a concurrency limit loses the hold. */
function chargeGuard(draft: Draft, line: Line, held: Amount, quota: Amount, now: Millis): ChargedGroup {
  const { planId, groupId, unit, window, taken } = line;
  const isChanged = isSettled(window, now);
  if (isChanged) draft.putCounter(counted(draft.counter(line), taken - held));
  const { count } = counterIn(draft, planId, groupId, window, now);
  const current = window.kind === "concurrency" ? count - held : count;
  return { groupId, unit, quota, current, overflow: isChanged && taken > held && current > quota };
}

/** Changes balances from the held to the final amounts: those of the hold first, then new ones. */
function chargeCredits(
  draft: Draft,
  context: Context,
  held: readonly CreditLine[],
  credits: readonly CreditLine[],
  movement: Movement,
): void {
  credits.forEach((line, place) => {
    const before = held[place]?.taken ?? 0n;
    moveCredit(draft, context, line, { delta: before - line.taken, held: -before }, movement);
  });
}

/** Counts an event at one user: its lines, and what balances pay of it. */
export function chargeEvent(
  draft: Draft,
  context: Context,
  { lines, credits }: Pick<Charge, "lines" | "credits">,
  { eventId, costCents }: Pick<Settlement, "eventId" | "costCents">,
): void {
  for (const line of lines) {
    const { taken: delta, overage = 0n, window } = line;
    const added = { delta, overage, costCents: window.kind === "rate" ? 0n : costCents };
    chargeLine(draft, line, added, opened(draft.counter(line), window));
    noteSold(draft, line, overage);
  }
  settleOverage(draft, lines, context.now);
  takeCredits(draft, context, credits, {
    reason: "event_committed",
    eventId,
    reservationId: null,
    at: context.now,
  });
}
