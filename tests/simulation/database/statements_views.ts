// Statements behind the reads of tables: feed, ledger, subscription history, balances in any state.

import type { Param } from "storage/database.ts";
import type { Statement } from "tests/simulation/database/statements.ts";
import { by, numbersOf } from "tests/simulation/database/params.ts";
import type { SimTables } from "tests/simulation/database/tables.ts";
import type { Fields } from "tests/support/memory_store.ts";

type Entry = readonly [start: string, statement: Statement];

/** The one or many users whose rows a statement wants. */
type Keys = (param: Param | undefined) => readonly number[];

const OWNERS: readonly (readonly [condition: string, keys: Keys])[] = [
  ["= any(", numbersOf],
  ["= $", (param) => [Number(param)]],
];

/** Reads rows of one user, filed under one number or under several. */
function ofUser(
  start: string,
  run: (tables: SimTables, keys: readonly number[], params: readonly Param[]) => Fields[],
  place = 0,
): Entry[] {
  return OWNERS.map(([condition, keys]) => [`${start} ${condition}`, {
    kind: "read",
    run: (tables, params) => run(tables, keys(params[place]), params),
  }]);
}

/** Newest first; of equal times the larger id first. */
function newest(rows: Fields[], time: string, limit: number): Fields[] {
  return rows.sort(by("id")).sort(by(time)).reverse().slice(0, limit);
}

function userOf(tables: SimTables, key: unknown): Fields | undefined {
  return tables.list("users", (row) => row.key === key)[0];
}

export const VIEWS: readonly Entry[] = [
  ["select u.key from users u join history_moves", {
    kind: "read",
    run(tables, [key]) {
      const moving = tables.list("history_moves").map((row) => row.user_key);
      return tables.list("users", (row) => row.merged_into === key && moving.includes(row.key as number));
    },
  }],
  ["select coalesce(merged_into, key) as key from users where key = $1", {
    kind: "read",
    run: (tables, [key]) =>
      tables.list("users", (row) => row.key === key).map((row) => ({
        key: row.merged_into ?? row.key as number,
      })),
  }],
  ["select coalesce(merged_into, key) as key from users where realm", {
    kind: "read",
    run: (tables, [realm, id]) =>
      tables.list("users", (row) => row.realm === realm && row.id === id)
        .map((row) => ({ key: row.merged_into ?? row.key as number })),
  }],
  ...ofUser("select * from subscription_events where user_key", (tables, keys, [, limit]) =>
    newest(
      tables.list("subscription_events", (row) => keys.includes(row.user_key as number)),
      "at_ms",
      Number(limit),
    )),
  ...ofUser(
    "select * from credit_ledger where user_key",
    (tables, keys, [, limit]) =>
      newest(
        tables.list("credit_ledger", (row) => keys.includes(row.user_key as number)),
        "at_ms",
        Number(limit),
      ),
  ),
  ...ofUser(
    "select * from credit_balances where user_key",
    (tables, keys) => tables.list("credit_balances", (row) => keys.includes(row.user_key as number)),
  ),
  ...ofUser(
    "select e.*, c.id as end_user_id, l.at_ms as log_at_ms, l.prompt, l.response from events e join users u on u.key = e.user_key join users c on c.key = coalesce(u.merged_into, u.key) left join event_logs l on l.event_id = e.id where e.user_key",
    (tables, keys, [limit]) => {
      const rows = tables.list("events", (row) => keys.includes(row.user_key as number));
      return newest(rows, "created_at_ms", Number(limit)).map((row) => {
        const owner = userOf(tables, row.user_key);
        const canonical = userOf(tables, owner?.merged_into ?? owner?.key);
        return { ...row, end_user_id: canonical?.id ?? null, log_at_ms: null, prompt: null, response: null };
      });
    },
    2,
  ),
];
