// Use by day: charts by kind of event or by user, of everybody or of one user.

import { appOf, refusedPage } from "../parts/subject.tsx";
import { csvFile, csvQuery, wantsCsv } from "../parts/csv.ts";
import { Filter, FilterText } from "../parts/filter.tsx";
import { AmountText, TimeExact } from "../parts/format.tsx";
import { appPath, userPath } from "../parts/page.tsx";
import type { PageAt } from "../parts/page_context.ts";
import { askDailyUse, nowOf, UseChart } from "../parts/use_chart.tsx";

const RANGES = [7, 30, 90] as const;

/** `/console/apps/{appId}/{mode}/usage` */
export const usagePage: PageAt = {
  path: "/console/apps/:appId/:mode/usage",
  async show(request) {
    const { ask, query, path } = request;
    const app = appOf(request);
    const by = query.get("by") === "user" ? "user" : "event";
    const userId = query.get("user") || null;
    const days = RANGES.find((range) => String(range) === query.get("days")) ?? 30;
    const now = await nowOf(request, app);
    const answer = await askDailyUse(ask, app, { now, days, by, userId });
    if (!answer.ok) return refusedPage(answer.error);
    const use = answer.data;
    if (wantsCsv(query)) {
      return csvFile(
        `use-${app.mode}`,
        ["day", "event", "userId", "events", "blocked", "quantity", "costCents"],
        use.days.flatMap((day) => [
          [day.day, null, userId, day.events, day.blocked, null, day.costCents],
          ...day.parts.map((part) => [
            day.day,
            part.event,
            part.userId,
            part.events,
            part.blocked,
            part.quantity,
            part.costCents,
          ]),
        ]),
      );
    }
    const sums = use.days.reduce(
      (sum, day) => ({ events: sum.events + day.events, costCents: sum.costCents + day.costCents }),
      { events: 0, costCents: 0 },
    );
    const isBehind = Date.parse(use.countedUntil) < now - 60_000;
    const of = by === "user" ? "user" : "kind";
    return {
      title: "Use by day",
      hasCharts: true,
      crumbs: [{ title: app.name, href: appPath(app) }, { title: "Use by day", href: null }],
      content: (
        <>
          <div class="head">
            <h1>Use by day</h1>
            {userId === null ? null : <a href={userPath(app, userId)}>{userId}</a>}
          </div>
          <Filter path={path}>
            <div class="field">
              <label for="filter-by">By</label>
              <select id="filter-by" name="by">
                <option value="event" selected={by === "event"}>kind of event</option>
                <option value="user" selected={by === "user"}>user</option>
              </select>
            </div>
            <div class="field">
              <label for="filter-days">Days</label>
              <select id="filter-days" name="days">
                {RANGES.map((range) => (
                  <option value={String(range)} selected={range === days}>the last {range}</option>
                ))}
              </select>
            </div>
            <FilterText name="user" label="User" value={userId} placeholder="everybody" />
          </Filter>
          {isBehind
            ? (
              <div class="note warn">
                <p>
                  Events from <TimeExact at={use.countedUntil} />{" "}
                  on are not in these sums yet. They are added up in the background.
                </p>
              </div>
            )
            : null}
          <div class="figures">
            <div class="figure">
              <b>
                <AmountText value={sums.events} />
              </b>
              <span>events in {days} days</span>
            </div>
            <div class="figure">
              <b>
                <AmountText value={sums.costCents} unit="cents" />
              </b>
              <span>cost</span>
            </div>
          </div>
          <section class="sheet">
            <h2>Events</h2>
            <UseChart use={use} measure="events" label={`Events of ${days} days by ${of}`} />
          </section>
          {sums.costCents === 0 ? null : (
            <section class="sheet">
              <h2>Cost</h2>
              <UseChart use={use} measure="cents" label={`Cost of ${days} days by ${of}`} />
            </section>
          )}
          <p class="hint">
            Days begin at midnight UTC{app.mode === "test" ? " on the test clock" : ""}. Blocked tracks and
            released holds are no use. <a href={csvQuery(query)} download>These numbers as CSV</a>
          </p>
        </>
      ),
    };
  },
};
