// An app in one mode at a glance: today against the same day of last week, this week against last
// week, 30 days against the 30 before, what costs most,
// and what needs attention.

import type { AppMode } from "../parts/ask.ts";
import { appOf } from "../parts/subject.tsx";
import { readCatalog, type ShownCatalog } from "../parts/catalog.ts";
import {
  addUp,
  blockedSeries,
  COLOUR_DAYS,
  type DailyUsage,
  type DayOfUsage,
  LagNote,
  lagsBehind,
  nowOf,
  readDailyUsage,
  seriesOf,
  sumsOfParts,
  typeColours,
  usersADay,
} from "../parts/daily_usage.tsx";
import { EventTable } from "../parts/event_table.tsx";
import { Comparison } from "../parts/figure.tsx";
import { AmountText, TimeExact, TimeOr } from "../parts/format.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import type { PageRequest, PageRoute } from "../parts/page_context.ts";
import { Sparkline } from "../parts/sparkline.tsx";
import { Table } from "../parts/table.tsx";
import { UsageChart } from "../parts/usage_chart.tsx";
import { listUsers } from "../../contract/admin_users.ts";
import { listEvents } from "../../contract/events.ts";
import { listWebhooks } from "../../contract/webhooks.ts";
import { MarginsLater, marginsPath } from "./margins.tsx";
import { WeekCard } from "./overview_week.tsx";
import { Fullness, type ListedUser, UserLink } from "./users.tsx";
import { Cost } from "./usage.tsx";
import { webhookPath } from "./webhooks_actions.tsx";

const SHOWN = 10;
const SHOWN_NEAR = 5;
const DAYS = 30;
/** The same weekday of the week before. */
const WEEK = 7;
const HOUR_MS = 3_600_000;

type App = AppMode & { readonly name: string };

/** `/console/apps/{appId}/{mode}` */
export const overviewPage: PageRoute = {
  path: "/console/apps/:appId/:mode",
  async show(request) {
    const { ask } = request;
    const app = appOf(request);
    const now = await nowOf(request, app);
    const read = async (query: Omit<Parameters<typeof readDailyUsage>[2], "now">) => {
      const answer = await readDailyUsage(ask, app, { now, ...query });
      return answer.ok ? answer.data : null;
    };
    // The first read adds new events to the sums, so that the others find them there.
    const usage = await read({ days: COLOUR_DAYS, by: "event" });
    const [feed, hours, models, costly, users, webhooks, near, catalog] = await Promise.all([
      ask.app(app, listEvents, { limit: String(SHOWN) }),
      read({ days: WEEK + 1, by: "hour" }),
      read({ days: DAYS, by: "model" }),
      read({ days: DAYS, by: "model", order: "cost" }),
      read({ days: DAYS, by: "user", order: "cost" }),
      ask.admin(listWebhooks, { appId: app.appId }),
      ask.admin(listUsers, { ...app, sort: "limit", filter: "near", limit: String(SHOWN_NEAR) }),
      readCatalog(request, app),
    ]);
    const events = feed.ok ? feed.data.events : [];
    const failing = webhooks.ok
      ? webhooks.data.filter(({ mode, failingSince, disabled }) =>
        mode === app.mode && (failingSince !== null || disabled)
      )
      : [];
    return {
      title: app.name,
      content: (
        <>
          <div class="head">
            <h1>{app.name}</h1>
            <span class="soft">
              <code>{app.appId}</code>
              {app.mode === "test"
                ? (
                  <>
                    {" · test clock "}
                    <TimeExact at={new Date(now).toISOString()} />
                  </>
                )
                : null}
            </span>
          </div>
          {usage === null ? null : <LagNote usage={usage} now={now} />}
          <Attention app={app} failing={failing} models={models} />
          {usage === null || hours === null ? null : (
            <>
              <Today app={app} hours={hours} now={now} />
              {lagsBehind(usage, now) ? null : <WeekCard app={app} usage={usage} />}
              <Month app={app} usage={usage} now={now} />
            </>
          )}
          <div class="columns">
            <CostByModel models={costly} app={app} />
            <TopUsers users={users} app={app} />
          </div>
          <NearLimits app={app} users={near.ok ? near.data.users : []} catalog={catalog} />
          {usage === null || addUp(usage.days).events === 0 ? null : <Plans request={request} app={app} />}
          <NewestEvents app={app} events={events} />
        </>
      ),
    };
  },
};

