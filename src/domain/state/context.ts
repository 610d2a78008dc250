// The context of a decision: everything it depends on beside the user's state. The same state and context always give the
// same decision.

import type { IdSource } from "../values/ids.ts";
import type { Outbox } from "./outbox.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Millis } from "../values/period.ts";

/** What a decision depends on beside the user's state. */
export interface Context {
  /** The time of the decision; it does not pass during one. */
  readonly now: Millis;
  /** Real time, for what counts by the real month; absent where it is `now`. */
  readonly realNow?: () => Millis;
  readonly catalog: Catalog;
  readonly ids: IdSource;
  /** How many more credit balances may be issued in the realm; null for no limit. */
  readonly balancesLeft: number | null;
  /** The webhooks that receive messages; null for none. */
  readonly outbox: Outbox | null;
}
