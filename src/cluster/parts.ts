// Types that the files of this folder share.

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

/** The parts of one node's term. */
export interface NodeParts {
  readonly writer: Writer;
  readonly term: Term;
  readonly registry: Registry;
  readonly changes: RegistryChanges;
  readonly buckets: RateBuckets;
  readonly database: Database;
  readonly clock: Clock;
  /** Null on the embedded store, which has no other nodes. */
  readonly hub: Hub | null;
  readonly owners: Owners;
  readonly counts: ClusterCounts;
  /** Background work for the cells of this node. */
  readonly sender: CellWorker;
}

/** Background work that begins when a cell is taken and ends when it is handed over. */
interface CellWorker {
  /** The cells accept calls. */
  taken(cells: readonly number[]): void;
  /** The cells are free, and may already have another owner. */
  given(cells: readonly number[]): void;
}

/** A notification between nodes: a hint, and nothing depends on it. */
export type Note =
  /** The registry has this version. */
  | { readonly registry: number }
  /** These cells have a new owner, or are free. */
  | { readonly cells: readonly number[]; readonly term: number | null };
