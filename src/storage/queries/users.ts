// The user of an id that is no user's: one of ours, or a caller's reference. Callers wait for the drain first.

import { ownerOf as firstOwnerOf } from "../../domain/values/ids.ts";
import type { ReservationStatus } from "../../domain/state/reservation.ts";
import type { Database } from "../database.ts";

/** The kind of record that an id names. */
type ThingKind = "event" | "reservation" | "balance" | "subscription" | "merge";

/** A record that was found, with its user. */
export interface FoundThing {
  readonly kind: ThingKind;
  readonly id: string;
  /** The canonical user's id. */
  readonly userId: string;
  /** Of a merge: the id that became an alias. */
  readonly alias: string | null;
  /** Of a reservation: its status. */
  readonly status: ReservationStatus | null;
}

interface FoundRecord {
  readonly kind: ThingKind;
  readonly id: string;
  readonly user_id: string;
  readonly alias: string | null;
  readonly status: ReservationStatus | null;
}

/**
 * SQL of the reservation $1: a settled one by its id, an open one among those of the canonical user of its first owner, $3,
 * which are read as a range, like `openHoldsOf` does.
 */
const RESERVATION = `(
    select id, user_key, status from reservations where id = $1 and status <> 'held'
    union all
    select found.* from (select coalesce(merged_into, key) as key from users where key = $3::bigint) as owner
    cross join lateral (
      select id, user_key, status from open_reservations
      where user_key >= owner.key and user_key <= owner.key and id = $1 offset 0
    ) as found
  )`;

const THINGS: Readonly<Record<string, { readonly kind: ThingKind; readonly table: string }>> = {
  evt_: { kind: "event", table: "events" },
  rsv_: { kind: "reservation", table: RESERVATION },
  crb_: { kind: "balance", table: "credit_balances" },
  sub_: { kind: "subscription", table: "subscriptions" },
};

/** Finds the records of an id or reference: an id of ours by its form, else records with this reference of a caller. */
export async function lookUp(
  database: Database,
  realm: number,
  id: string,
  limit: number,
): Promise<FoundThing[]> {
  const found = id.startsWith("mrg_")
    ? await mergeOf(database, realm, id)
    : await ownerOf(database, realm, id);
  const records = found.length > 0 ? found : await referredBy(database, realm, id, limit);
  return records.map(({ kind, id, user_id, alias, status }) => ({
    kind,
    id,
    userId: user_id,
    alias,
    status,
  }));
}

/** SQL that joins a row to its canonical user. */
const OF_CANONICAL =
  "join users u on u.key = t.user_key join users c on c.key = coalesce(u.merged_into, u.key)";

function ownerOf(database: Database, realm: number, id: string): Promise<FoundRecord[]> {
  const thing = THINGS[id.slice(0, 4)];
  if (thing === undefined) return Promise.resolve([]);
  const isReservation = thing.kind === "reservation";
  return database.query<FoundRecord>(
    `select '${thing.kind}' as kind, t.id, c.id as user_id, null as alias, ${
      isReservation ? "t.status" : "null"
    } as status from ${thing.table} t ${OF_CANONICAL}
     where t.id = $1 and u.realm = $2::int`,
    isReservation ? [id, realm, firstOwnerOf("reservation", id)] : [id, realm],
  );
}

function mergeOf(database: Database, realm: number, id: string): Promise<FoundRecord[]> {
  return database.query<FoundRecord>(
    `select 'merge' as kind, m.id, c.id as user_id, f.id as alias, null as status
     from merges m join users f on f.key = m.from_key join users c on c.key = coalesce(f.merged_into, f.key)
     where m.id = $1 and m.realm = $2::int`,
    [id, realm],
  );
}

function referredBy(
  database: Database,
  realm: number,
  reference: string,
  limit: number,
): Promise<FoundRecord[]> {
  return database.query<FoundRecord>(
    `(select 'balance' as kind, t.id, c.id as user_id, null as alias, null as status from credit_balances t ${OF_CANONICAL}
      where t.realm = $1::int and t.external_ref = $2 limit $3::int)
     union all
     (select 'subscription', t.id, c.id, null, null from subscriptions t ${OF_CANONICAL}
      where t.external_id = $2 and u.realm = $1::int limit $3::int)`,
    [realm, reference, limit],
  );
}
