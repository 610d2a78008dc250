// An app in one mode at a glance: search, and the newest events.

import { Time } from "../format.tsx";
import { appPath, userPath } from "../page.tsx";
import type { AppMode } from "../ask.ts";
import type { PageAt } from "../room.ts";

/** An event as the feed shows it. */
export interface FeedEvent {
  readonly id: string;
  readonly endUserId: string;
  readonly eventType: string;
  readonly quantity: number;
  readonly costCents: number;
  readonly matchStatus: string;
  readonly createdAt: string;
}

const SHOWN = 20;

/** `/console/apps/{appId}/{mode}` */
export const overviewPage: PageAt = {
  path: "/console/apps/:appId/:mode",
  async show({ ask, app }) {
    if (app === null) throw new Error("The path names an app");
    const feed = await ask.app<{ events: FeedEvent[] }>(app, "listEvents", { limit: String(SHOWN) });
    const events = feed.ok ? feed.data.events : [];
    return {
      title: app.name,
      content: (
        <>
          <div class="head">
            <h1>{app.name}</h1>
            <code class="soft">{app.appId}</code>
          </div>
          <section class="sheet">
            <h2>Newest events</h2>
            {events.length === 0
              ? <p class="empty">Nothing was metered yet. Events show here as your backend sends them.</p>
              : <EventTable app={app} events={events} />}
            <div class="pager">
              <a href={`${appPath(app)}/events`}>All events</a>
            </div>
          </section>
        </>
      ),
    };
  },
};

/** Events as a table, newest first. */
export function EventTable({ app, events }: { app: AppMode; events: readonly FeedEvent[] }) {
  return (
    <table class="stack">
      <thead>
        <tr>
          <th>When</th>
          <th>User</th>
          <th>Event</th>
          <th class="number">Quantity</th>
          <th class="number">Cents</th>
          <th>Counted</th>
        </tr>
      </thead>
      <tbody>
        {events.map((event) => (
          <tr>
            <td data-label="When">
              <Time at={event.createdAt} />
            </td>
            <td data-label="User">
              <a class="row" href={userPath(app, event.endUserId)}>{event.endUserId}</a>
            </td>
            <td data-label="Event">{event.eventType}</td>
            <td data-label="Quantity" class="number">{event.quantity}</td>
            <td data-label="Cents" class="number">{event.costCents}</td>
            <td data-label="Counted">
              <span class={`tag ${event.matchStatus === "blocked" ? "bad" : ""}`}>{event.matchStatus}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
