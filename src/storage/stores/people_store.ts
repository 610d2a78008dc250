// People and their ids. Every statement finds people by their ids within a realm. The order in which rows are locked is
// in src/people/README.md.

import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Session } from "../database.ts";
import { linkedIds } from "./linked_ids.ts";

type Reader = Pick<Session, "query">;

/** A person. */
export interface PersonRow {
  readonly id: string;
  /** JSON. */
  readonly properties: string;
  readonly identified_at_ms: Millis | null;
  readonly created_at_ms: Millis;
}

/** What the tables know of an id, across all ids of its person and all ids linked with it. */
export interface Standing {
  /** The person of the id itself. */
  readonly personId: string | null;
  /** The scopes that any of the ids opted out of: the sum of their SCOPE_BITS. */
  readonly optedOut: number;
  /** Whether an erasure of any of the ids is pending. */
  readonly isErasing: boolean;
  /** Whether linked ids are not of one person yet: they have several, or some have none while others have one. */
  readonly isSplit: boolean;
}

/**
 * The standing of an id. In a transaction the id then stays with its person, or with one that this person is merged
 * into, until the end: an erasure waits.
 */
export async function readPersonState(reader: Reader, realm: number, distinctId: string): Promise<Standing> {
  const [row] = await reader.query<{
    person_id: string | null;
    opted_out: number;
    erasing: boolean;
    split: boolean;
  }>(
    `with recursive own as (
       select person_id from person_ids where realm = $1::int and distinct_id = $2::text for key share
     ), ${linkedIds("select $2::text")}, owners as (
       select distinct i.person_id from ids left join lateral (
         select person_id from person_ids where realm = $1::int and distinct_id = ids.id limit 1
       ) as i on true
     ), everyone(id) as (
       select i.distinct_id from owners cross join lateral (
         select distinct_id from person_ids where person_id = owners.person_id offset 0
       ) as i
       union select id from ids
     )
     select (select person_id from own) as person_id, (select count(*) from owners) > 1 as split,
       coalesce(bit_or(c.opted_out), 0) as opted_out,
       coalesce(bool_or(u.erasing or c.erasing), false) as erasing
     from everyone cross join lateral (
       select key, merged_into, erasing from users where realm = $1::int and id = everyone.id limit 1
     ) as u cross join lateral (
       select opted_out, erasing from users where key = coalesce(u.merged_into, u.key) limit 1
     ) as c`,
    [realm, distinctId],
  );
  return {
    personId: row?.person_id ?? null,
    optedOut: row?.opted_out ?? 0,
    isErasing: row?.erasing ?? false,
    isSplit: row?.split ?? false,
  };
}

/** These ids, those linked with them, and all ids of the people that any of them belongs to. */
export async function idsOfPeople(
  reader: Reader,
  realm: number,
  distinctIds: readonly string[],
): Promise<string[]> {
  const rows = await reader.query<{ id: string }>(
    `with recursive ${linkedIds("select * from unnest($2::text::text[])")}
     select id from ids union
     select other.distinct_id from ids cross join lateral (
       select person_id from person_ids where realm = $1::int and distinct_id = ids.id limit 1
     ) as own cross join lateral (
       select distinct_id from person_ids where person_id = own.person_id offset 0
     ) as other order by 1`,
    [realm, arrayText(distinctIds)],
  );
  return rows.map(({ id }) => id);
}

