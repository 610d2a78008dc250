// Recording an event: the one place for it, with the log of its prompt and response if texts may be logged.

import { type Amount, ONE } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { MeteringEvent } from "../state/event.ts";
import { mayLog } from "./prompt_log.ts";
import type { Reservation } from "../state/reservation.ts";
import { primaryOf } from "../state/subscription.ts";

/** The texts of an event, already cut. */
interface Texts {
  readonly prompt: string | null;
  readonly response: string | null;
}

/** Records an event with the plan that it is under, and its texts and error code if texts may be logged. */
export function recordEvent(
  draft: Draft,
  event: MeteringEvent,
  { prompt, response }: Texts,
  context: Context,
): void {
  const isLogged = mayLog(draft, context);
  const errorCode = isLogged ? event.errorCode : null;
  draft.appendEvent({ ...event, errorCode, ...planOf(draft, context) });
  if (!isLogged || (prompt === null && response === null)) return;
  const { id: eventId, userKey, realm, createdAt: at } = event;
  draft.appendRecord({
    verb: "append",
    table: "event_logs",
    row: { eventId, userKey, realm, prompt, response, at },
  });
}

const NO_PLAN: Pick<MeteringEvent, "planId"> = {};

/** The primary plan of the user, or of the nearest account above that has one. */
function planOf(draft: Draft, { catalog, now }: Context): typeof NO_PLAN {
  const own = primaryOf(draft.subscriptions(), catalog, now);
  if (own !== null) return { planId: own.planId };
  for (const level of draft.above) {
    const row = primaryOf(level.subscriptions(), catalog, now);
    if (row !== null) return { planId: row.planId };
  }
  return NO_PLAN;
}

/** The quantity of an event: the final seconds for a model priced by the second, else as sent, else the count, else 1. */
export function eventQuantity(
  { perUnit, quantity, count }: Pick<Reservation, "perUnit" | "quantity" | "count">,
  seconds: Amount,
): Amount {
  return perUnit ? seconds : quantity ?? count ?? ONE;
}
