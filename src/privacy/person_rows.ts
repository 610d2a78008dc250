// The SQL of people: whose id is whose, what a person's ids opted out of, and merging two people. Every statement finds
// people by their ids within a realm. See the README for the order in which rows are locked.

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { Realm } from "../../actors/actor.ts";
import { ID_PREFIX, type IdSource } from "../domain/ids.ts";
import type { Millis } from "../domain/plans/period.ts";
import { SCOPE_BITS } from "../domain/user.ts";
import { PEOPLE_LIMITS } from "./limits.ts";
import { arrayText, type Session } from "../storage/database.ts";

export type Reader = Pick<Session, "query">;

/** A value of a property. */
export type Property = string | number | boolean | null;
export type Properties = Readonly<Record<string, Property>>;

/** A person as its row has it. */
export interface PersonRow {
  readonly id: string;
  /** JSON. */
  readonly properties: string;
  readonly identified_at_ms: Millis | null;
  readonly created_at_ms: Millis;
}

/** What is known of an id before it is written for. */
export interface Standing {
  readonly personId: string | null;
  /** The scopes that any id of the person opted out of, as a sum. */
  readonly optedOut: number;
  /** Whether an erasure of any id of the person is pending. */
  readonly isErasing: boolean;
}

/** Where people are made. */
export interface PersonWorld {
  readonly realm: Realm;
  readonly ids: IdSource;
}

/** Whether nothing may be captured under a person's own name. */
export function isSilenced({ optedOut, isErasing }: Standing): boolean {
  return isErasing || (optedOut & SCOPE_BITS.analytics) !== 0;
}

/**
 * The standing of an id's person, across all ids of that person. In a transaction the id stays with its person, or a
 * person that it was merged into, until the end: an erasure waits.
 */
export async function standingOf(reader: Reader, realm: number, distinctId: string): Promise<Standing> {
  const [row] = await reader.query<{ person_id: string | null; opted_out: number; erasing: boolean }>(
    `with own as (
       select person_id from person_ids where realm = $1::int and distinct_id = $2::text for key share
     ), ids as (
       select i.distinct_id from own join person_ids i on i.person_id = own.person_id union select $2::text
     )
     select (select person_id from own) as person_id, coalesce(bit_or(c.opted_out), 0) as opted_out,
       coalesce(bool_or(u.erasing or c.erasing), false) as erasing
     from ids join users u on u.realm = $1::int and u.id = ids.distinct_id
     join users c on c.key = coalesce(u.merged_into, u.key)`,
    [realm, distinctId],
  );
  return {
    personId: row?.person_id ?? null,
    optedOut: row?.opted_out ?? 0,
    isErasing: row?.erasing ?? false,
  };
}

/** These ids and all ids of the people that they belong to. */
export async function idsOfPeople(
  reader: Reader,
  realm: number,
  distinctIds: readonly string[],
): Promise<string[]> {
  const rows = await reader.query<{ id: string }>(
    `select named.id from unnest($2::text::text[]) as named(id) union
     select other.distinct_id from person_ids own join person_ids other on other.person_id = own.person_id
     where own.realm = $1::int and own.distinct_id = any($2::text::text[]) order by 1`,
    [realm, arrayText(distinctIds)],
  );
  return rows.map(({ id }) => id);
}

/** The person of an id, or null. */
export async function readPerson(
  reader: Reader,
  realm: number,
  distinctId: string,
): Promise<PersonRow | null> {
  const [row] = await reader.query<PersonRow>(
    `select p.* from person_ids i join people p on p.id = i.person_id
     where i.realm = $1::int and i.distinct_id = $2`,
    [realm, distinctId],
  );
  return row ?? null;
}

/**
 * The person of an id, or null; nobody else writes it until the end of the transaction. The realm is locked: a person
 * who was merged while this waited would be the wrong one.
 */
