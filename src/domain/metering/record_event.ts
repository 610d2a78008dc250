// Recording an event: every command that makes one does it here, with the log of its texts where that may be kept.
// Specification, "Prompt capture"; section 5 of the decisions.

import { type Amount, ONE } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { MeteringEvent } from "../state/event.ts";
import { mayLog } from "./prompt_log.ts";
import type { Reservation } from "../state/reservation.ts";

/** The texts of an event, cut already. */
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
  draft.appendEvent(isLogged || event.errorCode === null ? event : { ...event, errorCode: null });
  if (!isLogged || (prompt === null && response === null)) return;
  const { id: eventId, userKey, realm, createdAt: at } = event;
  draft.appendRecord({
    verb: "append",
    table: "event_logs",
    row: { eventId, userKey, realm, prompt, response, at },
  });
}

/** The quantity of an event: output seconds for a per_unit row, else as sent, else the count, else 1. */
export function eventQuantity(
  { perUnit, quantity, count }: Pick<Reservation, "perUnit" | "quantity" | "count">,
  seconds: Amount,
): Amount {
  return perUnit ? seconds : quantity ?? count ?? ONE;
}
