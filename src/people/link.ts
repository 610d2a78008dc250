// Linking: two ids become one person, by an alias of people or by a metering alias. Opt-outs of either side then hold for
// all ids of the person. They are copied to the users before the link, so that a linked id never lacks one, and again
// after the link, for opt-outs that arrived in between.

import { Buffer } from "node:buffer";
import type { Realm } from "../../actors/call.ts";
import { PEOPLE_LIMITS } from "../process/limits.ts";
import type { Session } from "../storage/database.ts";
import { listLinkedIds, recordLink } from "../storage/stores/linked_ids.ts";
import {
  attachId,
  idsOfPeople,
  listOptOuts,
  lockPeople,
  lockPerson,
  lockRealm,
  type PersonRow,
  pointPerson,
  readPerson,
  readPersonState,
} from "../storage/stores/people_store.ts";
import { type LinkMaker, listAnonymousIds, recordPersonLink } from "../storage/stores/person_link_store.ts";
import { addOptOuts } from "./consents.ts";
import { drainLinks, linksDrained } from "./drained_links.ts";
import { makePerson } from "./people.ts";
import { standInPersonId } from "./person_id.ts";
import type { PeopleWorld } from "./world.ts";

/**
 * Links the people of two ids after a metering alias that answered `linked`, or `already_linked`. People who are made
 * later by either id are linked when they are made.
 */
export async function linkPeople(
  world: PeopleWorld,
  realm: Realm,
  from: string,
  into: string,
  isRepeated: boolean,
): Promise<void> {
  const { term, database } = world;
  // A new merge has this in its own report. A repeated one links only `from`: `into` may be an alias without consent.
  if (isRepeated) await world.inCell(realm.cell, (session) => recordLink(session, realm.realm, from));
  const sides = await Promise.all([from, into].map((id) => readPersonState(database, realm.realm, id)));
  const drained = drainLinks(term);
  // While neither id has a person the alias does not wait: the call that makes a person links it.
  if (sides.every(({ personId, isSplit }) => personId === null && !isSplit)) return;
  // The tables must have the merge, and the opt-outs of the merged user.
  await drained;
  await unitePeople(world, realm, from);
}

/**
 * Makes one person of the ids that metering aliases linked with an id, where they still have several: a call may have made
 * a person while the alias was in flight, and aliases of older versions did not link people made later. People with a
 * pending erasure are not linked.
 */
export async function unitePeople(
  world: Pick<PeopleWorld, "term" | "database" | "inCell">,
  realm: Realm,
  distinctId: string,
): Promise<void> {
  await linksDrained(world);
  const { isSplit, isErasing } = await readPersonState(world.database, realm.realm, distinctId);
  if (!isSplit || isErasing) return;
  const ids = await listLinkedIds(world.database, realm.realm, distinctId);
  await spreadOptOuts(world, realm, ids);
  await world.inCell(realm.cell, async (session) => {
    await lockRealm(session, realm.realm);
    await uniteLocked(session, realm.realm, ids);
  });
  await spreadOptOuts(world, realm, ids);
}

/** Makes one person of linked ids. The person of the canonical id stays, else the oldest. The realm is locked. */
async function uniteLocked(session: Session, realm: number, ids: readonly string[]): Promise<void> {
  const [canonical] = ids as [string];
  const people = await lockPeople(session, realm, ids);
  const own = await readPerson(session, realm, canonical);
  let kept = people.find(({ id }) => id === own?.id) ?? people[0];
  if (kept === undefined) return;
  for (const person of people) if (person.id !== kept.id) kept = await mergePerson(session, person, kept);
  await attachId(session, realm, canonical, kept.id);
}

/** Makes one person of two ids, and returns its id. People with a pending erasure are not linked. */
export async function aliasPeople(
  world: PeopleWorld,
  realm: Realm,
  from: string,
  into: string,
): Promise<string> {
  const { database, ids } = world;
  await unitePeople(world, realm, from);
  await unitePeople(world, realm, into);
  const sides = await Promise.all([into, from].map((id) => readPersonState(database, realm.realm, id)));
  if (sides.some(({ isErasing }) => isErasing)) {
    const known = sides.find(({ personId }) => personId !== null)?.personId;
    return known ?? standInPersonId(world.features.privacySecret ?? "", realm.realm, into);
  }
  await spreadOptOuts(world, realm, [from, into]);
  const person = await world.inCell(realm.cell, async (session) => {
    await lockRealm(session, realm.realm);
    return await link(session, { realm, ids }, { from, into, madeBy: "secret_key" }, () => true);
  });
  await spreadOptOuts(world, realm, [into]);
  return (person as PersonRow).id;
}

/** A link that makes one person of two ids, and by which right. */
export interface LinkOfPeople {
  readonly from: string;
  readonly into: string;
  readonly madeBy: Exclude<LinkMaker, "public_key">;
}

/**
 * Makes one person of two ids, in a transaction that has locked the realm. The person of `into` stays, or that of `from`
 * when `into` has none.
 *
 * @returns null when `from` has another person whom `accepts` refuses
 */
export async function link(
  session: Session,
  { realm, ids }: { readonly realm: Realm } & Pick<PeopleWorld, "ids">,
  { from, into, madeBy }: LinkOfPeople,
  accepts: (person: PersonRow) => boolean,
): Promise<PersonRow | null> {
  while (true) {
    const source = await lockPerson(session, realm.realm, from);
    const target = await lockPerson(session, realm.realm, into);
    if (source !== null && source.id !== target?.id && !accepts(source)) return null;
    await recordPersonLink(session, realm.realm, { from, into, madeBy, at: realm.now() });
    if (source !== null && target !== null) {
      return source.id === target.id ? target : await mergePerson(session, source, target);
    }
    const person = target ?? source;
    if (person === null) await makePerson(session, ids, realm, into);
    else if (await attachId(session, realm.realm, source === null ? from : into, person.id)) return person;
    // Otherwise an id has just got a person, here or by another call: look again.
  }
}

/** Merges a person into another. The other's properties win; those that do not fit are dropped. Both are locked. */
function mergePerson(session: Session, from: PersonRow, into: PersonRow): Promise<PersonRow> {
  const both = JSON.stringify({ ...JSON.parse(from.properties), ...JSON.parse(into.properties) });
  const fits = Buffer.byteLength(both) <= PEOPLE_LIMITS.personBytesMax;
  return pointPerson(session, from, into, fits ? both : into.properties);
}

/**
 * Copies the opt-outs of every id of these people to all of their ids, and to anonymous ids that public keys linked to them.
 *
 * @param more other ids that get them
 */
export async function spreadOptOuts(
  world: Pick<PeopleWorld, "term" | "database">,
  realm: Realm,
  distinctIds: readonly string[],
  more: readonly string[] = [],
): Promise<void> {
  const { database } = world;
  const own = new Set(await idsOfPeople(database, realm.realm, distinctIds));
  const covered = await listAnonymousIds(database, realm.realm, [...own]);
  const rows = await listOptOuts(database, realm.realm, [...new Set([...own, ...covered, ...more])]);
  const bits = rows.reduce((sum, row) => own.has(row.id) ? sum | row.opted_out : sum, 0);
  const lacking = rows.filter((row) => (row.opted_out & bits) !== bits).map(({ id }) => id);
  if (lacking.length > 0) await addOptOuts(world, realm, lacking, bits);
}
