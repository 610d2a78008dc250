// The open holds of a user. Callers first settle what is due and wait for the drain.

import { numberOf } from "../../domain/values/amount.ts";
import { chargedAmounts } from "../../domain/state/event.ts";
import { ownerOf, type UserKey } from "../../domain/values/ids.ts";
import type { Reservation } from "../../domain/state/reservation.ts";
import { arrayText, type Database } from "../database.ts";
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
  const rows = records.slice(0, limit).map(RESERVATIONS.read);
  const callers = await readCallers(database, rows);
  return { holds: rows.map((row) => showHold(row, callers)), hasMore: records.length > limit };
}

/** Reads the ids of the users whose calls hold a part here, by their keys. */
async function readCallers(
  database: Database,
  rows: readonly Reservation[],
): Promise<ReadonlyMap<UserKey, string>> {
  const keys = rows.map(callerOf).filter((key) => key !== null);
  if (keys.length === 0) return new Map();
  const users = await database.query<{ key: number; id: string }>(
    `select u.key, coalesce(c.id, u.id) as id from users u left join users c on c.key = u.merged_into
     where u.key = any($1::text::bigint[])`,
    [arrayText([...new Set(keys)])],
  );
  return new Map(users.map(({ key, id }) => [key, id]));
}

/** The user whose call holds this part; null for a hold of the user's own. */
function callerOf({ partOf }: Reservation): UserKey | null {
  return partOf === undefined ? null : ownerOf("reservation", partOf);
}

/** A part is shown under the id of the whole reservation, the only one that can be settled. */
function showHold(row: Reservation, callers: ReadonlyMap<UserKey, string>) {
  const caller = callers.get(callerOf(row) ?? NO_USER);
  return {
    reservationId: row.partOf ?? row.id,
    ...caller === undefined ? {} : { heldFor: caller },
    event: row.event,
    metadata: row.metadata === null ? null : JSON.parse(row.metadata) as Record<string, unknown>,
    amounts: chargedAmounts(row).map((each) => ({ ...each, amount: numberOf(each.amount) })),
    createdAt: new Date(row.createdAt).toISOString(),
    expiresAt: new Date(row.expiresAt).toISOString(),
  };
}

/** Keys of users are above 0. */
const NO_USER = 0;
