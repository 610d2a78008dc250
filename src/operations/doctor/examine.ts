// Examines the running service for the admin API: the facts of its store and of its term, as checks; and who serves
// beside it.

import { type Check, checkFeatures, checkGateway, checkStore, type Verdict, worstOf } from "./checks.ts";
import {
  type ClusterFacts,
  type ClusterView,
  readCluster,
  type Trouble,
  troublesOf,
} from "../../cluster/examine.ts";
import { storeFacts } from "./facts.ts";
import type { Term } from "../../../actors/term.ts";
import type { Clock } from "../../process/clock.ts";
import type { Features } from "../../process/features.ts";
import type { Database } from "../../storage/database.ts";

/** An examination: every check, and the worst of their verdicts. */
export interface Examination {
  readonly verdict: Verdict;
  readonly checks: readonly Check[];
}

/** What an examination uses of a running term. */
export interface ExaminedWorld {
  readonly database: Database;
  readonly clock: Clock;
  readonly term: Pick<Term, "drain" | "gate">;
  readonly features: Features;
  readonly node: ClusterView;
}

/** Examines the running service. */
export async function examine(world: ExaminedWorld): Promise<Examination> {
  const { database, clock, term, features, node: view } = world;
  const { drain, gate } = term;
  const facts = await storeFacts(database, () => clock.now());
  const own = {
    backlogChanges: drain.backlogChanges,
    backlogBytes: drain.backlogBytes,
    waitingChanges: gate.waitingChanges,
    view,
  };
  const checks = [
    ...checkStore(facts, own),
    checkGateway(features, facts.openApps ?? null),
    checkFeatures(features),
  ];
  return { verdict: worstOf(checks), checks };
}

/** Who serves the database, and what is wrong with them as this node sees it. */
export async function examineCluster(
  { database, node }: Pick<ExaminedWorld, "database" | "node">,
): Promise<ClusterFacts & { readonly troubles: readonly Trouble[] }> {
  const facts = await readCluster(database);
  return { ...facts, troubles: troublesOf(facts, node) };
}
