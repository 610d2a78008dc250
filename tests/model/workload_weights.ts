// How often each operation comes in a workload.

import type { Operation, ProviderOperation, RunOperation } from "./document.ts";

type MergeOperation = "alias" | "aliasBatch" | "customer";

const MERGE_OPERATIONS: Record<MergeOperation, number> = { alias: 2.2, aliasBatch: 0.7, customer: 2 };

const PROVIDER_OPERATIONS: Record<ProviderOperation, number> = {
  mirror: 9,
  paidGrant: 6,
  refund: 4,
  reinstate: 3,
};

const RUN_OPERATIONS: Record<RunOperation, number> = { createRun: 12, endRun: 3, getRun: 2, listRuns: 1 };
type OverageOperation = "spendCap" | "overage";

const OVERAGE_OPERATIONS: Record<OverageOperation, number> = { spendCap: 4, overage: 4 };
/** More of what changes subscriptions, where there is more to change. */
const OFFER_OPERATIONS = { unschedule: 9, subscribe: 25, cancel: 4 } as const;
const TREE_OPERATIONS: Record<"parent", number> = { parent: 5 };

const ENDPOINTS: Record<
  Exclude<
    Operation,
    MergeOperation | ProviderOperation | RunOperation | OverageOperation | "parent" | "unschedule"
  >,
  number
> = {
  reserve: 30,
  commit: 20,
  release: 8,
  track: 12,
  canUse: 5,
  usage: 4,
  users: 5,
  subscribe: 7,
  cancel: 2.5,
  grant: 8,
  extend: 0.7,
  revoke: 2,
  credits: 2.5,
  ledger: 3,
  events: 3,
  event: 3,
};

/** The weight of each operation in a workload that sends also the asked-for kinds. */
export function weightsOf(
  { merges = false, stripe = false, runs = false, trees = false, offers = false, overage = false }: Partial<
    Record<"merges" | "stripe" | "runs" | "trees" | "offers" | "overage", boolean>
  >,
): Record<Operation, number> {
  const weights: Partial<Record<Operation, number>> = {
    ...ENDPOINTS,
    ...(merges ? MERGE_OPERATIONS : {}),
    ...(stripe ? PROVIDER_OPERATIONS : {}),
    ...(runs ? RUN_OPERATIONS : {}),
    ...(trees ? TREE_OPERATIONS : {}),
    ...(offers ? OFFER_OPERATIONS : {}),
    ...(overage ? OVERAGE_OPERATIONS : {}),
  };
  return weights as Record<Operation, number>;
}
