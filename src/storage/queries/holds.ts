// The open holds of a user. Callers first settle what is due and wait for the drain.

import { numberOf } from "../../domain/values/amount.ts";
import { chargedAmounts } from "../../domain/state/event.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Reservation } from "../../domain/state/reservation.ts";
import type { Database } from "../database.ts";
import { openHoldsOf } from "../rows/open_holds.ts";
import type { StoredRow } from "../rows/columns.ts";
import { RESERVATIONS } from "../rows/metering_rows.ts";
import { readOfUser } from "./user_keys.ts";

/** Lists a user's open holds, newest first, up to a limit, and whether there are more. */
export async function listHolds(database: Database, userKey: UserKey, limit: number) {
  const records = await readOfUser(
    database,
    userKey,
    (owners) =>
      database.query<StoredRow>(
        `${openHoldsOf("*", "order by user_key desc, created_at_ms desc, id desc limit $2::int")}
         order by created_at_ms desc, id desc limit $2::int`,
        [owners, limit + 1],
      ),
  );
  const holds = records.slice(0, limit).map(RESERVATIONS.read).map(showHold);
  return { holds, hasMore: records.length > limit };
}

function showHold(row: Reservation) {
  return {
    reservationId: row.id,
    event: row.event,
    metadata: row.metadata === null ? null : JSON.parse(row.metadata) as Record<string, unknown>,
    amounts: chargedAmounts(row).map((each) => ({ ...each, amount: numberOf(each.amount) })),
    createdAt: new Date(row.createdAt).toISOString(),
    expiresAt: new Date(row.expiresAt).toISOString(),
  };
}
