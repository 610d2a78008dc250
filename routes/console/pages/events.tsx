// The feed of events, and the page of one event.

import { createHash } from "node:crypto";
import { appOf, dataOf } from "../parts/subject.tsx";
import { csvFile, withCredits } from "../parts/csv.ts";
import { COLOUR_DAYS, nowOf, readDailyUsage } from "../parts/daily_usage.tsx";
import { EventTable, type FeedEvent, StatusTag, statusText } from "../parts/event_table.tsx";
import { Filter, FilterSelect, FilterText } from "../parts/filter.tsx";
import { AmountText, TimeExact } from "../parts/format.tsx";
import { appPath, crumbsOf, userPath } from "../parts/page.tsx";
import { CsvLink, listAsAsked, Pager } from "../parts/pager.tsx";
import type { PageRequest, PageRoute } from "../parts/page_context.ts";
import type { AppMode } from "../parts/ask.ts";
import { Table } from "../parts/table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { FEED_STATUSES, getEvent, listEvents } from "../../contract/events.ts";

/** `/console/apps/{appId}/{mode}/events` */
const eventsPage: PageRoute = {
  path: "/console/apps/:appId/:mode/events",
  async show(request) {
    const { ask, query, path } = request;
    const app = appOf(request);
    const userId = query.get("user") || undefined;
    const eventType = query.get("type") || undefined;
    const status = FEED_STATUSES.find((each) => each === query.get("status"));
    const listed = await listAsAsked(query, {
      read: (part) => ask.app(app, listEvents, { userId, eventType, status, ...part }),
      rowsOf: ({ events }) => events,
      fileOf: (rows) => eventsFile(app.mode, rows),
    });
    if (!("rows" in listed)) return listed;
    const { rows: events, offset } = listed;
    const isFiltered = userId !== undefined || eventType !== undefined || status !== undefined;
    const isLive = offset === 0 && query.get("live") !== "off";
    const hash = hashOf(events);
    if (request.isPartial && query.get("seen") === hash) {
      return { title: "Events", content: null, status: 204 };
    }
    const self = new URLSearchParams([...query].filter(([name]) => name !== "seen"));
    const types = request.isPartial ? [] : await typesOf(request, app);
    return {
      title: "Events",
      crumbs: crumbsOf(app, "Events"),
      content: (
        <>
          <div class="head">
            <h1>Events</h1>
            {offset > 0 ? null : <LiveSwitch query={query} isLive={isLive} />}
          </div>
          <Filter path={path} isFiltered={isFiltered}>
            <FilterText name="user" label="User" value={userId} />
            <FilterSelect name="type" label="Event type" none="all types" options={types} value={eventType} />
            <FilterSelect
              name="status"
              label="Status"
              none="all statuses"
              options={FEED_STATUSES}
              textOf={(each) => statusText(each)}
              value={status}
            />
          </Filter>
          <section
            class="card"
            id="feed"
            {...(isLive
              ? {
                "hx-get": `${path}?${self}&seen=${hash}`,
                "hx-trigger": "every 4s",
                "hx-select": "#feed",
                "hx-swap": "outerHTML",
              }
              : {})}
          >
            <h2 class="visually-hidden">List</h2>
            {events.length > 0
              ? <EventTable app={app} events={events} />
              : <NoEvents isFiltered={isFiltered} userId={userId} />}
            <Pager query={self} offset={offset} rows={events.length} />
          </section>
          {events.length === 0 ? null : (
            <p class="hint">
              <CsvLink query={query} />
            </p>
          )}
        </>
      ),
    };
  },
};

/** A short hash of what the list shows: a poll for the same list is answered without one. */
function hashOf(events: readonly FeedEvent[]): string {
  return createHash("sha256").update(JSON.stringify(events)).digest("base64url").slice(0, 12);
}

/** The leading event types of the last days. */
async function typesOf({ ask, ...request }: PageRequest, app: AppMode): Promise<string[]> {
  const now = await nowOf({ ask, ...request }, app);
  const usage = await readDailyUsage(ask, app, { now, days: COLOUR_DAYS, by: "event" });
  if (!usage.ok) return [];
  return [...new Set(usage.data.days.flatMap(({ parts }) => parts.map(({ event }) => event ?? "")))].sort();
}

function eventsFile(mode: string, events: readonly FeedEvent[]) {
  const rows = events.map((event) => ({
    ...event,
    userId: event.endUserId,
    event: event.eventType,
    costCredits: event.costCredits ?? null,
  }));
  const columns = ["createdAt", "id", "userId", "event", "quantity", "costCents"] as const;
  const hasCredits = events.some(({ costCredits }) => costCredits !== undefined);
  return csvFile(`events-${mode}`, [...columns, ...withCredits(hasCredits), "matchStatus"], rows);
}

function LiveSwitch({ query, isLive }: { query: URLSearchParams; isLive: boolean }) {
  const other = new URLSearchParams(query);
  if (isLive) other.set("live", "off");
  else other.delete("live");
  return (
    <span>
      {isLive ? <span class="is-live soft">live</span> : <span class="soft">paused</span>}
      {" · "}
      <a href={`?${other}`}>{isLive ? "Pause" : "Resume"}</a>
    </span>
  );
}

