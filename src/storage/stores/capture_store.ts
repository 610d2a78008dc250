// Captured events, and the pseudonyms that replace the ids of people who opted out.

import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** A captured event: of a person, under a pseudonym, or anonymous. */
interface CapturedRow {
  readonly id: string;
  readonly realm: number;
  readonly personId: string | null;
  readonly pseudonym: string | null;
  readonly event: string;
  /** JSON. */
  readonly properties: string;
  readonly at: Millis;
}

export async function insertCaptured(session: Session, row: CapturedRow): Promise<void> {
  await session.query(
    `insert into analytics_events (id, realm, person_id, pseudonym, event, properties, at_ms)
     values ($1, $2::int, $3, $4, $5, $6, $7::bigint)`,
    [row.id, row.realm, row.personId, row.pseudonym, row.event, row.properties, row.at],
  );
}

/** Removes up to `limit` events of these ids' people; returns how many, 0 when none are left. */
export async function deleteCaptured(
  session: Session,
  realm: number,
  distinctIds: readonly string[],
  limit: number,
): Promise<number> {
  const rows = await session.query(
    `delete from analytics_events where id in (
       select e.id from person_ids i join people p on p.id = i.person_id or p.merged_into = i.person_id
       join analytics_events e on e.person_id = p.id
       where i.realm = $1::int and i.distinct_id = any($2::text::text[]) limit $3::bigint) returning 1`,
    [realm, arrayText(distinctIds), limit],
  );
  return rows.length;
}

/** Finds the pseudonym of one of these hashes, always the same; null for none. */
export async function findPseudonym(
  reader: Reader,
  realm: number,
  hashes: readonly string[],
): Promise<string | null> {
  const [known] = await reader.query<{ pseudonym: string }>(
    `select pseudonym from pseudonyms where realm = $1::int and id_hash = any($2::text::text[])
     order by pseudonym limit 1`,
    [realm, arrayText(hashes)],
  );
  return known?.pseudonym ?? null;
}

/** Stores a pseudonym under a hash; returns it, or the pseudonym that another call has just stored. */
export async function keepPseudonym(
  session: Session,
  realm: number,
  hash: string,
  pseudonym: string,
): Promise<string> {
  // An update without a change returns the existing row.
  const [made] = await session.query<{ pseudonym: string }>(
    `insert into pseudonyms (realm, id_hash, pseudonym) values ($1::int, $2, $3)
     on conflict (realm, id_hash) do update set pseudonym = pseudonyms.pseudonym returning pseudonym`,
    [realm, hash, pseudonym],
  );
  return (made as { pseudonym: string }).pseudonym;
}

export async function deletePseudonyms(
  session: Session,
  realm: number,
  hashes: readonly string[],
): Promise<void> {
  await session.query("delete from pseudonyms where realm = $1::int and id_hash = any($2::text::text[])", [
    realm,
    arrayText(hashes),
  ]);
}
