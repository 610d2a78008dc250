// Retention of webhooks' messages: removes those that were delivered or given up long ago, and those of webhooks that were
// removed, a bounded step at a time. beyond.md, section 3.

import type { Realm } from "../../../actors/actor.ts";
import { realmsHere, visit } from "../../../actors/visit.ts";
import { SENDER_LIMITS } from "../../process/limits.ts";
import { deleteEndedMessages, deleteMessagesOfRemoved } from "../../storage/stores/retention_store.ts";
import { removeInSteps, type RetentionWorld } from "./steps.ts";

/** Removes messages past their time; answers how many. */
export async function sweepMessages(world: RetentionWorld): Promise<number> {
  const { term, inCell, registry } = world;
  let removed = 0;
  for (const realm of realmsHere(term, registry.realms.values())) {
    const { deliveredKeptMs, failedKeptMs } = SENDER_LIMITS;
    const now = realm.now();
    const before = { delivered: now - deliveredKeptMs, failed: now - failedKeptMs };
    removed += await removeInSteps(term, async (limit) => {
      const step = () =>
        inCell(realm.cell, (session) => deleteEndedMessages(session, realm.realm, before, limit));
      return await visit(term, realm.cell, step) ?? 0;
    });
  }
  return removed + await sweepRemoved(world);
}

/** Removes messages of webhooks that are gone. */
async function sweepRemoved({ term, inCell, registry }: RetentionWorld): Promise<number> {
  let removed = 0;
  const realms = realmsHere(term, registry.realms.values());
  for (const [cell, here] of Map.groupBy(realms, ({ cell }: Realm) => cell)) {
    const numbers = here.map(({ realm }) => realm);
    removed += await removeInSteps(term, async (limit) => {
      const step = () => inCell(cell, (session) => deleteMessagesOfRemoved(session, numbers, limit));
      return await visit(term, cell, step) ?? 0;
    });
  }
  return removed;
}
