// The history of a user's subscriptions, newest first.

import type { SubscriptionEventType } from "../../domain/state/subscription.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import { newestOf, readOfUser } from "./user_keys.ts";
import type { Database } from "../database.ts";

interface HistoryRecord {
  id: string;
  type: SubscriptionEventType;
  subscription_id: string;
  plan_id: string;
  previous_plan_id: string | null;
  reason: string | null;
  at_ms: number;
}

const ROWS = newestOf({
  table: "subscription_events",
  time: "at_ms",
  columns: "*",
  owners: "select unnest($1::text::bigint[])",
  limit: "$2::int",
});

/** Lists the newest history rows of a user. */
export async function listSubscriptionHistory(database: Database, userKey: UserKey, limit: number) {
  const records = await readOfUser(
    database,
    userKey,
    (owners) =>
      database.query<HistoryRecord>(`${ROWS} order by at_ms desc, id desc limit $2::int`, [owners, limit]),
  );
  return records.map((record) => ({
    id: record.id,
    type: record.type,
    subscriptionId: record.subscription_id,
    planId: record.plan_id,
    previousPlanId: record.previous_plan_id,
    reason: record.reason,
    at: new Date(record.at_ms).toISOString(),
  }));
}
