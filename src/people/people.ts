// The ids of one person, making people, and removing them. How two people become one is in link.ts.

import type { Realm } from "../../actors/actor.ts";
import type { IdSource } from "../domain/values/ids.ts";
import { SCOPE_BITS } from "../domain/state/user.ts";
import type { Session } from "../storage/database.ts";
import {
  deletePeople,
  idsOfPeople,
  type IdState,
  insertPerson,
  listPersonIds,
  lockRealm,
} from "../storage/stores/people_store.ts";
import { newPersonId } from "./person_id.ts";

/** All distinct ids of the person that an id belongs to, with those that aliases linked; the id itself is among them. */
export function idsOfPerson(
  reader: Pick<Session, "query">,
  realm: number,
  distinctId: string,
): Promise<string[]> {
  return idsOfPeople(reader, realm, [distinctId]);
}

/** Whether nothing may be captured under a person's own name. */
export function isSilenced({ optedOut, isErasing }: IdState): boolean {
  return isErasing || (optedOut & SCOPE_BITS.analytics) !== 0;
}

/** Makes a person of an id and of all ids linked with it; null when the id has one, if only just now. */
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
 * Removes the people of these ids, with their ids and events. Pseudonyms are forgotten before, since they are found
 * through the people.
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
