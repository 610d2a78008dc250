// What a store in memory loads of runs.

import { hasEnded, type Run } from "../../src/domain/state/run.ts";
import type { UserKey } from "../../src/domain/values/ids.ts";
import type { OlderRows } from "../../src/domain/state/user.ts";
import type { Millis } from "../../src/domain/values/period.ts";

/** Whether a run is loaded with its user. */
export function isLive(run: Run, at: Millis): boolean {
  return run.openHolds > 0 || !hasEnded(run, at);
}

/** A run of some owners, the canonical user first, with the runs around it. */
export function runsAround(
  tables: { runs(user: UserKey): Run[] },
  owners: readonly UserKey[],
  runId: string | undefined,
): Run[] {
  if (runId === undefined) return [];
  const all = owners.flatMap((key) => tables.runs(key));
  const around = all.find(({ id }) => id === runId)?.around ?? [];
  return all.filter(({ id }) => id === runId || around.includes(id))
    .map((run) => ({ ...run, userKey: owners[0] as UserKey }));
}

/** The rows that a load of a run gives. */
export function runRows(
  tables: { runs(user: UserKey): Run[] },
  owners: readonly UserKey[],
  runId: string,
): OlderRows {
  return { reservations: [], counters: [], balances: [], runs: runsAround(tables, owners, runId) };
}
