// Statements of Stripe's messages about what was paid for and is not granted.

import { by, textsOf } from "./params.ts";
import type { Entry } from "./statements.ts";
import { read, type Run, write } from "./statements_stripe.ts";
import type { Param } from "../../../src/storage/database.ts";
import type { Fields } from "../../support/memory_store.ts";

const TABLE = "stripe_unhandled";
const COLUMNS = [
  ...["realm", "event_id", "type", "object_id", "reason", "amount", "currency", "created_ms", "at_ms"],
  ...["message", "links", "user_ids", "catalog_version"],
];

/** Whether a list of texts in a column has one of some texts. */
function hasOne(list: unknown, param: Param | undefined): boolean {
  const named = textsOf(param);
  return (JSON.parse(list as string) as string[]).some((text) => named.includes(text));
}

/** A read of messages, the oldest first. */
function readWhere(condition: string, isWanted: (row: Fields, value: Param | undefined) => boolean): Entry {
  const run: Run = (tables, [realm, value]) =>
    tables.list(TABLE, (row) => row.realm === realm && isWanted(row, value))
      .sort(by("created_ms")).map(({ message = null }) => ({ message }));
  return read(
    `kept messages: select message from stripe_unhandled where realm = $1::int and ${condition}`,
    run,
  );
}

export const STRIPE_UNHANDLED: readonly Entry[] = [
  write("keep a message: insert into stripe_unhandled", (tables, params) => {
    const key = JSON.stringify(params.slice(0, 2));
    const row = Object.fromEntries(
      COLUMNS.map((name, place) => [name, (params[place] ?? null) as Fields[string]]),
    );
    const [before] = tables.list(TABLE, (each) => each.realm === row.realm && each.event_id === row.event_id);
    const { at_ms = null } = before ?? row;
    tables.put(TABLE, key, { ...row, at_ms });
  }),
  write(
    "keep the newest messages: delete from stripe_unhandled where realm = $1::int and event_id in (",
    (tables, [realm, kept]) => {
      const rows = tables.list(TABLE, (row) => row.realm === realm).sort(by("at_ms")).toReversed();
      const over = new Set(rows.slice(Number(kept)));
      tables.remove(TABLE, (row) => over.has(row));
    },
  ),
  write(
    "forget a message: delete from stripe_unhandled where realm = $1::int and event_id = $2",
    (tables, [realm, id]) => void tables.remove(TABLE, (row) => row.realm === realm && row.event_id === id),
  ),
  write(
    "erase messages: delete from stripe_unhandled where realm = $1::int and user_ids",
    (tables, [realm, ids]) =>
      void tables.remove(TABLE, (row) => row.realm === realm && hasOne(row.user_ids, ids)),
  ),
  write(
    "remove old messages: delete from stripe_unhandled where realm = $1::int and event_id = any(",
    (tables, [realm, before, limit]) => {
      const isOld = (row: Fields) => row.realm === realm && (row.at_ms as number) <= Number(before);
      const old = new Set(tables.list(TABLE, isOld).sort(by("at_ms")).slice(0, Number(limit)));
      tables.remove(TABLE, (row) => old.has(row));
      return [...old];
    },
  ),
  readWhere("event_id = $2", (row, id) => row.event_id === id),
  readWhere("links::jsonb ?|", (row, links) => hasOne(row.links, links)),
  readWhere("catalog_version <>", (row, version) => row.catalog_version !== Number(version)),
  read(
    "realms of messages: select distinct realm, catalog_version",
    (tables) =>
      tables.list(TABLE).map(({ realm, catalog_version: catalogVersion }) =>
        ({ realm, catalogVersion }) as Fields
      ),
  ),
];
