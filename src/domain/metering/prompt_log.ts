// Whether a user's texts may be logged. What may not be logged is written nowhere, not even on an open reservation.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { SCOPE_BITS } from "../state/user.ts";

/** Whether texts of this user may be written now: the app logs prompts, and the user has not opted out. */
export function mayLog(draft: Draft, { catalog }: Context): boolean {
  return catalog.promptLogging && (draft.user.optedOut & SCOPE_BITS.prompt_logging) === 0;
}
