// Prompt logs: whether an event's texts may be kept, and the log that keeps them. Specification, "Prompt capture";
// sections 5 and 9 of the decisions.

import type { Context } from "../context.ts";
import type { Draft } from "../draft.ts";
import { SCOPE_BITS } from "../user.ts";
import type { MeteringEvent } from "./event.ts";

/** Whether texts of this user may be written now: the app logs, and the user has not opted out. */
export function mayLog(draft: Draft, { catalog }: Context): boolean {
  return catalog.promptLogging && (draft.user.optedOut & SCOPE_BITS.prompt_logging) === 0;
}

/** The texts of an event. */
export interface Texts {
  readonly prompt: string | null;
  readonly response: string | null;
}

/** Records an event with its texts, as far as they may be kept; its error code follows the same rule. */
export function recordEvent(
  draft: Draft,
  event: MeteringEvent,
  { prompt, response }: Texts,
  context: Context,
): void {
  const isLogged = mayLog(draft, context);
  draft.appendEvent(isLogged ? event : { ...event, errorCode: null });
  if (!isLogged || (prompt === null && response === null)) return;
  const { id: eventId, userKey, realm, createdAt: at } = event;
  draft.appendRecord({
    verb: "append",
    table: "event_logs",
    row: { eventId, userKey, realm, prompt, response, at },
  });
}
