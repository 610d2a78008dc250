// The feed of events as they come in, and one event with everything that is known of it.

import { appOf, refusedPage } from "../parts/subject.tsx";
import { csvFile, csvQuery } from "../parts/csv.ts";
import { EventTable, type FeedEvent, StatusTag } from "../parts/event_table.tsx";
import { Filter, FilterText } from "../parts/filter.tsx";
import { AmountText, TimeExact } from "../parts/format.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import { listAsAsked, Pager } from "../parts/pager.tsx";
import type { PageAt } from "../parts/page_context.ts";
import type { Unit } from "../../../src/domain/catalog/plan.ts";

/** `/console/apps/{appId}/{mode}/events` */
const eventsPage: PageAt = {
  path: "/console/apps/:appId/:mode/events",
  async show(request) {
    const { ask, query, path } = request;
    const app = appOf(request);
    const userId = query.get("user") || undefined;
    const eventType = query.get("type") || undefined;
    const listed = await listAsAsked(query, {
      read: (part) => ask.app<{ events: FeedEvent[] }>(app, "listEvents", { userId, eventType, ...part }),
      rowsOf: ({ events }) => events,
      fileOf: (rows) =>
        csvFile(
          `events-${app.mode}`,
          ["createdAt", "id", "userId", "event", "quantity", "costCents", "matchStatus"],
          rows.map((event) => [
            event.createdAt,
            event.id,
            event.endUserId,
            event.eventType,
            event.quantity,
            event.costCents,
            event.matchStatus,
          ]),
        ),
    });
    if (!("rows" in listed)) return listed;
    const { rows: events, offset } = listed;
    const isFiltered = userId !== undefined || eventType !== undefined;
    const isLive = offset === 0 && query.get("live") !== "off";
    const self = `${path}?${query}`;
    return {
      title: "Events",
      crumbs: [{ title: app.name, href: appPath(app) }, { title: "Events", href: null }],
      content: (
        <>
          <div class="head">
            <h1>Events</h1>
            {offset > 0 ? null : <LiveSwitch query={query} isLive={isLive} />}
          </div>
          <Filter path={path} isFiltered={isFiltered}>
            <FilterText name="user" label="User" value={userId} />
            <FilterText name="type" label="Event" value={eventType} />
          </Filter>
          <section
            class="sheet"
            id="feed"
            {...(isLive
              ? { "hx-get": self, "hx-trigger": "every 4s", "hx-select": "#feed", "hx-swap": "outerHTML" }
              : {})}
          >
            <h2 class="visually-hidden">The list</h2>
            {events.length > 0
              ? <EventTable app={app} events={events} />
              : <NoEvents isFiltered={isFiltered} userId={userId} />}
            <Pager query={query} offset={offset} rows={events.length} />
          </section>
          {events.length === 0 ? null : (
            <p class="hint">
              <a href={csvQuery(query)} download>The newest 1,000 as CSV</a>
            </p>
          )}
        </>
      ),
    };
  },
};

function LiveSwitch({ query, isLive }: { query: URLSearchParams; isLive: boolean }) {
  const other = new URLSearchParams(query);
  if (isLive) other.set("live", "off");
  else other.delete("live");
  return (
    <span>
      {isLive ? <span class="is-live soft">live</span> : <span class="soft">paused</span>}
      {" · "}
      <a href={`?${other}`}>{isLive ? "Pause" : "Go on"}</a>
    </span>
  );
}

function NoEvents({ isFiltered, userId }: { isFiltered: boolean; userId: string | undefined }) {
  if (!isFiltered) {
    return <p class="empty">Nothing was metered yet. Events show here as your backend sends them.</p>;
  }
  return (
    <p class="empty">
      No event is like this.
      {userId === undefined
        ? ' Names of events are compared exactly; "*" stands for nothing here.'
        : " Ids are compared exactly. Users who opted out of personalization, or wait for an erasure, show no events."}
    </p>
  );
}

/** One event as the API shows it. */
interface EventDetail extends FeedEvent {
  readonly metadata: unknown;
  readonly amounts: readonly {
    readonly groupId?: string;
    readonly balanceId?: string;
    readonly unit: Unit;
    readonly amount: number;
  }[];
  readonly uncovered: Readonly<Record<string, number>>;
  readonly hasLog: boolean;
  readonly prompt: string | null;
  readonly response: string | null;
  readonly errorCode: string | null;
  readonly reservationId: string | null;
  readonly reason: string | null;
}

