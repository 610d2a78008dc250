// Opting out and in, for every id of a person. The flags are on the users' own rows and change in the users' actors; they
// are in the tables before a call is answered.

import type { Realm } from "../../actors/call.ts";
import type { ConsentAnswer, ConsentInput } from "../domain/consent.ts";
import type { UserKey } from "../domain/values/ids.ts";
import { type ConsentEntry, type ConsentScope, SCOPE_BITS } from "../domain/state/user.ts";
import { readConsent } from "../storage/queries/consent.ts";
import { linksDrained } from "./drained_links.ts";
import { idsCoveredBy } from "./people.ts";
import { forgetPseudonyms } from "./pseudonyms.ts";
import type { PeopleWorld } from "./world.ts";

/** The bits of a scope: `all` is analytics and personalization, not prompt logging. */
function bitsOf(scope: ConsentScope): number {
  return scope === "all" ? SCOPE_BITS.analytics | SCOPE_BITS.ai_personalization : SCOPE_BITS[scope];
}

/** Opts a person out of a scope, or back in; returns the key of the user behind the id. */
export async function changeConsent(
  world: PeopleWorld,
  realm: Realm,
  distinctId: string,
  action: ConsentEntry["action"],
  scope: ConsentScope,
): Promise<UserKey | null> {
  const bits = bitsOf(scope);
  await linksDrained(world);
  const ids = await idsCoveredBy(world.database, realm.realm, [distinctId]);
  const [add, remove] = action === "opt_out" ? [bits, 0] : [0, bits];
  let entry: ConsentInput["entry"] = { distinctId, action, scope };
  let userKey: UserKey | null = null;
  for (const id of [distinctId, ...ids.filter((other) => other !== distinctId)]) {
    const answer = await putConsent(world, realm, id, { add, remove, entry });
    userKey ??= answer.userKey;
    // One entry in the consent log for each call, however many ids it changes.
    if (answer.hasChanged) entry = null;
  }
  await world.term.flush();
  if ((remove & SCOPE_BITS.analytics) !== 0) {
    const { privacySecret } = world.features;
    await world.inCell(realm.cell, (session) => forgetPseudonyms(session, privacySecret, realm.realm, ids));
  }
  return userKey;
}

/** Copies the opt-outs of one id of a person to the others. */
export async function addOptOuts(
  world: Pick<PeopleWorld, "term">,
  realm: Realm,
  distinctIds: readonly string[],
  bits: number,
): Promise<void> {
  if (bits === 0) return;
  for (const id of distinctIds) await putConsent(world, realm, id, { add: bits, remove: 0, entry: null });
  await world.term.flush();
}

/** Whether the user behind an id has opted out of a scope. */
export async function isOptedOut(
  { database, term }: Pick<PeopleWorld, "database" | "term">,
  realm: number,
  distinctId: string,
  scope: Exclude<ConsentScope, "all">,
): Promise<boolean> {
  await term.flush();
  const { optedOut } = await readConsent(database, realm, distinctId);
  return (optedOut & SCOPE_BITS[scope]) !== 0;
}

/** Changes the consent of one user. */
export async function putConsent(
  { term }: Pick<PeopleWorld, "term">,
  realm: Realm,
  id: string,
  change: ConsentInput,
): Promise<ConsentAnswer> {
  const result = await term.directory.runById(id, { realm, name: "consent", input: change });
  if (!result.ok) throw new Error(`A consent was refused: ${result.refusal.code}`);
  return result.answer;
}
