// Statements about runs and about slots of rates.

import type { Entry } from "./statements.ts";
import { by, numbersOf, textsOf } from "./params.ts";
import type { Fields } from "../../support/memory_store.ts";

const isOf = (keys: readonly number[]) => (row: Fields) => keys.includes(row.user_key as number);

function isLive(row: Fields, at: number): boolean {
  return (row.open_holds as number) > 0 || row.ended_at_ms === null && (row.expires_at_ms as number) > at;
}

const endOf = (row: Fields) => (row.ended_at_ms ?? row.expires_at_ms) as number;

export const RUNS: readonly Entry[] = [
  ["live runs of users: select * from runs where user_key = any", {
    kind: "read",
    run: (tables, [keys, from]) => {
      const isMine = isOf(numbersOf(keys));
      return tables.list("runs", (row) => isMine(row) && isLive(row, Number(from))).sort(by("id"));
    },
  }],
  ["runs by id: select * from runs where id = any", {
    kind: "read",
    run: (tables, [ids, keys]) => {
      const isMine = isOf(numbersOf(keys));
      return tables.list("runs", (row) => isMine(row) && textsOf(ids).includes(row.id as string));
    },
  }],
  ["erase runs: delete from runs where user_key = any", {
    kind: "write",
    make: ([keys]) => (tables) => {
      tables.remove("runs", isOf(numbersOf(keys)));
      return [];
    },
  }],
  ["remove old runs: delete from runs where id = any(array( select id from runs where realm", {
    kind: "write",
    make: ([realm, before, limit]) => (tables) => {
      const known = new Set(tables.list("runs").map(({ id }) => id));
      const isOld = (row: Fields) => {
        const around = row.around === null ? [] : String(row.around).split(",");
        return row.realm === realm && row.open_holds === 0 && endOf(row) < Number(before) &&
          !around.some((id) => known.has(id));
      };
      const removed = tables.remove("runs", isOld, Number(limit));
      return Array.from({ length: removed }, () => ({}));
    },
  }],
  ["remove passed slots: with passed as ( delete from counters where ctid = any(array(", {
    kind: "write",
    make: ([realm, before, limit]) => (tables) => {
      const users = new Set(tables.list("users", (row) => row.realm === realm).map(({ key }) => key));
      const isPassed = (row: Fields) =>
        row.kind === "rate" && (row.window_end_ms as number) <= Number(before) && users.has(row.user_key);
      const removed = tables.remove("counters", isPassed, Number(limit));
      return Array.from({ length: removed }, () => ({}));
    },
  }],
];
