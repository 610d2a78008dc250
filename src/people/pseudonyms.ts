// Pseudonyms: random names under which people who opted out of analytics are captured. A hash leads from an id to its
// pseudonym. The hash's key is not in the database, so a copy of the tables does not show who is who.

import { createHmac, randomUUID } from "node:crypto";
import type { Session } from "../storage/database.ts";
import { deletePseudonyms, findPseudonym, keepPseudonym } from "../storage/stores/capture_store.ts";
import { idsOfPeople, lockPersonById } from "../storage/stores/people_store.ts";

/** Returns the pseudonym of an id's person, and creates one if needed. Concurrent calls get the same one. */
export async function pseudonymOf(
  session: Session,
  secret: string,
  realm: number,
  distinctId: string,
  personId: string | null,
): Promise<string> {
  // The first events under two ids of one person must not create two names.
  if (personId !== null) await lockPersonById(session, personId);
  const ids = await idsOfPeople(session, realm, [distinctId]);
  const hashes = ids.map((id) => hashOf(secret, realm, id));
  // Linked ids without a person share the hash of the first of them.
  return await findPseudonym(session, realm, hashes) ??
    await keepPseudonym(session, realm, hashes[0] as string, `psn_${randomUUID()}`);
}

/** Removes the hashes that lead from all ids of these people to a pseudonym: the next opt-out creates a new one. */
export async function forgetPseudonyms(
  session: Session,
  secret: string | null,
  realm: number,
  distinctIds: readonly string[],
): Promise<void> {
  // Without the secret no pseudonym exists.
  if (secret === null) return;
  const ids = await idsOfPeople(session, realm, distinctIds);
  await deletePseudonyms(session, realm, ids.map((id) => hashOf(secret, realm, id)));
}

function hashOf(secret: string, realm: number, id: string): string {
  return createHmac("sha256", secret).update(JSON.stringify(["pseudonym", realm, id])).digest("base64url");
}
