// How many history rows the background moved, as the store in memory counts them.

import { ownerOf, type UserKey } from "../../src/domain/values/ids.ts";
import { type HistoryCounts, NO_HISTORY } from "../../src/domain/merging/merge_report.ts";
import type { MemoryTables } from "./memory_store.ts";

/** Adds what is left to move of an alias to each merge whose history it belongs to, by the merge's ending user. */
export function countMoved(tables: MemoryTables, counts: Map<UserKey, HistoryCounts>, alias: UserKey): void {
  const step = tables.countHistory([alias], Infinity) as HistoryCounts;
  for (const { from_key: from, history_keys: keys } of tables.list("merges")) {
    const owners = JSON.parse(keys as string) as UserKey[];
    if (!owners.includes(alias)) continue;
    const isOwned = (id: unknown) => owners.includes(ownerOf("reservation", id as string) ?? 0);
    const reservations = tables.list("reservations", ({ id }) => isOwned(id)).length;
    const before = counts.get(from as UserKey) ?? NO_HISTORY;
    counts.set(from as UserKey, { ...addedTo(before, step), reservations });
  }
}

function addedTo(before: HistoryCounts, step: HistoryCounts): HistoryCounts {
  const names = Object.keys(NO_HISTORY) as (keyof HistoryCounts)[];
  return Object.fromEntries(
    names.map((name) => [name, before[name] + step[name]]),
  ) as unknown as HistoryCounts;
}
