// Facts from Stripe's messages. Rows are only added, or completed with values that were not known before.

import type { Millis } from "../../domain/values/period.ts";
import type {
  Dispute,
  Known,
  KnownSubscription,
  Learned,
  MoneyFacts,
  Payment,
  Purchase,
  Refund,
  Settled,
} from "../../domain/stripe/facts.ts";
import type { Money } from "../../domain/stripe/fields.ts";
import type { StripeMessage } from "../../domain/stripe/message.ts";
import { arrayText, type Session } from "../database.ts";
import { deleteUnhandledOf } from "./stripe_unhandled_store.ts";

type Reader = Pick<Session, "query">;

const PURCHASE = `external_ref as "externalRef", source, pack_id as "packId", quantity, user_id as "userId",
  subscription_id as "subscriptionId", paid_amount as amount, paid_currency as currency`;

/** A row with an amount of money in two columns. */
type WithMoney<Row, Name extends keyof Row> = Omit<Row, Name> & {
  readonly amount: number | null;
  readonly currency: string | null;
};

function moneyOf({ amount, currency }: WithMoney<object, never>): Money | null {
  return amount === null || currency === null ? null : { amount, currency };
}

function purchaseOf({ amount, currency, ...row }: WithMoney<Purchase, "paid">): Purchase {
  return { ...row, paid: moneyOf({ amount, currency }) };
}

/** Reads the known facts about all that a message names. */
export async function readKnown(reader: Reader, realm: number, message: StripeMessage): Promise<Known> {
  const { subscriptionIds, refs, moneyIds } = namedBy(message);
  const isOfSales = subscriptionIds.length + refs.length > 0;
  const subscriptions = isOfSales ? await readSubscriptions(reader, realm, subscriptionIds) : [];
  const purchases = isOfSales
    ? await reader.query<WithMoney<Purchase, "paid">>(
      `select ${PURCHASE} from stripe_purchases
       where realm = $1::int and (external_ref = any($2::text::text[])
         or (user_id is null and subscription_id = any($3::text::text[])))
       order by external_ref`,
      [realm, arrayText(refs), arrayText(subscriptionIds)],
    )
    : [];
  const sources = message.kind === "subscription" ? purchases.map(({ source }) => source) : [];
  return {
    subscriptions: new Map(subscriptions.map((row) => [row.subscriptionId, row])),
    purchases: new Map(purchases.map((row) => [row.externalRef, purchaseOf(row)])),
    money: await readMoney(reader, realm, [...moneyIds, ...new Set(sources)]),
  };
}

async function readSubscriptions(
  reader: Reader,
  realm: number,
  ids: readonly string[],
): Promise<KnownSubscription[]> {
  const rows = await reader.query<
    & Record<"eventIds" | "leftUserIds", string>
    & { readonly itemIds: string | null }
    & Omit<KnownSubscription, "eventIds" | "leftUserIds" | "itemIds">
  >(
    `select id as "subscriptionId", user_id as "userId", left_user_ids as "leftUserIds", created_ms as created, rank,
       is_final as "isFinal", event_ids as "eventIds", item_ids as "itemIds"
     from stripe_subscriptions where realm = $1::int and id = any($2::text::text[])`,
    [realm, arrayText(ids)],
  );
  return rows.map((row) => {
    return {
      ...row,
      eventIds: JSON.parse(row.eventIds),
      leftUserIds: JSON.parse(row.leftUserIds),
      itemIds: row.itemIds === null ? [] : JSON.parse(row.itemIds),
    };
  });
}

