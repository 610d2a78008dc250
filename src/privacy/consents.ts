// Opting out and in, for every id of a person: the flags stand on the users' own rows, through their actors, and are in
// the tables before a call is answered. Section 9 of the decisions.

import type { Realm } from "../../actors/actor.ts";
import type { ConsentAnswer, ConsentInput } from "../domain/consent.ts";
import type { UserKey } from "../domain/ids.ts";
import { type ConsentEntry, type ConsentScope, SCOPE_BITS } from "../domain/user.ts";
import { readConsent } from "../read/consent.ts";
import type { Serving } from "../service/service.ts";
import { forgetPseudonym, idsOfPerson } from "./people.ts";

/** The bits of a scope: `all` is analytics and personalization, not prompt logging. */
export function bitsOf(scope: ConsentScope): number {
  return scope === "all" ? SCOPE_BITS.analytics | SCOPE_BITS.ai_personalization : SCOPE_BITS[scope];
}

/** Opts a person out of a scope, or back in; answers the number of the user that the id stands for. */
export async function changeConsent(
  serving: Serving,
  realm: Realm,
  distinctId: string,
  action: ConsentEntry["action"],
  scope: ConsentScope,
): Promise<UserKey | null> {
  const bits = bitsOf(scope);
  const ids = await idsOfPerson(serving.database, realm.realm, distinctId);
  const [add, remove] = action === "opt_out" ? [bits, 0] : [0, bits];
  let entry: ConsentInput["entry"] = { distinctId, action, scope };
  let userKey: UserKey | null = null;
  for (const id of [distinctId, ...ids.filter((other) => other !== distinctId)]) {
    const answer = await putConsent(serving, realm, id, { add, remove, entry });
    userKey ??= answer.userKey;
    // One entry a call, however many ids it reached.
    if (answer.hasChanged) entry = null;
  }
  await serving.term.flush();
  if ((remove & SCOPE_BITS.analytics) !== 0) {
    await forgetPseudonym(serving.database, serving.features, realm.realm, ids);
  }
  return userKey;
}

/** Puts what one id of a person opted out of on the others. */
export async function addOptOuts(
  serving: Serving,
  realm: Realm,
  distinctIds: readonly string[],
  bits: number,
): Promise<void> {
  if (bits === 0) return;
  for (const id of distinctIds) await putConsent(serving, realm, id, { add: bits, remove: 0, entry: null });
  await serving.term.flush();
}

/** Whether the user behind an id has opted out of a scope. */
export async function isOptedOut(
  { database, term }: Serving,
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
  { term }: Serving,
  realm: Realm,
  id: string,
  change: ConsentInput,
): Promise<ConsentAnswer> {
  const result = await term.directory.runById(id, { realm, name: "consent", input: change });
  if (!result.ok) throw new Error(`A consent was refused: ${result.refusal.code}`);
  return result.answer;
}
