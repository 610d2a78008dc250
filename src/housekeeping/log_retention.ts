// Retention of prompt logs: removes texts that are older than an app keeps them, a bounded step at a time. Reads leave
// such texts out whether or not they were removed yet. Section 9 of the decisions.

import { deleteOldLogs, forgetOldPrompts } from "../storage/stores/retention_store.ts";
import { removeInSteps, type RetentionWorld } from "./steps.ts";

/** Removes texts past their time, of events and of expired holds that nobody committed; answers how many. */
export async function sweepLogs({ term, database, registry }: RetentionWorld): Promise<number> {
  let removed = 0;
  for (const realm of registry.realms.values()) {
    const before = realm.now() - realm.catalog.promptLogRetentionMs;
    for (const remove of [deleteOldLogs, forgetOldPrompts]) {
      removed += await removeInSteps(term, (limit) => remove(database, realm.realm, before, limit));
    }
  }
  return removed;
}
