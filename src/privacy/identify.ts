// Identify: properties of a person, and the merge of an anonymous session into it. An id that opted out of analytics
// gets an answer of the same form, and nothing of it is stored. Section 9 of the decisions.

import { Buffer } from "node:buffer";
import type { Realm } from "../../actors/actor.ts";
import { invalidRequest } from "../domain/refusal.ts";
import { answered, refused, type Result } from "../domain/result.ts";
import { SCOPE_BITS } from "../domain/user.ts";
import type { Serving } from "../service/service.ts";
import type { Session } from "../storage/database.ts";
import { PEOPLE_LIMITS } from "./limits.ts";
import { link, spreadOptOuts } from "./link.ts";
import {
  isSilenced,
  lockPerson,
  lockRealm,
  makePerson,
  type PersonRow,
  type Properties,
  readPerson,
  shareRealm,
  standingOf,
} from "./person_rows.ts";
import { standInPersonId } from "./pseudonyms.ts";

/** What is said of an id. */
export interface Identification {
  readonly distinctId: string;
  /** Overwrite what is there. */
  readonly properties: Properties;
  /** Do not. */
  readonly propertiesOnce: Properties;
  /** A session of the same person, with consent to say so; null for none. */
  readonly anonymousId: string | null;
}

export interface Identified {
  readonly personId: string;
  readonly merged: boolean;
}

/** Undoes the transaction of a call that is refused. */
class Refusal extends Error {
  /** The member at fault. */
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

/** Says who an id is. */
export async function identify(
  serving: Serving,
  realm: Realm,
  call: Identification,
): Promise<Result<Identified>> {
  const { distinctId, anonymousId } = call;
  try {
    const personId = anonymousId === null
      ? await serving.database.transaction(async (session) => {
        await shareRealm(session, realm.realm);
        return await identifyOne(session, serving, realm, call);
      })
      : await identifyMerged(serving, realm, { ...call, anonymousId });
    const stored = personId ??
      standInPersonId(serving.features.privacySecret ?? "", realm.realm, distinctId);
    return answered({ personId: stored, merged: anonymousId !== null });
  } catch (error) {
    if (error instanceof Refusal) return refused(invalidRequest(error.path, error.message));
    throw error;
  }
}

async function identifyMerged(
  serving: Serving,
  realm: Realm,
  call: Identification & { readonly anonymousId: string },
): Promise<string | null> {
  const { database, ids } = serving;
  const { distinctId, anonymousId } = call;
  const own = await standingOf(database, realm.realm, distinctId);
  const anonymous = await readPerson(database, realm.realm, anonymousId);
  // Before opt-outs of a session are put on somebody who has nothing to do with it.
  if (anonymous !== null && anonymous.id !== own.personId) refuseIdentified(anonymous);
  if (!own.isErasing && !(await standingOf(database, realm.realm, anonymousId)).isErasing) {
    await spreadOptOuts(serving, realm, [distinctId, anonymousId]);
  }
  const personId = await database.transaction(async (session) => {
    await lockRealm(session, realm.realm);
    const links = !isSilenced(own) && await isLinkable(session, realm.realm, anonymousId);
    const person = links
      ? await link(session, { realm, ids }, anonymousId, distinctId, refuseIdentified)
      : null;
    return await identifyOne(session, serving, realm, call) ?? person?.id ?? null;
  });
  await spreadOptOuts(serving, realm, [distinctId]);
  return personId;
}

function refuseIdentified(anonymous: PersonRow): true {
  if (anonymous.identified_at_ms === null) return true;
  throw new Refusal("mergeAnonymousId", "has been identified before");
}

/** A session that opted out is linked only if it is known by its id anyway. */
async function isLinkable(session: Session, realm: number, anonymousId: string): Promise<boolean> {
  const { personId, optedOut, isErasing } = await standingOf(session, realm, anonymousId);
  return !isErasing && (personId !== null || (optedOut & SCOPE_BITS.analytics) === 0);
}

/** Stores the properties of a person who may be named; answers the person, or null where the id has none. */
async function identifyOne(
  session: Session,
  { ids }: Serving,
  realm: Realm,
  { distinctId, properties, propertiesOnce }: Identification,
): Promise<string | null> {
  while (true) {
    const standing = await standingOf(session, realm.realm, distinctId);
    if (isSilenced(standing)) return standing.personId;
    if (standing.personId !== null || await makePerson(session, { realm, ids }, distinctId) !== null) break;
  }
  const person = await lockPerson(session, realm.realm, distinctId) as PersonRow;
  const text = JSON.stringify({ ...propertiesOnce, ...JSON.parse(person.properties), ...properties });
  if (Buffer.byteLength(text) > PEOPLE_LIMITS.personBytesMax) {
    throw new Refusal("properties", `a person has at most ${PEOPLE_LIMITS.personBytesMax} bytes of them`);
  }
  await session.query(
    `update people set properties = $2, identified_at_ms = coalesce(identified_at_ms, $3::bigint) where id = $1`,
    [person.id, text, realm.now()],
  );
  return person.id;
}
