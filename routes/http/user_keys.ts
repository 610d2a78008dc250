// Checks users' keys, at the owner of the workspace's cell and in the user's turn.

import type { Directory } from "../../actors/directory.ts";
import { invalidEndUserKey } from "../../src/domain/accounts/end_user_keys.ts";
import type { Clock } from "../../src/process/clock.ts";
import { hasEndUserKey } from "../../src/storage/queries/end_user_keys.ts";
import type { Caller } from "../../src/tenant/registry.ts";
import type { PresentedKey } from "../../src/tenant/end_user_key.ts";
import type { ReadingWorld } from "./app_world.ts";
import type { EndUser } from "./auth.ts";
import { refusedWith } from "./errors.ts";

/** Where users' keys are checked. */
interface KeyWorld extends ReadingWorld {
  readonly clock: Clock;
  readonly term: { readonly directory: Pick<Directory, "runByKey" | "inMemoryByKey"> };
}

/**
 * Returns the user for whom a key acts; refuses a key that is unknown, revoked or expired.
 *
 * @throws Refused
 */
export async function checkUserKey(
  { term: { directory }, clock, reads }: KeyWorld,
  { realm, app }: Pick<Caller, "realm" | "app">,
  { owner, id, hash }: PresentedKey,
): Promise<EndUser> {
  // The tables have every key of a user who is not in memory. A stranger's guess must not load a user.
  const mayBeKnown = directory.inMemoryByKey(owner) !== null ||
    await hasEndUserKey(reads.of(app.record.appId), id, hash);
  const input = { id, hash, realNow: clock.now() };
  const result = mayBeKnown ? await directory.runByKey(owner, { realm, name: "useEndUserKey", input }) : null;
  if (result === null) throw refusedWith(invalidEndUserKey());
  if (!result.ok) throw refusedWith(result.refusal);
  return result.answer;
}
