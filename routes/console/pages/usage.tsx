// Usage by day: a chart and a table by event type, user, model or plan, of all users or of one.

import { appOf, dataOf } from "../parts/subject.tsx";
import { planName, readCatalog } from "../parts/catalog.ts";
import { csvFile, csvQuery, wantsCsv, withCredits } from "../parts/csv.ts";
import {
  addUp,
  blockedSeries,
  COLOUR_DAYS,
  type DailyUsage,
  dayOf,
  LagNote,
  type Measure,
  nowOf,
  type PartSums,
  readDailyUsage,
  readDays,
  seriesOf,
  type Sums,
  sumsOfParts,
  typeColours,
} from "../parts/daily_usage.tsx";
import { Figure } from "../parts/figure.tsx";
import { Filter, FilterText } from "../parts/filter.tsx";
import { AmountText } from "../parts/format.tsx";
import type { AppMode } from "../parts/ask.ts";
import { crumbsOf, userPath } from "../parts/page.tsx";
import type { PageRoute } from "../parts/page_context.ts";
import { Sparkline } from "../parts/sparkline.tsx";
import { Table } from "../parts/table.tsx";
import { UsageChart } from "../parts/usage_chart.tsx";

const DAY_MS = 86_400_000;
const DAYS_MAX = 92;
const RANGES = [7, 30, 90] as const;
const PARTS = { event: "event type", user: "user", model: "model", plan: "plan" } as const;
const STATUSES = { used: "used", blocked: "blocked" } as const;

/** The chosen view. */
interface View {
  readonly by: keyof typeof PARTS;
  readonly status: keyof typeof STATUSES;
  readonly userId: string | null;
  readonly from: string;
  readonly to: string;
}

/** `/console/apps/{appId}/{mode}/usage` */
export const usagePage: PageRoute = {
  path: "/console/apps/:appId/:mode/usage",
  async show(request) {
    const { ask, query, path } = request;
    const app = appOf(request);
    const now = await nowOf(request, app);
    const view = viewOf(query, now);
    const { by, status, userId, from, to } = view;
    const [usage, types, catalog] = await Promise.all([
      readDays(ask, app, { by, status, userId, from, to }).then(dataOf),
      by === "event" ? readDailyUsage(ask, app, { now, days: COLOUR_DAYS, by }) : null,
      by === "plan" ? readCatalog(request, app) : null,
    ]);
    if (wantsCsv(query)) return usageFile(app.mode, usage, userId);
    const names = new Map(
      (catalog?.plans ?? []).map(({ id }) => [id, planName(catalog ?? { version: 0 }, id)]),
    );
    const colours = types?.ok ? typeColours(types.data) : undefined;
    const measure = status === "blocked" ? "blocked" : "events";
    const chart = (measured: Measure, label: string) => {
      const series = seriesOf(usage, measured, colours, names);
      return (
        <UsageChart
          days={usage.days.map(({ day }) => day)}
          series={measured === "events" ? [...series, ...blockedSeries(usage)] : series}
          measure={measured}
          label={`${label} of ${daysText(usage)} by ${PARTS[by]}`}
        />
      );
    };
    const sums = addUp(usage.days);
    return {
      title: "Usage",
      crumbs: crumbsOf(app, "Usage"),
      content: (
        <>
          <div class="head">
            <h1>Usage</h1>
            {userId === null ? null : <a href={userPath(app, userId)}>{userId}</a>}
          </div>
          <ViewFilter path={path} view={view} />
          <LagNote usage={usage} now={now} />
          <div class="figures">
            <Figure value={sums.events} text={`events in ${daysText(usage)}`} />
            <Figure value={sums.blocked} text="blocked" />
            <Figure value={sums.costCents} unit="cents" text="cost" />
            {hasCredits(usage) ? <Figure value={sums.costCredits} text="credits" /> : null}
          </div>
          <section class="card">
            <h2>{status === "blocked" ? "Blocked events" : "Events"}</h2>
            {chart(measure, status === "blocked" ? "Blocked events" : "Events")}
          </section>
          {sums.costCents === 0 || status === "blocked" ? null : (
            <section class="card">
              <h2>Cost</h2>
              {chart("cents", "Cost")}
            </section>
          )}
          <section class="card">
            <div class="head">
              <h2>By {PARTS[by]}</h2>
              <a href={csvQuery(query)} download>Export CSV</a>
            </div>
            <Totals app={app} by={by} usage={usage} sums={sums} parts={sumsOfParts(usage, measure, names)} />
          </section>
          <p class="hint">
            Days begin at midnight UTC{app.mode === "test" ? " on the test clock" : ""}. The numbers of events
            and cost exclude blocked events and released holds.
          </p>
        </>
      ),
    };
  },
};

