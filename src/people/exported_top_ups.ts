// The top-ups in the export of a person, newest first.

import type { TopUpIntent } from "../domain/state/top_up.ts";
import { numberOf } from "../domain/values/amount.ts";
import { PEOPLE_LIMITS } from "../process/limits.ts";
import type { Database } from "../storage/database.ts";
import { keysBehind } from "../storage/queries/runs.ts";
import { listTopUps } from "../storage/stores/top_up_store.ts";

const PAGE_ROWS = PEOPLE_LIMITS.exportPageRows;

/** Yields pages of the top-ups of every user behind one of the ids. */
export async function* exportedTopUps(
  database: Database,
  realm: number,
  ids: readonly string[],
): AsyncGenerator<TopUpIntent[]> {
  const keys = await keysBehind(database, realm, ids);
  for (let before: string | null | undefined = null; before !== undefined;) {
    const page: TopUpIntent[] = await listTopUps(database, keys, before, PAGE_ROWS);
    if (page.length > 0) yield page;
    before = page.length < PAGE_ROWS ? undefined : page.at(-1)?.id;
  }
}

/** A top-up as the document has it. */
export function showExportedTopUp(row: TopUpIntent) {
  const { id: topUpId, status, packId, quantity, amount, currency, reason, customerId, paymentIntentId } =
    row;
  return {
    ...{ topUpId, status, packId, quantity, units: numberOf(row.terms.units), amount, currency, reason },
    ...{ stripeCustomerId: customerId, paymentIntentId },
    createdAt: new Date(row.createdAt).toISOString(),
    settledAt: row.settledAt === null ? null : new Date(row.settledAt).toISOString(),
  };
}
