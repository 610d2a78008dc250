// The final amounts of a settled call: what was held, corrected by what the commit says.

import { atLeastZero, fromNumber, type Micros, ZERO } from "./decimal.ts";
import type { Input, Unit } from "./document.ts";
import { centsOfCalls, settledBy } from "./prices.ts";
import { creditsOf, type Rated, reportedWork, type Work } from "./rates.ts";
import { reportOf } from "./reports.ts";
import { sent } from "./rules.ts";
import type { Reservation } from "./state.ts";

/** The final amount of a unit: what was reserved, corrected by a report, `extra`, `actual` or `costCents`. */
export function finalAmount(reservation: Reservation, unit: Unit, input: Input): Micros {
  const reserved = reservation.reserved[unit];
  if (unit === "credits") return finalCredits(reservation, input).total;
  if (unit === "seconds" && !reservation.perUnit) return reserved;
  const costCents = sent(input, "costCents");
  if (unit === "cents" && reservation.perUnit && costCents !== null) return costCents;
  return corrected(reservation, unit, input);
}

function corrected(reservation: Reservation, unit: Exclude<Unit, "credits">, input: Input): Micros {
  const { reserved: held, row, toldCents } = reservation;
  const report = reportOf(input);
  const work = {
    seconds: held.seconds,
    count: unit === "count" ? ZERO : corrected(reservation, "count", input),
  };
  const settled = report && settledBy(report, row, work)[unit];
  if (settled !== null && settled !== undefined) return settled;
  if (unit === "cents" && !toldCents && !namesCents(input)) {
    const ofCalls = centsOfCalls(row, work.count);
    if (ofCalls !== null) return ofCalls;
  }
  return changed(held[unit], unit, input);
}

/** An amount that was held, with what `extra` or `actual` say of its unit. */
function changed(held: Micros, unit: Unit, input: Input): Micros {
  const actual = (input["actual"] ?? {}) as Record<string, unknown>;
  if (typeof actual[unit] === "number") return fromNumber(actual[unit]);
  const extra = (input["extra"] ?? {}) as Record<string, unknown>;
  const aliases: Partial<Record<Unit, string>> = { tokens: "outputTokens", cents: "outputCostCents" };
  const given = extra[unit] ?? extra[aliases[unit] ?? ""];
  return atLeastZero(held + (typeof given === "number" ? fromNumber(given) : ZERO));
}

/**
 * The final credits. A report rates the call again. Cents do so where the rate counts cents. Credits of the caller decide
 * alone.
 */
export function finalCredits(reservation: Reservation, input: Input): Rated {
  const { rate, reserved } = reservation;
  const { rated, total } = creditsOf(rate, finalWork(reservation, input));
  if (namesCredits(input)) return { total: changed(reserved.credits, "credits", input), rated };
  const isRatedAnew = reportOf(input) !== null || (rate?.perCent !== undefined && namesCents(input));
  return { total: isRatedAnew ? total : reserved.credits, rated };
}

function finalWork(reservation: Reservation, input: Input): Work {
  const { work, row, reserved } = reservation;
  const report = reportOf(input);
  if (report === null) {
    return namesCents(input) ? { ...work, cents: corrected(reservation, "cents", input) } : work;
  }
  const calls = corrected(reservation, "count", input);
  const { cents = work.cents } = settledBy(report, row, { seconds: reserved.seconds, count: calls });
  return { ...reportedWork(report, { ...work, calls }), cents };
}

/** The event's cost: `costCents`, else actual cents, else the carried cents plus extra, never below 0. */
export function finalCost(reservation: Reservation, input: Input): Micros {
  return sent(input, "costCents") ?? corrected(reservation, "cents", input);
}

/** Whether reserve or commit named the cents. */
export function tellsCents({ toldCents }: Reservation, input: Input): boolean {
  return toldCents || typeof input["costCents"] === "number" || namesCents(input);
}

/** Whether a commit corrects the cents. */
function namesCents(input: Input): boolean {
  return namesAny(input, "cents", "outputCostCents");
}

/** Whether a commit corrects the credits. */
export function namesCredits(input: Input): boolean {
  return namesAny(input, "credits");
}

function namesAny({ extra, actual }: Input, ...names: string[]): boolean {
  const members = { ...extra as Input, ...actual as Input };
  return names.some((name) => typeof members[name] === "number");
}
