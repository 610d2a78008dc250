// Facts from Stripe's messages. Rows are only added, or completed with values that were not known before.

import type { Millis } from "../../domain/values/period.ts";
import type { Known, KnownSubscription, Learned, Purchase, Settled } from "../../domain/stripe/facts.ts";
import type { StripeMessage } from "../../domain/stripe/message.ts";
import { arrayText, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

const PURCHASE = `external_ref as "externalRef", source, pack_id as "packId", quantity, user_id as "userId",
  subscription_id as "subscriptionId"`;

/** Reads the known facts about all that a message names. */
export async function readKnown(reader: Reader, realm: number, message: StripeMessage): Promise<Known> {
  const { subscriptionIds, refs } = namedBy(message);
  if (subscriptionIds.length + refs.length === 0) return { subscriptions: new Map(), purchases: new Map() };
  const rows = await reader.query<
    Record<"eventIds" | "leftUserIds", string> & Omit<KnownSubscription, "eventIds" | "leftUserIds">
  >(
    `select id as "subscriptionId", user_id as "userId", left_user_ids as "leftUserIds", created_ms as created, rank,
       is_final as "isFinal", event_ids as "eventIds"
     from stripe_subscriptions where realm = $1::int and id = any($2::text::text[])`,
    [realm, arrayText(subscriptionIds)],
  );
  const purchases = await reader.query<Purchase>(
    `select ${PURCHASE} from stripe_purchases
     where realm = $1::int and (external_ref = any($2::text::text[])
       or (user_id is null and subscription_id = any($3::text::text[])))
     order by external_ref`,
    [realm, arrayText(refs), arrayText(subscriptionIds)],
  );
  return {
    subscriptions: new Map(
      rows.map((row) => {
        const { subscriptionId, eventIds, leftUserIds } = row;
        return [subscriptionId, {
          ...row,
          eventIds: JSON.parse(eventIds),
          leftUserIds: JSON.parse(leftUserIds),
        }];
      }),
    ),
    purchases: new Map(purchases.map((row) => [row.externalRef, row])),
  };
}

function namedBy(message: StripeMessage): { subscriptionIds: string[]; refs: string[] } {
  if (message.kind === "subscription") return { subscriptionIds: [message.subscriptionId], refs: [] };
  if (message.kind !== "sale") return { subscriptionIds: [], refs: [] };
  const subscriptionIds = message.lines.map(({ subscriptionId }) => subscriptionId).filter((id) =>
    id !== null
  );
  return {
    subscriptionIds: [...new Set(subscriptionIds)],
    refs: message.lines.flatMap(({ externalRef, formerRef }) => {
      return formerRef === null ? [externalRef] : [externalRef, formerRef];
    }),
  };
}

/** Stores the facts of a message. */
export async function keepLearned(
  session: Session,
  realm: number,
  learned: Learned,
  at: Millis,
): Promise<void> {
  const { subscription, purchases, payments, refunds } = learned;
  if (subscription !== null) await saveSubscription(session, realm, subscription);
  for (const purchase of purchases) await savePurchase(session, realm, purchase);
  for (const { payment, source } of payments) {
    await session.query(
      `insert into stripe_payments (realm, payment, source, at_ms) values ($1::int, $2, $3, $4::bigint)
       on conflict do nothing`,
      [realm, payment, source, at],
    );
  }
  for (const payment of refunds) {
    await session.query(
      `insert into stripe_refunds (realm, payment, at_ms) values ($1::int, $2, $3::bigint) on conflict do nothing`,
      [realm, payment, at],
    );
  }
}

async function saveSubscription(session: Session, realm: number, row: KnownSubscription): Promise<void> {
  const { subscriptionId, userId, leftUserIds, created, rank, isFinal, eventIds } = row;
  await session.query(
    `insert into stripe_subscriptions (realm, id, user_id, created_ms, rank, is_final, event_ids, left_user_ids)
     values ($1::int, $2, $3, $4::bigint, $5::smallint, $6::boolean, $7, $8)
     on conflict (realm, id) do update set user_id = excluded.user_id, created_ms = excluded.created_ms,
       rank = excluded.rank, is_final = excluded.is_final, event_ids = excluded.event_ids,
       left_user_ids = excluded.left_user_ids`,
    [
      ...[realm, subscriptionId, userId, created, rank, isFinal],
      ...[JSON.stringify(eventIds), JSON.stringify(leftUserIds)],
    ],
  );
}

async function savePurchase(session: Session, realm: number, row: Purchase): Promise<void> {
  const { externalRef, source, packId, quantity, userId, subscriptionId } = row;
  await session.query(
    `insert into stripe_purchases (realm, external_ref, source, pack_id, quantity, user_id, subscription_id)
     values ($1::int, $2, $3, $4, $5::bigint, $6, $7)
     on conflict (realm, external_ref) do update set
       user_id = coalesce(stripe_purchases.user_id, excluded.user_id)`,
    [realm, externalRef, source, packId, quantity, userId, subscriptionId],
  );
}

/** Stores that the purchases of a message are settled. Rows that an erasure has removed meanwhile are not restored. */
export async function keepSettled(session: Session, realm: number, settled: Settled): Promise<void> {
  const { subscriptionId, purchases } = settled;
  if (subscriptionId !== null) {
    await session.query(
      "update stripe_subscriptions set left_user_ids = '[]' where realm = $1::int and id = $2",
      [realm, subscriptionId],
    );
  }
  for (const { externalRef, userId } of purchases) {
    await session.query(
      `update stripe_purchases set user_id = $3 where realm = $1::int and external_ref = $2 and user_id is null`,
      [realm, externalRef, userId],
    );
  }
}

/** Finds the refunded purchases of some sources, or of a refund, including purchases that wait for a user. */
export function findRefunded(
  reader: Reader,
  realm: number,
  { purchases, payments, refunds }: Pick<Learned, "purchases" | "payments" | "refunds">,
): Promise<Purchase[]> {
  const sources = [...purchases, ...payments].map(({ source }) => source);
  return reader.query<Purchase>(
    `with touched(source) as (
       select unnest($2::text::text[])
       union select unnest($3::text::text[])
       union select source from stripe_payments where realm = $1::int and payment = any($3::text::text[])
     )
     select ${PURCHASE} from stripe_purchases p join touched using (source)
     where p.realm = $1::int and (
       exists (select 1 from stripe_refunds r where r.realm = $1::int and r.payment = p.source)
       or exists (
         select 1 from stripe_payments s join stripe_refunds r using (realm, payment)
         where s.realm = $1::int and s.source = p.source
       ))
     order by external_ref`,
    [realm, arrayText([...new Set(sources)]), arrayText(refunds)],
  );
}

/** The last message, as the admin API shows it. */
export interface LastMessage {
  readonly eventId: string;
  readonly type: string;
  /** Real time. */
  readonly at: Millis;
  /** Why it had no effect; null if it had one. */
  readonly reason: string | null;
}

/** Stores the last message. */
export async function keepLast(
  session: Session,
  appId: string,
  mode: string,
  { eventId, type, at, reason }: LastMessage,
): Promise<void> {
  await session.query(
    `update stripe_connections set last_event_id = $3, last_type = $4, last_at_ms = $5::bigint, last_reason = $6
     where app_id = $1 and mode = $2`,
    [appId, mode, eventId, type, at, reason],
  );
}

/** Reads the last messages of an app, by mode. */
export async function readLast(reader: Reader, appId: string): Promise<Map<string, LastMessage>> {
  const rows = await reader.query<LastMessage & { readonly mode: string }>(
    `select mode, last_event_id as "eventId", last_type as type, last_at_ms as at, last_reason as reason
     from stripe_connections where app_id = $1 and last_at_ms is not null`,
    [appId],
  );
  return new Map(rows.map(({ mode, ...last }) => [mode, last]));
}

/** Removes the facts of users with these ids, including their purchases. */
export async function deleteStripeFacts(
  session: Session,
  realm: number,
  ids: readonly string[],
): Promise<void> {
  const texts = arrayText(ids);
  await session.query(
    `with gone as (
       delete from stripe_purchases where realm = $1::int and user_id = any($2::text::text[]) returning source
     ), own(source) as (
       select source from gone except select source from stripe_purchases
       where realm = $1::int and (user_id is null or user_id <> all($2::text::text[]))
         and source in (select source from gone)
     ), gone_payments as (
       delete from stripe_payments where realm = $1::int and source in (select source from own) returning payment
     )
     delete from stripe_refunds where realm = $1::int
       and (payment in (select payment from gone_payments) or payment in (select source from own))`,
    [realm, texts],
  );
  await session.query(
    `update stripe_subscriptions set left_user_ids = (
       select coalesce(jsonb_agg(name), '[]')::text
       from jsonb_array_elements_text(left_user_ids::jsonb) as user_left(name)
       where name <> all($2::text::text[])
     ) where realm = $1::int and left_user_ids <> '[]'`,
    [realm, texts],
  );
  await session.query(
    "delete from stripe_subscriptions where realm = $1::int and user_id = any($2::text::text[])",
    [realm, texts],
  );
}
