// One user on one page: the plan with its counters as bars, credits, and the newest events.

import { AmountText, Time, TimeOr } from "../format.tsx";
import { Meter, type MeteredGroup } from "../meter.tsx";
import { appPath } from "../page.tsx";
import type { PageAt } from "../room.ts";
import { EventTable, type FeedEvent } from "../event_table.tsx";
import type { CreditBalance } from "../../../src/client/shapes.ts";

interface Explanation {
  readonly subscription: { readonly planId: string; readonly planName: string } | null;
  readonly groups: readonly MeteredGroup[];
}

/** No event has this name: asked about it, explain shows every group and decides nothing. */
const NO_EVENT = "-";

const userPage: PageAt = {
  path: "/console/apps/:appId/:mode/users/:userId",
  async show({ ask, app, params }) {
    if (app === null) throw new Error("The path names an app");
    const userId = params["userId"] ?? "";
    const [explained, credits, feed] = await Promise.all([
      ask.app<Explanation>(app, "explain", { userId, event: NO_EVENT }),
      ask.app<{ credits: CreditBalance[] }>(app, "listCredits", { userId }),
      ask.app<{ events: FeedEvent[] }>(app, "listEvents", { userId, limit: "20" }),
    ]);
    if (!explained.ok) return refused(explained.error.message);
    const { subscription, groups } = explained.data;
    return {
      title: userId,
      crumbs: [{ title: app.name, href: appPath(app) }, { title: userId, href: null }],
      content: (
        <>
          <div class="head">
            <h1>{userId}</h1>
            <span>
              {subscription === null ? <span class="tag warn">no plan</span> : subscription.planName}
            </span>
          </div>
          <div class="columns">
            <section class="sheet">
              <h2>Limits</h2>
              {groups.length === 0
                ? <p class="empty">Without a plan nothing limits this user but credits.</p>
                : groups.map((group) => <Meter group={group} />)}
            </section>
            <section class="sheet">
              <h2>Credits</h2>
              {credits.ok && credits.data.credits.length > 0
                ? <Balances balances={credits.data.credits} />
                : <p class="empty">This user has no credits.</p>}
            </section>
          </div>
          <section class="sheet">
            <h2>Newest events</h2>
            {feed.ok && feed.data.events.length > 0
              ? <EventTable app={app} events={feed.data.events} />
              : <p class="empty">Nothing was metered for this user yet.</p>}
          </section>
        </>
      ),
    };
  },
};

function refused(message: string) {
  return { title: "Refused", content: <p>{message}</p>, status: 400 };
}

function Balances({ balances }: { balances: readonly CreditBalance[] }) {
  return (
    <table class="stack">
      <thead>
        <tr>
          <th>Pack</th>
          <th class="number">Left</th>
          <th>Granted</th>
          <th>Expires</th>
        </tr>
      </thead>
      <tbody>
        {balances.map((balance) => (
          <tr>
            <td data-label="Pack">{balance.packName}</td>
            <td data-label="Left" class="number">
              <AmountText value={balance.remaining} unit={balance.unit} /> of{" "}
              <AmountText value={balance.initial} unit={balance.unit} />
            </td>
            <td data-label="Granted">
              <Time at={balance.grantedAt} />
            </td>
            <td data-label="Expires">
              <TimeOr at={balance.expiresAt} none="never" />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export const userPages: readonly PageAt[] = [userPage];
