// Usage by day: charts by event type or by user, of all users or of one.

import { appOf, errorPage } from "../parts/subject.tsx";
import { csvFile, csvQuery, wantsCsv, withCredits } from "../parts/csv.ts";
import { Figure } from "../parts/figure.tsx";
import { Filter, FilterText } from "../parts/filter.tsx";
import { crumbsOf, userPath } from "../parts/page.tsx";
import type { PageRoute } from "../parts/page_context.ts";
import { type DailyUsage, LagNote, nowOf, readDailyUsage, UsageChart } from "../parts/usage_chart.tsx";

const RANGES = [7, 30, 90] as const;

/** The chosen view. */
interface View {
  readonly by: "event" | "user";
  readonly userId: string | null;
  readonly days: number;
}

/** `/console/apps/{appId}/{mode}/usage` */
export const usagePage: PageRoute = {
  path: "/console/apps/:appId/:mode/usage",
  async show(request) {
    const { ask, query, path } = request;
    const app = appOf(request);
    const by = query.get("by") === "user" ? "user" : "event";
    const userId = query.get("user") || null;
    const days = RANGES.find((range) => String(range) === query.get("days")) ?? 30;
    const now = await nowOf(request, app);
    const answer = await readDailyUsage(ask, app, { now, days, by, userId });
    if (!answer.ok) return errorPage(answer.error);
    const usage = answer.data;
    if (wantsCsv(query)) return usageFile(app.mode, usage, userId);
    const sums = usage.days.reduce(
      (sum, day) => ({
        events: sum.events + day.events,
        costCents: sum.costCents + day.costCents,
        costCredits: sum.costCredits + (day.costCredits ?? 0),
      }),
      { events: 0, costCents: 0, costCredits: 0 },
    );
    const part = by === "user" ? "user" : "event type";
    return {
      title: "Usage",
      hasCharts: true,
      crumbs: crumbsOf(app, "Usage"),
      content: (
        <>
          <div class="head">
            <h1>Usage</h1>
            {userId === null ? null : <a href={userPath(app, userId)}>{userId}</a>}
          </div>
          <ViewFilter path={path} view={{ by, userId, days }} />
          <LagNote usage={usage} now={now} />
          <div class="figures">
            <Figure value={sums.events} text={`events in ${days} days`} />
            <Figure value={sums.costCents} unit="cents" text="cost" />
            {hasCredits(usage) ? <Figure value={sums.costCredits} text="credits" /> : null}
          </div>
          <section class="card">
            <h2>Events</h2>
            <UsageChart usage={usage} measure="events" label={`Events of ${days} days by ${part}`} />
          </section>
          {sums.costCents === 0 ? null : (
            <section class="card">
              <h2>Cost</h2>
              <UsageChart usage={usage} measure="cents" label={`Cost of ${days} days by ${part}`} />
            </section>
          )}
          <p class="hint">
            Days begin at midnight UTC{app.mode === "test" ? " on the test clock" : ""}. Excludes blocked
            events and released holds. <a href={csvQuery(query)} download>Export CSV</a>
          </p>
        </>
      ),
    };
  },
};

/** Whether the catalog has rates, so that days have credits. */
function hasCredits({ days }: DailyUsage): boolean {
  return days.some(({ costCredits }) => costCredits !== undefined);
}

function usageFile(mode: string, usage: DailyUsage, userId: string | null) {
  const columns = ["day", "event", "userId", "events", "blocked", "quantity", "costCents"] as const;
  const rows = usage.days.flatMap(({ parts, ...day }) => [
    { ...day, event: null, userId, quantity: null },
    ...parts.map((part) => ({ ...part, day: day.day })),
  ]);
  return csvFile(
    `usage-${mode}`,
    [...columns, ...withCredits(hasCredits(usage))],
    rows.map((row) => ({ ...row, costCredits: row.costCredits ?? null })),
  );
}

function ViewFilter({ path, view: { by, userId, days } }: { path: string; view: View }) {
  return (
    <Filter path={path}>
      <div class="field">
        <label for="filter-by">Group by</label>
        <select id="filter-by" name="by">
          <option value="event" selected={by === "event"}>event type</option>
          <option value="user" selected={by === "user"}>user</option>
        </select>
      </div>
      <div class="field">
        <label for="filter-days">Period</label>
        <select id="filter-days" name="days">
          {RANGES.map((range) => (
            <option value={String(range)} selected={range === days}>last {range} days</option>
          ))}
        </select>
      </div>
      <FilterText name="user" label="User" value={userId} placeholder="all users" />
    </Filter>
  );
}
