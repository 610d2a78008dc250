// Identify: sets properties of a person, and merges an anonymous session into it. An id that opted out of analytics gets
// an answer of the same form, and nothing is stored for it.

import { Buffer } from "node:buffer";
import type { Realm } from "../../actors/call.ts";
import { invalidField } from "../domain/values/refusal.ts";
import { answered, refused, type Result } from "../domain/state/result.ts";
import { SCOPE_BITS } from "../domain/state/user.ts";
import type { Session } from "../storage/database.ts";
import { PEOPLE_LIMITS } from "../process/limits.ts";
import {
  idsOfPeople,
  lockPerson,
  lockRealm,
  type PersonRow,
  readPerson,
  readPersonState,
  saveProperties,
  shareRealm,
} from "../storage/stores/people_store.ts";
import type { Properties } from "./capture.ts";
import {
  isUnused,
  type LinkMaker,
  listNamedIds,
  recordPersonLink,
} from "../storage/stores/person_link_store.ts";
import { link, type LinkOfPeople, spreadOptOuts, unitePeople } from "./link.ts";
import { isSilenced, makePerson } from "./people.ts";
import { standInPersonId } from "./person_id.ts";
import type { PeopleWorld } from "./world.ts";

/** The properties to store for an id. */
interface Identification {
  readonly distinctId: string;
  /** These overwrite the stored ones. */
  readonly properties: Properties;
  /** These are only stored where there is no value yet. */
  readonly propertiesOnce: Properties;
  /** An anonymous session of the same person, who gave consent; null for none. */
  readonly anonymousId: string | null;
  /** The right of the caller. */
  readonly by: LinkMaker;
}

interface Identified {
  readonly personId: string;
  readonly merged: boolean;
}

