// When API keys were last used. The rows are those of the registry, whose version a use does not raise.

import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Session } from "../database.ts";

/** The real time of the last uses of keys, by key. */
type KeyUses = ReadonlyMap<string, Millis>;

/** Stores the last uses of keys where they are later than the stored ones. */
export async function saveKeyUses(session: Session, uses: KeyUses): Promise<void> {
  await session.query(
    `update keys k set last_used_at_ms = greatest(k.last_used_at_ms, used.at_ms)
     from unnest($1::text::text[], $2::text::bigint[]) as used(id, at_ms)
     join (select id from keys where id = any($1::text::text[]) order by id for update) locked on locked.id = used.id
     where k.id = used.id`,
    [arrayText([...uses.keys()]), arrayText([...uses.values()])],
  );
}

/** Reads the stored last uses of the keys of an app. */
export async function readKeyUses(reader: Pick<Session, "query">, appId: string): Promise<KeyUses> {
  const rows = await reader.query<{ id: string; at: Millis }>(
    `select id, last_used_at_ms as at from keys where app_id = $1 and last_used_at_ms is not null`,
    [appId],
  );
  return new Map(rows.map(({ id, at }) => [id, at]));
}
