// People and their ids. Every statement finds people by their ids within a realm. src/people/README.md has the order in
// which rows are locked.

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

/** The state of an id, across all ids of its person and all ids linked with it. */
export interface PersonState {
  /** The person of the id itself. */
  readonly personId: string | null;
  /** The scopes that any of the ids opted out of, as a sum of SCOPE_BITS. */
  readonly optedOut: number;
  /** Whether an erasure of any of the ids is pending. */
  readonly isErasing: boolean;
  /** Whether the linked ids are not one person yet: they have several people, or only some have one. */
  readonly isSplit: boolean;
}

/** SQL of all ids of the person of an id and of the ids linked with it, as common tables. @param id SQL of the id */
const everyoneOf = (id: string) =>
  `${linkedIds(`select ${id}`)}, owners as (
       select distinct i.person_id from ids left join lateral (
         select person_id from person_ids where realm = $1::int and distinct_id = ids.id limit 1
       ) as i on true
     ), everyone(id) as (
       select i.distinct_id from owners cross join lateral (
         select distinct_id from person_ids where person_id = owners.person_id offset 0
       ) as i
       union select id from ids
     )`;

/** SQL of the state of all of these. */
const STATE = `(select count(*) from owners) > 1 as split,
       coalesce(bit_or(c.opted_out), 0) as opted_out,
       coalesce(bool_or(u.erasing or c.erasing), false) as erasing
     from everyone cross join lateral (
       select key, merged_into, erasing from users where realm = $1::int and id = everyone.id limit 1
     ) as u cross join lateral (
       select opted_out, erasing from users where key = coalesce(u.merged_into, u.key) limit 1
     ) as c`;

/**
 * Reads the state of an id. In a transaction this also locks the id: until the end it stays with its person, or with the
 * person that this one is merged into, and an erasure waits.
 */
export async function readPersonState(
  reader: Reader,
  realm: number,
  distinctId: string,
): Promise<PersonState> {
  const [row] = await reader.query<{
    person_id: string | null;
    opted_out: number;
    erasing: boolean;
    split: boolean;
  }>(
    `with recursive own as (
       select person_id from person_ids where realm = $1::int and distinct_id = $2::text for key share
     ), ${everyoneOf("$2::text")}
     select (select person_id from own) as person_id, ${STATE}`,
    [realm, distinctId],
  );
  return {
    personId: row?.person_id ?? null,
    optedOut: row?.opted_out ?? 0,
    isErasing: row?.erasing ?? false,
    isSplit: row?.split ?? false,
  };
}

/** Lists those of the ids that may be shown: no id of their person, or linked with them, opted out of the scopes or is being erased. */
export async function idsNotHidden(
  reader: Reader,
  realm: number,
  distinctIds: readonly string[],
  scopes: number,
): Promise<string[]> {
  const rows = await reader.query<{ id: string }>(
    `select asked.id from unnest($2::text::text[]) as asked(id) cross join lateral (
       with recursive ${everyoneOf("asked.id")} select ${STATE} offset 0
     ) as state where not state.erasing and (state.opted_out & $3::int) = 0`,
    [realm, arrayText(distinctIds), scopes],
  );
  return rows.map(({ id }) => id);
}

/** Lists these ids, the ids linked with them, and all ids of their people. */
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

/** Lists the scopes that each id opted out of, as a sum of SCOPE_BITS; 0 for an id without a user. */
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

/** Reads the person of an id, or null. */
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
 * Reads the person of an id, or null, and locks it until the end of the transaction. The caller has locked the realm:
 * otherwise the person might be merged into another one while this waits.
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

/** Reads the people of these ids, oldest first, and locks them. */
export function lockPeople(session: Session, realm: number, ids: readonly string[]): Promise<PersonRow[]> {
  return session.query<PersonRow>(
    `select * from people where id in (
       select person_id from person_ids where realm = $1::int and distinct_id = any($2::text::text[]))
     order by created_at_ms, id for no key update`,
    [realm, arrayText(ids)],
  );
}

/** Locks a person until the end of the transaction. */
export async function lockPersonById(session: Session, personId: string): Promise<void> {
  await session.query("select 1 from people where id = $1 for no key update", [personId]);
}

/** Creates a person with an id and all ids linked with it; returns false if the id already has a person. */
export async function insertPerson(
  session: Session,
  realm: number,
  distinctId: string,
  person: { readonly id: string; readonly createdAt: Millis },
): Promise<boolean> {
  // In the order of the ids, so that two calls for the same ids cannot deadlock.
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

/** Gives an id and its linked ids to a person, where they have none; returns whether the id had none. */
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

/** An email longer than this is in no index: a row of an index has at most 2,704 bytes, and a code point up to 4. */
const INDEXED_EMAIL_LENGTH_MAX = 500;
const LONG_EMAIL = new RegExp(
  String.raw`(?<="\$?email":")[^"\\](?=[^"\\]{${INDEXED_EMAIL_LENGTH_MAX}})`,
  "gu",
);

/** Makes the stored form of properties: a long email begins with an escape, which the index of emails does not read. */
function storedProperties(properties: string): string {
  return properties.replaceAll(
    LONG_EMAIL,
    (first) =>
      first.split("").map((half) => `\\u${half.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
  );
}

/** Writes the properties of a person and marks it as identified. */
export async function saveProperties(
  session: Session,
  personId: string,
  properties: string,
  at: Millis,
): Promise<void> {
  await session.query(
    `update people set properties = $2, identified_at_ms = coalesce(identified_at_ms, $3::bigint) where id = $1`,
    [personId, storedProperties(properties), at],
  );
}

/** Merges a person into another one, which gets these properties and the earlier times. Both are locked. */
export async function pointPerson(
  session: Session,
  from: PersonRow,
  into: PersonRow,
  properties: string,
): Promise<PersonRow> {
  const [merged] = await session.query<PersonRow>(
    `update people set properties = $2, identified_at_ms = least(identified_at_ms, $3::bigint),
       created_at_ms = least(created_at_ms, $4::bigint) where id = $1 returning *`,
    [into.id, storedProperties(properties), from.identified_at_ms, from.created_at_ms],
  );
  await session.query(
    "update people set merged_into = $2, properties = '{}' where id = $1 or merged_into = $1",
    [from.id, into.id],
  );
  await session.query("update person_ids set person_id = $2 where person_id = $1", [from.id, into.id]);
  return merged as PersonRow;
}

const PEOPLE_LOCK = 77_310_205;

/** Locks a realm against links, erasures and identifications until the end of the transaction. */
export async function lockRealm(session: Session, realm: number): Promise<void> {
  await session.query("select pg_advisory_xact_lock($1::int, $2::int)", [PEOPLE_LOCK, realm]);
}

/** Locks a realm against links and erasures until the end of the transaction. */
export async function shareRealm(session: Session, realm: number): Promise<void> {
  await session.query("select pg_advisory_xact_lock_shared($1::int, $2::int)", [PEOPLE_LOCK, realm]);
}

/** Lists the ids of the people of these distinct ids. */
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

/** Removes people with their ids and events, and all people merged into them. The realm is locked. */
export async function deletePeople(session: Session, personIds: readonly string[]): Promise<void> {
  const ids = arrayText(personIds);
  // Ids first, because captures lock them: each capture has then either ended, and its event is removed here, or it finds
  // no person.
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