function NoEvents({ isFiltered, userId }: { isFiltered: boolean; userId: string | undefined }) {
  if (!isFiltered) return <p class="empty">No events yet. Events from your server are listed here.</p>;
  return (
    <p class="empty">
      No results match these filters.
      {userId === undefined
        ? ' Event types are matched exactly; "*" is not a wildcard.'
        : " IDs are matched exactly. Users who opted out of personalization, or wait for a deletion, have no visible events."}
    </p>
  );
}

type EventDetail = AnswerOf<typeof getEvent>;

/** `/console/apps/{appId}/{mode}/events/{eventId}` */
const eventPage: PageRoute = {
  path: "/console/apps/:appId/:mode/events/:eventId",
  async show(request) {
    const app = appOf(request);
    const found = await request.ask.app(app, getEvent, { eventId: request.params["eventId"] ?? "" });
    const event = dataOf(found, "Event not found");
    return {
      title: event.eventType,
      crumbs: crumbsOf(app, { title: "Events", href: `${appPath(app)}/events` }, event.id),
      content: (
        <>
          <div class="head">
            <h1>{event.eventType}</h1>
            <StatusTag status={event.matchStatus} />
          </div>
          <div class="columns">
            <section class="card">
              <h2>Details</h2>
              <Facts app={app} event={event} />
            </section>
            <section class="card">
              <h2>Usage applied</h2>
              <UsageApplied event={event} />
            </section>
          </div>
          <section class="card">
            <h2>Metadata</h2>
            {event.metadata === null
              ? <p class="empty">No metadata</p>
              : <pre tabindex={0}>{JSON.stringify(event.metadata, null, 2)}</pre>}
          </section>
          <section class="card">
            <h2>Prompt and response</h2>
            <Texts event={event} />
          </section>
        </>
      ),
    };
  },
};

function Facts({ app, event }: { app: AppMode; event: EventDetail }) {
  const { id, endUserId, createdAt, quantity, costCents, costCredits, reservationId, reason, errorCode } =
    event;
  return (
    <dl class="facts">
      <dt>User</dt>
      <dd>
        <a href={userPath(app, endUserId)}>{endUserId}</a>
      </dd>
      <dt>Time</dt>
      <dd>
        <TimeExact at={createdAt} />
      </dd>
      <dt>Quantity</dt>
      <dd>{quantity}</dd>
      <dt>Cost</dt>
      <dd>
        <AmountText value={costCents} unit="cents" />
      </dd>
      {costCredits === undefined ? null : (
        <>
          <dt>Credits</dt>
          <dd>
            <AmountText value={costCredits} />
          </dd>
        </>
      )}
      <dt>Event ID</dt>
      <dd>
        <code>{id}</code>
      </dd>
      {reservationId === null ? null : (
        <>
          <dt>Reservation</dt>
          <dd>
            <code>{reservationId}</code>
          </dd>
        </>
      )}
      {reason === null ? null : (
        <>
          <dt>Reason</dt>
          <dd>{reason}</dd>
        </>
      )}
      {errorCode === null ? null : (
        <>
          <dt>Error code</dt>
          <dd>{errorCode}</dd>
        </>
      )}
    </dl>
  );
}

function UsageApplied({ event: { amounts, uncovered } }: { event: EventDetail }) {
  const rest = Object.entries(uncovered).map(([unit, amount]) => `${amount} ${unit}`).join(", ");
  return (
    <>
      <Table
        empty="No limits or credits were used."
        isWide
        rows={amounts}
        columns={[
          {
            head: "Source",
            cell: (from) =>
              "groupId" in from
                ? (
                  <>
                    limit <code>{from.groupId}</code>
                  </>
                )
                : (
                  <>
                    credits <code>{from.balanceId}</code>
                  </>
                ),
          },
          {
            head: "Amount",
            kind: "number",
            cell: ({ amount, unit }) => <AmountText value={amount} unit={unit} />,
          },
        ]}
      />
      {rest === "" ? null : (
        <div class="note warn">
          <p>Not covered: {rest}. The user had less left when the event was settled.</p>
        </div>
      )}
    </>
  );
}

function Texts({ event: { hasLog, prompt, response } }: { event: EventDetail }) {
  if (!hasLog) {
    return (
      <p class="empty">
        Not stored: prompt logging is off, the user opted out, none was sent, or the retention period is over.
      </p>
    );
  }
  if (prompt === null && response === null) return <p class="empty">Hidden for your role</p>;
  const text = (of: string | null) =>
    of === null ? <p class="empty">Not sent</p> : <pre tabindex={0}>{of}</pre>;
  return (
    <>
      <h3>Prompt</h3>
      {text(prompt)}
      <h3>Response</h3>
      {text(response)}
    </>
  );
}

export const EVENT_PAGES: readonly PageRoute[] = [eventsPage, eventPage];
