// Retention: each function removes a bounded number of expired rows and returns how many.

import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Session } from "../database.ts";

/** Removes at most `limit` rows of a realm that were due at a time; returns how many. */
export type RemoveOld = (session: Session, realm: number, before: Millis, limit: number) => Promise<number>;

/** @param sql a statement of these three values that returns a row for each row that it removes */
function removal(sql: string): RemoveOld {
  return async (session, realm, before, limit) => (await session.query(sql, [realm, before, limit])).length;
}

/** Removes prompts and responses of events that happened up to a moment. */
export const deleteOldLogs = removal(
  `delete from event_logs where event_id in (
     select event_id from event_logs where realm = $1::int and at_ms <= $2::bigint
     order by at_ms limit $3::int for update skip locked)
   returning 1`,
);

/** Removes prompts of holds that expired up to a moment without a commit. */
export const forgetOldPrompts = removal(
  `update reservations set prompt = null where id in (
     select r.id from reservations r join users u on u.key = r.user_key
     where u.realm = $1::int and r.prompt is not null and r.status = 'expired' and r.expires_at_ms <= $2::bigint
     order by r.expires_at_ms limit $3::int for update of r skip locked) and status = 'expired'
   returning 1`,
);

/** Removes first answers of some realms that were stored up to a moment of real time. */
export async function deleteOldAnswers(
  session: Session,
  realms: readonly number[],
  before: Millis,
  limit: number,
): Promise<number> {
  const rows = await session.query(
    `delete from idempotency where ctid in (
       select ctid from idempotency where at_ms <= $1::bigint and realm = any($3::text::int[])
       order by at_ms limit $2::int)
     returning 1`,
    [before, limit, arrayText(realms)],
  );
  return rows.length;
}

/** Removes refused calls with a last call up to a moment. */
export const deleteOldRefusedCalls = removal(
  `delete from refusals where id = any(array(
     select id from refusals where realm = $1::int and last_at_ms <= $2::bigint
     order by last_at_ms limit $3::int for update skip locked))
   returning 1`,
);

/** Removes webhook messages that ended with a status up to a moment of their realm's clock. */
export const deleteEndedMessages = (status: "delivered" | "failed") =>
  removal(
    `delete from webhook_messages where id = any(array(
       select id from webhook_messages where realm = $1::int and status = '${status}' and ended_at_ms <= $2::bigint
       order by ended_at_ms limit $3::int for update skip locked)) returning 1`,
  );

/**
 * Removes runs that ended up to a moment. One with a hold that no sweep has settled yet waits for it, and one within another
 * waits for that one, so that the counts of the outer run can be proved.
 */
export const deleteEndedRuns = removal(
  `delete from runs where id = any(array(
     select id from runs where realm = $1::int and coalesce(ended_at_ms, expires_at_ms) < $2::bigint
       and open_holds = 0
       and not exists (select from runs o where o.id = any(string_to_array(runs.around, ',')))
     order by coalesce(ended_at_ms, expires_at_ms) limit $3::int for update skip locked)) returning 1`,
);

/** Removes slots of rates that stopped to count up to a moment, with what erased members had taken of them. */
export const deletePassedSlots = removal(
  `with passed as (
     delete from counters where ctid = any(array(
       select c.ctid from counters c join users u on u.key = c.user_key
       where c.kind = 'rate' and c.window_end_ms <= $2::bigint and u.realm = $1::int
       order by c.window_end_ms limit $3::int for update of c skip locked))
     returning user_key, plan_id, group_id, window_start_ms
   ), erased as (
     delete from erased_charges e using passed p where (e.user_key, e.plan_id, e.group_id, e.window_start_ms) =
       (p.user_key, p.plan_id, p.group_id, p.window_start_ms)
   )
   select 1 from passed`,
);

/** Removes payments, refunds and disputes of Stripe that arrived up to a moment and belong to no purchase. */
export const deleteStrayStripeFacts: RemoveOld = async (session, realm, before, limit) => {
  const refunds = await session.query(
    `delete from stripe_refunds where realm = $1::int and payment = any(array(
       select payment from stripe_refunds r where realm = $1::int and at_ms <= $2::bigint
         and not exists (select from stripe_purchases p where p.realm = $1::int and p.source = r.payment)
         and not exists (
           select from stripe_payments s join stripe_purchases p using (realm, source)
           where s.realm = $1::int and s.payment = r.payment)
       order by at_ms limit $3::int)) returning 1`,
    [realm, before, limit],
  );
  const payments = await session.query(
    `delete from stripe_payments where realm = $1::int and (payment, source) in (
       select payment, source from stripe_payments s where realm = $1::int and at_ms <= $2::bigint
         and not exists (select from stripe_purchases p where p.realm = $1::int and p.source = s.source)
       order by at_ms limit $3::int) returning 1`,
    [realm, before, limit - refunds.length],
  );
  const disputes = await session.query(
    `delete from stripe_disputes where realm = $1::int and (payment, dispute) in (
       select payment, dispute from stripe_disputes d where realm = $1::int and at_ms <= $2::bigint
         and not exists (
           select from stripe_payments s join stripe_purchases p using (realm, source)
           where s.realm = $1::int and s.payment = d.payment)
       order by at_ms limit $3::int) returning 1`,
    [realm, before, limit - refunds.length - payments.length],
  );
  return refunds.length + payments.length + disputes.length;
};

/** Removes messages of Stripe that were kept since a moment or before it, because they are not handled. */
export const deleteOldUnhandled = removal(
  `delete from stripe_unhandled where realm = $1::int and event_id = any(array(
     select event_id from stripe_unhandled where realm = $1::int and at_ms <= $2::bigint
     order by at_ms limit $3::int)) returning 1`,
);

/** Removes the messages of removed webhooks of some realms. */
export async function deleteMessagesOfRemoved(
  session: Session,
  realms: readonly number[],
  limit: number,
): Promise<number> {
  const rows = await session.query(
    `delete from webhook_messages where id = any(array(
       select m.id from webhooks w join realms r on r.app_id = w.app_id and r.mode = w.mode cross join lateral (
         select id from webhook_messages where webhook_id = w.id order by id desc limit $2::int
         for update skip locked
       ) as m where w.removed and r.realm = any($1::text::int[]) limit $2::int)) returning 1`,
    [arrayText(realms), limit],
  );
  return rows.length;
}