/** What each of these ids opted out of, as a sum of SCOPE_BITS; 0 for an id without a user. */
export function listOptOuts(
  reader: Reader,
  realm: number,
  ids: readonly string[],
): Promise<{ id: string; opted_out: number }[]> {
  return reader.query<{ id: string; opted_out: number }>(
    `select named.id, coalesce(c.opted_out, 0) as opted_out from unnest($2::text::text[]) as named(id)
     left join users u on u.realm = $1::int and u.id = named.id
     left join users c on c.key = coalesce(u.merged_into, u.key)`,
    [realm, arrayText(ids)],
  );
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
 * The person of an id, or null; nobody else writes the person until the end of the transaction. The caller has locked
 * the realm: otherwise the person might be merged into another one while this waits.
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

/** The people of these ids, oldest first, locked as by `lockPerson`. */
export function lockPeople(session: Session, realm: number, ids: readonly string[]): Promise<PersonRow[]> {
  return session.query<PersonRow>(
    `select * from people where id in (
       select person_id from person_ids where realm = $1::int and distinct_id = any($2::text::text[]))
     order by created_at_ms, id for no key update`,
    [realm, arrayText(ids)],
  );
}

/** Keeps everybody else from writing a person until the end of the transaction. */
export async function lockPersonById(session: Session, personId: string): Promise<void> {
  await session.query("select 1 from people where id = $1 for no key update", [personId]);
}

/** Makes a person of an id and of all ids linked with it; false when the id has a person, if only just now. */
export async function insertPerson(
  session: Session,
  realm: number,
  distinctId: string,
  person: { readonly id: string; readonly createdAt: Millis },
): Promise<boolean> {
  // In the order of the ids, so that two calls that want the same ids never wait for each other.
  const rows = await session.query<{ id: string }>(
    `with recursive ${linkedIds("select $2::text")}, named as (
       insert into person_ids (realm, distinct_id, person_id)
       select $1::int, id, $3 from ids order by id
       on conflict do nothing returning distinct_id, person_id
     ), made as (
       insert into people (id, realm, properties, created_at_ms)
       select distinct person_id, $1::int, '{}', $4::bigint from named returning id
     )
     select distinct_id as id from named, made`,
    [realm, distinctId, person.id, person.createdAt],
  );
  return rows.some(({ id }) => id === distinctId);
}

/** Gives an id, and all ids linked with it, to a person where they have none; answers whether the id had none. */
export async function attachId(
  session: Session,
  realm: number,
  distinctId: string,
  personId: string,
): Promise<boolean> {
  const rows = await session.query<{ id: string }>(
    `with recursive ${linkedIds("select $2::text")}
     insert into person_ids (realm, distinct_id, person_id)
     select $1::int, id, $3 from ids order by id
     on conflict do nothing returning distinct_id as id`,
    [realm, distinctId, personId],
  );
  return rows.some(({ id }) => id === distinctId);
}

/** Writes the properties of a person, who is identified from then on. */
export async function saveProperties(
  session: Session,
  personId: string,
  properties: string,
  at: Millis,
): Promise<void> {
  await session.query(
    `update people set properties = $2, identified_at_ms = coalesce(identified_at_ms, $3::bigint) where id = $1`,
    [personId, properties, at],
  );
}

/** Makes a person a pointer to another one, who gets these properties and the earlier times. Both are locked. */
export async function pointPerson(
  session: Session,
  from: PersonRow,
  into: PersonRow,
  properties: string,
): Promise<PersonRow> {
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

/** The ids of the people that these distinct ids belong to. */
export async function listPersonIds(
  reader: Reader,
  realm: number,
  distinctIds: readonly string[],
): Promise<string[]> {
  const rows = await reader.query<{ id: string }>(
    "select distinct person_id as id from person_ids where realm = $1::int and distinct_id = any($2::text::text[])",
    [realm, arrayText(distinctIds)],
  );
  return rows.map(({ id }) => id);
}

/** Removes people with their ids and events, and those who were merged into them. The realm is locked. */
export async function deletePeople(session: Session, personIds: readonly string[]): Promise<void> {
  const ids = arrayText(personIds);
  // The ids go first, since captures hold them: each capture is then either over, and its event is removed here, or it
  // finds nobody.
  await session.query("delete from person_ids where person_id = any($1::text::text[])", [ids]);
  await session.query(
    `delete from analytics_events where person_id in (
       select id from people where id = any($1::text::text[]) or merged_into = any($1::text::text[]))`,
    [ids],
  );
  await session.query(
    "delete from people where id = any($1::text::text[]) or merged_into = any($1::text::text[])",
    [ids],
  );
}
