// The tables at the end are the result of the durable turns, each written once and in order: nothing was lost between
// journal and tables, and nothing written twice. An erased user has no rows.

import type { Fields } from "../../support/memory_store.ts";
import type { SimTables } from "../database/tables.ts";
import type { Checker } from "../watch.ts";

/** Tables with their key columns. The history move changes the user of some rows; sweeps remove first answers. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  users: ["key"],
  subscriptions: ["id"],
  subscription_events: ["id"],
  counters: ["user_key", "plan_id", "group_id", "window_start_ms"],
  shares: ["user_key", "account_key", "group_id", "unit", "window_start_ms"],
  overage_windows: ["user_key", "group_id", "unit", "window_start_ms", "window_end_ms"],
  overage_hours: ["user_key", "group_id", "unit", "window_start_ms", "hour_ms", "at_ms", "window_end_ms"],
  reservations: ["id"],
  events: ["id"],
  credit_balances: ["id"],
  credit_ledger: ["id"],
  runs: ["id"],
  end_user_keys: ["id"],
  top_ups: ["id"],
  user_summaries: ["user_key"],
  merges: ["id"],
  operations: ["workspace_id", "mode", "month"],
};
const MOVED: ReadonlySet<string> = new Set(["events", "credit_ledger", "subscription_events"]);
/** The history move removes those of an alias. */
const OF_CANONICAL: ReadonlySet<string> = new Set([
  "counters",
  "shares",
  "overage_windows",
  "user_summaries",
]);
const OWNED = [
  "subscriptions",
  "subscription_events",
  "counters",
  "shares",
  "overage_windows",
  "overage_hours",
  "reservations",
  "events",
  "credit_balances",
  "credit_ledger",
  "runs",
  "end_user_keys",
  "top_ups",
  "user_summaries",
  "idempotency",
  "history_moves",
  "webhook_messages",
];

/** Compares tables with what they should be. */
export function tablesChecker(): Checker {
  return {
    name: "tables",
    atEnd({ server: { tables }, expected }) {
      for (const [table, columns] of Object.entries(KEYS)) compareTable(table, columns, tables, expected);
      checkOwners(tables);
    },
  };
}

function compareTable(
  table: string,
  columns: readonly string[],
  tables: SimTables,
  expected: SimTables,
): void {
  const aliases = new Set(expected.list("users", (row) => row.merged_into !== null).map(({ key }) => key));
  const rowsOf = (from: SimTables) =>
    new Map(
      from.list(table, (row) => !OF_CANONICAL.has(table) || !aliases.has(row.user_key as number))
        .map((row) => [columns.map((column) => row[column]).join(" "), show(table, row)]),
    );
  const [found, wanted] = [rowsOf(tables), rowsOf(expected)];
  for (const key of new Set([...found.keys(), ...wanted.keys()])) {
    if (found.get(key) === wanted.get(key)) continue;
    // Retention removes runs some time after their end, and slots of rates once they have passed.
    if (!found.has(key) && (table === "runs" || isSlot(wanted.get(key)))) continue;
    throw new Error(`${table} ${key}: expected ${wanted.get(key)}, found ${found.get(key)}`);
  }
}

function isSlot(row: string | undefined): boolean {
  return row?.includes(`"kind":"rate"`) === true;
}

function show(table: string, row: Fields): string {
  if (table === "merges") {
    // Since the merge, consent may have been given, and the history move counts beside it.
    const { id, realm, from_key, to_key, history_keys, at_ms } = row;
    const report = String(row.report).replace(`"skipped_consent_required"`, `"linked"`);
    return JSON.stringify({ id, realm, from_key, to_key, history_keys, at_ms, report });
  }
  return JSON.stringify(MOVED.has(table) ? { ...row, user_key: null } : row);
}

function checkOwners(tables: SimTables): void {
  const users = new Set(tables.list("users").map(({ key }) => key));
  for (const table of OWNED) {
    for (const row of tables.list(table)) {
      if (row.user_key === null || users.has(row.user_key as number)) continue;
      throw new Error(`${table} ${row.id ?? row.key} belongs to user ${row.user_key}, who is no more`);
    }
  }
}
