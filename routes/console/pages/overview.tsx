// An app in one mode at a glance: today's usage, a chart of the last days, and the newest events.

import type { AppMode } from "../parts/ask.ts";
import { appOf } from "../parts/subject.tsx";
import { EventTable } from "../parts/event_table.tsx";
import { Figure } from "../parts/figure.tsx";
import { appPath } from "../parts/page.tsx";
import type { PageRoute } from "../parts/page_context.ts";
import { type DailyUsage, LagNote, nowOf, readDailyUsage, UsageChart } from "../parts/usage_chart.tsx";
import { listEvents } from "../../contract/events.ts";

const SHOWN = 10;
const DAYS = 30;

/** `/console/apps/{appId}/{mode}` */
export const overviewPage: PageRoute = {
  path: "/console/apps/:appId/:mode",
  async show(request) {
    const { ask } = request;
    const app = appOf(request);
    const now = await nowOf(request, app);
    const [feed, answer] = await Promise.all([
      ask.app(app, listEvents, { limit: String(SHOWN) }),
      readDailyUsage(ask, app, { now, days: DAYS, by: "event", userId: null }),
    ]);
    const events = feed.ok ? feed.data.events : [];
    const usage = answer.ok ? answer.data : null;
    return {
      title: app.name,
      hasCharts: true,
      content: (
        <>
          <div class="head">
            <h1>{app.name}</h1>
            <code class="soft">{app.appId}</code>
          </div>
          {usage === null ? null : <Today app={app} usage={usage} />}
          {usage === null || events.length === 0 ? null : (
            <section class="card">
              <div class="head">
                <h2>Events by day</h2>
                <a href={`${appPath(app)}/usage`}>Usage</a>
              </div>
              <LagNote usage={usage} now={now} />
              <UsageChart
                usage={usage}
                measure="events"
                label={`Events of the last ${DAYS} days by event type`}
              />
            </section>
          )}
          <section class="card">
            <div class="head">
              <h2>Newest events</h2>
              {events.length === 0 ? null : <a href={`${appPath(app)}/events`}>All events</a>}
            </div>
            {events.length === 0
              ? (
                <p class="empty">
                  No events yet. Send events from your server with an{" "}
                  <a href={`${appPath(app)}/keys`}>API key</a> of this mode; the{" "}
                  <a href={`${appPath(app)}/catalog`}>catalog</a> defines plans and limits.
                </p>
              )
              : <EventTable app={app} events={events} />}
          </section>
        </>
      ),
    };
  },
};

function Today({ app, usage: { days } }: { app: AppMode; usage: DailyUsage }) {
  const today = days.at(-1);
  if (today === undefined) return null;
  const { events, costCents, blocked } = today;
  return (
    <div class="figures">
      <Figure value={events} text="events today" href={`${appPath(app)}/events`} />
      <Figure value={costCents} unit="cents" text="cost today" href={`${appPath(app)}/usage`} />
      <Figure value={blocked} text="blocked events today" href={`${appPath(app)}/refusals`} />
    </div>
  );
}
