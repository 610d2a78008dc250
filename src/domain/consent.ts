// Consent: what a user opted out of. It is kept on the user's own row, so that every decision sees it. Specification,
// "Opt-out scopes"; section 9 of the decisions.

import type { UserKey } from "./values/ids.ts";
import type { ConsentEntry } from "./state/user.ts";
import type { Context } from "./state/context.ts";
import type { Draft } from "./state/draft.ts";
import { answered, type Result } from "./state/result.ts";

/** A change of consent. Scopes are sums of SCOPE_BITS. */
export interface ConsentInput {
  /** Scopes to opt out of. */
  readonly add: number;
  /** Scopes to opt back in to; wins over `add`. */
  readonly remove: number;
  /** The audit entry of a change; null for none. */
  readonly entry: Pick<ConsentEntry, "distinctId" | "action" | "scope"> | null;
  /** Marks the user as one that is about to be erased; undefined keeps. */
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

/** Decides a change of consent; one that changes nothing writes nothing. */
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
