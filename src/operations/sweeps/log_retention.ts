// Retention of prompt logs: removes texts that are older than an app keeps them, a bounded step at a time. Reads leave
// such texts out whether or not they were removed yet. Section 9 of the decisions.

import type { Realm } from "../../../actors/actor.ts";
import { realmsHere, visit } from "../../../actors/visit.ts";
import { deleteOldLogs, forgetOldPrompts } from "../../storage/stores/retention_store.ts";
import { removeInSteps, type RetentionWorld } from "./steps.ts";

/** Removes texts past their time, of events and of expired holds that nobody committed; answers how many. */
export async function sweepLogs(world: RetentionWorld): Promise<number> {
  let removed = 0;
  for (const realm of realmsHere(world.term, world.registry.realms.values())) {
    for (const remove of [deleteOldLogs, forgetOldPrompts]) {
      removed += await sweepRealmLogs(world, realm, remove);
    }
  }
  return removed;
}

async function sweepRealmLogs(
  { term, inCell }: RetentionWorld,
  realm: Realm,
  remove: typeof deleteOldLogs,
): Promise<number> {
  const before = realm.now() - realm.catalog.promptLogRetentionMs;
  return await removeInSteps(term, async (limit) => {
    const step = () => inCell(realm.cell, (session) => remove(session, realm.realm, before, limit));
    return await visit(term, realm.cell, step) ?? 0;
  });
}