/** `/console/apps/{appId}/{mode}/events/{eventId}` */
const eventPage: PageAt = {
  path: "/console/apps/:appId/:mode/events/:eventId",
  async show(request) {
    const app = appOf(request);
    const found = await request.ask.app<EventDetail>(app, "getEvent", { eventId: request.params["eventId"] });
    if (!found.ok) return { ...refusedPage(found.error, "No such event"), status: 404 };
    const event = found.data;
    const uncovered = Object.entries(event.uncovered);
    return {
      title: event.eventType,
      crumbs: [
        { title: app.name, href: appPath(app) },
        { title: "Events", href: `${appPath(app)}/events` },
        { title: event.id, href: null },
      ],
      content: (
        <>
          <div class="head">
            <h1>{event.eventType}</h1>
            <StatusTag status={event.matchStatus} />
          </div>
          <div class="columns">
            <section class="sheet">
              <h2>What happened</h2>
              <dl class="facts">
                <dt>User</dt>
                <dd>
                  <a href={userPath(app, event.endUserId)}>{event.endUserId}</a>
                </dd>
                <dt>When</dt>
                <dd>
                  <TimeExact at={event.createdAt} />
                </dd>
                <dt>Quantity</dt>
                <dd>{event.quantity}</dd>
                <dt>Cost</dt>
                <dd>
                  <AmountText value={event.costCents} unit="cents" />
                </dd>
                <dt>Event id</dt>
                <dd>
                  <code>{event.id}</code>
                </dd>
                {event.reservationId === null ? null : (
                  <>
                    <dt>Reservation</dt>
                    <dd>
                      <code>{event.reservationId}</code>
                    </dd>
                  </>
                )}
                {event.reason === null ? null : (
                  <>
                    <dt>Reason</dt>
                    <dd>{event.reason}</dd>
                  </>
                )}
                {event.errorCode === null ? null : (
                  <>
                    <dt>Error code</dt>
                    <dd>{event.errorCode}</dd>
                  </>
                )}
              </dl>
            </section>
            <section class="sheet">
              <h2>What it took</h2>
              {event.amounts.length === 0 ? <p class="empty">Nothing from any limit or credit.</p> : (
                <table>
                  <thead>
                    <tr>
                      <th>From</th>
                      <th class="number">Amount</th>
                    </tr>
                  </thead>
                  <tbody>
                    {event.amounts.map(({ groupId, balanceId, unit, amount }) => (
                      <tr>
                        <td>
                          {groupId === undefined ? "credits" : "limit"} <code>{groupId ?? balanceId}</code>
                        </td>
                        <td class="number">
                          <AmountText value={amount} unit={unit} />
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
              {uncovered.length === 0 ? null : (
                <div class="note warn">
                  <p>
                    Nothing covered {uncovered.map(([unit, amount]) => `${amount} ${unit}`).join(", ")}{" "}
                    of it: the user had less left when it was settled.
                  </p>
                </div>
              )}
            </section>
          </div>
          <section class="sheet">
            <h2>Metadata</h2>
            {event.metadata === null
              ? <p class="empty">None was sent.</p>
              : <pre tabindex={0}>{JSON.stringify(event.metadata, null, 2)}</pre>}
          </section>
          <section class="sheet">
            <h2>Prompt and answer</h2>
            <Texts event={event} />
          </section>
        </>
      ),
    };
  },
};

function Texts({ event }: { event: EventDetail }) {
  const { hasLog, prompt, response } = event;
  if (!hasLog) {
    return (
      <p class="empty">
        None is kept: the app does not log prompts, the user opted out, none was sent, or its time is over.
      </p>
    );
  }
  if (prompt === null && response === null) return <p class="empty">Your role does not see them.</p>;
  return (
    <>
      <h3>Prompt</h3>
      {prompt === null ? <p class="empty">None was sent.</p> : <pre tabindex={0}>{prompt}</pre>}
      <h3>Answer</h3>
      {response === null ? <p class="empty">None was sent.</p> : <pre tabindex={0}>{response}</pre>}
    </>
  );
}

export const EVENT_PAGES: readonly PageAt[] = [eventsPage, eventPage];
