// Retention of counts of refused calls: removes rows whose last call is past its time by the realm's clock, a bounded step
// at a time. Reads leave such rows out whether or not they were removed yet. Section 1 of beyond.md, "Refusals".

import type { Realm } from "../../../actors/actor.ts";
import { realmsHere, visit } from "../../../actors/visit.ts";
import { REFUSAL_LIMITS } from "../../process/limits.ts";
import { deleteOldRefusedCalls } from "../../storage/stores/refused_call_store.ts";
import { removeInSteps, type RetentionWorld } from "./steps.ts";

/** Removes rows past their time; answers how many. */
export async function sweepRefusals(world: RetentionWorld): Promise<number> {
  let removed = 0;
  for (const realm of realmsHere(world.term, world.registry.realms.values())) {
    removed += await sweepRealm(world, realm);
  }
  return removed;
}

async function sweepRealm({ term, inCell }: RetentionWorld, realm: Realm): Promise<number> {
  const before = realm.now() - REFUSAL_LIMITS.keptMs;
  return await removeInSteps(term, async (limit) => {
    const step = () =>
      inCell(realm.cell, (session) => deleteOldRefusedCalls(session, realm.realm, before, limit));
    return await visit(term, realm.cell, step) ?? 0;
  });
}
