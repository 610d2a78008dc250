// Statements that read what a term starts from, and the rows of users.

import type { Entry } from "./statements.ts";
import { by, numbersOf, textsOf } from "./params.ts";
import type { SimTables } from "./tables.ts";
import type { Param } from "../../../src/storage/database.ts";
import type { Fields } from "../../support/memory_store.ts";

function read(start: string, run: (tables: SimTables, params: readonly Param[]) => Fields[]): Entry {
  return [start, { kind: "read", run }];
}

/** The canonical user of a row: itself, or the user that it was merged into. */
function canonicalOf(tables: SimTables, row: Fields): Fields | undefined {
  return tables.list("users", ({ key }) => key === (row.merged_into ?? row.key))[0];
}

/** The latest end of a window of a user that had ended; null for none. */
function endedUntil(tables: SimTables, { key }: Fields, now: number): number | null {
  const isEnded = (row: Fields) =>
    row.user_key === key && row.window_end_ms !== null && (row.window_end_ms as number) <= now &&
    row.kind !== "rate";
  const ends = [...tables.list("counters", isEnded), ...tables.list("shares", isEnded)]
    .map((row) => row.window_end_ms as number);
  return ends.length === 0 ? null : Math.max(...ends);
}

export const READS: readonly Entry[] = [
  read("canonical users by key: select c.*, u.key as asked, greatest", (tables, [realms, keys, now]) => {
    const asked = numbersOf(realms).map((realm, place) => ({ realm, key: numbersOf(keys)[place] as number }));
    return asked.flatMap(({ realm, key }) =>
      tables.list("users", (row) => row.realm === realm && row.key === key).flatMap((row) => {
        const canonical = canonicalOf(tables, row);
        return canonical === undefined
          ? []
          : [{ ...canonical, asked: key, ended_until: endedUntil(tables, canonical, Number(now)) }];
      })
    );
  }),
  read("canonical users by id: select c.*, r.id as asked, greatest", (tables, [realms, ids, now]) => {
    const asked = numbersOf(realms).map((realm, place) => ({ realm, id: textsOf(ids)[place] as string }));
    return asked.flatMap(({ realm, id }) =>
      tables.list("users", (row) => row.realm === realm && row.id === id).flatMap((row) => {
        const canonical = canonicalOf(tables, row);
        return canonical === undefined
          ? []
          : [{ ...canonical, asked: id, ended_until: endedUntil(tables, canonical, Number(now)) }];
      })
    );
  }),
  read("aliases: select key, id, merged_into from users where merged_into = any", (tables, [keys]) => {
    const wanted = numbersOf(keys);
    return tables.list("users", (row) => wanted.includes(row.merged_into as number)).sort(by("key"));
  }),
  read("subscriptions of users: select * from subscriptions where user_key = any", (tables, [keys]) => {
    const wanted = numbersOf(keys);
    return tables.list("subscriptions", (row) => wanted.includes(row.user_key as number)).sort(by("id"));
  }),
  read("keys of users: select * from end_user_keys where user_key = any", (tables, [keys]) => {
    const wanted = numbersOf(keys);
    const isLive = (row: Fields) => wanted.includes(row.user_key as number) && row.revoked_at_ms === null;
    return tables.list("end_user_keys", isLive).sort(by("id"));
  }),
  read("summaries of users: select * from user_summaries where user_key = any", (tables, [keys]) => {
    const wanted = numbersOf(keys);
    return tables.list("user_summaries", (row) => wanted.includes(row.user_key as number));
  }),
  read("top-ups of users: select * from top_ups where user_key = any", (tables, [keys]) => {
    const wanted = numbersOf(keys);
    const isOf = (row: Fields) => wanted.includes(row.user_key as number);
    return tables.list("top_ups", (row) => isOf(row) && isUnderWay(row)).sort(by("id"));
  }),
  read("a top-up: select * from top_ups where id = $1 and user_key = any", (tables, [id, keys]) => {
    const wanted = numbersOf(keys);
    return tables.list("top_ups", (row) => row.id === id && wanted.includes(row.user_key as number));
  }),
  read(
    "top-ups under way: select id, realm from top_ups where status in",
    (tables, [realms, after, limit]) => {
      const wanted = numbersOf(realms);
      const isOf = (row: Fields) =>
        wanted.includes(row.realm as number) && (row.id as string) > String(after);
      return tables.list("top_ups", (row) => isOf(row) && isUnderWay(row)).sort(by("id")).slice(
        0,
        Number(limit),
      );
    },
  ),
  read(
    "a key of a user: select 1 from end_user_keys where id =",
    (tables, [id, hash]) =>
      tables.list("end_user_keys", (row) => row.id === id && row.hash === hash && row.revoked_at_ms === null)
        .map(() => ({})),
  ),
  ...["counters", "shares", "overage_windows"].map((table) =>
    read(`running ${table} of users: select * from ${table} where user_key = any`, (tables, [keys, from]) => {
      const wanted = numbersOf(keys);
      const isOf = (row: Fields) => wanted.includes(row.user_key as number);
      const holds = tables.list("reservations", (row) => isOf(row) && row.status === "held");
      const oldest = Math.min(Number(from), ...holds.map((row) => row.created_at_ms as number));
      return tables.list(
        table,
        (row) =>
          isOf(row) &&
          (row.window_end_ms === null || (row.window_end_ms as number) > oldest ||
            (row.due_at_ms ?? null) !== null),
      );
    })
  ),
  read(
    "open reservations of users: select id, user_key, status, event, quantity,",
    (tables, [keys, bytesMax]) => {
      const wanted = numbersOf(keys);
      const ofUser = new Map<unknown, number>();
      return tables.list(
        "reservations",
        (row) => wanted.includes(row.user_key as number) && row.status === "held",
      ).map((row) => {
        const own = [row.metadata, row.prompt].filter((text) => text !== null);
        const bytes = own.reduce<number>(
          (sum, text) => sum + new TextEncoder().encode(String(text)).length,
          ofUser.get(row.user_key) ?? 0,
        );
        ofUser.set(row.user_key, bytes);
        const isOver = bytes > Number(bytesMax);
        const texts = isOver ? { metadata: null, prompt: null } : {};
        return { ...row, ...texts, is_bare: isOver && own.length > 0 };
      }).sort(by("id"));
    },
  ),
  read(
    "texts of a reservation: select found.* from unnest($1::text::bigint[]) as owner(key) cross join lateral ( select id, metadata, prompt from open_reservations",
    (tables, [keys, id, createdAt]) =>
      tables.list(
        "reservations",
        (row) =>
          row.id === id && numbersOf(keys).includes(row.user_key as number) &&
          (row.status === "held" && row.created_at_ms === Number(createdAt) || row.status === "expired"),
      ),
  ),
  read(
    "open balances of users: select * from credit_balances where user_key = any($1::text::bigint[]) and (held",
    (tables, [keys, from]) => {
      const wanted = numbersOf(keys);
      return tables.list("credit_balances", (row) =>
        wanted.includes(row.user_key as number) &&
        (Number(row.held) > 0 || row.revoked_at_ms === null &&
            (row.expires_at_ms === null || (row.expires_at_ms as number) >= Number(from)) ||
          row.included !== null &&
            (row.window_end_ms === null || (row.window_end_ms as number) > Number(from) ||
              ((row.told as number) & 4) === 0))).sort(by("id"));
    },
  ),
  read("reservation by id: select * from reservations where id = $1", (tables, [id, owners]) =>
    tables.list(
      "reservations",
      (row) => row.id === id && numbersOf(owners).includes(row.user_key as number) && row.status !== "held",
    )),
  ...["counters", "shares", "overage_windows"].map((table) =>
    read(
      `${table} of a window: select * from ${table} where user_key = $1::bigint and window_start_ms`,
      (tables, [key, starts]) =>
        tables.list(
          table,
          (row) => row.user_key === key && numbersOf(starts).includes(row.window_start_ms as number),
        ),
    )
  ),
  read(
    "balances by id: select * from credit_balances where user_key = $1::bigint and id = $2",
    (tables, [key, value]) =>
      tables.list("credit_balances", (row) => row.user_key === key && row.id === value).sort(by("id")),
  ),
  read(
    "balances by reference: select * from credit_balances where user_key = $1::bigint and external_ref = any(",
    (tables, [key, refs]) => {
      const named = textsOf(refs);
      return tables.list(
        "credit_balances",
        (row) => row.user_key === key && named.includes(row.external_ref as string | null),
      ).sort(by("id"));
    },
  ),
  read(
    "balances by our reference: select * from credit_balances where user_key = $1::bigint and own_ref = any(",
    (tables, [key, refs]) => {
      const named = textsOf(refs);
      return tables.list(
        "credit_balances",
        (row) => row.user_key === key && named.includes(row.own_ref as string | null),
      ).sort(by("id"));
    },
  ),
  read(
    "users that are due: select key from users where realm = $1::int and due_at_ms <=",
    (tables, [realm, now, limit]) =>
      tables.list(
        "users",
        (row) => row.realm === realm && row.due_at_ms !== null && (row.due_at_ms as number) <= Number(now),
      )
        .sort(by("due_at_ms")).slice(0, Number(limit)),
  ),
  read("first answers by key: select i.* from unnest", (tables, [realms, keys]) => {
    const names = textsOf(keys);
    return numbersOf(realms).flatMap((realm, place) =>
      tables.list("idempotency", (row) => row.realm === realm && row.key === names[place])
    );
  }),
];

function isUnderWay({ status }: Fields): boolean {
  return status === "open" || status === "processing";
}
