// Capture: an event of a person, of somebody under a pseudonym, or of nobody. What becomes of it never shows in the
// answer. Section 9 of the decisions.

import type { Realm } from "../../actors/actor.ts";
import type { Millis } from "../domain/plans/period.ts";
import { isSilenced, makePerson, type Properties, standingOf } from "./person_rows.ts";
import { pseudonymOf } from "./pseudonyms.ts";
import type { Serving } from "../service/service.ts";
import type { Session } from "../storage/database.ts";

/** An event as it was sent. */
export interface Captured {
  /** null for an anonymous one. */
  readonly distinctId: string | null;
  readonly event: string;
  readonly properties: Properties;
  readonly at: Millis;
}

/** Whose an event is in its row. */
interface EventOwner {
  readonly personId: string | null;
  readonly pseudonym: string | null;
}

const NOBODY: EventOwner = { personId: null, pseudonym: null };

/** Records an event, unless its person is about to be erased. */
export async function capture(serving: Serving, realm: Realm, captured: Captured): Promise<void> {
  const { database, ids } = serving;
  const { distinctId, event, properties, at } = captured;
  await database.transaction(async (session) => {
    const owner = distinctId === null ? NOBODY : await eventOwner(session, serving, realm, distinctId);
    if (owner === null) return;
    await session.query(
      `insert into analytics_events (id, realm, person_id, pseudonym, event, properties, at_ms)
       values ($1, $2::int, $3, $4, $5, $6, $7::bigint)`,
      [
        ids.next("analyticsEvent"),
        realm.realm,
        owner.personId,
        owner.pseudonym,
        event,
        JSON.stringify(properties),
        at,
      ],
    );
  });
}

/** Whose an event of an id is; null for one that is not to be kept. */
async function eventOwner(
  session: Session,
  { features, ids }: Serving,
  realm: Realm,
  distinctId: string,
): Promise<EventOwner | null> {
  while (true) {
    const standing = await standingOf(session, realm.realm, distinctId);
    if (standing.isErasing) return null;
    if (isSilenced(standing)) {
      const { privacySecret } = features;
      if (privacySecret === null) return null;
      const { personId } = standing;
      const pseudonym = await pseudonymOf(session, privacySecret, realm.realm, distinctId, personId);
      return { personId: null, pseudonym };
    }
    const personId = standing.personId ?? await makePerson(session, { realm, ids }, distinctId);
    // An id that was given a person at the same time may have joined one who opted out.
    if (personId !== null) return { personId, pseudonym: null };
  }
}
