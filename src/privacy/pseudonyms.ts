// Pseudonyms: the random names under which people who opted out are captured. What leads from an id to its name is a
// hash under a key that is not in the database, so a copy of the tables does not show who is who.

import { createHmac, randomUUID } from "node:crypto";
import { idsOfPeople, personIdOf, type Reader } from "./person_rows.ts";
import { arrayText, type Session } from "../storage/database.ts";

/** The pseudonym of an id's person, made if there is none; calls at the same time get the same one. */
export async function pseudonymOf(
  session: Session,
  secret: string,
  realm: number,
  distinctId: string,
  personId: string | null,
): Promise<string> {
  let ids = [distinctId];
  if (personId !== null) {
    // First events under two ids of one person must not make two names.
    await session.query("select 1 from people where id = $1 for no key update", [personId]);
    ids = await idsOfPeople(session, realm, [distinctId]);
  }
  const hashes = arrayText(ids.map((id) => hashOf(secret, "pseudonym", realm, id).toString("base64url")));
  const [known] = await session.query<{ pseudonym: string }>(
    `select pseudonym from pseudonyms where realm = $1::int and id_hash = any($2::text::text[])
     order by pseudonym limit 1`,
    [realm, hashes],
  );
  if (known !== undefined) return known.pseudonym;
  // An update that changes nothing answers the name that another call made at the same time.
  const [made] = await session.query<{ pseudonym: string }>(
    `insert into pseudonyms (realm, id_hash, pseudonym) values ($1::int, $2, $3)
     on conflict (realm, id_hash) do update set pseudonym = pseudonyms.pseudonym returning pseudonym`,
    [realm, hashOf(secret, "pseudonym", realm, distinctId).toString("base64url"), `psn_${randomUUID()}`],
  );
  return (made as { pseudonym: string }).pseudonym;
}

/** Removes what leads from these ids, and all ids of their people, to a pseudonym: the next opt-out makes another. */
export async function forgetPseudonyms(
  reader: Reader,
  secret: string,
  realm: number,
  distinctIds: readonly string[],
): Promise<void> {
  const ids = await idsOfPeople(reader, realm, distinctIds);
  const hashes = ids.map((id) => hashOf(secret, "pseudonym", realm, id).toString("base64url"));
  await reader.query("delete from pseudonyms where realm = $1::int and id_hash = any($2::text::text[])", [
    realm,
    arrayText(hashes),
  ]);
}

/** The person id that is answered for an id of which nothing is stored: always the same one, and no person's. */
export function standInPersonId(secret: string, realm: number, distinctId: string): string {
  return personIdOf(hashOf(secret, "person", realm, distinctId));
}

/** Hashes for different purposes have nothing in common. */
function hashOf(secret: string, purpose: "pseudonym" | "person", realm: number, id: string) {
  return createHmac("sha256", secret).update(JSON.stringify([purpose, realm, id])).digest();
}
