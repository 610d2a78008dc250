// Capture: records an event of a person, of a pseudonym, or an anonymous one. The answer never shows which. The event of a
// person who opted out of analytics is recorded under a random pseudonym; its id is not stored.

import type { Realm } from "../../actors/call.ts";
import type { Millis } from "../domain/values/period.ts";
import type { Session } from "../storage/database.ts";
import { insertCaptured } from "../storage/stores/capture_store.ts";
import { readPersonState } from "../storage/stores/people_store.ts";
import { linksDrained } from "./drained_links.ts";
import { unitePeople } from "./link.ts";
import { isSilenced, makePerson } from "./people.ts";
import { pseudonymOf } from "./pseudonyms.ts";
import type { PeopleWorld } from "./world.ts";

/** A value of a property. */
type Property = string | number | boolean | null;
export type Properties = Readonly<Record<string, Property>>;

/** An event to record. */
interface Captured {
  /** null for an anonymous event. */
  readonly distinctId: string | null;
  readonly event: string;
  readonly properties: Properties;
  readonly at: Millis;
}

/** The owner of an event in its row; both null for an anonymous one. */
interface EventOwner {
  readonly personId: string | null;
  readonly pseudonym: string | null;
}

const ANONYMOUS: EventOwner = { personId: null, pseudonym: null };

/**
 * Records an event, unless its person is about to be erased.
 *
 * @param keep keeps the first answer in the same transaction; null for a call without an idempotency key
 */
export async function capture(
  world: PeopleWorld,
  realm: Realm,
  captured: Captured,
  keep: ((session: Session) => Promise<void>) | null,
): Promise<void> {
  const { distinctId } = captured;
  if (distinctId !== null) await linksDrained(world);
  const isDone = () =>
    world.inCell(realm.cell, async (session) => {
      if (!await captureIn(session, world, realm, captured)) return false;
      await keep?.(session);
      return true;
    });
  while (!await isDone()) await unitePeople(world, realm, distinctId as string);
}

/** Captures in a transaction; false when the people of linked ids have to become one person first. */
async function captureIn(
  session: Session,
  world: PeopleWorld,
  realm: Realm,
  { distinctId, event, properties, at }: Captured,
): Promise<boolean> {
  const owner = distinctId === null ? ANONYMOUS : await ownerOf(session, world, realm, distinctId);
  if (owner === "split") return false;
  if (owner === "erased") return true;
  await insertCaptured(session, {
    id: world.ids.next("analyticsEvent"),
    realm: realm.realm,
    ...owner,
    event,
    properties: JSON.stringify(properties),
    at,
  });
  return true;
}

/** Finds the owner of an event by its id. */
async function ownerOf(
  session: Session,
  { features, ids }: Pick<PeopleWorld, "features" | "ids">,
  realm: Realm,
  distinctId: string,
): Promise<EventOwner | "erased" | "split"> {
  while (true) {
    const standing = await readPersonState(session, realm.realm, distinctId);
    if (standing.isErasing) return "erased";
    if (isSilenced(standing)) {
      const { privacySecret } = features;
      if (privacySecret === null) return "erased";
      const { personId } = standing;
      const pseudonym = await pseudonymOf(session, privacySecret, realm.realm, distinctId, personId);
      return { personId: null, pseudonym };
    }
    if (standing.isSplit) return "split";
    const personId = standing.personId ?? await makePerson(session, ids, realm, distinctId);
    // Null: another call has just given the id a person, who may have opted out. Look again.
    if (personId !== null) return { personId, pseudonym: null };
  }
}
