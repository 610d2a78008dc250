// What the files of this folder share: the parts of one member's term.

import type { Term } from "../../actors/term.ts";
import type { Hub } from "../channel/hub.ts";
import type { ClusterCounts } from "./cluster_counts.ts";
import type { Clock } from "../process/clock.ts";
import type { Database } from "../storage/database.ts";
import type { Writer } from "../storage/journal/writer.ts";
import type { RateBuckets } from "../tenant/rate_buckets.ts";
import type { Registry } from "../tenant/registry.ts";
import type { RegistryChanges } from "../tenant/registry_changes.ts";
import type { Owners } from "./owners.ts";

/** One member's term. */
export interface MemberParts {
  readonly writer: Writer;
  readonly term: Term;
  readonly registry: Registry;
  readonly changes: RegistryChanges;
  readonly buckets: RateBuckets;
  readonly database: Database;
  readonly clock: Clock;
  /** Null on the embedded store, where nobody else can be. */
  readonly hub: Hub | null;
  readonly owners: Owners;
  readonly counts: ClusterCounts;
  /** What works beside the calls for the cells that are here. */
  readonly sender: CellWorker;
}

/** Work beside the calls that begins when a cell comes and ends when it goes. */
export interface CellWorker {
  /** Their doors are open. */
  taken(cells: readonly number[]): void;
  /** They are free, and may be another's already. */
  given(cells: readonly number[]): void;
}

/** What members tell each other unasked; each is a hint, and nothing depends on one. */
export type Note =
  /** The registry has this version. */
  | { readonly registry: number }
  /** These cells have a new owner, or are free. */
  | { readonly cells: readonly number[]; readonly term: number | null };
