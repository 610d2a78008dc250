// Statements of merges and of the history move.

import type { Entry } from "./statements.ts";
import { by, numbersOf } from "./params.ts";
import { HISTORY } from "../../../src/storage/stores/history_tables.ts";

export const MERGES: readonly Entry[] = [
  ["windows of overage of a user: select * from overage_windows where user_key = $1::bigint", {
    kind: "read",
    run: (tables, [key]) => tables.list("overage_windows", (row) => row.user_key === key),
  }],
  ["shares of a user: select * from shares where user_key = $1::bigint", {
    kind: "read",
    run: (tables, [key]) => tables.list("shares", (row) => row.user_key === key),
  }],
  ["counters of a user: select * from counters where user_key = $1::bigint", {
    kind: "read",
    run: (tables, [key]) => tables.list("counters", (row) => row.user_key === key),
  }],
  ["balances of a user: select * from credit_balances where user_key = $1::bigint order by id", {
    kind: "read",
    run: (tables, [key]) => tables.list("credit_balances", (row) => row.user_key === key).sort(by("id")),
  }],
  ...HISTORY.map(({ table, key }): Entry => [
    `count ${table} of users: select count(*)::int as rows from (select found.${key} from unnest($1::text::bigint[]) as owner(key) cross join lateral ( select ${key} from ${table} where`,
    {
      kind: "read",
      run(tables, [keys, limit]) {
        const owners = numbersOf(keys);
        const rows = tables.list(table, (row) => owners.includes(row.user_key as number)).length;
        return [{ rows: Math.min(rows, Number(limit)) }];
      },
    },
  ]),
  ["settled reservations: select count(*)::int as rows from (select id from reservations where id > $1", {
    kind: "read",
    run(tables, [after, before, limit]) {
      const rows = tables.list(
        "reservations",
        ({ id, status }) =>
          (id as string) > String(after) && (id as string) < String(before) && status !== "held",
      ).length;
      return [{ rows: Math.min(rows, Number(limit)) }];
    },
  }],
  ["report of a merge: select m.report, m.moved_events", {
    kind: "read",
    run(tables, [fromKey]) {
      const [row] = tables.list("merges", (merge) => merge.from_key === fromKey).sort(by("at_ms"))
        .toReversed();
      if (row === undefined) return [];
      const keys = JSON.parse(row.history_keys as string) as number[];
      const pending = tables.list("history_moves", (move) =>
        keys.includes(move.user_key as number)).length > 0;
      const moved = Object.fromEntries(
        HISTORY.map(({ table, count }) => [count, row[`moved_${table}`] ?? 0]),
      );
      return [{
        report: row.report as string,
        pending,
        ...moved,
        reservations: row.moved_reservations ?? 0,
      }];
    },
  }],
  ["users with history to move: select u.key, u.realm from history_moves h join users u", {
    kind: "read",
    run: (tables, [realms, limit]) =>
      tables.list("history_moves").sort(by("at_ms"))
        .flatMap((row) => tables.list("users", ({ key }) => key === row.user_key))
        .filter(({ realm }) => numbersOf(realms).includes(realm as number)).slice(0, Number(limit))
        .map(({ key, realm }) => ({ key: key as number, realm: realm as number })),
  }],
  ["lock a user: select merged_into as canonical, realm, id from users where key = $1::bigint for share", {
    kind: "write",
    make: ([key]) => (tables) =>
      tables.list("users", (row) => row.key === key).map((row) => ({
        canonical: row.merged_into as number | null,
        realm: row.realm as number,
        id: row.id as string,
      })),
  }],
  ...HISTORY.map((
    { table },
  ): Entry => [`move ${table} to the canonical user: update ${table} set user_key = $2::bigint`, {
    kind: "write",
    make: ([aliases, into, limit]) => (tables) => {
      const isOf = (row: { user_key?: unknown }) => numbersOf(aliases).includes(row.user_key as number);
      const moved = tables.update(table, isOf, { user_key: into as number }, Number(limit));
      return Array.from({ length: moved }, () => ({}));
    },
  }]),
  ...["counters", "shares", "overage_windows", "user_summaries"].map((
    table,
  ): Entry => [`remove ${table} of a user: delete from ${table} where user_key = $1::bigint`, {
    kind: "write",
    make: ([alias]) => (tables) => {
      tables.remove(table, (row) => row.user_key === alias);
      return [];
    },
  }]),
  ["finish a history move: delete from history_moves where user_key = $1::bigint and not exists", {
    kind: "write",
    make: ([alias, realm, id]) => (tables) => {
      const left = tables.list("refusals", (row) => row.realm === realm && row.user_id === id).length > 0 ||
        HISTORY.some(({ table }) => tables.list(table, (row) => row.user_key === alias).length > 0);
      if (left) return [];
      const ended = tables.remove("history_moves", (row) => row.user_key === alias);
      return Array.from({ length: ended }, () => ({}));
    },
  }],
  ["add to the moved rows of merges: with recursive chain(id, to_key)", {
    kind: "write",
    make: ([alias, ...moved]) => (tables) => {
      let key: unknown = alias;
      while (true) {
        const [merge] = tables.list("merges", (row) => row.from_key === key);
        if (merge === undefined) return [];
        const sums = HISTORY.map(({ table }, index) => {
          const column = `moved_${table}`;
          return [column, Number(merge[column] ?? 0) + Number(moved[index])];
        });
        tables.update("merges", (row) => row.id === merge.id, Object.fromEntries(sums));
        key = merge.to_key;
      }
    },
  }],
  ["merges into a user with pending history: select id, history_keys from merges where from_key", {
    kind: "write",
    make: ([alias]) => (tables) =>
      tables.list(
        "merges",
        (row) => row.from_key === alias && (row.report as string).includes(`"historyPending":true`),
      ),
  }],
  ["count reservations of an alias: select count(*) as rows from ( select from reservations where id > $1", {
    kind: "write",
    make: ([after, before, canonical]) => (tables) => [{
      rows: tables.list("reservations", ({ id, status, user_key }) =>
        (id as string) > String(after) && (id as string) < String(before) &&
        (status !== "held" || user_key === canonical)).length,
    }],
  }],
  ["set the moved reservations of a merge: update merges set moved_reservations", {
    kind: "write",
    make: ([id, rows]) => (tables) => {
      tables.update("merges", (row) => row.id === id, { moved_reservations: Number(rows) });
      return [];
    },
  }],
  ["link the analytics of a merge: update merges m set report = replace", {
    kind: "write",
    make: ([realm, alias]) => (tables) => {
      const [user] = tables.list("users", (row) => row.realm === realm && row.id === alias);
      for (const merge of tables.list("merges", (row) => user !== undefined && row.from_key === user.key)) {
        const report = (merge.report as string).replace(`"skipped_consent_required"`, `"linked"`);
        tables.update("merges", (row) => row.id === merge.id, { report });
      }
      return [];
    },
  }],
];