/** Failing webhooks, and models without a price. */
function Attention({ app, failing, models }: {
  app: App;
  failing: readonly {
    readonly webhookId: string;
    readonly url: string;
    readonly failingSince: string | null;
  }[];
  models: DailyUsage | null;
}) {
  const unpriced = models === null ? [] : sumsOfParts(models, "events").filter((row) => row.unpriced > 0);
  return (
    <>
      {failing.map(({ webhookId, url, failingSince }) => (
        <div class="note bad">
          <p>
            Webhook <a class="wrap" href={webhookPath(app, webhookId)}>{url}</a>{" "}
            {failingSince === null ? "is disabled." : (
              <>
                fails since <TimeExact at={failingSince} />.
              </>
            )}
          </p>
        </div>
      ))}
      {unpriced.length === 0 ? null : (
        <div class="note warn">
          <p>
            Events without a price in {DAYS} days:{" "}
            {unpriced.map(({ name, unpriced: count }) => `${count.toLocaleString("en-US")} of ${name}`).join(
              ", ",
            )}. Their cost is missing here. Add the models to the{" "}
            <a href={`${appPath(app)}/catalog`}>catalog</a>.
          </p>
        </div>
      )}
    </>
  );
}

/** Today up to the last full hour, against the same hours of the same weekday. */
function Today({ app, hours, now }: { app: App; hours: DailyUsage; now: number }) {
  // Of one read: sums that lag behind are further on in each next one.
  const [today, before] = [hours.days.at(-1), hours.days.at(-1 - WEEK)];
  if (today === undefined || before === undefined) return null;
  const hour = Math.floor(now / HOUR_MS) % 24;
  const upToHour = (day: DayOfUsage) =>
    addUp(day.parts.filter((part) => part.hour !== null && part.hour < hour));
  const isKnown = (day: DayOfUsage) => day.parts.every(({ isUnknown }) => isUnknown !== true);
  const [sums, earlier] = [upToHour(today), upToHour(before)];
  const until = `${String(hour).padStart(2, "0")}:00`;
  const isComparable = hour > 0 && isKnown(today) && isKnown(before) && !lagsBehind(hours, now);
  const compared = (of: "events" | "blocked" | "costCents") =>
    isComparable ? { now: sums[of], before: earlier[of], until } : null;
  const base = appPath(app);
  return (
    <section class="card">
      <div class="head">
        <h2>Today</h2>
        <span class="soft">
          {isComparable ? `compared up to ${until} UTC with ${weekdayOf(before.day)} a week ago` : "in UTC"}
        </span>
      </div>
      <div class="figures">
        <Comparison
          value={today.events}
          text="events"
          href={`${base}/events`}
          compared={compared("events")}
        />
        <Comparison
          value={today.users ?? 0}
          text="users"
          href={`${base}/usage?by=user&days=7`}
          compared={null}
        />
        <Comparison
          value={today.costCents}
          unit="cents"
          text="cost"
          href={`${base}/usage?by=model&days=7`}
          compared={compared("costCents")}
        />
        <Comparison
          value={today.blocked}
          text="blocked events"
          href={`${base}/refusals`}
          compared={compared("blocked")}
        />
      </div>
    </section>
  );
}

const WEEKDAY = new Intl.DateTimeFormat("en-US", { weekday: "long", timeZone: "UTC" });

function weekdayOf(day: string): string {
  return WEEKDAY.format(new Date(`${day}T00:00:00Z`));
}

/** 30 days against the 30 before, with a chart. */
function Month({ app, usage, now }: { app: App; usage: DailyUsage; now: number }) {
  const [before, days] = [usage.days.slice(-2 * DAYS, -DAYS), usage.days.slice(-DAYS)];
  const [sums, earlier] = [addUp(days), addUp(before)];
  const isComparable = !lagsBehind(usage, now);
  const compared = (of: "events" | "blocked" | "costCents") =>
    isComparable ? { now: sums[of], before: earlier[of] } : null;
  const base = appPath(app);
  const shown = { by: usage.by, days };
  const [users, usersBefore] = [usersADay(days), usersADay(before)];
  return (
    <section class="card">
      <div class="head">
        <h2>Last {DAYS} days</h2>
        <span class="soft">
          today included{isComparable ? `, compared with the ${DAYS} days before` : ""}
        </span>
      </div>
      <div class="figures">
        <Comparison value={sums.events} text="events" href={`${base}/usage`} compared={compared("events")} />
        {users === null ? null : (
          <Comparison
            value={users}
            text="users a day"
            href={`${base}/usage?by=user`}
            compared={usersBefore === null || !isComparable ? null : { now: users, before: usersBefore }}
          />
        )}
        <Comparison
          value={sums.costCents}
          unit="cents"
          text="cost"
          href={`${base}/usage?by=model`}
          compared={compared("costCents")}
        />
        <Comparison
          value={sums.blocked}
          text="blocked events"
          href={`${base}/usage?status=blocked`}
          compared={compared("blocked")}
        />
      </div>
      <UsageChart
        days={days.map(({ day }) => day)}
        series={[...seriesOf(shown, "events", typeColours(usage)), ...blockedSeries(shown)]}
        measure="events"
        label={`Events of the last ${DAYS} days by event type, with blocked ones`}
      />
    </section>
  );
}

