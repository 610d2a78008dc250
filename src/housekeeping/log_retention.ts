// Retention of prompt logs: texts older than an app keeps them are removed, a bounded step at a time. Reads leave out
// what is past its time whether or not it was removed. Section 9 of the decisions.

import { SWEEP_LIMITS } from "../process/limits.ts";
import type { Serving } from "../service/service.ts";

/** Removes texts past their time, of events and of expired holds that nobody committed; answers how many. */
export async function sweepLogs({ term, database, registry }: Serving): Promise<number> {
  let removed = 0;
  for (const realm of registry.realms.values()) {
    const before = realm.now() - realm.catalog.promptLogRetentionMs;
    for (const sql of [DELETE_LOGS, FORGET_PROMPTS]) {
      while (term.isServing) {
        const rows = await database.query(sql, [realm.realm, before, SWEEP_LIMITS.stepRowsMax]);
        removed += rows.length;
        if (rows.length < SWEEP_LIMITS.stepRowsMax) break;
      }
    }
  }
  return removed;
}

const DELETE_LOGS = `delete from event_logs where event_id in (
    select event_id from event_logs where realm = $1::int and at_ms <= $2::bigint
    order by at_ms limit $3::int for update skip locked)
  returning 1`;

const FORGET_PROMPTS = `update reservations set prompt = null where id in (
    select r.id from reservations r join users u on u.key = r.user_key
    where u.realm = $1::int and r.prompt is not null and r.status = 'expired' and r.expires_at_ms <= $2::bigint
    order by r.expires_at_ms limit $3::int for update of r skip locked)
  returning 1`;
