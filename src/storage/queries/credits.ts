// All credit balances of a user, including expired and revoked ones. Callers wait for the drain first.

import { type ShownBalance, shownOf } from "../../domain/credits/balances.ts";
import { type CreditFilter, listBalances } from "../../domain/state/credit.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Catalog } from "../../domain/catalog/catalog.ts";
import type { Millis } from "../../domain/values/period.ts";
import type { StoredRow } from "../rows/columns.ts";
import { CREDIT_BALANCES } from "../rows/credit_rows.ts";
import type { Database } from "../database.ts";
import { readOfUser } from "./user_keys.ts";

/** Lists the balances that match a filter, in consumption order. */
export async function listAllBalances(
  database: Database,
  userKey: UserKey,
  catalog: Catalog,
  filter: CreditFilter,
  now: Millis,
): Promise<ShownBalance[]> {
  const records = await readOfUser(
    database,
    userKey,
    (owners) =>
      database.query<StoredRow>(
        "select * from credit_balances where user_key = any($1::text::bigint[])",
        [owners],
      ),
  );
  const rows = listBalances(records.map(CREDIT_BALANCES.read), filter, now);
  return rows.map((row) => shownOf(row, catalog));
}
