// Examines the running service for the admin API: checks of its store and of its term, and the other processes that serve.

import {
  type Check,
  checkFeatures,
  checkGateway,
  checkLong,
  checkStore,
  fail,
  ok,
  type Verdict,
  worstOf,
} from "./checks.ts";
import {
  type ClusterFacts,
  type ClusterView,
  readCluster,
  type Trouble,
  troublesOf,
} from "../../cluster/examine.ts";
import { longFacts, storeFacts } from "./facts.ts";
import type { Term } from "../../../actors/term.ts";
import type { Clock } from "../../process/clock.ts";
import type { Features } from "../../process/features.ts";
import type { Database } from "../../storage/database.ts";

/** An examination: every check, and the worst of their verdicts. */
interface Examination {
  readonly verdict: Verdict;
  readonly checks: readonly Check[];
}

/** What an examination uses of a running term. */
interface ExaminedWorld {
  readonly database: Database;
  readonly clock: Clock;
  readonly term: Pick<Term, "drain" | "gate">;
  readonly features: Features;
  readonly node: ClusterView;
}

/** Whether an examination leaves out the checks that read every catalog and a sample of accounts, or makes only these. */
type WithLong = "with" | "without" | "only";

/** Examines the running service. */
export async function examine(world: ExaminedWorld, long: WithLong = "with"): Promise<Examination> {
  const { database, clock, term, features, node: view } = world;
  const { drain, gate } = term;
  const now = () => clock.now();
  if (long === "only") {
    const facts = await longFacts(database, now);
    return examinationOf([...checkLong(facts), checkGateway(features, facts)]);
  }
  const facts = await storeFacts(database, now, long === "with");
  const own = {
    backlogChanges: drain.backlogChanges,
    backlogBytes: drain.backlogBytes,
    waitingChanges: gate.waitingChanges,
    view,
  };
  return examinationOf([
    ...checkStore(facts, own),
    ...long === "with" ? [checkGateway(features, facts)] : [],
    checkFeatures(features),
  ]);
}

function examinationOf(checks: readonly Check[]): Examination {
  return { verdict: worstOf(checks), checks };
}

/**
 * The check of a database that this process cannot serve.
 *
 * @param awaited the reason why it waits, if it is a standby for a split
 */
export function checkAbsent(state: string, awaited: string | null): Check {
  if (awaited !== null) return ok("database", awaited);
  const advice = "Look at this database and at the log of the process; all others are served";
  return fail(
    "database",
    `this process does not serve it (${state}): its workspaces are answered 503`,
    advice,
  );
}

/**
 * Joins the examinations of several databases. A check with the same result for all of them is about the process and is
 * listed once; any other names its database.
 */
export function joinExaminations(
  parts: readonly { readonly name: string; readonly checks: readonly Check[] }[],
): { verdict: Verdict; checks: Check[] } {
  const texts = parts.map(({ checks }) => new Set(checks.map((check) => JSON.stringify(check))));
  const examined = texts.filter(({ size }) => size > 1);
  const isShared = (check: Check) =>
    examined.length > 0 && examined.every((others) => others.has(JSON.stringify(check)));
  const apart = parts.flatMap(({ name, checks }) =>
    checks.filter((check) => !isShared(check)).map((check) => ({
      ...check,
      found: `${name}: ${check.found}`,
    }))
  );
  const whole = parts.find(({ checks }) => checks.length > 1)?.checks.filter(isShared) ?? [];
  const checks = [...apart, ...whole];
  return { verdict: worstOf(checks), checks };
}

/** The processes that serve the database, and their troubles as this node sees them. */
export async function examineCluster(
  { database, node }: Pick<ExaminedWorld, "database" | "node">,
): Promise<ClusterFacts & { readonly troubles: readonly Trouble[] }> {
  const facts = await readCluster(database);
  return { ...facts, troubles: troublesOf(facts, node) };
}
