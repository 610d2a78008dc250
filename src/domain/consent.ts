// Consent: the scopes that a user opted out of. They are kept on the user's own row, so that every decision sees them. Each
// call that changes something writes one audit entry. Existing data is kept on an opt-out; only an erasure removes it.

import type { UserKey } from "./values/ids.ts";
import type { ConsentEntry } from "./state/user.ts";
import type { Context } from "./state/context.ts";
import type { Draft } from "./state/draft.ts";
import { answered, type Result } from "./state/result.ts";

/** A change of consent. Scopes are sums of SCOPE_BITS. */
export interface ConsentInput {
  /** Scopes to opt out of. */
  readonly add: number;
  /** Scopes to opt in to again; wins over `add`. */
  readonly remove: number;
  /** The audit entry of a change; null for none. */
  readonly entry: Pick<ConsentEntry, "distinctId" | "action" | "scope"> | null;
  /** Marks the user as pending deletion; undefined keeps the mark. */
  readonly isErasing?: boolean;
}

export interface ConsentAnswer {
  /** The canonical user's. */
  readonly userId: string;
  readonly userKey: UserKey;
  /** The scopes that the user is opted out of now, as a sum of SCOPE_BITS. */
  readonly optedOut: number;
  /** Whether the call changed them. */
  readonly hasChanged: boolean;
}

/** Decides a change of consent; without a change it writes nothing. */
export function consent(draft: Draft, input: ConsentInput, { ids, now }: Context): Result<ConsentAnswer> {
  const { id: userId, key: userKey, realm, optedOut: before } = draft.user;
  const optedOut = (before | input.add) & ~input.remove;
  const isErasing = input.isErasing ?? draft.user.isErasing;
  const hasChanged = optedOut !== before;
  if (hasChanged || isErasing !== draft.user.isErasing) draft.putUser({ optedOut, isErasing });
  if (hasChanged && input.entry !== null) {
    draft.appendRecord({
      verb: "append",
      table: "consents",
      row: { id: ids.next("consent"), userKey, realm, ...input.entry, at: now },
    });
  }
  return answered({ userId, userKey, optedOut, hasChanged });
}
