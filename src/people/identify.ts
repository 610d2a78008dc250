// Identify: sets properties of a person, and merges an anonymous session into it. An id that opted out of analytics gets
// an answer of the same form, and nothing is stored for it.

import { Buffer } from "node:buffer";
import type { Realm } from "../../actors/actor.ts";
import { invalidField } from "../domain/values/refusal.ts";
import { answered, refused, type Result } from "../domain/state/result.ts";
import { SCOPE_BITS } from "../domain/state/user.ts";
import type { Session } from "../storage/database.ts";
import { PEOPLE_LIMITS } from "../process/limits.ts";
import {
  lockPerson,
  lockRealm,
  type PersonRow,
  readPerson,
  readPersonState,
  saveProperties,
  shareRealm,
} from "../storage/stores/people_store.ts";
import type { Properties } from "./capture.ts";
import { link, spreadOptOuts, unitePeople } from "./link.ts";
import { isSilenced, makePerson } from "./people.ts";
import { standInPersonId } from "./person_id.ts";
import type { PeopleWorld } from "./world.ts";

/** The properties to store for an id. */
export interface Identification {
  readonly distinctId: string;
  /** These overwrite the stored ones. */
  readonly properties: Properties;
  /** These are only stored where there is no value yet. */
  readonly propertiesOnce: Properties;
  /** An anonymous session of the same person, who gave consent; null for none. */
  readonly anonymousId: string | null;
}

export interface Identified {
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
  const { distinctId, anonymousId } = call;
  await unitePeople(world, realm, distinctId);
  try {
    const personId = anonymousId === null
      ? await world.inCell(realm.cell, async (session) => {
        await shareRealm(session, realm.realm);
        return await identifyOne(session, world, realm, call);
      })
      : await identifyMerged(world, realm, { ...call, anonymousId });
    const stored = personId ??
      standInPersonId(world.features.privacySecret ?? "", realm.realm, distinctId);
    return answered({ personId: stored, merged: anonymousId !== null });
  } catch (error) {
    if (error instanceof Refusal) return refused(invalidField(error.path, error.message));
    throw error;
  }
}

async function identifyMerged(
  world: PeopleWorld,
  realm: Realm,
  call: Identification & { readonly anonymousId: string },
): Promise<string | null> {
  const { database, ids } = world;
  const { distinctId, anonymousId } = call;
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
      ? await link(session, { realm, ids }, anonymousId, distinctId, refuseIdentified)
      : null;
    return await identifyOne(session, world, realm, call) ?? person?.id ?? null;
  });
  await spreadOptOuts(world, realm, [distinctId]);
  return personId;
}

function refuseIdentified(anonymous: PersonRow): true {
  if (anonymous.identified_at_ms === null) return true;
  throw new Refusal("mergeAnonymousId", "was already identified");
}

/** A session that opted out is linked only if its id has a person already: nothing new is stored about it. */
async function isLinkable(session: Session, realm: number, anonymousId: string): Promise<boolean> {
  const { personId, optedOut, isErasing } = await readPersonState(session, realm, anonymousId);
  return !isErasing && (personId !== null || (optedOut & SCOPE_BITS.analytics) === 0);
}

/** Stores the properties of a person who did not opt out; returns the person, or null where the id has none. */
async function identifyOne(
  session: Session,
  { ids }: Pick<PeopleWorld, "ids">,
  realm: Realm,
  { distinctId, properties, propertiesOnce }: Identification,
): Promise<string | null> {
  while (true) {
    const standing = await readPersonState(session, realm.realm, distinctId);
    if (isSilenced(standing)) return standing.personId;
    if (standing.personId !== null || await makePerson(session, ids, realm, distinctId) !== null) break;
  }
  const person = await lockPerson(session, realm.realm, distinctId) as PersonRow;
  const text = JSON.stringify({ ...propertiesOnce, ...JSON.parse(person.properties), ...properties });
  if (Buffer.byteLength(text) > PEOPLE_LIMITS.personBytesMax) {
    throw new Refusal("properties", `must not exceed ${PEOPLE_LIMITS.personBytesMax} bytes for one person`);
  }
  await saveProperties(session, person.id, text, realm.now());
  return person.id;
}
