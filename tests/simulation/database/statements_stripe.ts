// Statements of Stripe: the secrets of its messages, and the rows kept from them.

import type { Param } from "../../../src/storage/database.ts";
import type { Fields } from "../../support/memory_store.ts";
import { by, textsOf } from "./params.ts";
import type { Entry } from "./statements.ts";
import type { SimTables } from "./tables.ts";

export type Run = (tables: SimTables, params: readonly Param[]) => Fields[];

const NOTHING: Fields[] = [];

export function read(start: string, run: Run): Entry {
  return [start, { kind: "read", run }];
}

export function write(
  start: string,
  run: (tables: SimTables, params: readonly Param[]) => Fields[] | void,
): Entry {
  return [start, { kind: "write", make: (params) => (tables) => run(tables, params) ?? NOTHING }];
}

/** Inserts a row unless there is one with its key. */
function add(start: string, table: string, columns: readonly string[], keyColumns: number): Entry {
  return write(start, (tables, params) => {
    const key = keyOf(params.slice(0, keyColumns));
    if (find(tables, table, key) === undefined) tables.put(table, key, rowOf(columns, params));
  });
}

function rowOf(columns: readonly string[], params: readonly Param[]): Fields {
  return Object.fromEntries(columns.map((name, place) => [name, (params[place] ?? null) as Fields[string]]));
}

function keyOf(values: readonly Param[]): string {
  return JSON.stringify(values);
}

function find(tables: SimTables, table: string, key: string): Fields | undefined {
  const [realm, ...rest] = JSON.parse(key) as unknown[];
  return tables.list(table, (row) => {
    const own = KEYS[table] as readonly string[];
    return row.realm === realm && own.every((column, place) => row[column] === rest[place]);
  })[0];
}

/** The key columns of a table beside the realm. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  stripe_subscriptions: ["id"],
  stripe_purchases: ["external_ref"],
  stripe_payments: ["payment", "source"],
  stripe_refunds: ["payment"],
  stripe_disputes: ["payment", "dispute"],
  stripe_customers: ["customer_id", "user_id"],
};

const SUBSCRIPTION = [
  ...["realm", "id", "user_id", "created_ms", "rank", "is_final", "event_ids", "left_user_ids", "item_ids"],
];
const PURCHASE = [
  ...["realm", "external_ref", "source", "pack_id", "quantity", "user_id", "subscription_id"],
  ...["paid_amount", "paid_currency"],
];
const DISPUTE = [
  ...["realm", "payment", "dispute", "amount", "currency", "is_withdrawn", "is_reinstated", "at_ms"],
];

/** A row under the names that the product reads. */
function renamed(names: Readonly<Record<string, string>>): (row: Fields) => Fields {
  return (row) =>
    Object.fromEntries(Object.entries(names).map(([name, column]) => [name, row[column] ?? null]));
}

const showSubscription = renamed({
  subscriptionId: "id",
  userId: "user_id",
  leftUserIds: "left_user_ids",
  created: "created_ms",
  rank: "rank",
  isFinal: "is_final",
  eventIds: "event_ids",
  itemIds: "item_ids",
});

const showPurchase = renamed({
  externalRef: "external_ref",
  source: "source",
  packId: "pack_id",
  quantity: "quantity",
  userId: "user_id",
  subscriptionId: "subscription_id",
  amount: "paid_amount",
  currency: "paid_currency",
});

/** The text with which every read of purchases begins. */
const PURCHASES =
  'select external_ref as "externalRef", source, pack_id as "packId", quantity, user_id as "userId", ' +
  'subscription_id as "subscriptionId", paid_amount as amount, paid_currency as currency from stripe_purchases ' +
  "where realm = $1::int and ";

/** A read of rows by the ids in a column. */
function byIds(start: string, table: string, column: string, show: (row: Fields) => Fields): Entry {
  return read(start, (tables, [realm, ids]) => {
    const named = textsOf(ids);
    return tables.list(table, (row) => row.realm === realm && named.includes(String(row[column])))
      .sort(by(column)).map(show);
  });
}

