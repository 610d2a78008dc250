// Linking: two ids become one person. What either side opted out of holds for all ids of the person; it is put on the
// users before the link, so that no moment has a linked id without it, and again after, for what came between.

import type { Realm } from "../../actors/actor.ts";
import { addOptOuts } from "./consents.ts";
import {
  attachId,
  ensurePerson,
  idsOfPeople,
  lockPerson,
  lockRealm,
  mergePerson,
  type PersonRow,
  type PersonWorld,
  standingOf,
} from "./person_rows.ts";
import { standInPersonId } from "./pseudonyms.ts";
import type { Serving } from "../service/service.ts";
import { arrayText, type Session } from "../storage/database.ts";

/** Links the people of two ids after a metering alias of them; nothing happens where neither has a person. */
export async function linkPeople(serving: Serving, realm: Realm, from: string, into: string): Promise<void> {
  const sides = await standingsOf(serving, realm, [from, into]);
  if (sides.some(({ isErasing }) => isErasing)) return;
  if (sides.every(({ personId }) => personId === null)) return;
  // The tables must know what the merged user opted out of.
  await serving.term.flush();
  await linkWithConsents(serving, realm, from, into);
}

/** Makes one person of two ids, and answers its id. Where one is about to be erased nothing is linked. */
export async function aliasPeople(
  serving: Serving,
  realm: Realm,
  from: string,
  into: string,
): Promise<string> {
  const sides = await standingsOf(serving, realm, [into, from]);
  if (sides.some(({ isErasing }) => isErasing)) {
    const known = sides.find(({ personId }) => personId !== null)?.personId;
    return known ?? standInPersonId(serving.features.privacySecret ?? "", realm.realm, into);
  }
  return await linkWithConsents(serving, realm, from, into);
}

async function linkWithConsents(serving: Serving, realm: Realm, from: string, into: string): Promise<string> {
  const { database, ids } = serving;
  await spreadOptOuts(serving, realm, [from, into]);
  const person = await database.transaction(async (session) => {
    await lockRealm(session, realm.realm);
    return await link(session, { realm, ids }, from, into, () => true);
  });
  await spreadOptOuts(serving, realm, [into]);
  return (person as PersonRow).id;
}

function standingsOf({ database }: Serving, realm: Realm, distinctIds: readonly string[]) {
  return Promise.all(distinctIds.map((id) => standingOf(database, realm.realm, id)));
}

/**
 * Makes one person of two ids, in a transaction that has locked the realm. The person of `into` stays; where it has
 * none, that of `from`. Null when another person of `from` is not accepted.
 */
export async function link(
  session: Session,
  world: PersonWorld,
  from: string,
  into: string,
  accepts: (person: PersonRow) => boolean,
): Promise<PersonRow | null> {
  const { realm } = world.realm;
  while (true) {
    const source = await lockPerson(session, realm, from);
    const target = await lockPerson(session, realm, into);
    if (source !== null && source.id !== target?.id && !accepts(source)) return null;
    if (source !== null && target !== null) {
      return source.id === target.id ? target : await mergePerson(session, source, target);
    }
    const person = target ?? source ?? await ensurePerson(session, world, into);
    if (await attachId(session, realm, source === null ? from : into, person.id)) return person;
    // Else the id was given a person at the same time.
  }
}

/** Puts what any id of these people opted out of on all of their ids. */
export async function spreadOptOuts(
  serving: Serving,
  realm: Realm,
  distinctIds: readonly string[],
): Promise<void> {
  const ids = await idsOfPeople(serving.database, realm.realm, distinctIds);
  const rows = await serving.database.query<{ id: string; opted_out: number }>(
    `select named.id, coalesce(c.opted_out, 0) as opted_out from unnest($2::text::text[]) as named(id)
     left join users u on u.realm = $1::int and u.id = named.id
     left join users c on c.key = coalesce(u.merged_into, u.key)`,
    [realm.realm, arrayText(ids)],
  );
  const bits = rows.reduce((sum, row) => sum | row.opted_out, 0);
  const lacking = rows.filter((row) => (row.opted_out & bits) !== bits).map(({ id }) => id);
  if (lacking.length > 0) await addOptOuts(serving, realm, lacking, bits);
}
