// Overage: the windows in which groups sold past their quotas, and what was reported of them.

import { type OverageHour, overageKey, type OverageWindow } from "../../domain/state/overage.ts";
import type { Millis } from "../../domain/values/period.ts";
import { amount, column, mapped, type StoredRow, type Table, table } from "./columns.ts";

const WINDOWS = table<Omit<OverageWindow, "key">>("overage_windows", 5, {
  userKey: column("user_key"),
  groupId: column("group_id"),
  unit: column("unit"),
  windowStart: column("window_start_ms"),
  windowEnd: column("window_end_ms", { nullable: true }),
  total: amount("total", { mutable: true }),
  pending: amount("pending", { mutable: true }),
  dueAt: column("due_at_ms", { mutable: true }),
  notified: column("told", { mutable: true }),
});

export const OVERAGE_WINDOWS: Table<OverageWindow> = { ...WINDOWS, read: readWindow };

function readWindow(stored: StoredRow): OverageWindow {
  const row = WINDOWS.read(stored);
  const { groupId, unit, windowStart: start, windowEnd: end } = row;
  return { key: overageKey({ groupId, unit, window: { start, end } }), ...row };
}

/** Stands for the end of a lifetime: null is that of hours from before ends were stored. */
const LIFETIME = 0;

export const OVERAGE_HOURS = table<OverageHour>("overage_hours", 8, {
  userKey: column("user_key"),
  groupId: column("group_id"),
  unit: column("unit"),
  windowStart: column("window_start_ms"),
  hour: column("hour_ms"),
  at: column("at_ms"),
  amount: amount("amount"),
  windowEnd: mapped<Millis | null>(
    "window_end_ms",
    (end) => end ?? LIFETIME,
    (stored) => stored === LIFETIME ? null : stored as Millis | null,
    { later: { since: 49, value: null } },
  ),
});