/** Thrown to roll the transaction back when the call is refused. */
class Refusal extends Error {
  /** The member at fault. */
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

/** Stores the properties of the person behind an id. */
export async function identify(
  world: PeopleWorld,
  realm: Realm,
  call: Identification,
): Promise<Result<Identified>> {
  const { distinctId, anonymousId, by } = call;
  await unitePeople(world, realm, distinctId);
  try {
    const personId = anonymousId === null
      ? await world.inCell(realm.cell, async (session) => {
        await shareRealm(session, realm.realm);
        return await identifyOne(session, world, realm, call);
      })
      : by === "public_key"
      ? await identifyBeside(world, realm, { ...call, anonymousId })
      : await identifyMerged(world, realm, { ...call, anonymousId, by });
    const stored = personId ??
      standInPersonId(world.features.privacySecret ?? "", realm.realm, distinctId);
    return answered({ personId: stored, merged: anonymousId !== null });
  } catch (error) {
    if (error instanceof Refusal) return refused(invalidField(error.path, error.message));
    throw error;
  }
}

type Merging = Identification & { readonly anonymousId: string };

async function identifyMerged(
  world: PeopleWorld,
  realm: Realm,
  call: Merging & { readonly by: LinkOfPeople["madeBy"] },
): Promise<string | null> {
  const { database, ids } = world;
  const { distinctId, anonymousId, by: madeBy } = call;
  await unitePeople(world, realm, anonymousId);
  const own = await readPersonState(database, realm.realm, distinctId);
  const anonymous = await readPerson(database, realm.realm, anonymousId);
  // Refuse before the session's opt-outs are copied to an unrelated person.
  if (anonymous !== null && anonymous.id !== own.personId) refuseIdentified(anonymous);
  if (!own.isErasing && !(await readPersonState(database, realm.realm, anonymousId)).isErasing) {
    await spreadOptOuts(world, realm, [distinctId, anonymousId]);
  }
  const personId = await world.inCell(realm.cell, async (session) => {
    await lockRealm(session, realm.realm);
    const links = !isSilenced(own) && await isLinkable(session, realm.realm, anonymousId);
    const person = links
      ? await link(session, { realm, ids }, { from: anonymousId, into: distinctId, madeBy }, refuseIdentified)
      : null;
    return await identifyOne(session, world, realm, call) ?? person?.id ?? null;
  });
  await spreadOptOuts(world, realm, [distinctId]);
  return personId;
}

/**
 * Links an anonymous id by a public key, which is in every page: the id stays a person by itself. Only the named id reaches
 * it, so nobody gets at the data of a named person by an id of his own.
 */
async function identifyBeside(world: PeopleWorld, realm: Realm, call: Merging): Promise<string | null> {
  const { database } = world;
  const { distinctId, anonymousId } = call;
  // The tables must have all metering that was acknowledged.
  await world.term.flush();
  await isNewLink(database, realm.realm, call);
  const sides = await Promise.all(
    [distinctId, anonymousId].map((id) => readPersonState(database, realm.realm, id)),
  );
  const isErasing = sides.some((side) => side.isErasing);
  if (!isErasing) await spreadOptOuts(world, realm, [distinctId], [anonymousId]);
  const personId = await world.inCell(realm.cell, async (session) => {
    // Two links of one anonymous id are decided one after another.
    await lockRealm(session, realm.realm);
    const isNew = await isNewLink(session, realm.realm, call);
    const own = await readPersonState(session, realm.realm, distinctId);
    const links = isNew && !isSilenced(own) && await isLinkable(session, realm.realm, anonymousId);
    if (!links) return await identifyOne(session, world, realm, call);
    const made = { from: anonymousId, into: distinctId, madeBy: "public_key", at: realm.now() } as const;
    await recordPersonLink(session, realm.realm, made);
    const anonymous = await readPerson(session, realm.realm, anonymousId);
    return await identifyOne(session, world, realm, call, anonymous?.properties);
  });
  if (!isErasing) await spreadOptOuts(world, realm, [distinctId]);
  return personId;
}

/**
 * Whether a public key links an anonymous id to this named id for the first time.
 *
 * @throws Refusal where it may not. The message does not name the rule that the id breaks
 */
async function isNewLink(
  reader: Pick<Session, "query">,
  realm: number,
  { distinctId, anonymousId }: Merging,
): Promise<boolean> {
  if (anonymousId.startsWith(ANONYMOUS)) {
    const own = await idsOfPeople(reader, realm, [distinctId]);
    if (own.includes(anonymousId)) return false;
    const named = await listNamedIds(reader, realm, anonymousId);
    if (named.length > 0 && named.every((id) => own.includes(id))) return false;
    const person = await readPerson(reader, realm, anonymousId);
    const isFree = named.length === 0 && (person === null || person.identified_at_ms === null);
    if (isFree && await isUnused(reader, realm, anonymousId)) return true;
  }
  throw new Refusal(
    "mergeAnonymousId",
    `with a public key it must begin with ${ANONYMOUS}, belong to no other person and have no usage, subscription ` +
      "or credits; send the X-End-User-Token of distinctId, or use a secret key",
  );
}

/** The beginning of ids of anonymous sessions. */
const ANONYMOUS = "anon_";

function refuseIdentified(anonymous: PersonRow): true {
  if (anonymous.identified_at_ms === null) return true;
  throw new Refusal("mergeAnonymousId", "was already identified");
}

/** A session that opted out is linked only if its id has a person already: nothing new is stored about it. */
async function isLinkable(session: Session, realm: number, anonymousId: string): Promise<boolean> {
  const { personId, optedOut, isErasing } = await readPersonState(session, realm, anonymousId);
  return !isErasing && (personId !== null || (optedOut & SCOPE_BITS.analytics) === 0);
}

/**
 * Stores the properties of a person who did not opt out; returns the person, or null where the id has none.
 *
 * @param ofSession properties of an anonymous session, as JSON: stored only where there is no value yet, and if they fit
 */
async function identifyOne(
  session: Session,
  { ids }: Pick<PeopleWorld, "ids">,
  realm: Realm,
  { distinctId, properties, propertiesOnce }: Identification,
  ofSession = "{}",
): Promise<string | null> {
  while (true) {
    const standing = await readPersonState(session, realm.realm, distinctId);
    if (isSilenced(standing)) return standing.personId;
    if (standing.personId !== null || await makePerson(session, ids, realm, distinctId) !== null) break;
  }
  const person = await lockPerson(session, realm.realm, distinctId) as PersonRow;
  const textWith = (session: Properties) =>
    JSON.stringify({ ...propertiesOnce, ...session, ...JSON.parse(person.properties), ...properties });
  const isFitting = (text: string) => Buffer.byteLength(text) <= PEOPLE_LIMITS.personBytesMax;
  const all = textWith(JSON.parse(ofSession) as Properties);
  const text = isFitting(all) ? all : textWith({});
  if (!isFitting(text)) {
    throw new Refusal("properties", `must not exceed ${PEOPLE_LIMITS.personBytesMax} bytes for one person`);
  }
  await saveProperties(session, person.id, text, realm.now());
  return person.id;
}
