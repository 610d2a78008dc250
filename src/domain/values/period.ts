// Windows: the concrete spans in which usage is counted, half-open and in UTC. Calendar hours begin at :00, days at 00:00,
// weeks on Monday, months on the 1st, years on 1 January. Otherwise windows are stepped from an anchor, in both
// directions: a day is 24 hours, a week 7 days, and months and years keep day and time, clamped to the month's end. Each
// window is computed from the original anchor, so that 31 January steps to 28 February and then to 31 March. A lifetime is
// one window without an end. A limit group can also count in windows of other kinds: sessions, and those of guards.

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Millis = number;

export const PERIOD_TYPES = ["hourly", "daily", "weekly", "monthly", "yearly", "lifetime"] as const;

/** A period of a plan or a limit group. */
export interface Period {
  readonly type: (typeof PERIOD_TYPES)[number];
  readonly anchor: "subscription_start" | "calendar";
}

/** A window that begins with the first use and lasts so many seconds. */
interface SessionPeriod {
  readonly type: "session";
  readonly seconds: number;
}

/** A rate: what was counted within the last seconds. */
export interface RollingPeriod {
  readonly type: "rolling";
  readonly seconds: number;
}

/** What open holds hold at a time. */
interface ConcurrentPeriod {
  readonly type: "concurrent";
}

/** When a limit group counts, in place of its plan's period. */
export type GroupPeriod = Period | SessionPeriod | RollingPeriod | ConcurrentPeriod;

/** Which windows are no calendar windows: sessions, the slots of a rate, and open holds. */
export type WindowKind = "session" | "rate" | "concurrency";

/** A half-open span of time; a lifetime has no end. */
export interface Window {
  readonly start: Millis;
  /** When its usage stops to count; null for never. */
  readonly end: Millis | null;
  /** Absent for a window of a calendar period. */
  readonly kind?: WindowKind;
  /** Present for a session that the next allowed call begins. */
  readonly isNext?: true;
}

/** Whether a window is of a guard: a rate or a concurrency limit. */
export function isOfGuard({ kind }: Pick<Window, "kind">): boolean {
  return kind === "rate" || kind === "concurrency";
}

export function areEqualWindows(one: Window, other: Window): boolean {
  return one === other || (one.start === other.start && one.end === other.end && one.kind === other.kind);
}

/** The window of open holds. It has no counter. */
export const IN_FLIGHT: Window = { start: 0, end: null, kind: "concurrency" };

/** The number of slots in which a rate counts. */
const RATE_SLOTS = 60;

/**
 * The slot of a rate that contains a moment. Slots begin at multiples of their size. Each counts for the seconds of the
 * rate after its end, so that a rate is never laxer than a log of all calls, and at most one slot stricter.
 *
 * @example A rate of an hour has slots of a minute, which count for an hour more
 * ```ts
 * import { slotAt } from "./period.ts";
 * import assert from "node:assert/strict";
 *
 * assert.deepEqual(slotAt(125_000, 3_600), { start: 120_000, end: 3_780_000, kind: "rate" });
 * ```
 */
export function slotAt(at: Millis, seconds: number): Window {
  const size = Math.ceil(seconds * 1000 / RATE_SLOTS);
  const start = Math.floor(at / size) * size;
  return { start, end: start + size + seconds * 1000, kind: "rate" };
}

/** Whether a window contains a moment. */
export function contains({ start, end }: Window, at: Millis): boolean {
  return at >= start && (end === null || at < end);
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
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
  return windowAfter(period, at, 0, anchor, startedAt);
}

/** The window so many windows after the one that contains a moment. A lifetime has no other one. */
export function windowAfter(
  period: Period,
  at: Millis,
  windows: number,
  anchor: Millis,
  startedAt: Millis,
): Window {
  const { type } = period;
  if (type === "lifetime") return { start: startedAt, end: null };
  const origin = originOf(period, anchor);
  const place = placeAt(type, at, origin) + windows;
  return { start: beginOf(type, place, origin), end: beginOf(type, place + 1, origin) };
}

/** How many windows after the one that contains a moment the one is that contains another; 0 for a lifetime. */
export function windowsBetween(period: Period, from: Millis, to: Millis, anchor: Millis): number {
  const { type } = period;
  if (type === "lifetime") return 0;
  const origin = originOf(period, anchor);
  return placeAt(type, to, origin) - placeAt(type, from, origin);
}

type SteppedType = Exclude<Period["type"], "lifetime">;

/** The length of windows, where all have one. */
const LENGTHS: Readonly<Partial<Record<SteppedType, Millis>>> = {
  hourly: HOUR_MS,
  daily: DAY_MS,
  weekly: WEEK_MS,
};
const MONTHS_OF_YEAR = 12;

function originOf({ type, anchor: from }: Period, anchor: Millis): Millis {
  return from === "subscription_start" ? anchor : type === "weekly" ? MONDAY_MS : 0;
}

/** The number of the window that contains a moment; the one that begins at the origin is number 0. */
function placeAt(type: SteppedType, at: Millis, origin: Millis): number {
  const length = LENGTHS[type];
  if (length !== undefined) return Math.floor((at - origin) / length);
  const [from, moment] = [timeOf(origin), timeOf(at)];
  const months = (moment.year - from.year) * MONTHS_OF_YEAR + moment.month - from.month;
  const place = Math.floor(months / (type === "yearly" ? MONTHS_OF_YEAR : 1));
  return beginOf(type, place, origin) > at ? place - 1 : place;
}

/** When a window begins; the day is clamped to the length of its month. */
function beginOf(type: SteppedType, place: number, origin: Millis): Millis {
  const length = LENGTHS[type];
  if (length !== undefined) return origin + place * length;
  const months = place * (type === "yearly" ? MONTHS_OF_YEAR : 1);
  return timeOf(origin).add({ months }).epochMilliseconds;
}

function timeOf(at: Millis): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO("UTC");
}
