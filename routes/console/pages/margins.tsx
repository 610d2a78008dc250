// Margins of plans: what they bring in 30 days against what their calls cost.

import type { AppMode } from "../parts/ask.ts";
import { appOf, dataOf, type UserSubject } from "../parts/subject.tsx";
import { AmountText, TimeExact } from "../parts/format.tsx";
import { appPath, crumbsOf } from "../parts/page.tsx";
import type { PageRequest, PageRoute } from "../parts/page_context.ts";
import { Table } from "../parts/table.tsx";
import { listMargins } from "../../contract/margins.ts";
import type { AnswerOf } from "../../contract/definition.ts";
import { Cost } from "./usage.tsx";

type Margins = AnswerOf<typeof listMargins>;
type Money = NonNullable<Margins["plans"][number]["price"]>;

/** The path of the page. */
export function marginsPath(app: AppMode): string {
  return `${appPath(app)}/margins`;
}

/** `/console/apps/{appId}/{mode}/margins?plans` */
export const marginsPage: PageRoute = {
  path: "/console/apps/:appId/:mode/margins",
  async show(request) {
    const app = appOf(request);
    const isPart = request.query.has(PART);
    const asked = { appId: app.appId, mode: app.mode };
    const margins = isPart ? await request.ask.admin(listMargins, asked).then(dataOf) : null;
    return {
      title: "Margins",
      crumbs: crumbsOf(app, "Margins"),
      content: (
        <>
          <h1>Margins of 30 days</h1>
          <section class="card">
            <h2 class="visually-hidden">Plans</h2>
            {margins === null ? <MarginsLater app={app} /> : (
              <div id="margins">
                <PlanTable app={app} margins={margins} />
              </div>
            )}
          </section>
        </>
      ),
    };
  },
};

/** The member of the query that asks for the plans too. */
const PART = "plans";

/** The margins of plans, loaded after the page around them: they need the seats of all subscriptions, which may take a second. */
export function MarginsLater({ app }: { app: AppMode }) {
  const path = `${marginsPath(app)}?${PART}`;
  return (
    <div hx-get={path} hx-trigger="load" hx-select="#margins" hx-swap="outerHTML">
      <p class="empty">
        <a href={path}>Show cost, revenue and margin of each plan</a>
      </p>
    </div>
  );
}

/** Reads the margins of a user; null where the call fails. */
export async function readMarginsOfUser(
  { ask }: PageRequest,
  { app: { appId, mode }, user: { userId } }: UserSubject,
): Promise<Margins | null> {
  const answer = await ask.admin(listMargins, { appId, mode, userId });
  return answer.ok ? answer.data : null;
}

/** What the user brought in and cost in 30 days. */
export function MarginsOfUserCard(
  { subject: { app }, margins }: { subject: UserSubject; margins: Margins | null },
) {
  return (
    <section class="card" aria-labelledby="margin">
      <div class="head">
        <h2 id="margin">Margin of 30 days</h2>
        <a href={marginsPath(app)}>All plans</a>
      </div>
      {margins === null
        ? <p class="empty">Not available</p>
        : <PlanTable app={app} margins={margins} ofUser />}
    </section>
  );
}

function PlanTable({ app, margins: { plans: all, seatsAt, countedUntil }, ofUser = false }: {
  app: AppMode;
  margins: Margins;
  ofUser?: boolean;
}) {
  // The call also lists plans that the user has nothing of.
  const plans = ofUser
    ? all.filter(({ seats, costCents, unpriced }) => seats > 0 || costCents > 0 || unpriced > 0)
    : all;
  if (plans.length === 0) {
    return <p class="empty">{ofUser ? "No cost and no plan" : "No plan has subscriptions or events"}</p>;
  }
  const hasPrices = plans.some(({ price }) => price !== null);
  return (
    <>
      <Table
        rows={plans}
        columns={[
          {
            head: "Plan",
            cell: ({ planId, planName }) =>
              planId === null
                ? <span class="soft">no plan, or unknown</span>
                : <span title={planId}>{planName ?? planId}</span>,
          },
          ofUser
            ? null
            : { head: "Users", kind: "number", cell: ({ users }) => <AmountText value={users} /> },
          { head: "Seats", kind: "number", cell: ({ seats }) => <AmountText value={seats} /> },
          hasPrices
            ? {
              head: "Price",
              kind: "number",
              cell: ({ price }) => <MoneyText money={price} none="no price" />,
            }
            : null,
          hasPrices
            ? {
              head: "Revenue",
              kind: "number",
              cell: ({ revenue }) => <MoneyText money={revenue} none="none" />,
            }
            : null,
          { head: "Cost", kind: "number", cell: (row) => <Cost of={row} /> },
          hasPrices
            ? {
              head: "Margin",
              kind: "number",
              cell: ({ marginCents }) => marginCents === null
                ? <span class="soft">none</span>
                : <AmountText value={marginCents} unit="cents" />,
            }
            : null,
        ]}
      />
      <p class="hint">
        Of 30 days. Subscriptions on trial are not counted; seats are those of{" "}
        <TimeExact at={seatsAt} />, cost until <TimeExact at={countedUntil} />.{" "}
        {hasPrices ? "A margin needs a price in usd; a lifetime plan has none." : (
          <>
            Add <code>planPrices</code> to the <a href={`${appPath(app)}/catalog`}>catalog</a> to see margins.
          </>
        )}
      </p>
    </>
  );
}

function MoneyText({ money, none }: { money: Money | null; none: string }) {
  if (money === null) return <span class="soft">{none}</span>;
  return <>{moneyText(money)}</>;
}

/** An amount of the smallest unit of a currency, such as "$20.00" or "¥500". */
function moneyText({ amount, currency }: Money): string {
  const format = new Intl.NumberFormat("en-US", { style: "currency", currency });
  const { maximumFractionDigits = 2 } = format.resolvedOptions();
  return format.format(amount / 10 ** maximumFractionDigits);
}
