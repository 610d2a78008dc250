// An app's connection to Stripe in one mode: the endpoint URL, the last message, and the prices of plans and packs.

import { loadStripe, type ShownStripe, stripePath } from "./stripe_actions.tsx";
import type { AppMode } from "../parts/ask.ts";
import { dataOf } from "../parts/subject.tsx";
import { TimeExact } from "../parts/format.tsx";
import { crumbsOf } from "../parts/page.tsx";
import { mayChange, type PageRoute } from "../parts/page_context.ts";
import { Table } from "../parts/table.tsx";
import { getCatalog } from "../../contract/catalogs.ts";
import type { AnswerOf } from "../../contract/definition.ts";
import { listUnhandledStripe } from "../../contract/stripe.ts";

/** `/console/apps/{appId}/{mode}/stripe` */
export const stripePage: PageRoute = {
  path: "/console/apps/:appId/:mode/stripe",
  async show(request) {
    const subject = await loadStripe(request);
    const { app, stripe } = subject;
    const { appId, mode } = app;
    const { plans = [], packs = [] } = await request.ask.admin(getCatalog, { appId, mode }).then(dataOf);
    const { unhandled } = await request.ask.admin(listUnhandledStripe, { appId, mode }).then(dataOf);
    const sold = [...pricesOf("plan", plans), ...pricesOf("pack", packs)];
    return {
      title: "Stripe",
      crumbs: crumbsOf(app, "Stripe"),
      content: (
        <>
          <div class="head">
            <h1>Stripe</h1>
            <StripeStatus stripe={stripe} />
          </div>
          <section class="card">
            <h2 class="visually-hidden">Connection</h2>
            <Connection app={app} stripe={stripe} />
            {mayChange(request.session) ? <Buttons path={stripePath(app)} stripe={stripe} /> : null}
          </section>
          <section class="card">
            <h2>Paid and not handled</h2>
            <Unhandled
              messages={unhandled}
              retryPath={mayChange(request.session) ? `${stripePath(app)}/unhandled` : null}
            />
          </section>
          <section class="card">
            <h2>Prices</h2>
            <Table
              empty="No plan or pack in the catalog has stripePrices, so payments in Stripe have no effect here."
              rows={sold}
              columns={[
                { head: "Price", cell: ({ price }) => <code class="wrap">{price}</code> },
                { head: "Plan or pack", cell: ({ kind, name }) => <>{kind} {name}</> },
              ]}
            />
          </section>
        </>
      ),
    };
  },
};

type UnhandledMessage = AnswerOf<typeof listUnhandledStripe>["unhandled"][number];

/** @param retryPath the path of the messages; null for an operator who may not retry them */
function Unhandled(
  { messages, retryPath }: { messages: readonly UnhandledMessage[]; retryPath: string | null },
) {
  if (messages.length === 0) {
    return <p class="empty">All payments that Stripe sent messages about are handled.</p>;
  }
  return (
    <>
      <p class="hint">
        Each message is tried again after a change of the catalog, and is removed after 30 days.
      </p>
      <Table
        rows={messages}
        columns={[
          { head: "Created", cell: ({ createdAt }) => <TimeExact at={createdAt} /> },
          {
            head: "Message",
            cell: ({ type, eventId, objectId }) => (
              <details class="more">
                <summary>{type}</summary>
                <code class="wrap">{objectId}</code> <code class="wrap">{eventId}</code>
              </details>
            ),
          },
          { head: "Amount", kind: "number", cell: amountText },
          { head: "Reason", cell: ({ reason }) => reason },
          retryPath === null ? null : {
            head: "Actions",
            hidesHead: true,
            kind: "number",
            cell: ({ eventId }) => (
              <a class="row" href={`${retryPath}/${encodeURIComponent(eventId)}/retry`}>Retry</a>
            ),
          },
        ]}
      />
    </>
  );
}

/** The amount in Stripe's smallest unit, which is not a hundredth of every currency. */
function amountText({ amount, currency }: UnhandledMessage): string {
  return amount === null ? "unknown" : `${amount} ${currency ?? ""}`;
}

function Connection({ app, stripe }: { app: AppMode; stripe: ShownStripe }) {
  return (
    <dl class="facts">
      <dt>Endpoint path</dt>
      <dd>
        <code class="wrap">{stripe.path}</code>
        <p class="hint">
          Create an endpoint in Stripe, in {app.mode} mode, with the URL of this service and this path.
        </p>
      </dd>
      <dt>Signing secret</dt>
      <dd>
        {stripe.setAt === null ? "not set" : (
          <>
            set on <TimeExact at={stripe.setAt} />
          </>
        )}
      </dd>
      <dt>Last message</dt>
      <dd>
        <LastMessage stripe={stripe} />
      </dd>
    </dl>
  );
}

function Buttons({ path, stripe: { isSet } }: { path: string; stripe: ShownStripe }) {
  return (
    <div class="buttons">
      <a class="button" href={`${path}/set`}>{isSet ? "Replace signing secret" : "Set signing secret"}</a>
      {isSet ? <a class="button" href={`${path}/remove`}>Disconnect Stripe</a> : null}
    </div>
  );
}

function pricesOf(
  kind: string,
  parts: readonly { readonly name: string; readonly stripePrices?: readonly string[] | undefined }[],
) {
  return parts.flatMap(({ name, stripePrices = [] }) => stripePrices.map((price) => ({ price, kind, name })));
}

function StripeStatus({ stripe: { isSet, lastMessage } }: { stripe: ShownStripe }) {
  if (!isSet) return <span class="tag">not connected</span>;
  return lastMessage === null
    ? <span class="tag">no messages yet</span>
    : <span class="tag good">connected</span>;
}

function LastMessage({ stripe: { lastMessage } }: { stripe: ShownStripe }) {
  if (lastMessage === null) return <>none yet</>;
  const { type, eventId, at, reason } = lastMessage;
  return (
    <>
      {type} on <TimeExact at={at} /> <code>{eventId}</code>
      {reason === null ? null : <p class="hint">Ignored: {reason}.</p>}
    </>
  );
}
