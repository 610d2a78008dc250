// The top-ups of a user: the setting, and each purchase with its state.

import { moneyText, Time } from "../parts/format.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import type { UserSubject } from "../parts/subject.tsx";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { getTopUp, listTopUps } from "../../contract/top_ups.ts";

/** What a user buys by itself. */
interface TopUpsShown {
  /** Null for none. */
  readonly setting: AnswerOf<typeof getTopUp> | null;
  /** The newest ones. */
  readonly topUps: AnswerOf<typeof listTopUps>["topUps"];
}

/** Reads the setting of a user, and the newest top-ups. */
export async function readTopUps(
  { ask }: PageRequest,
  { app, user: { userId } }: UserSubject,
): Promise<TopUpsShown> {
  const [setting, listed] = await Promise.all([
    ask.app(app, getTopUp, { userId }),
    ask.app(app, listTopUps, { userId, limit: "10" }),
  ]);
  return { setting: setting.ok ? setting.data : null, topUps: listed.ok ? listed.data.topUps : [] };
}

/** The top-ups of the user; nothing for a user without any. */
export function TopUpsCard({ shown: { setting, topUps } }: { shown: TopUpsShown }) {
  if (setting === null && topUps.length === 0) return null;
  return (
    <section class="card" aria-labelledby="top-ups">
      <h2 id="top-ups">Top-ups</h2>
      {setting === null ? <p class="empty">No setting</p> : <Setting setting={setting} />}
      {topUps.length === 0 ? null : (
        <Table
          rows={topUps}
          columns={[
            {
              head: "Status",
              cell: ({ status, reason }) => reason === null ? status : `${status}: ${reason}`,
            },
            {
              head: "Pack",
              cell: ({ packId, quantity, topUpId }) => (
                <div>
                  {quantity} × {packId}
                  <code class="soft sub">{topUpId}</code>
                </div>
              ),
            },
            { head: "Amount", cell: ({ amount, currency }) => moneyText(amount, currency) },
            {
              head: "Payment",
              cell: ({ paymentIntentId }) => paymentIntentId === null ? "" : <code>{paymentIntentId}</code>,
            },
            { head: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
            {
              head: "Settled",
              cell: ({ settledAt }) => settledAt === null ? "not yet" : <Time at={settledAt} />,
            },
          ]}
        />
      )}
    </section>
  );
}

function Setting({ setting }: { setting: NonNullable<TopUpsShown["setting"]> }) {
  const { packId, quantity, below, maxPerMonth, enabled, failures, nextTryAt } = setting;
  return (
    <p>
      {enabled ? "Enabled" : "Disabled"}: buys {quantity} × <code>{packId}</code> below {below}, at most{" "}
      {maxPerMonth} of the currency's smallest unit in a month.
      {failures === 0 ? "" : ` Failed ${failures} times in a row.`}
      {nextTryAt === null ? null : (
        <>
          {" "}Not before <Time at={nextTryAt} />.
        </>
      )}
    </p>
  );
}
