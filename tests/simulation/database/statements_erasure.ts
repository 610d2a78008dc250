// Statements of people, consents and erasures. No people are made in a simulation: every id is a person of its own.

import type { Entry } from "./statements.ts";
import { by, numbersOf, textsOf } from "./params.ts";
import { HISTORY } from "../../../src/storage/stores/history_tables.ts";
import type { SimTables } from "./tables.ts";
import type { Param } from "../../../src/storage/database.ts";
import type { Fields } from "../../support/memory_store.ts";

function read(start: string, run: (tables: SimTables, params: readonly Param[]) => Fields[]): Entry {
  return [start, { kind: "read", run }];
}

function write(start: string, run: (tables: SimTables, params: readonly Param[]) => number | void): Entry {
  return [start, {
    kind: "write",
    make: (params) => (tables) => Array.from({ length: run(tables, params) ?? 0 }, () => ({})),
  }];
}

/** The canonical user behind an id. */
function canonicalOf(tables: SimTables, realm: unknown, id: unknown): { own?: Fields; canonical?: Fields } {
  const [own] = tables.list("users", (row) => row.realm === realm && row.id === id);
  if (own === undefined) return {};
  const [canonical] = tables.list("users", ({ key }) => key === (own.merged_into ?? own.key));
  return canonical === undefined ? { own } : { own, canonical };
}

/** These ids and all ids that merges have linked with them. */
function linkedIds(tables: SimTables, realm: unknown, ids: readonly string[]): string[] {
  const keys = new Set(
    tables.list("users", (row) => row.realm === realm && ids.includes(row.id as string)).map(({ key }) =>
      key
    ),
  );
  const merges = tables.list("merges", ({ report }) => (report as string).includes(`"analytics":"linked"`));
  for (let before = -1; before < keys.size;) {
    before = keys.size;
    for (const { from_key: from, to_key: to } of merges) {
      if (keys.has(from as number) || keys.has(to as number)) keys.add(from as number).add(to as number);
    }
  }
  const linked = tables.list("users", ({ key }) => keys.has(key)).map(({ id }) => id as string);
  return [...new Set([...ids, ...linked])];
}