/** The view that a query asks for: a range of days, else the last of them. */
function viewOf(query: URLSearchParams, now: number): View {
  const chosen = <Name extends string>(
    names: Readonly<Record<Name, string>>,
    name: string,
    otherwise: Name,
  ) => {
    const value = query.get(name) ?? "";
    return Object.hasOwn(names, value) ? value as Name : otherwise;
  };
  const day = (name: string) => {
    const text = query.get(name) ?? "";
    const at = Date.parse(`${text}T00:00:00Z`);
    return /^\d{4}-\d\d-\d\d$/.test(text) && Number.isFinite(at) && dayOf(at) === text ? at : null;
  };
  const days = RANGES.find((range) => String(range) === query.get("days")) ?? 30;
  const to = day("to") ?? now;
  const asked = day("from") ?? to - (days - 1) * DAY_MS;
  const from = Math.max(Math.min(asked, to), to - (DAYS_MAX - 1) * DAY_MS);
  return {
    by: chosen(PARTS, "by", "event"),
    status: chosen(STATUSES, "status", "used"),
    userId: query.get("user") || null,
    from: dayOf(from),
    to: dayOf(to),
  };
}

function daysText({ days }: DailyUsage): string {
  return days.length === 1 ? "1 day" : `${days.length} days`;
}

/** Whether the catalog has rates, so that days have credits. */
function hasCredits({ days }: DailyUsage): boolean {
  return days.some(({ costCredits }) => costCredits !== undefined);
}

/** The leading parts over all days, and the totals of all parts. */
function Totals({ app, by, usage, sums, parts }: {
  app: AppMode;
  by: View["by"];
  usage: DailyUsage;
  sums: Sums;
  parts: readonly PartSums[];
}) {
  if (parts.length === 0) return <p class="empty">No usage in this period</p>;
  const dayOfPart = (row: PartSums, day: string) => {
    const parts = usage.days.find((each) => each.day === day)?.parts ?? [];
    return parts.find((part) => row.byDay.includes(part))?.events ?? 0;
  };
  return (
    <Table
      rows={parts}
      foot={["Total", "", sums.events, sums.blocked, <AmountText value={sums.costCents} unit="cents" />]}
      columns={[
        {
          head: PARTS[by].charAt(0).toUpperCase() + PARTS[by].slice(1),
          cell: ({ name, part }) =>
            by === "user" && part.userId !== null
              ? <a class="row" href={userPath(app, part.userId)}>{name}</a>
              : <span class="wrap">{name}</span>,
        },
        {
          head: "By day",
          cell: (row) => (
            <Sparkline
              values={usage.days.map(({ day }) => dayOfPart(row, day))}
              label={`Events of ${row.name} by day`}
            />
          ),
        },
        { head: "Events", kind: "number", cell: ({ events }) => <AmountText value={events} /> },
        { head: "Blocked", kind: "number", cell: ({ blocked }) => <AmountText value={blocked} /> },
        { head: "Cost", kind: "number", cell: (row) => <Cost of={row} /> },
      ]}
    />
  );
}

/** The cost of a part, and how many of its events have no price. */
export function Cost({ of: { costCents, unpriced } }: { of: { costCents: number; unpriced: number } }) {
  const text = `${unpriced.toLocaleString("en-US")} ${unpriced === 1 ? "event has" : "events have"} no price`;
  if (unpriced > 0 && costCents === 0) return <span class="tag warn">{text}</span>;
  return (
    <>
      <AmountText value={costCents} unit="cents" />
      {unpriced === 0 ? null : <span class="soft sub">{text}</span>}
    </>
  );
}

function usageFile(mode: string, usage: DailyUsage, userId: string | null) {
  const columns = [
    "day",
    "event",
    "userId",
    "model",
    "planId",
    "events",
    "blocked",
    "quantity",
    "costCents",
  ] as const;
  const rows = usage.days.flatMap(({ parts, ...day }) => [
    { ...day, event: null, userId, model: null, planId: null, quantity: null },
    ...parts.map((part) => ({ ...part, day: day.day })),
  ]);
  return csvFile(
    `usage-${mode}`,
    [...columns, ...withCredits(hasCredits(usage))],
    rows.map((row) => ({ ...row, costCredits: row.costCredits ?? null })),
  );
}

function ViewFilter({ path, view: { by, status, userId, from, to } }: { path: string; view: View }) {
  const select = (name: string, label: string, options: Readonly<Record<string, string>>, chosen: string) => (
    <div class="field">
      <label for={`filter-${name}`}>{label}</label>
      <select id={`filter-${name}`} name={name}>
        {Object.entries(options).map(([value, text]) => (
          <option value={value} selected={value === chosen}>{text}</option>
        ))}
      </select>
    </div>
  );
  const date = (name: string, label: string, value: string) => (
    <div class="field">
      <label for={`filter-${name}`}>{label}</label>
      <input id={`filter-${name}`} name={name} type="date" value={value} />
    </div>
  );
  return (
    <>
      <Filter path={path}>
        {select("by", "Group by", PARTS, by)}
        {select("status", "Status", STATUSES, status)}
        {date("from", "From", from)}
        {date("to", "To", to)}
        <FilterText name="user" label="User" value={userId} placeholder="all users" />
      </Filter>
      <p class="choices">
        {RANGES.map((days) => (
          <a
            href={`?${new URLSearchParams({
              by,
              status,
              days: String(days),
              ...userId && { user: userId },
            })}`}
          >
            last {days} days
          </a>
        ))}
      </p>
    </>
  );
}
