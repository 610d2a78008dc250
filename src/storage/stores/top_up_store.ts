// Top-ups across users: those under way, for the worker, and a user's own, for lists.

import type { TopUpIntent } from "../../domain/state/top_up.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { StoredRow } from "../rows/columns.ts";
import { TOP_UPS } from "../rows/top_up_rows.ts";
import { arrayText, isAmong, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** A top-up under way. */
export interface UnderWay {
  readonly id: string;
  readonly realm: number;
}

/** Lists the top-ups of some realms that are under way, the oldest first, from an id on. */
export function listUnderWay(
  reader: Reader,
  realms: readonly number[],
  after: string,
  limit: number,
): Promise<UnderWay[]> {
  return reader.query<UnderWay & Record<string, string | number>>(
    `select id, realm from top_ups where status in ('open', 'processing') and ${isAmong("realm", "$1")}
       and id > $2 order by id limit $3::int`,
    [arrayText(realms), after, limit],
  );
}

/** Lists top-ups of a user and its aliases, the newest first, before one of them. */
export async function listTopUps(
  reader: Reader,
  owners: readonly UserKey[],
  before: string | null,
  limit: number,
): Promise<TopUpIntent[]> {
  const rows = await reader.query<StoredRow>(
    `select t.* from top_ups t
     where t.user_key = any($1::text::bigint[])
       and ($2::text is null or (t.created_at_ms, t.id) < (
         select b.created_at_ms, b.id from top_ups b where b.id = $2))
     order by t.created_at_ms desc, t.id desc limit $3::int`,
    [arrayText(owners), before, limit],
  );
  return rows.map(TOP_UPS.read);
}
