// Statements of the counts of refused calls. Which of alike rows has which groups is not looked at.

import type { Fields } from "../../support/memory_store.ts";
import { numbersOf, textsOf } from "./params.ts";
import type { Entry } from "./statements.ts";
import type { SimTables } from "./tables.ts";

/** Adds a row to the row with the same key in the unique index. */
function addUp(tables: SimTables, row: Fields): void {
  const { realm, user_id: user, event, reasons, hour_ms: hour } = row;
  const key = JSON.stringify([realm, user, event, reasons, hour]);
  const [known] = tables.list("refusals", ({ id }) => id === key);
  tables.put("refusals", key, {
    ...row,
    id: key,
    count: Number(row.count) + Number(known?.count ?? 0),
    first_at_ms: Math.min(Number(row.first_at_ms), Number(known?.first_at_ms ?? Infinity)),
    last_at_ms: Math.max(Number(row.last_at_ms), Number(known?.last_at_ms ?? -Infinity)),
  });
}

function isOf(realm: unknown, ids: readonly (string | null)[]): (row: Fields) => boolean {
  return (row) => row.realm === realm && ids.includes(row.user_id as string);
}

export const REFUSALS: readonly Entry[] = [
  ["add refused calls: insert into refusals (realm, user_id,", {
    kind: "write",
    make: ([realms, users, events, reasons, hours, groups, counts, firsts, lasts]) => (tables) => {
      const columns = [realms, hours, counts, firsts, lasts].map(numbersOf);
      const texts = [users, events, reasons, groups].map(textsOf);
      for (const [place, realm] of (columns[0] as number[]).entries()) {
        const [, hour, count, first, last] = columns.map((column) => column[place] as number);
        const [user, event, reason, group] = texts.map((column) => column[place] as string);
        addUp(tables, {
          realm,
          user_id: user as string,
          event: event as string,
          reasons: reason as string,
          hour_ms: hour as number,
          group_ids: group as string,
          count: count as number,
          first_at_ms: first as number,
          last_at_ms: last as number,
        });
      }
      return [];
    },
  }],
  ["move refusals to the canonical user: with gone as ( delete from refusals", {
    kind: "write",
    make: ([realm, from, limit, to]) => (tables) => {
      const gone = tables.list("refusals", isOf(realm, textsOf(from))).slice(0, Number(limit));
      tables.remove("refusals", (row) => gone.includes(row));
      for (const row of gone) addUp(tables, { ...row, user_id: to as string });
      return [{ rows: gone.length }];
    },
  }],
  ["erase refusals: delete from refusals where id = any(array(select found.id from unnest($2", {
    kind: "write",
    make: ([realm, ids, limit]) => (tables) => {
      const removed = tables.remove("refusals", isOf(realm, textsOf(ids)), Number(limit));
      return Array.from({ length: removed }, () => ({}));
    },
  }],
  ["remove old refusals: delete from refusals where id = any(array( select id from refusals where realm", {
    kind: "write",
    make: ([realm, before, limit]) => (tables) => {
      const isOld = (row: Fields) => row.realm === realm && Number(row.last_at_ms) <= Number(before);
      const removed = tables.remove("refusals", isOld, Number(limit));
      return Array.from({ length: removed }, () => ({}));
    },
  }],
  ["id of a user: select id from users where key = $1::bigint", {
    kind: "read",
    run: (tables, [key]) =>
      tables.list("users", (row) => row.key === key).map(({ id }) => ({ id: id as string })),
  }],
];