/** Reads all facts about money that payments connect with some ids. */
async function readMoney(reader: Reader, realm: number, ids: readonly string[]): Promise<MoneyFacts> {
  if (ids.length === 0) return { purchases: [], payments: [], refunds: [], disputes: [] };
  const linked = await reader.query<{ id: string }>(
    `with recursive linked(id) as (
       select unnest($2::text::text[]) collate "C"
       union
       select case when p.payment = linked.id then p.source else p.payment end
       from linked join stripe_payments p on p.realm = $1::int and (p.payment = linked.id or p.source = linked.id)
     ) select id from linked order by id`,
    [realm, arrayText(ids)],
  );
  const params = [realm, arrayText(linked.map(({ id }) => id))];
  const purchases = await reader.query<WithMoney<Purchase, "paid">>(
    `select ${PURCHASE} from stripe_purchases
     where realm = $1::int and source = any($2::text::text[]) order by external_ref`,
    params,
  );
  const payments = await reader.query<Payment>(
    `select payment, source, is_invoice as "isInvoice" from stripe_payments
     where realm = $1::int and payment = any($2::text::text[]) order by payment, source`,
    params,
  );
  const refunds = await reader.query<WithMoney<Refund, "money">>(
    `select payment, charge, amount, currency from stripe_refunds
     where realm = $1::int and payment = any($2::text::text[]) order by payment`,
    params,
  );
  const disputes = await reader.query<WithMoney<Dispute, "money">>(
    `select payment, dispute as "disputeId", amount, currency, is_withdrawn as "isWithdrawn",
       is_reinstated as "isReinstated"
     from stripe_disputes where realm = $1::int and payment = any($2::text::text[]) order by payment, dispute`,
    params,
  );
  return {
    purchases: purchases.map(purchaseOf),
    payments,
    refunds: refunds.map(({ payment, charge, ...money }) => ({ payment, charge, money: moneyOf(money) })),
    disputes: disputes.map(({ amount, currency, ...row }) => ({
      ...row,
      money: moneyOf({ amount, currency }),
    })),
  };
}

interface Named {
  readonly subscriptionIds: readonly string[];
  readonly refs: readonly string[];
  /** Sessions, invoices, payments and charges. */
  readonly moneyIds: readonly string[];
}

function namedBy(message: StripeMessage): Named {
  const nothing = { subscriptionIds: [], refs: [], moneyIds: [] };
  switch (message.kind) {
    case "subscription":
      return { ...nothing, subscriptionIds: [message.subscriptionId] };
    case "sale": {
      const { lines, source, payments, invoiceId } = message;
      const subscriptionIds = lines.map(({ subscriptionId }) => subscriptionId).filter((id) => id !== null);
      return {
        subscriptionIds: [...new Set(subscriptionIds)],
        refs: lines.flatMap(({ externalRef, formerRef }) => {
          return formerRef === null ? [externalRef] : [externalRef, formerRef];
        }),
        moneyIds: [source, ...payments, ...invoiceId === null ? [] : [invoiceId]],
      };
    }
    case "payment":
      return { ...nothing, moneyIds: [message.source, ...message.payments] };
    case "refund": {
      const { payments, invoiceId } = message;
      return { ...nothing, moneyIds: [...payments, ...invoiceId === null ? [] : [invoiceId]] };
    }
    case "topUp": {
      const { topUpId, payments } = message;
      return { ...nothing, refs: [topUpId], moneyIds: [topUpId, ...payments] };
    }
    case "dispute":
      return { ...nothing, moneyIds: message.payments };
    case "other":
      return nothing;
  }
}

/** Lists every object of Stripe that a message names. */
export function linksOf(message: StripeMessage): string[] {
  const { subscriptionIds, moneyIds } = namedBy(message);
  return [...new Set([...subscriptionIds, ...moneyIds])];
}

/** Stores the facts of a message. */
export async function keepLearned(
  session: Session,
  realm: number,
  learned: Learned,
  at: Millis,
): Promise<void> {
  const { subscription, purchases, payments, refunds, disputes } = learned;
  if (subscription !== null) await saveSubscription(session, realm, subscription);
  for (const purchase of purchases) await savePurchase(session, realm, purchase);
  for (const { payment, source, isInvoice } of payments) {
    await session.query(
      `insert into stripe_payments (realm, payment, source, at_ms, is_invoice)
       values ($1::int, $2, $3, $4::bigint, $5::boolean) on conflict do nothing`,
      [realm, payment, source, at, isInvoice],
    );
  }
  for (const { payment, charge, money } of refunds) {
    await session.query(
      `insert into stripe_refunds (realm, payment, at_ms, charge, amount, currency)
       values ($1::int, $2, $3::bigint, $4, $5::bigint, $6) on conflict do nothing`,
      [realm, payment, at, charge, money?.amount ?? null, money?.currency ?? null],
    );
  }
  for (const dispute of disputes) await saveDispute(session, realm, dispute, at);
}