export const ERASURE: readonly Entry[] = [
  read(
    "ids linked with ids: with recursive linked(key) as ( select u.key from (select * from unnest($2::text::text[])) as named(id)",
    (tables, [realm, ids]) =>
      linkedIds(tables, realm, textsOf(ids) as string[]).map((id) => ({ id })).sort(by("id")),
  ),
  read("linked persons: with recursive own as ( select person_id from person_ids", (tables, [realm, id]) => {
    const { own, canonical } = canonicalOf(tables, realm, id);
    return [{
      person_id: null,
      opted_out: (canonical?.opted_out ?? 0) as number,
      erasing: own?.erasing === true || canonical?.erasing === true,
      split: false,
    }];
  }),
  read("consent of an id: select c.opted_out, u.erasing or c.erasing", (tables, [realm, id]) => {
    const { own, canonical } = canonicalOf(tables, realm, id);
    if (own === undefined || canonical === undefined) return [];
    const erasing = own.erasing === true || canonical.erasing === true;
    return [{ opted_out: canonical.opted_out as number, erasing }];
  }),
  // A public key has linked each "gone-N" to "user-N", and links it again after an erasure.
  read(
    "anonymous ids of named ones: select distinct l.from_id as id from person_links",
    (tables, [realm, ids]) =>
      (textsOf(ids) as string[]).filter((id) => id.startsWith("user-"))
        .map((id) => id.replace("user-", "gone-"))
        .filter((id) => {
          const [own] = tables.list("users", (row) => row.realm === realm && row.id === id);
          if (own === undefined) return false;
          return own.merged_into === null &&
            tables.list("users", (row) => row.merged_into === own.key).length === 0;
        }).map((id) => ({ id })),
  ),
  read("anonymous ids among ids: select distinct from_id as id from person_links", (_, [, ids]) => {
    const named = textsOf(ids) as string[];
    return named.filter((id) => id.startsWith("gone-") && named.includes(id.replace("gone-", "user-")))
      .map((id) => ({ id }));
  }),
  write("remove links: delete from person_links", () => 0),
  write("remove pseudonyms: delete from pseudonyms", () => 0),
  read("persons of ids: select distinct person_id as id from person_ids", () => []),
  read("lock persons: select pg_advisory_xact_lock", () => []),
  write("remove analytics events: delete from analytics_events", () => 0),
  write("write an erasure job: insert into erasure_jobs", (tables, [id, realm, ids, at]) => {
    tables.put("erasure_jobs", String(id), {
      id: id as string,
      realm: realm as number,
      status: "queued",
      distinct_ids: ids as string,
      requested_at_ms: at as number,
      started_at_ms: null,
      completed_at_ms: null,
      error_message: null,
    });
  }),
  read(
    "unfinished erasure jobs: select id, realm, distinct_ids, status = 'queued' as queued",
    (tables, [realms]) =>
      tables.list("erasure_jobs", ({ status }) => status === "queued" || status === "in_progress")
        .filter(({ realm }) => numbersOf(realms).includes(realm as number))
        .sort(by("id")).sort(by("requested_at_ms"))
        .map((row) => ({ ...row, queued: row.status === "queued" })),
  ),
  write("start an erasure job: update erasure_jobs set status = 'in_progress'", (tables, [id, ids, at]) => {
    const [job] = tables.list("erasure_jobs", (row) => row.id === id && row.completed_at_ms === null);
    if (job === undefined) return;
    const started = (job.started_at_ms ?? at) as number;
    const values = { status: "in_progress", distinct_ids: ids as string, started_at_ms: started };
    tables.update("erasure_jobs", (row) => row.id === id, values);
  }),
  write("finish an erasure job: update erasure_jobs set status = $2", (tables, [id, status, at, message]) => {
    const values = {
      status: status as string,
      distinct_ids: null,
      completed_at_ms: at as number,
      error_message: message as string | null,
    };
    return tables.update("erasure_jobs", (row) => row.id === id && row.completed_at_ms === null, values);
  }),
  read(
    "erasure job by id: select * from erasure_jobs where id = $1",
    (tables, [id, realm]) => tables.list("erasure_jobs", (row) => row.id === id && row.realm === realm),
  ),
  read("a user's rows: with canonical as ( select coalesce(merged_into, key)", (tables, [realm, id]) => {
    const { own } = canonicalOf(tables, realm, id);
    if (own === undefined) return [];
    const key = own.merged_into ?? own.key;
    return tables.list("users", (row) => (row.merged_into ?? row.key) === key && row.realm === realm);
  }),
  write("lock users: select 1 from users where key = any", () => 0),
  read(
    "ids of users: select id from users where key = any",
    (tables, [keys]) => tables.list("users", ({ key }) => numbersOf(keys).includes(key as number)),
  ),
  ...HISTORY.filter(({ table }) => table !== "events").map(({ table, key }) =>
    write(`erase ${table} in pieces: delete from ${table} where ${key} = any(array(`, (
      tables,
      [keys, limit],
    ) => tables.remove(table, (row) => numbersOf(keys).includes(row.user_key as number), Number(limit)))
  ),
  write("erase settled reservations in pieces: delete from reservations where id = any(array(", (
    tables,
    [after, before, limit],
  ) =>
    tables.remove(
      "reservations",
      ({ id, status }) =>
        (id as string) > String(after) && (id as string) < String(before) && status !== "held",
      Number(limit),
    )),
  write("erase settled reservations: delete from reservations where id > $1", (tables, [after, before]) => {
    tables.remove(
      "reservations",
      ({ id, status }) =>
        (id as string) > String(after) && (id as string) < String(before) && status !== "held",
    );
  }),
  write("erase open reservations: delete from reservations where user_key = any", (tables, [keys]) => {
    tables.remove(
      "reservations",
      (row) => numbersOf(keys).includes(row.user_key as number) && row.status === "held",
    );
  }),
  // Nothing adds events up here.
  write("mark days to be counted again: insert into daily_use_marks", () => 0),
  read("events since a mark: select at_ms as at, event_id", () => []),
  write("remove use of erased events: with gone as ( select day, type", () => 0),
  write("remove daily use: delete from daily_use", () => 0),
  write("remove parts of erased events: with gone as ( select user_key, day", () => 0),
  ...[
    "subscriptions",
    "counters",
    "credit_balances",
    "shares",
    "overage_windows",
    "overage_hours",
    "end_user_keys",
    "top_ups",
    "user_summaries",
    "history_moves",
    "idempotency",
  ].map((
    table,
  ) =>
    write(`erase ${table}: delete from ${table} where user_key = any`, (tables, [keys]) => {
      tables.remove(table, (row) => numbersOf(keys).includes(row.user_key as number));
    })
  ),
  write("erase merges: delete from merges where from_key = any", (tables, [keys]) => {
    const gone = numbersOf(keys);
    tables.remove(
      "merges",
      (row) => gone.includes(row.from_key as number) || gone.includes(row.to_key as number),
    );
  }),
  write("erase users: delete from users where key = any", (tables, [keys]) => {
    tables.remove("users", ({ key }) => numbersOf(keys).includes(key as number));
    tables.onForgotten(numbersOf(keys));
  }),
  write("hide an id in consents: update consents set distinct_id = null", (tables, [realm, id, hash]) => {
    const values = { distinct_id: null, id_hash: hash as string };
    tables.update("consents", (row) => row.realm === realm && row.distinct_id === id, values);
  }),
  write(
    "erase first answers that name an id in their key: delete from idempotency i using unnest($2::text::text[]) as named(id) where i.realm = $1::int and i.user_key is null and position(named.id in i.key)",
    (tables, [realm, ids]) => {
      const named = textsOf(ids) as string[];
      tables.remove(
        "idempotency",
        (row) =>
          row.realm === realm && row.user_key === null &&
          named.some((id) => (row.key as string).includes(id)),
      );
    },
  ),
  write(
    "remove old first answers: delete from idempotency where ctid in",
    (tables, [before, limit, realms]) => {
      const mine = numbersOf(realms);
      const isOld = (row: Fields) =>
        (row.at_ms as number) <= Number(before) && mine.includes(row.realm as number);
      return tables.remove("idempotency", isOld, Number(limit));
    },
  ),
  write(
    "old prompt logs: delete from event_logs where event_id in ( select event_id from event_logs where realm",
    () => 0,
  ),
  write("clear prompts of old reservations: update reservations set prompt = null", () => 0),
  write("keep a first answer: insert into idempotency as i", (tables, params) => {
    const [realm, key, requestHash, status, body, userKey, at, expired] = params;
    const isKept = (row: Fields) =>
      row.realm === realm && row.key === key && (row.at_ms as number) > Number(expired);
    if (tables.list("idempotency", isKept).length > 0) return 0;
    tables.put("idempotency", `${realm}\t${key}`, {
      realm: realm as number,
      key: key as string,
      request_hash: requestHash as string,
      status: status as number,
      body: body as string,
      user_key: userKey as number | null,
      at_ms: at as number,
    });
    return 1;
  }),
  read(
    "lock the clock of a realm: select clock_offset_ms as offset_ms from realms",
    (tables, [realm]) =>
      tables.list("realms", (row) => row.realm === realm).map(({ clockOffsetMs }) => ({
        offset_ms: clockOffsetMs as number,
      })),
  ),
  write("move the clock of a realm: update realms set clock_offset_ms", (tables, [realm, offset]) => {
    const [row] = tables.list("realms", (each) => each.realm === realm);
    const clockOffsetMs = Math.max(Number(row?.clockOffsetMs), Number(offset));
    tables.update("realms", (each) => each.realm === realm, { clockOffsetMs });
  }),
];
