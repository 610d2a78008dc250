// The final parts of a commit: how the final amount of each unit is divided between the plan's lines and credit balances.
// More than was held: first what groups of the active plan have left up to their quota (nothing if the hold has none), then
// matching balances, then overage up to the most in force, then past the quota, or uncovered if the hold has no group of the
// unit. Less than was held: overage is given back first, then balances get theirs, last taken first returned, then the
// counters. A guard takes the final amount itself.

import { type Amount, larger, smaller } from "../values/amount.ts";
import type { CreditLine } from "../state/credit.ts";
import { keyOf, planCount } from "../state/counter.ts";
import type { Draft } from "../state/draft.ts";
import type { Unit } from "../catalog/plan.ts";
import type { HoldLine, Reservation } from "../state/reservation.ts";
import { isOfGuard } from "../values/period.ts";
import { sellable } from "./overage.ts";
import type { LineLimit } from "./settle_lines.ts";
import { pay, type Purchase } from "../credits/wallet.ts";

/** Final amounts: one for each line and each held balance, in their order, then newly drained balances. */
interface FinalParts {
  readonly lines: readonly HoldLine[];
  readonly credits: readonly CreditLine[];
  readonly uncovered: Readonly<Partial<Record<Unit, Amount>>>;
}

/** The input of `finalParts`. */
export interface Settlement {
  readonly row: Pick<Reservation, "lines" | "credits" | "amounts">;
  /** Whether the hold has lapsed, so that everything is charged anew. */
  readonly isRecharge: boolean;
  readonly limits: readonly LineLimit[];
  readonly purchase: Purchase;
  /** Returns the final amount of a unit. */
  readonly finalOf: (unit: Unit) => Amount;
}

/** Computes the parts; changes nothing. */
export function finalParts(draft: Draft, settlement: Settlement): FinalParts {
  const { row, isRecharge, finalOf } = settlement;
  const parts: Parts = isRecharge
    ? {
      lines: row.lines.map((line) => ({ ...withOverageOf(line, 0n), taken: 0n })),
      credits: [],
      uncovered: {},
    }
    : { lines: [...row.lines], credits: [...row.credits], uncovered: {} };
  const hasGuards = row.lines.some(({ window }) => isOfGuard(window));
  const quotas = hasGuards ? row.lines.filter(({ window }) => !isOfGuard(window)) : row.lines;
  const units = new Set([...quotas, ...row.credits].map(({ unit }) => unit));
  for (const unit of units) {
    const delta = finalOf(unit) - (isRecharge ? 0n : row.amounts[unit]);
    if (delta > 0n) grow(draft, settlement, parts, unit, delta);
    else if (delta < 0n) shrink(parts, unit, -delta);
  }
  if (hasGuards) {
    parts.lines = parts.lines.map((line) =>
      isOfGuard(line.window) ? { ...line, taken: finalOf(line.unit) } : line
    );
  }
  return parts;
}

interface Parts {
  lines: HoldLine[];
  readonly credits: CreditLine[];
  readonly uncovered: Partial<Record<Unit, Amount>>;
}

function grow(draft: Draft, settlement: Settlement, parts: Parts, unit: Unit, more: Amount): void {
  const left = leftInPlan(draft, settlement, unit);
  const { lines, missing } = pay(draft, settlement.purchase, unit, more - smaller(more, left ?? 0n));
  for (const line of lines) addCredit(parts.credits, line);
  const paid = lines.reduce((sum, { taken }) => sum + taken, 0n);
  if (left === null) {
    if (missing > 0n) parts.uncovered[unit] = missing;
    return;
  }
  sell(draft, settlement, parts, unit, more - paid);
  moveLines(parts, unit, more - paid);
}