export async function lockPerson(
  session: Session,
  realm: number,
  distinctId: string,
): Promise<PersonRow | null> {
  const [row] = await session.query<PersonRow>(
    `select p.* from person_ids i join people p on p.id = i.person_id
     where i.realm = $1::int and i.distinct_id = $2 for no key update of p`,
    [realm, distinctId],
  );
  return row ?? null;
}

/** Makes a person of an id; null when it has one, if only just now. */
export async function makePerson(
  session: Session,
  { realm, ids }: PersonWorld,
  distinctId: string,
): Promise<string | null> {
  const [made] = await session.query<{ id: string }>(
    `with named as (
       insert into person_ids (realm, distinct_id, person_id) values ($1::int, $2, $3)
       on conflict do nothing returning person_id
     )
     insert into people (id, realm, properties, created_at_ms)
     select person_id, $1::int, '{}', $4::bigint from named returning id`,
    [realm.realm, distinctId, newPersonId(ids), realm.now()],
  );
  return made?.id ?? null;
}

/** The person of an id, made if there is none, locked. */
export async function ensurePerson(
  session: Session,
  world: PersonWorld,
  distinctId: string,
): Promise<PersonRow> {
  while (true) {
    const person = await lockPerson(session, world.realm.realm, distinctId);
    if (person !== null) return person;
    await makePerson(session, world, distinctId);
  }
}

/** Gives an id without a person to one; answers whether it had none. */
export async function attachId(
  session: Session,
  realm: number,
  distinctId: string,
  personId: string,
): Promise<boolean> {
  const rows = await session.query(
    `insert into person_ids (realm, distinct_id, person_id) values ($1::int, $2, $3)
     on conflict do nothing returning 1`,
    [realm, distinctId, personId],
  );
  return rows.length > 0;
}

/** Merges a person into another, whose properties win, and stay alone where there is no room; both are locked. */
export async function mergePerson(session: Session, from: PersonRow, into: PersonRow): Promise<PersonRow> {
  const both = JSON.stringify({ ...JSON.parse(from.properties), ...JSON.parse(into.properties) });
  const properties = Buffer.byteLength(both) > PEOPLE_LIMITS.personBytesMax ? into.properties : both;
  const [merged] = await session.query<PersonRow>(
    `update people set properties = $2, identified_at_ms = least(identified_at_ms, $3::bigint),
       created_at_ms = least(created_at_ms, $4::bigint) where id = $1 returning *`,
    [into.id, properties, from.identified_at_ms, from.created_at_ms],
  );
  await session.query(
    "update people set merged_into = $2, properties = '{}' where id = $1 or merged_into = $1",
    [from.id, into.id],
  );
  await session.query("update person_ids set person_id = $2 where person_id = $1", [from.id, into.id]);
  return merged as PersonRow;
}

const PEOPLE_LOCK = 77_310_205;

/** Keeps links, erasures and identifications of a realm out until the end of the transaction. */
export async function lockRealm(session: Session, realm: number): Promise<void> {
  await session.query("select pg_advisory_xact_lock($1::int, $2::int)", [PEOPLE_LOCK, realm]);
}

/** Keeps links and erasures of a realm out until the end of the transaction. */
export async function shareRealm(session: Session, realm: number): Promise<void> {
  await session.query("select pg_advisory_xact_lock_shared($1::int, $2::int)", [PEOPLE_LOCK, realm]);
}

const DIGITS = "0123456789abcdefghijklmnopqrstuv";
const UNIQUE_LENGTH = 20;

/** The id made of a digest. */
export function personIdOf(digest: Uint8Array): string {
  return ID_PREFIX.person + [...digest.subarray(0, UNIQUE_LENGTH)].map((byte) => DIGITS[byte & 31]).join("");
}

/** A new id that shows no time: it must look like the one that stands in for an id of which nothing is stored. */
function newPersonId(ids: IdSource): string {
  return personIdOf(createHash("sha256").update(ids.next("person")).digest());
}
