// Statements behind the reads of tables: feed, ledger, subscription history, balances in any state.

import { SCOPE_BITS } from "../../../src/domain/state/user.ts";
import type { Param } from "../../../src/storage/database.ts";
import type { Entry } from "./statements.ts";
import { by, numbersOf } from "./params.ts";
import type { SimTables } from "./tables.ts";
import type { Fields } from "../../support/memory_store.ts";

/** Reads rows of the users that a statement names in its first parameter. */
function ofUsers(
  start: string,
  run: (tables: SimTables, keys: readonly number[], params: readonly Param[]) => Fields[],
): Entry {
  return [start, { kind: "read", run: (tables, params) => run(tables, numbersOf(params[0]), params) }];
}

/** Reads the newest rows of a table of those users. */
function newestOfUsers(table: string): Entry {
  return ofUsers(
    `newest ${table} of users: select found.* from (select unnest($1::text::bigint[])) as owner(key) cross join lateral ( select * from ${table} where`,
    (tables, keys, [, limit]) =>
      newest(tables.list(table, (row) => keys.includes(row.user_key as number)), "at_ms", Number(limit)),
  );
}

/** Newest first; of equal times the larger id first. */
function newest(rows: Fields[], time: string, limit: number): Fields[] {
  return rows.sort(by("id")).sort(by(time)).reverse().slice(0, limit);
}

function userOf(tables: SimTables, key: unknown): Fields | undefined {
  return tables.list("users", (row) => row.key === key)[0];
}

export const VIEWS: readonly Entry[] = [
  ["aliases with history to move: select u.key from users u join history_moves", {
    kind: "read",
    run(tables, [key]) {
      const moving = tables.list("history_moves").map((row) => row.user_key);
      return tables.list("users", (row) => row.merged_into === key && moving.includes(row.key as number));
    },
  }],
  ["canonical key of a user: select coalesce(merged_into, key) as key from users where key = $1", {
    kind: "read",
    run: (tables, [key]) =>
      tables.list("users", (row) => row.key === key).map((row) => ({
        key: row.merged_into ?? row.key as number,
      })),
  }],
  [
    "canonical key of an id that may be shown: select c.key from users u join users c on c.key = coalesce(u.merged_into, u.key) where u.realm",
    {
      kind: "read",
      run(tables, [realm, id]) {
        const [own] = tables.list("users", (row) => row.realm === realm && row.id === id);
        const user = userOf(tables, own?.merged_into ?? own?.key);
        if (user === undefined || user.erasing === true) return [];
        const isHidden = (Number(user.opted_out) & SCOPE_BITS.ai_personalization) !== 0;
        return isHidden ? [] : [{ key: user.key as number }];
      },
    },
  ],
  ["plan without bitmap scans: select set_config('enable_bitmapscan'", { kind: "read", run: () => [] }],
  newestOfUsers("subscription_events"),
  newestOfUsers("credit_ledger"),
  ofUsers(
    "balances of users in any state: select * from credit_balances where user_key = any",
    (tables, keys) => tables.list("credit_balances", (row) => keys.includes(row.user_key as number)),
  ),
  [
    "newest events of users: select e.*, c.id as end_user_id, l.at_ms as log_at_ms, left(l.prompt, 200) as prompt, null as response from (select * from events where id = any(array(select e.id from (select found.* from (select u.key",
    {
      kind: "read",
      run(tables, [limit, , owners]) {
        const keys = numbersOf(owners);
        const rows = tables.list("events", (row) => keys.includes(row.user_key as number));
        return newest(rows, "created_at_ms", Number(limit)).map((row) => {
          const owner = userOf(tables, row.user_key);
          const canonical = userOf(tables, owner?.merged_into ?? owner?.key);
          return {
            ...row,
            end_user_id: canonical?.id ?? null,
            log_at_ms: null,
            prompt: null,
            response: null,
          };
        });
      },
    },
  ],
];