/** Sells what a line takes past its quota, up to the most in force. Lines may share a counter. */
function sell(draft: Draft, { limits }: Settlement, parts: Parts, unit: Unit, more: Amount): void {
  if (!limits.some(({ overageMax }) => overageMax !== undefined)) return;
  const soldBy = new Map<string, Amount>();
  parts.lines = parts.lines.map((line, place) => {
    const { quota, overageMax } = limits[place] as LineLimit;
    if (line.unit !== unit || overageMax === undefined || line.isLeftBehind === true) return line;
    const counter = draft.counter(line);
    const sold = soldBy.get(keyOf(line)) ?? 0n;
    const past = more - larger(quota - planCount(counter), 0n);
    const overage = sellable(overageMax, { ...counter, overage: (counter.overage ?? 0n) + sold }, past);
    if (past <= 0n || overage === 0n) return line;
    soldBy.set(keyOf(line), sold + overage);
    return { ...line, overage: (line.overage ?? 0n) + overage };
  });
}

function shrink(parts: Parts, unit: Unit, less: Amount): void {
  let back = less - giveBackOverage(parts, unit, less);
  for (let place = parts.credits.length - 1; place >= 0 && back > 0n; place--) {
    const line = parts.credits[place] as CreditLine;
    if (line.unit !== unit) continue;
    const returned = smaller(line.taken, back);
    parts.credits[place] = { ...line, taken: line.taken - returned };
    back -= returned;
  }
  if (back > 0n) moveLines(parts, unit, -back);
}

/**
 * Gives back what was taken after plan and credits, as far as it goes; returns how much that was. The tightest group sold all
 * of it. Others had room in their plan for a part, which they gave first.
 */
function giveBackOverage(parts: Parts, unit: Unit, less: Amount): Amount {
  let past = 0n;
  for (const { unit: each, overage } of parts.lines) {
    if (each === unit && overage !== undefined && overage > past) past = overage;
  }
  if (past === 0n) return 0n;
  const back = smaller(past, less);
  parts.lines = parts.lines.map((line, place) => {
    if (line.unit !== unit || isOfGuard(line.window)) return line;
    const { overage = 0n } = line;
    const given = smaller(overage, back);
    if (line.isLeftBehind === true) {
      return { ...withOverageOf(line, overage - given), taken: overage - given };
    }
    const next = parts.lines[place + 1];
    const behind = next?.isLeftBehind === true ? smaller(next.overage ?? 0n, back) : 0n;
    // A line on a counter that was reset since has no more than what it sold.
    const taken = larger(line.taken - back + behind, overage - given);
    return { ...withOverageOf(line, overage - given), taken };
  });
  return back;
}

/** Sets the overage of a line; most lines have none. */
function withOverageOf(line: HoldLine, overage: Amount): HoldLine {
  if (overage === 0n && line.overage === undefined) return line;
  const { overage: _, ...rest } = line;
  return overage === 0n ? rest : { ...rest, overage };
}

/**
 * The least that the unit's groups of the active plan have left up to their quota, 0 if none is of that plan; null if the
 * hold has no group of the unit.
 */
function leftInPlan(draft: Draft, { row, limits }: Settlement, unit: Unit): Amount | null {
  let least: Amount | null = null;
  let hasUnit = false;
  row.lines.forEach((line, place) => {
    if (line.unit !== unit || isOfGuard(line.window) || line.isLeftBehind === true) return;
    hasUnit = true;
    const { quota, isCurrent } = limits[place] as LineLimit;
    if (!isCurrent) return;
    const left = larger(quota - planCount(draft.counter(line)), 0n);
    if (least === null || left < least) least = left;
  });
  return hasUnit ? least ?? 0n : null;
}

function moveLines(parts: Parts, unit: Unit, delta: Amount): void {
  parts.lines = parts.lines.map((line) =>
    line.unit === unit && !isOfGuard(line.window) && line.isLeftBehind !== true
      ? { ...line, taken: larger(line.taken + delta, 0n) }
      : line
  );
}

function addCredit(credits: CreditLine[], more: CreditLine): void {
  const place = credits.findIndex(({ balanceId }) => balanceId === more.balanceId);
  const known = credits[place];
  if (known === undefined) credits.push(more);
  else credits[place] = { ...known, taken: known.taken + more.taken };
}
