// The ids of one person, creating people, and removing them. link.ts makes one person of two.

import type { Realm } from "../../actors/call.ts";
import type { IdSource } from "../domain/values/ids.ts";
import { SCOPE_BITS } from "../domain/state/user.ts";
import type { Session } from "../storage/database.ts";
import {
  deletePeople,
  idsOfPeople,
  insertPerson,
  listPersonIds,
  lockRealm,
  type PersonState,
} from "../storage/stores/people_store.ts";
import { listAnonymousIds } from "../storage/stores/person_link_store.ts";
import { newPersonId } from "./person_id.ts";

/** All distinct ids of the person that an id belongs to, with those that aliases linked; the id itself is among them. */
export function idsOfPerson(
  reader: Pick<Session, "query">,
  realm: number,
  distinctId: string,
): Promise<string[]> {
  return idsOfPeople(reader, realm, [distinctId]);
}

/**
 * All ids that an export, an erasure or a consent of an id covers: those of its person, and the anonymous ids that public
 * keys linked to one of them. From such an anonymous id none of the others is reached.
 */
export async function idsCoveredBy(
  reader: Pick<Session, "query">,
  realm: number,
  distinctIds: readonly string[],
): Promise<string[]> {
  const own = await idsOfPeople(reader, realm, distinctIds);
  return [...new Set([...own, ...await listAnonymousIds(reader, realm, own)])].sort();
}

/** Whether events of a person must not be recorded under its own id. */
export function isSilenced({ optedOut, isErasing }: PersonState): boolean {
  return isErasing || (optedOut & SCOPE_BITS.analytics) !== 0;
}

/** Creates a person for an id and all ids linked with it; null when the id already has one. */
export async function makePerson(
  session: Session,
  ids: IdSource,
  realm: Realm,
  distinctId: string,
): Promise<string | null> {
  const person = { id: newPersonId(ids), createdAt: realm.now() };
  return await insertPerson(session, realm.realm, distinctId, person) ? person.id : null;
}

/**
 * Removes the people of these ids, with their ids and events. Pseudonyms are removed first, since they are found through
 * the people.
 */
export async function erasePeople(
  session: Session,
  realm: number,
  distinctIds: readonly string[],
): Promise<void> {
  await lockRealm(session, realm);
  const people = await listPersonIds(session, realm, distinctIds);
  if (people.length > 0) await deletePeople(session, people);
}
