// The work of an event: the input of a track that counts the same. Events keep it, so that recorded ones can be decided anew
// under another catalog.

import type { Amounts, CallSize } from "../pricing/amounts.ts";
import type { Usage } from "../pricing/usage.ts";
import type { Amount } from "../values/amount.ts";
import type { Millis } from "../values/period.ts";

/** The work of an event. */
export interface Work {
  readonly size: CallSize;
  /** The event's cost, where it is not that of the size or the usage. */
  readonly costCents: Amount | null;
  /** What the model server reported. */
  readonly usage: Usage | null;
  /** What it costs in credits, whatever the rate; null for what the rate says. */
  readonly credits: Amount | null;
  /** How long before the event its amounts were reserved; null for an event without a reservation. */
  readonly heldForMs: Millis | null;
  /** What was reserved, where the event took more of a unit, and of a released reservation; else null. */
  readonly held: Amounts | null;
}

/** Of a released reservation: it took nothing in the end, but may have begun a session. */
export function workOfReleased(held: Amounts, heldForMs: Millis): Work {
  return { size: NO_SIZE, costCents: null, usage: null, credits: null, heldForMs, held };
}

const NO_SIZE: CallSize = { quantity: null, count: null, inputTokens: null, inputCostCents: null };

/** Of an event that an older version recorded: it kept its quantity and its cost alone. */
export function workOfOlder(quantity: Amount, costCents: Amount): Work {
  return {
    size: { quantity, count: null, inputTokens: null, inputCostCents: costCents },
    costCents: null,
    usage: null,
    credits: null,
    heldForMs: null,
    held: null,
  };
}
