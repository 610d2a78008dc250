// The users and seats of each plan: subscriptions that are active and not on trial. It reads every subscription of a realm,
// so callers keep what it returned for a while.

import type { Millis } from "../../domain/values/period.ts";
import { type Database, type Param } from "../database.ts";

/** What a plan has. */
export interface PlanSeats {
  readonly planId: string;
  readonly users: number;
  /** The quantities of the subscriptions, added up. */
  readonly seats: number;
}

/** Counts the subscriptions that pay at a moment, by plan. @param userId only this user; null for all */
export async function countSeats(
  database: Database,
  realm: number,
  at: Millis,
  userId: string | null,
): Promise<PlanSeats[]> {
  const params: Param[] = [realm, at];
  const ofUser = userId === null
    ? ""
    : ` and u.key = (select coalesce(named.merged_into, named.key) from users named
       where named.realm = $1::int and named.id = $${params.push(userId)})`;
  return await database.query<PlanSeats>(
    `select s.plan_id as "planId", count(distinct s.user_key) as users, sum(s.quantity)::bigint as seats
     from subscriptions s join users u on u.key = s.user_key
     where u.realm = $1::int${ofUser} and not s.ended and s.started_at_ms <= $2::bigint
       and coalesce(s.ends_at_ms, $2::bigint + 1) > $2::bigint
       and coalesce(s.trial_ends_at_ms, 0) <= $2::bigint and coalesce(s.provider_trial_ends_at_ms, 0) <= $2::bigint
     group by s.plan_id order by s.plan_id`,
    params,
  );
}
