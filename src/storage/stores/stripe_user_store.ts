// What Stripe's messages said about one user: paid packs, subscriptions, and messages that are not handled.

import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Database } from "../database.ts";
import type { Unhandled } from "./stripe_unhandled_store.ts";

/** The most rows of each list. */
const ROWS_MAX = 50;

/** A paid pack that was granted to the user. */
interface StripePayment {
  readonly externalRef: string;
  /** The session, invoice or top-up that was paid. */
  readonly source: string;
  readonly packId: string;
  readonly quantity: number;
  /** What the whole session or invoice cost, in the smallest unit of its currency; null where no message said. */
  readonly amount: number | null;
  readonly currency: string | null;
  /** Real time of the first message about the payment; null where none came. */
  readonly at: Millis | null;
  readonly isRefunded: boolean;
  readonly isDisputed: boolean;
}

/** A subscription of the user at Stripe. */
interface StripeSubscription {
  readonly subscriptionId: string;
  /** When Stripe made the event in force. */
  readonly at: Millis;
  readonly isEnded: boolean;
}

/** Everything that is known of a user from Stripe, each list with the newest first. */
export interface StripeOfUser {
  readonly payments: readonly StripePayment[];
  readonly subscriptions: readonly StripeSubscription[];
  readonly unhandled: readonly Unhandled[];
}

/**
 * Reads what Stripe said about a user; nothing for a user with a pending erasure.
 *
 * @param since unhandled messages received until this moment have expired
 */
export async function readStripeOfUser(
  database: Pick<Database, "query">,
  realm: number,
  userId: string,
  since: Millis,
): Promise<StripeOfUser> {
  const names = arrayText(await namesOf(database, realm, userId));
  const [payments, subscriptions, unhandled] = await Promise.all([
    database.query<StripePayment>(
      `select p.external_ref as "externalRef", p.source, p.pack_id as "packId", p.quantity,
         p.paid_amount as amount, p.paid_currency as currency, paid.at as "at",
         exists (select 1 from stripe_refunds r where r.realm = p.realm and r.payment = any(paid.ids || p.source))
           as "isRefunded",
         exists (select 1 from stripe_disputes d where d.realm = p.realm and d.payment = any(paid.ids || p.source)
           and d.is_withdrawn and not d.is_reinstated) as "isDisputed"
       from stripe_purchases p cross join lateral (
         select min(s.at_ms) as at, coalesce(array_agg(s.payment), '{}') as ids
         from stripe_payments s where s.realm = p.realm and s.source = p.source
       ) paid
       where p.realm = $1::int and p.user_id = any($2::text::text[])
       order by paid.at desc nulls last, p.external_ref limit ${ROWS_MAX}`,
      [realm, names],
    ),
    database.query<StripeSubscription>(
      `select id as "subscriptionId", created_ms as "at", is_final as "isEnded" from stripe_subscriptions
       where realm = $1::int and user_id = any($2::text::text[]) order by created_ms desc, id limit ${ROWS_MAX}`,
      [realm, names],
    ),
    database.query<Unhandled>(
      `select event_id as "eventId", type, object_id as "objectId", reason, amount, currency,
         created_ms as "createdAt"
       from stripe_unhandled
       where realm = $1::int and at_ms > $3::bigint and user_ids::jsonb ?| $2::text::text[]
       order by created_ms desc, event_id desc limit ${ROWS_MAX}`,
      [realm, names, since],
    ),
  ]);
  return { payments, subscriptions, unhandled };
}

/** The id of a user and those of its aliases: a message may name any of them. Empty for a user who is being erased. */
async function namesOf(database: Pick<Database, "query">, realm: number, userId: string): Promise<string[]> {
  const rows = await database.query<{ id: string; erasing: boolean }>(
    `with asked as (
       select coalesce(merged_into, key) as key from users where realm = $1::int and id = $2
     )
     select u.id, u.erasing from users u join asked a on u.key = a.key or u.merged_into = a.key`,
    [realm, userId],
  );
  if (rows.some(({ erasing }) => erasing)) return [];
  return [...new Set([userId, ...rows.map(({ id }) => id)])];
}
