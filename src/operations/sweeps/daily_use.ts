// Adds new events to the sums by day: some before each read, so that a chart shows the newest events, and the rest in the
// background. It rests between steps for as long as the last step took, and so takes at most half of
// the database's time.

import type { Realm } from "../../../actors/call.ts";
import type { Term } from "../../../actors/term.ts";
import { realmsHere, visit } from "../../../actors/visit.ts";
import type { Millis } from "../../domain/values/period.ts";
import { DAILY_USE_LIMITS } from "../../process/limits.ts";
import type { Database } from "../../storage/database.ts";
import type { InCell } from "../../storage/nodes/cell_store.ts";
import { firstUnadded } from "../../storage/queries/daily_use.ts";
import { addUpDailyUse, hasUnadded, listUnadded } from "../../storage/stores/daily_use_store.ts";
import { rest } from "../../process/rest.ts";

/** What adding events of one realm uses of a running term. */
export interface AddingWorld {
  readonly term: Pick<Term, "flush" | "isServing">;
  readonly database: Pick<Database, "query">;
  readonly inCell: InCell;
}

/** The same for every realm of this process. */
interface AddingAllWorld extends AddingWorld {
  readonly term: Pick<Term, "flush" | "isServing" | "doors">;
  readonly registry: { readonly realms: ReadonlyMap<number, Realm> };
}

/** Adds a bounded number of new events of a realm to its sums; returns how many. The caller is inside the realm's cell. */
export async function addSomeUp(
  { term, database, inCell }: AddingWorld,
  realm: Realm,
  limit: number = DAILY_USE_LIMITS.readEventsMax,
): Promise<number> {
  // Every earlier turn has passed its changes on by now, and the flush waits for those.
  const before = realm.now();
  await term.flush();
  // Most reads of a page find nothing new: they wait for no lock, and write nothing.
  if (!await hasUnadded(database, realm.realm, before)) return 0;
  return await inCell(realm.cell, (session) => addUpDailyUse(session, realm.realm, before, limit));
}

/**
 * Adds new events of a realm for a read; returns up to when its sums are complete. The caller is inside the realm's cell.
 */
export async function addForRead(world: AddingWorld, realm: Realm): Promise<Millis> {
  const now = realm.now();
  const added = await addSomeUp(world, realm);
  if (added < DAILY_USE_LIMITS.readEventsMax) return now;
  return Math.min(await firstUnadded(world.database, realm.realm) ?? now, now);
}

/** Adds all new events of this process's cells; returns how many. */
export async function addAllUp(world: AddingAllWorld): Promise<number> {
  const { term, database, registry } = world;
  const numbers = realmsHere(term, registry.realms.values()).map(({ realm }) => realm);
  let events = 0;
  for (const number of await listUnadded(database, numbers)) {
    const realm = registry.realms.get(number) as Realm;
    while (term.isServing) {
      const startedAt = performance.now();
      const step = () => addSomeUp(world, realm, DAILY_USE_LIMITS.stepEventsMax);
      const added = await visit(term, realm.cell, step) ?? 0;
      events += added;
      if (added < DAILY_USE_LIMITS.stepEventsMax) break;
      await rest(Math.min(performance.now() - startedAt, DAILY_USE_LIMITS.restMsMax));
    }
  }
  return events;
}