/** Stores which users the messages of a customer are about. */
export async function keepCustomer(
  session: Session,
  realm: number,
  customerId: string,
  userIds: readonly string[],
): Promise<void> {
  if (userIds.length === 0) return;
  await session.query(
    `insert into stripe_customers (realm, customer_id, user_id)
     select $1::int, $2, named.id from unnest($3::text::text[]) as named(id) order by 3 on conflict do nothing`,
    [realm, customerId, arrayText(userIds)],
  );
}

async function saveDispute(session: Session, realm: number, row: Dispute, at: Millis): Promise<void> {
  const { payment, disputeId, money, isWithdrawn, isReinstated } = row;
  await session.query(
    `insert into stripe_disputes (realm, payment, dispute, amount, currency, is_withdrawn, is_reinstated, at_ms)
     values ($1::int, $2, $3, $4::bigint, $5, $6::boolean, $7::boolean, $8::bigint)
     on conflict (realm, payment, dispute) do update set
       is_withdrawn = stripe_disputes.is_withdrawn or excluded.is_withdrawn,
       is_reinstated = stripe_disputes.is_reinstated or excluded.is_reinstated`,
    [
      ...[realm, payment, disputeId, money?.amount ?? null, money?.currency ?? null],
      ...[isWithdrawn, isReinstated, at],
    ],
  );
}

async function saveSubscription(session: Session, realm: number, row: KnownSubscription): Promise<void> {
  const { subscriptionId, userId, leftUserIds, created, rank, isFinal, eventIds, itemIds } = row;
  await session.query(
    `insert into stripe_subscriptions (realm, id, user_id, created_ms, rank, is_final, event_ids, left_user_ids,
       item_ids)
     values ($1::int, $2, $3, $4::bigint, $5::smallint, $6::boolean, $7, $8, $9)
     on conflict (realm, id) do update set user_id = excluded.user_id, created_ms = excluded.created_ms,
       rank = excluded.rank, is_final = excluded.is_final, event_ids = excluded.event_ids,
       left_user_ids = excluded.left_user_ids, item_ids = excluded.item_ids`,
    [
      ...[realm, subscriptionId, userId, created, rank, isFinal],
      ...[JSON.stringify(eventIds), JSON.stringify(leftUserIds)],
      itemIds.length === 0 ? null : JSON.stringify(itemIds),
    ],
  );
}

async function savePurchase(session: Session, realm: number, row: Purchase): Promise<void> {
  const { externalRef, source, packId, quantity, userId, subscriptionId, paid } = row;
  await session.query(
    `insert into stripe_purchases
       (realm, external_ref, source, pack_id, quantity, user_id, subscription_id, paid_amount, paid_currency)
     values ($1::int, $2, $3, $4, $5::bigint, $6, $7, $8::bigint, $9)
     on conflict (realm, external_ref) do update set
       user_id = coalesce(stripe_purchases.user_id, excluded.user_id),
       paid_amount = excluded.paid_amount, paid_currency = excluded.paid_currency`,
    [
      ...[realm, externalRef, source, packId, quantity, userId, subscriptionId],
      ...[paid?.amount ?? null, paid?.currency ?? null],
    ],
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
     ), gone_disputes as (
       delete from stripe_disputes where realm = $1::int and payment in (select payment from gone_payments)
     )
     delete from stripe_refunds where realm = $1::int
       and (payment in (select payment from gone_payments) or payment in (select source from own))`,
    [realm, texts],
  );
  await deleteUnhandledOf(session, realm, ids);
  await session.query(
    "delete from stripe_customers where realm = $1::int and user_id = any($2::text::text[])",
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
