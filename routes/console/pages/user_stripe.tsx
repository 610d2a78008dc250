// What Stripe reported about a user: payments that were filed, subscriptions, and messages that are not handled.

import { packOf, type ShownCatalog } from "../parts/catalog.ts";
import { Ago, moneyText } from "../parts/format.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import type { UserSubject } from "../parts/subject.tsx";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listUserStripe } from "../../contract/stripe.ts";

type StripeOfUser = AnswerOf<typeof listUserStripe>;

const NONE: StripeOfUser = { payments: [], subscriptions: [], unhandled: [] };

/** Reads what Stripe reported about a user; nothing where the call fails. */
export async function readStripeOfUser(
  { ask }: PageRequest,
  { app: { appId, mode }, user: { userId } }: UserSubject,
): Promise<StripeOfUser> {
  const answer = await ask.admin(listUserStripe, { appId, mode, userId });
  return answer.ok ? answer.data : NONE;
}

/** The payments of the user and its messages. */
export function StripeOfUserCard(
  { subject: { app }, stripe: { payments, subscriptions, unhandled }, catalog, now }: {
    subject: UserSubject;
    stripe: StripeOfUser;
    catalog: ShownCatalog;
    now: number;
  },
) {
  return (
    <section class="card" aria-labelledby="stripe">
      <div class="head">
        <h2 id="stripe">Stripe</h2>
        <a href={`${appPath(app)}/stripe`}>All unhandled payments</a>
      </div>
      {unhandled.length === 0 ? null : (
        <>
          <div class="note warn">
            Paid and not handled: the user did not receive what these messages are about.
          </div>
          <Unhandled messages={unhandled} now={now} />
        </>
      )}
      {payments.length + subscriptions.length + unhandled.length === 0
        ? (
          <p class="empty">
            No payment or subscription in Stripe belongs to this user. A payment that names another user or no
            user is on the page of that user, or among all unhandled payments.
          </p>
        )
        : null}
      {payments.length === 0 ? null : <Payments payments={payments} catalog={catalog} now={now} />}
      {subscriptions.length === 0 ? null : <Subscriptions subscriptions={subscriptions} now={now} />}
    </section>
  );
}

/** A note on the first tab when the user paid for something and did not receive it. */
export function UnhandledNote(
  { subject: { app, user }, stripe: { unhandled: [newest] }, now }: {
    subject: UserSubject;
    stripe: StripeOfUser;
    now: number;
  },
) {
  if (newest === undefined) return null;
  return (
    <div class="note warn">
      {newest.amount === null ? "A payment" : `A payment of ${paidText(newest)}`}{" "}
      <Ago at={newest.createdAt} now={now} /> was not handled.{" "}
      <a href={`${userPath(app, user.userId)}/billing`}>See Plan and billing</a>
    </div>
  );
}

function Unhandled({ messages, now }: { messages: StripeOfUser["unhandled"]; now: number }) {
  return (
    <Table
      rows={messages}
      columns={[
        { head: "Created", cell: ({ createdAt }) => <Ago at={createdAt} now={now} /> },
        {
          head: "Message",
          cell: ({ type, objectId }) => (
            <div>
              {type}
              <code class="soft sub">{objectId}</code>
            </div>
          ),
        },
        { head: "Amount", kind: "number", cell: (row) => paidText(row) },
        { head: "Reason", cell: ({ reason }) => reason },
      ]}
    />
  );
}

function Payments(
  { payments, catalog, now }: { payments: StripeOfUser["payments"]; catalog: ShownCatalog; now: number },
) {
  return (
    <Table
      rows={payments}
      columns={[
        {
          head: "Paid",
          cell: ({ at }) => at === null ? <span class="soft">unknown</span> : <Ago at={at} now={now} />,
        },
        {
          head: "For",
          cell: ({ packId, quantity, source }) => (
            <div>
              {quantity} × {packOf(catalog, packId)?.name ?? packId}
              <code class="soft sub">{source}</code>
            </div>
          ),
        },
        { head: "Amount", kind: "number", cell: (row) => paidText(row) },
        {
          head: "Status",
          cell: ({ isRefunded, isDisputed }) =>
            isRefunded
              ? <span class="tag warn">refunded</span>
              : isDisputed
              ? <span class="tag bad">disputed</span>
              : <span class="tag good">granted</span>,
        },
      ]}
    />
  );
}

function Subscriptions(
  { subscriptions, now }: { subscriptions: StripeOfUser["subscriptions"]; now: number },
) {
  return (
    <Table
      rows={subscriptions}
      columns={[
        { head: "Subscription", cell: ({ subscriptionId }) => <code>{subscriptionId}</code> },
        { head: "Last change", cell: ({ at }) => <Ago at={at} now={now} /> },
        {
          head: "Status",
          cell: ({ isEnded }) =>
            isEnded ? <span class="tag">ended</span> : <span class="tag good">active</span>,
        },
      ]}
    />
  );
}

function paidText({ amount, currency }: { amount: number | null; currency: string | null }): string {
  return amount === null || currency === null ? "unknown" : moneyText(amount, currency);
}
