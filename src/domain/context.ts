// The context of a decision: everything that it knows beside the user's state.

import type { IdSource } from "./ids.ts";
import type { Catalog } from "./plans/catalog.ts";
import type { Millis } from "./plans/period.ts";

/** What a decision knows beside the user's state: one moment, one catalog, new ids. */
export interface Context {
  readonly now: Millis;
  readonly catalog: Catalog;
  readonly ids: IdSource;
  /** How many more credit balances may be issued in the realm; null for no limit. */
  readonly balancesLeft: number | null;
}
