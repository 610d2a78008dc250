// What consent, erasure and reads need of people: the ids of one person, and forgetting. How people come to be is in
// identify.ts and link.ts.

import type { Features } from "../process/features.ts";
import { idsOfPeople, lockRealm, type Reader } from "./person_rows.ts";
import { forgetPseudonyms } from "./pseudonyms.ts";
import { arrayText, type Session } from "../storage/database.ts";

/** All distinct ids of the person that an id belongs to; the id itself is always among them. */
export function idsOfPerson(reader: Reader, realm: number, distinctId: string): Promise<string[]> {
  return idsOfPeople(reader, realm, [distinctId]);
}

/** Forgets the pseudonyms of these ids' people, so that a later opt-out has a new one. */
export async function forgetPseudonym(
  reader: Reader,
  { privacySecret }: Pick<Features, "privacySecret">,
  realm: number,
  distinctIds: readonly string[],
): Promise<void> {
  // Without the secret no pseudonym was made, and none can be found.
  if (privacySecret !== null) await forgetPseudonyms(reader, privacySecret, realm, distinctIds);
}

/** Removes some events of these ids' people; answers how many, 0 when none are left. A step before `erasePeople`. */
export async function erasePeopleEvents(
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

/**
 * Removes the people of these ids, their ids and their events. Pseudonyms are forgotten with `forgetPseudonym`, before:
 * they are found through the people.
 */
export async function erasePeople(
  session: Session,
  realm: number,
  distinctIds: readonly string[],
): Promise<void> {
  await lockRealm(session, realm);
  const people = await session.query<{ person_id: string }>(
    `select distinct person_id from person_ids
     where realm = $1::int and distinct_id = any($2::text::text[])`,
    [realm, arrayText(distinctIds)],
  );
  if (people.length === 0) return;
  const ids = arrayText(people.map(({ person_id }) => person_id));
  // First what captures hold: each of them is either over, and its event is removed here, or finds nobody.
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