const MONEY: readonly Entry[] = [
  read("ids that payments connect: with recursive linked(id) as (", (tables, [realm, ids]) => {
    const linked = new Set<unknown>(textsOf(ids));
    const rows = tables.list("stripe_payments", (row) => row.realm === realm);
    for (let before = -1; before !== linked.size;) {
      before = linked.size;
      for (const { payment, source } of rows) {
        if (linked.has(payment)) linked.add(source);
        else if (linked.has(source)) linked.add(payment);
      }
    }
    return [...linked].map((id) => ({ id: id as string })).sort(by("id"));
  }),
  byIds(`purchases of sales: ${PURCHASES}source = any`, "stripe_purchases", "source", showPurchase),
  byIds(
    'payments of sales: select payment, source, is_invoice as "isInvoice" from stripe_payments',
    "stripe_payments",
    "payment",
    renamed({ payment: "payment", source: "source", isInvoice: "is_invoice" }),
  ),
  byIds(
    "refunds of payments: select payment, charge, amount, currency from stripe_refunds",
    "stripe_refunds",
    "payment",
    renamed({ payment: "payment", charge: "charge", amount: "amount", currency: "currency" }),
  ),
  byIds(
    'disputes of payments: select payment, dispute as "disputeId", amount, currency',
    "stripe_disputes",
    "payment",
    renamed({
      ...{ payment: "payment", disputeId: "dispute", amount: "amount", currency: "currency" },
      ...{ isWithdrawn: "is_withdrawn", isReinstated: "is_reinstated" },
    }),
  ),
];

const KNOWN: readonly Entry[] = [
  read(
    'subscriptions by id: select id as "subscriptionId", user_id as "userId", left_user_ids',
    (tables, [realm, ids]) => {
      const named = textsOf(ids);
      return tables.list(
        "stripe_subscriptions",
        (row) => row.realm === realm && named.includes(String(row.id)),
      )
        .map(showSubscription);
    },
  ),
  read(
    `find purchases: ${PURCHASES}(external_ref = any`,
    (tables, [realm, refs, subscriptionIds]) => {
      const named = textsOf(refs);
      const waiting = textsOf(subscriptionIds);
      const isMeant = (row: Fields) =>
        named.includes(String(row.external_ref)) ||
        row.user_id === null && waiting.includes(row.subscription_id as string | null);
      return tables.list("stripe_purchases", (row) => row.realm === realm && isMeant(row))
        .sort(by("external_ref")).map(showPurchase);
    },
  ),
];

const KEPT: readonly Entry[] = [
  write("keep a subscription: insert into stripe_subscriptions", (tables, params) => {
    const key = keyOf(params.slice(0, 2));
    tables.put("stripe_subscriptions", key, rowOf(SUBSCRIPTION, params));
  }),
  write("keep a customer: insert into stripe_customers", (tables, [realm = null, customer = null, ids]) => {
    for (const user of textsOf(ids)) {
      const row = { realm: realm as number, customer_id: customer as string, user_id: user };
      tables.put("stripe_customers", keyOf([realm, customer, user]), row);
    }
  }),
  write("keep a purchase: insert into stripe_purchases", (tables, params) => {
    const key = keyOf(params.slice(0, 2));
    const row = rowOf(PURCHASE, params);
    const before = find(tables, "stripe_purchases", key);
    const userId = before?.user_id ?? row.user_id ?? null;
    const { paid_amount = null, paid_currency = null } = row;
    tables.put("stripe_purchases", key, { ...before ?? row, user_id: userId, paid_amount, paid_currency });
  }),
  add("keep a payment: insert into stripe_payments", "stripe_payments", [
    "realm",
    "payment",
    "source",
    "at_ms",
    "is_invoice",
  ], 3),
  add("keep a refund: insert into stripe_refunds", "stripe_refunds", [
    ...["realm", "payment", "at_ms", "charge", "amount", "currency"],
  ], 2),
  write("keep a dispute: insert into stripe_disputes", (tables, params) => {
    const key = keyOf(params.slice(0, 3));
    const row = rowOf(DISPUTE, params);
    const before = find(tables, "stripe_disputes", key);
    tables.put("stripe_disputes", key, {
      ...before ?? row,
      is_withdrawn: before?.is_withdrawn === true || row.is_withdrawn === true,
      is_reinstated: before?.is_reinstated === true || row.is_reinstated === true,
    });
  }),
  write("clear former users: update stripe_subscriptions set left_user_ids = '[]'", (tables, [realm, id]) => {
    const isMeant = (row: Fields) => row.realm === realm && row.id === id;
    tables.update("stripe_subscriptions", isMeant, { left_user_ids: "[]" });
  }),
  write("set the user: update stripe_purchases set user_id = $3", (tables, [realm, ref, userId]) => {
    const isMeant = (row: Fields) => row.realm === realm && row.external_ref === ref && row.user_id === null;
    tables.update("stripe_purchases", isMeant, { user_id: userId as string });
  }),
  write(
    "note the last message of a connection: update stripe_connections set last_event_id",
    (tables, [appId, mode, eventId, type, at, reason]) => {
      const isMeant = (row: Fields) => row.appId === appId && row.mode === mode;
      const last = { last_event_id: eventId, last_type: type, last_at_ms: at, last_reason: reason } as Fields;
      tables.update("stripe_connections", isMeant, last);
    },
  ),
];

