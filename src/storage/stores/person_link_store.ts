// Who linked two ids of people, and the anonymous ids that public keys linked to a named one. src/people/README.md has the
// rules.

import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** The right by which a link was made. */
export type LinkMaker = "secret_key" | "end_user_token" | "public_key";

/** A link of two ids. */
interface PersonLink {
  readonly from: string;
  readonly into: string;
  readonly madeBy: LinkMaker;
  readonly at: Millis;
}

/** SQL of the condition that an id is no alias and has none. */
const isUnmerged = (id: string) =>
  `not exists (
     select 1 from users u where u.realm = $1::int and u.id = ${id} and (
       u.merged_into is not null or exists (select 1 from users a where a.merged_into = u.key)))`;

/** SQL of the condition that the person of an id has no other id. */
const isOnlyId = (id: string) =>
  `not exists (
     select 1 from person_ids own join person_ids other
       on other.person_id = own.person_id and other.distinct_id <> own.distinct_id
     where own.realm = $1::int and own.distinct_id = ${id})`;

/** SQL of the condition that a user has a row of metering in the tables. */
const isMetered = (key: string) =>
  `(${
    ["subscriptions", "counters", "credit_balances", "events"].map((table) =>
      `exists (select 1 from ${table} where user_key = ${key})`
    ).join(" or ")
  } or exists (select 1 from reservations where user_key = ${key} and status = 'held'))`;

/** Records who linked two ids. A public key changes no link; any other right replaces that of a public key. */
export async function recordPersonLink(
  session: Session,
  realm: number,
  { from, into, madeBy, at }: PersonLink,
): Promise<void> {
  await session.query(
    `insert into person_links as l (realm, from_id, into_id, made_by, at_ms)
     values ($1::int, $2, $3, $4, $5::bigint)
     on conflict (realm, from_id, into_id) do update set made_by = excluded.made_by, at_ms = excluded.at_ms
     where l.made_by = 'public_key' and excluded.made_by <> 'public_key'`,
    [realm, from, into, madeBy, at],
  );
}

/**
 * Lists the anonymous ids that public keys linked to one of these ids. An id that has become part of another person or user
 * since is left out: it belongs to that one.
 */
export async function listAnonymousIds(
  reader: Reader,
  realm: number,
  distinctIds: readonly string[],
): Promise<string[]> {
  const rows = await reader.query<{ id: string }>(
    `select distinct l.from_id as id from person_links l
     where l.realm = $1::int and l.into_id = any($2::text::text[]) and l.made_by = 'public_key'
       and ${isUnmerged("l.from_id")} and ${isOnlyId("l.from_id")} order by 1`,
    [realm, arrayText(distinctIds)],
  );
  return rows.map(({ id }) => id);
}

/** Lists which of these ids public keys linked to another of them, whatever has become of them since. */
export async function listLinkedAmong(
  reader: Reader,
  realm: number,
  distinctIds: readonly string[],
): Promise<string[]> {
  const rows = await reader.query<{ id: string }>(
    `select distinct from_id as id from person_links where realm = $1::int and made_by = 'public_key'
     and from_id = any($2::text::text[]) and into_id = any($2::text::text[])`,
    [realm, arrayText(distinctIds)],
  );
  return rows.map(({ id }) => id);
}

/** Lists the ids that public keys linked an anonymous id to. */
export async function listNamedIds(reader: Reader, realm: number, anonymousId: string): Promise<string[]> {
  const rows = await reader.query<{ id: string }>(
    `select into_id as id from person_links
     where realm = $1::int and from_id = $2 and made_by = 'public_key' order by 1`,
    [realm, anonymousId],
  );
  return rows.map(({ id }) => id);
}

/**
 * Whether an id is no alias, has none, has no other id in its person and no anonymous id, and has no row of metering in the
 * tables.
 */
export async function isUnused(reader: Reader, realm: number, distinctId: string): Promise<boolean> {
  const [row] = await reader.query<{ unused: boolean }>(
    `select ${isUnmerged("$2::text")} and ${isOnlyId("$2::text")} and not exists (
       select 1 from person_links where realm = $1::int and into_id = $2 and made_by = 'public_key'
     ) and not exists (
       select 1 from users m where m.realm = $1::int and m.id = $2 and ${isMetered("m.key")}) as unused`,
    [realm, distinctId],
  );
  return row?.unused === true;
}

/** Removes all links of these ids. */
export async function deletePersonLinks(
  session: Session,
  realm: number,
  distinctIds: readonly string[],
): Promise<void> {
  await session.query(
    `delete from person_links where realm = $1::int
     and (from_id = any($2::text::text[]) or into_id = any($2::text::text[]))`,
    [realm, arrayText(distinctIds)],
  );
}

/** A person with several metered users, at least one of them in no recorded link. */
interface UnrecordedPerson {
  readonly personId: string;
  /** The metered ids, sorted. */
  readonly distinctIds: readonly string[];
}

/** Lists people who join several metered users by a link without a recorded maker: a public key may have made it. */
export async function listUnrecorded(
  reader: Reader,
  realm: number,
  limit: number,
): Promise<UnrecordedPerson[]> {
  const rows = await reader.query<{ id: string; ids: string }>(
    `select i.person_id as id, json_agg(i.distinct_id order by i.distinct_id)::text as ids
     from person_ids i join users u on u.realm = i.realm and u.id = i.distinct_id
     where i.realm = $1::int and u.merged_into is null and ${isMetered("u.key")}
     group by i.person_id having count(*) > 1 and bool_or(not exists (
       select 1 from person_links l where l.realm = i.realm and l.made_by <> 'public_key'
       and (l.from_id = i.distinct_id or l.into_id = i.distinct_id)))
     order by i.person_id limit $2::int`,
    [realm, limit],
  );
  return rows.map(({ id, ids }) => ({ personId: id, distinctIds: JSON.parse(ids) as string[] }));
}
