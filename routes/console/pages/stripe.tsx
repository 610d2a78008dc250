// An app's connection with Stripe in one mode: where Stripe is to send, what it sells, and what came last.

import { aboutStripe, type ShownStripe, stripePath } from "./stripe_actions.tsx";
import { refusedPage } from "../parts/subject.tsx";
import { TimeExact } from "../parts/format.tsx";
import { appPath } from "../parts/page.tsx";
import { mayChange, type PageAt } from "../parts/page_context.ts";

interface Priced {
  readonly id: string;
  readonly name: string;
  readonly stripePrices?: readonly string[];
}

interface Prices {
  readonly plans?: readonly Priced[];
  readonly packs?: readonly Priced[];
}

/** `/console/apps/{appId}/{mode}/stripe` */
export const stripePage: PageAt = {
  path: "/console/apps/:appId/:mode/stripe",
  async show(request) {
    const subject = await aboutStripe(request);
    if (!("stripe" in subject)) return subject;
    const { app, stripe } = subject;
    const catalog = await request.ask.admin<Prices>("getCatalog", { appId: app.appId });
    if (!catalog.ok) return refusedPage(catalog.error);
    const { plans = [], packs = [] } = catalog.data;
    const sold = [...pricesOf("plan", plans), ...pricesOf("pack", packs)];
    return {
      title: "Stripe",
      crumbs: [{ title: app.name, href: appPath(app) }, { title: "Stripe", href: null }],
      content: (
        <>
          <div class="head">
            <h1>Stripe</h1>
            <StripeState stripe={stripe} />
          </div>
          <section class="sheet">
            <h2 class="visually-hidden">How it is set up</h2>
            <dl class="facts">
              <dt>Address</dt>
              <dd>
                <code class="wrap">{stripe.path}</code>
                <p class="hint">
                  Behind this service's own address. Make an endpoint for it in Stripe, in {app.mode} mode.
                </p>
              </dd>
              <dt>Secret</dt>
              <dd>
                {stripe.setAt === null ? "not set" : (
                  <>
                    set at <TimeExact at={stripe.setAt} />
                  </>
                )}
              </dd>
              <dt>Last message</dt>
              <dd>
                <LastMessage stripe={stripe} />
              </dd>
            </dl>
            {mayChange(request.session)
              ? (
                <div class="buttons">
                  <a class="button" href={`${stripePath(app)}/set`}>
                    {stripe.isSet ? "Set another secret" : "Set the secret"}
                  </a>
                  {stripe.isSet ? <a class="button" href={`${stripePath(app)}/remove`}>Remove</a> : null}
                </div>
              )
              : null}
          </section>
          <section class="sheet">
            <h2>What its prices sell</h2>
            {sold.length === 0
              ? (
                <p class="empty">
                  No plan or pack of the catalog lists stripePrices, so no message sells one.
                </p>
              )
              : (
                <table class="stack">
                  <thead>
                    <tr>
                      <th>Price</th>
                      <th>Sells</th>
                    </tr>
                  </thead>
                  <tbody>
                    {sold.map(({ price, kind, name }) => (
                      <tr>
                        <td data-label="Price">
                          <code class="wrap">{price}</code>
                        </td>
                        <td data-label="Sells">{kind} {name}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
          </section>
        </>
      ),
    };
  },
};

function pricesOf(kind: string, parts: readonly Priced[]) {
  return parts.flatMap(({ name, stripePrices = [] }) => stripePrices.map((price) => ({ price, kind, name })));
}

function StripeState({ stripe: { isSet, lastMessage } }: { stripe: ShownStripe }) {
  if (!isSet) return <span class="tag">not set</span>;
  return lastMessage === null
    ? <span class="tag">nothing came yet</span>
    : <span class="tag good">messages arrive</span>;
}

function LastMessage({ stripe: { lastMessage } }: { stripe: ShownStripe }) {
  if (lastMessage === null) return <>none yet</>;
  const { type, eventId, at, reason } = lastMessage;
  return (
    <>
      {type} at <TimeExact at={at} /> <code>{eventId}</code>
      {reason === null ? null : <p class="hint">It changed nothing: {reason}.</p>}
    </>
  );
}
