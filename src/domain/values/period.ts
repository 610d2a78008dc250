// Windows: the concrete spans of a plan's period, half-open and in UTC. Calendar days begin at 00:00, weeks on Monday,
// months on the 1st. Otherwise windows are stepped from an anchor, in both directions: a day is 24 hours, a week 7 days,
// and a month keeps day and time, clamped to the month's end. Each window is computed from the original anchor, so that
// 31 January steps to 28 February and then to 31 March. A lifetime is one window without an end.

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Millis = number;

/** A plan's period. */
export interface Period {
  readonly type: "daily" | "weekly" | "monthly" | "lifetime";
  readonly anchor: "subscription_start" | "calendar";
}

/** A half-open span of time; a lifetime has no end. */
export interface Window {
  readonly start: Millis;
  readonly end: Millis | null;
}

/** Whether a window contains a moment. */
export function contains({ start, end }: Window, at: Millis): boolean {
  return at >= start && (end === null || at < end);
}

const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;
/** 1970-01-05, a Monday: the origin of calendar weeks. */
const MONDAY_MS = 4 * DAY_MS;

/**
 * The window that contains a moment.
 *
 * @param at a moment within the window
 * @param anchor where the steps of a subscription_start period begin: the cycle anchor, else the start
 * @param startedAt the subscription's start, which opens a lifetime window
 *
 * @example Months keep the day of their anchor, clamped to the month's end
 * ```ts
 * import { windowAt } from "./period.ts";
 * import assert from "node:assert/strict";
 *
 * const anchor = Date.UTC(2026, 0, 31);
 * const period = { type: "monthly", anchor: "subscription_start" } as const;
 * const window = windowAt(period, Date.UTC(2026, 2, 1), anchor, anchor);
 * assert.equal(window.start, Date.UTC(2026, 1, 28));
 * assert.equal(window.end, Date.UTC(2026, 2, 31));
 * ```
 */
export function windowAt(period: Period, at: Millis, anchor: Millis, startedAt: Millis): Window {
  const origin = period.anchor === "calendar" ? null : anchor;
  switch (period.type) {
    case "daily":
      return stepWindow(at, origin ?? 0, DAY_MS);
    case "weekly":
      return stepWindow(at, origin ?? MONDAY_MS, WEEK_MS);
    case "monthly":
      return monthWindow(at, origin ?? 0);
    case "lifetime":
      return { start: startedAt, end: null };
  }
}

function stepWindow(at: Millis, origin: Millis, step: Millis): Window {
  const start = origin + Math.floor((at - origin) / step) * step;
  return { start, end: start + step };
}

function monthWindow(at: Millis, origin: Millis): Window {
  const from = Temporal.Instant.fromEpochMilliseconds(origin).toZonedDateTimeISO("UTC");
  const moment = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO("UTC");
  let steps = (moment.year - from.year) * 12 + moment.month - from.month;
  if (monthsAfter(from, steps) > at) steps -= 1;
  return { start: monthsAfter(from, steps), end: monthsAfter(from, steps + 1) };
}

/** The moment a number of months after an origin, its day clamped to the length of the month. */
function monthsAfter(origin: Temporal.ZonedDateTime, months: number): Millis {
  return origin.add({ months }).epochMilliseconds;
}
