// Retention of what Stripe told: payments and refunds of what was never sold here serve nobody, and go when they are past
// their time by the realm's clock, a bounded step at a time. What belongs to a purchase stays with it.

import { realmsHere, visit } from "../../../actors/visit.ts";
import { STRIPE_LIMITS } from "../../process/limits.ts";
import { deleteStrayStripeFacts } from "../../storage/stores/retention_store.ts";
import { removeInSteps, type RetentionWorld } from "./steps.ts";

/** Removes rows past their time; answers how many. */
export async function sweepStripe({ term, inCell, registry }: RetentionWorld): Promise<number> {
  let removed = 0;
  for (const realm of realmsHere(term, registry.realms.values())) {
    const before = realm.now() - STRIPE_LIMITS.strayKeptMs;
    removed += await removeInSteps(term, async (limit) => {
      const step = () =>
        inCell(realm.cell, (session) => deleteStrayStripeFacts(session, realm.realm, before, limit));
      return await visit(term, realm.cell, step) ?? 0;
    });
  }
  return removed;
}
