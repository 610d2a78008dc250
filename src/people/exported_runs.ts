// The runs in the export of a person, newest first.

import type { Realm } from "../../actors/call.ts";
import { endOf, hasEnded, type Run } from "../domain/state/run.ts";
import { numberOf } from "../domain/values/amount.ts";
import { PEOPLE_LIMITS } from "../process/limits.ts";
import { keysBehind, type ListedRun, listRuns } from "../storage/queries/runs.ts";
import type { PeopleWorld } from "./world.ts";

const PAGE_ROWS = PEOPLE_LIMITS.exportPageRows;

/** Yields pages of the runs of every user behind one of the ids, after what is due of these users was settled. */
export async function* exportedRuns(
  { database, term }: Pick<PeopleWorld, "term" | "database">,
  realm: Realm,
  ids: readonly string[],
): AsyncGenerator<ListedRun[]> {
  const page = { now: realm.now(), status: null, limit: PAGE_ROWS } as const;
  const keys = await keysBehind(database, realm.realm, ids);
  const first = await listRuns(database, { ...page, keys, after: null, limit: 1 });
  if (first.length === 0) return;
  for (const id of ids) await term.directory.runById(id, { realm, name: "settle", input: {} });
  await term.flush();
  let after: Run | null = null;
  while (true) {
    const rows: ListedRun[] = await listRuns(database, { ...page, keys, after });
    const last = rows.at(-1);
    if (last !== undefined) yield rows;
    if (last === undefined || rows.length < PAGE_ROWS) return;
    after = last.run;
  }
}

/** A run as the document has it. */
export function showExportedRun({ run }: ListedRun, now: number) {
  const { id, name, metadata, createdAt, reason, limits, around } = run;
  return {
    runId: id,
    parentRunId: around[0] ?? null,
    name,
    metadata: metadata === null ? null : JSON.parse(metadata),
    createdAt: new Date(createdAt).toISOString(),
    expiresAt: new Date(run.expiresAt).toISOString(),
    endedAt: hasEnded(run, now) ? new Date(endOf(run)).toISOString() : null,
    reason,
    limits: limits.map(({ id: limitId, unit, event, quota, count, held }) => ({
      limitId,
      unit,
      event,
      quota: numberOf(quota),
      count: numberOf(count),
      held: numberOf(held),
    })),
  };
}
