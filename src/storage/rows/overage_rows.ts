// Overage: the windows in which groups sold past their quotas, and what was reported of them.

import { type OverageHour, overageKey, type OverageWindow } from "../../domain/state/overage.ts";
import { amount, column, type StoredRow, type Table, table } from "./columns.ts";

const WINDOWS = table<Omit<OverageWindow, "key">>("overage_windows", 4, {
  userKey: column("user_key"),
  groupId: column("group_id"),
  unit: column("unit"),
  windowStart: column("window_start_ms"),
  windowEnd: column("window_end_ms", { mutable: true }),
  total: amount("total", { mutable: true }),
  pending: amount("pending", { mutable: true }),
  dueAt: column("due_at_ms", { mutable: true }),
  told: column("told", { mutable: true }),
});

export const OVERAGE_WINDOWS: Table<OverageWindow> = { ...WINDOWS, read: readWindow };

function readWindow(stored: StoredRow): OverageWindow {
  const row = WINDOWS.read(stored);
  const { groupId, unit, windowStart: start, windowEnd: end } = row;
  return { key: overageKey({ groupId, unit, window: { start, end } }), ...row };
}

export const OVERAGE_HOURS = table<OverageHour>("overage_hours", 6, {
  userKey: column("user_key"),
  groupId: column("group_id"),
  unit: column("unit"),
  windowStart: column("window_start_ms"),
  hour: column("hour_ms"),
  at: column("at_ms"),
  amount: amount("amount"),
});