function CostByModel({ models, app }: { models: DailyUsage | null; app: App }) {
  const rows = models === null ? [] : sumsOfParts(models, "cents");
  return (
    <section class="card">
      <div class="head">
        <h2>Cost by model</h2>
        <a href={`${appPath(app)}/usage?by=model`}>All models</a>
      </div>
      <Table
        empty={<>No cost in {DAYS} days</>}
        rows={rows}
        columns={[
          { head: "Model", cell: ({ name }) => <span class="wrap">{name}</span> },
          { head: "Events", kind: "number", cell: ({ events }) => <AmountText value={events} /> },
          { head: "Cost", kind: "number", cell: (row) => <Cost of={row} /> },
        ]}
      />
    </section>
  );
}

function TopUsers({ users, app }: { users: DailyUsage | null; app: App }) {
  const rows = users === null ? [] : sumsOfParts(users, "cents");
  const days = users?.days ?? [];
  return (
    <section class="card">
      <div class="head">
        <h2>Users with the highest cost</h2>
        <a href={`${appPath(app)}/usage?by=user`}>All users</a>
      </div>
      <Table
        empty={<>No cost in {DAYS} days</>}
        rows={rows}
        columns={[
          {
            head: "User",
            cell: ({ name }) => <a class="row wrap" href={userPath(app, name)}>{name}</a>,
          },
          {
            head: "Cost by day",
            cell: ({ name }) => (
              <Sparkline
                values={days.map(({ parts }) => parts.find(({ userId }) => userId === name)?.costCents ?? 0)}
                label={`Cost of ${name} by day`}
              />
            ),
          },
          { head: "Cost", kind: "number", cell: (row) => <Cost of={row} /> },
        ]}
      />
    </section>
  );
}

/** Users who have used 80 % of a limit or more, the fullest first. */
function NearLimits(
  { app, users, catalog }: { app: App; users: readonly ListedUser[]; catalog: ShownCatalog },
) {
  return (
    <section class="card" aria-labelledby="near">
      <div class="head">
        <h2 id="near">Users near a limit</h2>
        <a href={`${appPath(app)}/users?filter=near`}>All</a>
      </div>
      <Table
        empty="No user is near a limit"
        rows={users}
        columns={[
          { head: "User", cell: (user) => <UserLink app={app} user={user} /> },
          { head: "Plan", cell: ({ planName }) => planName ?? <span class="soft">none</span> },
          { head: "Fullest limit", cell: (user) => <Fullness user={user} catalog={catalog} /> },
          { head: "Last seen", cell: ({ lastSeenAt }) => <TimeOr at={lastSeenAt} none="never" /> },
        ]}
      />
    </section>
  );
}

/** Plans with their margins. */
function Plans({ request, app }: { request: PageRequest; app: App }) {
  return (
    <section class="card" aria-labelledby="plans" aria-live={request.isPartial ? undefined : "off"}>
      <div class="head">
        <h2 id="plans">Plans</h2>
        <a href={marginsPath(app)}>Margins</a>
      </div>
      <MarginsLater app={app} />
    </section>
  );
}

function NewestEvents({ app, events }: { app: App; events: Parameters<typeof EventTable>[0]["events"] }) {
  const base = appPath(app);
  return (
    <section class="card">
      <div class="head">
        <h2>Newest events</h2>
        {events.length === 0 ? null : <a href={`${base}/events`}>All events</a>}
      </div>
      {events.length === 0
        ? (
          <p class="empty">
            No events yet. Send events from your server with an <a href={`${base}/keys`}>API key</a>{" "}
            of this mode; the <a href={`${base}/catalog`}>catalog</a> defines plans and limits.
          </p>
        )
        : <EventTable app={app} events={events} />}
    </section>
  );
}
