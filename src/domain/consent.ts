// Consent: what a user opted out of, on the user's own row, so that every decision sees it. Specification, "Opt-out
// scopes"; section 9 of the decisions.

import { answered, type ConsentAnswer, type ConsentInput, type Context, type Result } from "./command.ts";
import type { Draft } from "./draft.ts";

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
