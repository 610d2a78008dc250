// Overage: what a limit group sold past its quota, settled, by group and window. A window remembers how much of it was
// reported by messages, and which messages it has sent.

import type { Unit } from "../catalog/plan.ts";
import type { Amount } from "../values/amount.ts";
import type { UserKey } from "../values/ids.ts";
import type { Millis, Window } from "../values/period.ts";

/** Identifies a window of overage within one user, by its begin and end. Plans that have the group in it share it. */
export interface OverageRef {
  readonly groupId: string;
  readonly unit: Unit;
  readonly window: Window;
}

/** What a group sold past its quota in a window. */
export interface OverageWindow {
  /** Its key in maps, see overageKey. */
  readonly key: string;
  readonly userKey: UserKey;
  readonly groupId: string;
  readonly unit: Unit;
  readonly windowStart: Millis;
  /** null for a lifetime. */
  readonly windowEnd: Millis | null;
  /** Settled overage: that of events. */
  readonly total: Amount;
  /** The part of `total` that no message has reported yet. All of it was settled in one hour. */
  readonly pending: Amount;
  /** When `pending` is reported: at the end of its hour, or of the window if that is earlier; null where nothing is pending. */
  readonly dueAt: Millis | null;
  /** The messages that were sent: the sum of their SOLD bits. */
  readonly notified: number;
}

/** Messages of a window, as bits of `notified`. */
export const SOLD = { started: 1, capReached: 2 } as const;

/** What was reported of a window and an hour by one message; immutable. */
export interface OverageHour {
  readonly userKey: UserKey;
  readonly groupId: string;
  readonly unit: Unit;
  readonly windowStart: Millis;
  /** null for a lifetime. */
  readonly windowEnd: Millis | null;
  /** The beginning of the UTC hour in which it was settled. */
  readonly hour: Millis;
  /** When it was reported. */
  readonly at: Millis;
  readonly amount: Amount;
}

/** The most that a user lets groups sell past their quotas, by group id. */
export type SpendCaps = Readonly<Record<string, Amount>>;

/** Makes the key of a window in maps. */
export function overageKey({ groupId, unit, window }: OverageRef): string {
  return `${groupId}\n${unit}\n${window.start}\n${window.end}`;
}

/** Makes an empty window. */
export function emptyOverage(userKey: UserKey, ref: OverageRef): OverageWindow {
  const { groupId, unit, window } = ref;
  return {
    key: overageKey(ref),
    userKey,
    groupId,
    unit,
    windowStart: window.start,
    windowEnd: window.end,
    total: 0n,
    pending: 0n,
    dueAt: null,
    notified: 0,
  };
}

const HOUR_MS = 3_600_000;

/** The beginning of the UTC hour that contains a moment. */
export function hourOf(at: Millis): Millis {
  return Math.floor(at / HOUR_MS) * HOUR_MS;
}

/** Adds what a turn settled. What was settled in an earlier hour has been reported before. */
export function settledMore(row: OverageWindow, amount: Amount, now: Millis): OverageWindow {
  const { windowEnd } = row;
  const end = hourOf(now) + HOUR_MS;
  const dueAt = windowEnd !== null && windowEnd > now && windowEnd < end ? windowEnd : end;
  return { ...row, total: row.total + amount, pending: row.pending + amount, dueAt };
}

/** Adds up the same window of two users who become one. */
export function addedOverage(row: OverageWindow, other: OverageWindow): OverageWindow {
  const dueAt = row.dueAt === null || other.dueAt === null
    ? row.dueAt ?? other.dueAt
    : Math.min(row.dueAt, other.dueAt);
  return {
    ...row,
    total: row.total + other.total,
    pending: row.pending + other.pending,
    dueAt,
    notified: row.notified | other.notified,
  };
}

/** Joins the caps of two users who become one: the lower one of each group. */
export function lowerCaps(one: SpendCaps | null, other: SpendCaps | null): SpendCaps | null {
  if (one === null || other === null) return one ?? other;
  const caps: Record<string, Amount> = { ...one };
  for (const [groupId, max] of Object.entries(other)) {
    const own = Object.hasOwn(caps, groupId) ? caps[groupId] as Amount : max;
    caps[groupId] = max < own ? max : own;
  }
  return caps;
}
