// Which window of a plan's period contains a moment. Windows are half-open and in UTC; every one is
// computed anew from the original anchor, so a clamped month never shifts the months after it.

import type { Period } from "./document.ts";

export interface Window {
  start: number;
  /** Null: the window never ends. */
  end: number | null;
}

/** The two moments of a subscription that windows depend on. */
export interface Anchors {
  startedAt: number;
  cycleAnchorAt: number | null;
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
/** 1970-01-05 was a Monday. */
const A_MONDAY_MS = 4 * DAY_MS;
/** A first day of a month and of a year, at 00:00. */
const A_YEAR_START_MS = 0;

/** The window of `period` that contains `at`. */
export function windowAt(period: Period, anchors: Anchors, at: number): Window {
  // Choice: a lifetime window starts at startedAt, whatever the anchor kind or the cycle anchor.
  if (period.type === "lifetime") return { start: anchors.startedAt, end: null };
  const own = anchors.cycleAnchorAt ?? anchors.startedAt;
  const calendar = period.anchor === "calendar";
  switch (period.type) {
    case "hourly":
      return fixedSteps(calendar ? 0 : own, HOUR_MS, at);
    case "daily":
      return fixedSteps(calendar ? 0 : own, DAY_MS, at);
    case "weekly":
      return fixedSteps(calendar ? A_MONDAY_MS : own, 7 * DAY_MS, at);
    case "monthly":
      return monthSteps(calendar ? A_YEAR_START_MS : own, at, 1);
    case "yearly":
      return monthSteps(calendar ? A_YEAR_START_MS : own, at, 12);
  }
}

function fixedSteps(anchor: number, step: number, at: number): Window {
  const start = anchor + Math.floor((at - anchor) / step) * step;
  return { start, end: start + step };
}

/** Steps of so many months from the anchor. */
function monthSteps(anchor: number, at: number, size: number): Window {
  const from = new Date(anchor);
  const to = new Date(at);
  const months = (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth();
  let steps = Math.floor(months / size);
  // Within one month of the right answer either way, so one look back is enough.
  if (addMonths(anchor, steps * size) > at) steps -= 1;
  return { start: addMonths(anchor, steps * size), end: addMonths(anchor, (steps + 1) * size) };
}

/** The anchor moved by whole months: same day and time, clamped to the month's last day. */
function addMonths(anchor: number, months: number): number {
  const from = new Date(anchor);
  const timeOfDay = ((anchor % DAY_MS) + DAY_MS) % DAY_MS;
  const year = from.getUTCFullYear();
  const month = from.getUTCMonth() + months;
  const lastDay = new Date(dayOf(year, month + 1, 0)).getUTCDate();
  return dayOf(year, month, Math.min(from.getUTCDate(), lastDay)) + timeOfDay;
}

/** Midnight of a day. Not by Date.UTC, which takes the years 0 to 99 for those of the 20th century. */
function dayOf(year: number, month: number, day: number): number {
  return new Date(0).setUTCFullYear(year, month, day);
}
