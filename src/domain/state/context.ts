// The context of a decision: everything that it knows beside the user's state, so that the same state and context
// always give the same decision.

import type { IdSource } from "../values/ids.ts";
import type { Outbox } from "./outbox.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Millis } from "../values/period.ts";

/** What a decision knows beside the user's state. */
export interface Context {
  /** The one moment at which the decision is made. */
  readonly now: Millis;
  readonly catalog: Catalog;
  readonly ids: IdSource;
  /** How many more credit balances may be issued in the realm; null for no limit. */
  readonly balancesLeft: number | null;
  /** Where messages go; null where no webhook listens. */
  readonly outbox: Outbox | null;
}
