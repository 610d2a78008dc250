// An app in one mode at a glance: what was used today and in the last days, and the newest events.

import { appOf } from "../parts/subject.tsx";
import { EventTable, type FeedEvent } from "../parts/event_table.tsx";
import { AmountText } from "../parts/format.tsx";
import { appPath } from "../parts/page.tsx";
import type { PageAt } from "../parts/page_context.ts";
import { askDailyUse, nowOf, UseChart } from "../parts/use_chart.tsx";

const SHOWN = 10;
const DAYS = 30;

/** `/console/apps/{appId}/{mode}` */
export const overviewPage: PageAt = {
  path: "/console/apps/:appId/:mode",
  async show(request) {
    const { ask } = request;
    const app = appOf(request);
    const now = await nowOf(request, app);
    const [feed, use] = await Promise.all([
      ask.app<{ events: FeedEvent[] }>(app, "listEvents", { limit: String(SHOWN) }),
      askDailyUse(ask, app, { now, days: DAYS, by: "event", userId: null }),
    ]);
    const events = feed.ok ? feed.data.events : [];
    const today = use.ok ? use.data.days.at(-1) : undefined;
    return {
      title: app.name,
      hasCharts: true,
      content: (
        <>
          <div class="head">
            <h1>{app.name}</h1>
            <code class="soft">{app.appId}</code>
          </div>
          {today === undefined ? null : (
            <div class="figures">
              <Figure value={today.events} text="events today" href={`${appPath(app)}/events`} />
              <Figure value={today.costCents} unit="cents" text="cost today" href={`${appPath(app)}/usage`} />
              <Figure value={today.blocked} text="tracks blocked today" href={`${appPath(app)}/refusals`} />
            </div>
          )}
          {!use.ok || events.length === 0 ? null : (
            <section class="sheet">
              <div class="head">
                <h2>Events by day</h2>
                <a href={`${appPath(app)}/usage`}>Use by day</a>
              </div>
              <UseChart use={use.data} measure="events" label={`Events of the last ${DAYS} days by kind`} />
            </section>
          )}
          <section class="sheet">
            <div class="head">
              <h2>Newest events</h2>
              {events.length === 0 ? null : <a href={`${appPath(app)}/events`}>All events</a>}
            </div>
            {events.length === 0
              ? (
                <p class="empty">
                  Nothing was metered yet. Events show here as your backend sends them with a{" "}
                  <a href={`${appPath(app)}/keys`}>key</a> of this mode; what users may do stands in the{" "}
                  <a href={`${appPath(app)}/catalog`}>catalog</a>.
                </p>
              )
              : <EventTable app={app} events={events} />}
          </section>
        </>
      ),
    };
  },
};

function Figure(
  { value, unit, text, href }: { value: number; unit?: "cents"; text: string; href: string },
) {
  return (
    <a class="figure" href={href}>
      <b>{unit === undefined ? <AmountText value={value} /> : <AmountText value={value} unit={unit} />}</b>
      <span>{text}</span>
    </a>
  );
}
