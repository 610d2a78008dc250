// Keys of a user. A key acts for its user alone; after a merge it acts for the canonical user. It is checked and revoked in
// the user's turn, so a revoked key is refused from the moment at which the revocation is answered.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { END_USER_KEYS_MAX, type EndUserKey, hasExpired, type KeyHolder } from "../state/end_user_key.ts";
import type { Millis } from "../values/period.ts";
import { invalidField, type Refusal, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";

/** The input of `POST /v1/users/{userId}/keys`, with the hash of a new secret in place of the secret. */
export interface CreateEndUserKeyInput {
  readonly name: string | null;
  readonly expiresAt: Millis | null;
  readonly prefix: string;
  readonly hash: string;
  /** The real moment. */
  readonly realNow: Millis;
}

/** The keys of a user that are not revoked, newest first. */
export interface EndUserKeysAnswer {
  readonly keys: readonly EndUserKey[];
}

/** A key that a caller presents. */
export interface UseEndUserKeyInput {
  readonly id: string;
  readonly hash: string;
  readonly realNow: Millis;
}

export interface RevokeEndUserKeyInput {
  readonly id: string;
  readonly realNow: Millis;
}

const DAY_MS = 86_400_000;

/** Creates a key. The user exists from then on. Among too many keys, one that has expired gives way. */
export function createEndUserKey(
  draft: Draft,
  { realNow, ...input }: CreateEndUserKeyInput,
  { ids }: Context,
): Result<EndUserKey> {
  if (input.expiresAt !== null && input.expiresAt <= realNow) {
    return refused(invalidField("expiresAt", "must be in the future"));
  }
  const known = [...draft.state.endUserKeys?.values() ?? []];
  if (known.length >= END_USER_KEYS_MAX) {
    const expired = known.find((row) => hasExpired(row, realNow));
    if (expired === undefined) {
      return refused(invalidField("", `A user may have at most ${END_USER_KEYS_MAX} keys; revoke one first`));
    }
    revoke(draft, expired, realNow);
  }
  const { key: userKey } = draft.user;
  const id = ids.nextOwned("endUserKey", userKey);
  const row = { ...input, id, userKey, createdAt: realNow, lastUsedAt: null, revokedAt: null };
  draft.appendRecord({ verb: "append", table: "end_user_keys", row });
  return answered(row);
}

/** Lists the keys that are not revoked, expired ones too. */
export function endUserKeys({ state }: Draft): Result<EndUserKeysAnswer> {
  return answered({ keys: [...state.endUserKeys?.values() ?? []].reverse() });
}

/** Checks a presented key; refuses one that is unknown, revoked or expired. */
export function useEndUserKey(
  draft: Draft,
  { id, hash, realNow }: UseEndUserKeyInput,
): Result<KeyHolder> {
  const row = draft.state.endUserKeys?.get(id);
  if (row === undefined || !equalsHash(hash, row.hash) || hasExpired(row, realNow)) {
    return refused(invalidEndUserKey());
  }
  // A write for each call would cost more than the call.
  if (row.lastUsedAt === null || Math.floor(row.lastUsedAt / DAY_MS) < Math.floor(realNow / DAY_MS)) {
    draft.appendRecord({ verb: "put", table: "end_user_keys", row: { ...row, lastUsedAt: realNow } });
  }
  return answered({ userId: draft.user.id, expiresAt: row.expiresAt });
}

/** Revokes a key. */
export function revokeEndUserKey(
  draft: Draft,
  { id, realNow }: RevokeEndUserKeyInput,
): Result<Record<never, never>> {
  const row = draft.state.endUserKeys?.get(id);
  if (row === undefined) return refused(refusal("not_found", `Key not found: ${id}`));
  revoke(draft, row, realNow);
  return answered({});
}

/** Moves the keys of a user that becomes an alias: they act for the canonical user. */
export function moveEndUserKeys({ state: { endUserKeys } }: Draft, to: Draft): void {
  for (const row of endUserKeys?.values() ?? []) {
    const moved = { ...row, userKey: to.user.key };
    to.appendRecord({ verb: "put", table: "end_user_keys", row: moved });
  }
}

/** The refusal of a key that is no valid key of any user. */
export function invalidEndUserKey(): Refusal {
  return refusal("invalid_key", "The API key is missing, malformed or revoked");
}

function revoke(draft: Draft, row: EndUserKey, revokedAt: Millis): void {
  draft.appendRecord({
    verb: "put",
    table: "end_user_keys",
    row: { ...row, name: null, hash: "", revokedAt },
  });
}

/** Whether two hashes are equal, in time that does not depend on where they differ. */
function equalsHash(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let at = 0; at < one.length; at++) difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}