const REMOVED: readonly Entry[] = [
  write("erase purchases: with gone as ( delete from stripe_purchases", (tables, [realm, ids]) => {
    const named = textsOf(ids);
    const isHere = (row: Fields) => row.realm === realm;
    const isGone = (row: Fields) =>
      isHere(row) && row.user_id !== null && named.includes(String(row.user_id));
    const gone = new Set(tables.list("stripe_purchases", isGone).map(({ source }) => source));
    tables.remove("stripe_purchases", isGone);
    for (const { source } of tables.list("stripe_purchases", isHere)) gone.delete(source as string);
    const isOwn = (row: Fields) => isHere(row) && gone.has(row.source as string);
    const payments = new Set(tables.list("stripe_payments", isOwn).map(({ payment }) => payment));
    tables.remove("stripe_payments", isOwn);
    tables.remove("stripe_disputes", (row) => isHere(row) && payments.has(row.payment));
    tables.remove(
      "stripe_refunds",
      (row) => isHere(row) && (payments.has(row.payment) || gone.has(row.payment)),
    );
  }),
  write("forget former users: update stripe_subscriptions set left_user_ids = (", (tables, [realm, ids]) => {
    const named = textsOf(ids);
    const isMeant = (row: Fields) => row.realm === realm && row.left_user_ids !== "[]";
    for (const row of tables.list("stripe_subscriptions", isMeant)) {
      const left = (JSON.parse(row.left_user_ids as string) as string[]).filter((id) => !named.includes(id));
      tables.update("stripe_subscriptions", (each) => each === row, {
        left_user_ids: JSON.stringify(left),
      });
    }
  }),
  write("erase customers of Stripe: delete from stripe_customers where realm", (tables, [realm, ids]) => {
    const named = textsOf(ids);
    tables.remove("stripe_customers", (row) => row.realm === realm && named.includes(String(row.user_id)));
  }),
  write("erase subscriptions: delete from stripe_subscriptions where realm", (tables, [realm, ids]) => {
    const named = textsOf(ids);
    const isMeant = (row: Fields) =>
      row.realm === realm && row.user_id !== null && named.includes(String(row.user_id));
    tables.remove("stripe_subscriptions", isMeant);
  }),
  write("remove old refunds: delete from stripe_refunds where realm", (tables, [realm, before, limit]) => {
    const paid = tables.list("stripe_payments", (row) => row.realm === realm);
    return oldOnes(
      tables,
      "stripe_refunds",
      realm,
      before,
      limit,
      ({ payment }, sold) =>
        sold.has(payment) || paid.some((row) => row.payment === payment && sold.has(row.source)),
    );
  }),
  write("remove old disputes: delete from stripe_disputes where realm", (tables, [realm, before, limit]) => {
    const paid = tables.list("stripe_payments", (row) => row.realm === realm);
    return oldOnes(
      tables,
      "stripe_disputes",
      realm,
      before,
      limit,
      ({ payment }, sold) => paid.some((row) => row.payment === payment && sold.has(row.source)),
    );
  }),
  write(
    "remove old payments: delete from stripe_payments where realm",
    (tables, [realm, before, limit]) =>
      oldOnes(tables, "stripe_payments", realm, before, limit, ({ source }, sold) => sold.has(source)),
  ),
];

/** Removes old rows that belong to no purchase, the oldest first. */
function oldOnes(
  tables: SimTables,
  table: string,
  realm: Param | undefined,
  before: Param | undefined,
  limit: Param | undefined,
  belongs: (row: Fields, sold: ReadonlySet<unknown>) => boolean,
): Fields[] {
  const sold = new Set<unknown>(
    tables.list("stripe_purchases", (row) => row.realm === realm).map(({ source }) => source),
  );
  const old = new Set(
    tables.list(
      table,
      (row) => row.realm === realm && (row.at_ms as number) <= Number(before) && !belongs(row, sold),
    )
      .sort(by("at_ms")).slice(0, Number(limit)),
  );
  tables.remove(table, (row) => old.has(row));
  return [...old];
}

export const STRIPE: readonly Entry[] = [
  read(
    'changed connections: select app_id as "appId", mode, webhook_secret as "webhookSecret"',
    (tables, [since]) =>
      tables.list("stripe_connections", ({ changedIn }) => Number(changedIn) > Number(since)),
  ),
  ...KNOWN,
  ...MONEY,
  ...KEPT,
  ...REMOVED,
];
