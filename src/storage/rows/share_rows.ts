// Shares of members in the groups of their accounts, and what holds and events took of them.

import { type Share, shareKey, type ShareLine, type ShareReset } from "../../domain/state/share.ts";
import type { Unit } from "../../domain/catalog/plan.ts";
import { decimalOf, parseAmount } from "../../domain/values/amount.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import type { ColumnValue } from "../database.ts";
import { quoted } from "./charge_text.ts";
import { amount, column, type StoredRow, type Table, table } from "./columns.ts";

const TABLE = table<Omit<Share, "key">>("shares", 5, {
  userKey: column("user_key"),
  accountKey: column("account_key"),
  groupId: column("group_id"),
  unit: column("unit"),
  windowStart: column("window_start_ms"),
  windowEnd: column("window_end_ms", { mutable: true }),
  since: column("since_ms", { mutable: true }),
  count: amount("count", { mutable: true }),
  costCents: amount("cost_cents", { mutable: true }),
  userId: column("user_id"),
});

export const SHARES: Table<Share> = { ...TABLE, read: readShare };

function readShare(stored: StoredRow): Share {
  const row = TABLE.read(stored);
  const window = { start: row.windowStart, end: row.windowEnd };
  return { key: shareKey({ ...row, window }), ...row };
}

type LineParts = [
  accountKey: UserKey,
  groupId: string,
  unit: Unit,
  start: Millis,
  end: Millis | null,
  since: Millis,
  taken: string,
];

/** Encodes what was taken of shares as JSON; null for nothing. Written by hand, since every call of a member has them. */
export function encodeShares(lines: readonly ShareLine[] | undefined): string | null {
  return lines === undefined ? null : `[${lines.map(encodeShareLine).join(",")}]`;
}

function encodeShareLine({ accountKey, groupId, unit, window, since, taken }: ShareLine): string {
  const { start, end } = window;
  return `[${accountKey},${quoted(groupId)},"${unit}",${start},${end},${since},"${decimalOf(taken)}"]`;
}

export function decodeShares(value: ColumnValue): readonly ShareLine[] | undefined {
  if (value === null) return undefined;
  return (JSON.parse(value as string) as LineParts[]).map((
    [accountKey, groupId, unit, start, end, since, taken],
  ) => ({ accountKey, groupId, unit, window: { start, end }, since, taken: parseAmount(taken) }));
}

type ResetParts = [accountKey: UserKey, groupId: string, start: Millis, end: Millis | null, at: Millis];

/** Encodes the resets of an account as JSON; null for none. */
export function encodeResets(resets: readonly ShareReset[] | null): string | null {
  if (resets === null) return null;
  return JSON.stringify(resets.map((
    { accountKey, groupId, windowStart, windowEnd, at },
  ): ResetParts => [accountKey, groupId, windowStart, windowEnd, at]));
}

export function decodeResets(value: ColumnValue): readonly ShareReset[] | null {
  if (value === null) return null;
  return (JSON.parse(value as string) as ResetParts[]).map((
    [accountKey, groupId, windowStart, windowEnd, at],
  ) => ({ accountKey, groupId, windowStart, windowEnd, at }));
}
