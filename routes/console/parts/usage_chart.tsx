// Usage by day as a chart: stacked bars by event type or by user, with a table of the same numbers for screen readers.
// console.js draws the numbers in the attribute `data-chart`.

import type { ApiAnswer, ApiCaller, AppMode } from "./ask.ts";
import { amountText, TimeExact } from "./format.tsx";
import type { PageRequest } from "./page_context.ts";
import { type Column, Table } from "./table.tsx";
import type { AnswerOf } from "../../contract/definition.ts";
import { listDailyUse } from "../../contract/service.ts";
import { getTestClock } from "../../contract/test_clock.ts";

/** The usage by day as the admin API returns it. */
export type DailyUsage = AnswerOf<typeof listDailyUse>;

const DAY_MS = 86_400_000;

/** The current time of the app's mode. */
export async function nowOf({ ask }: Pick<PageRequest, "ask">, app: AppMode): Promise<number> {
  if (app.mode === "live") return ask.serving.clock.now();
  const clock = await ask.app(app, getTestClock, {});
  return clock.ok ? Date.parse(clock.data.now) : ask.serving.clock.now();
}

/** Reads the usage of the days up to a time. */
export function readDailyUsage(
  ask: ApiCaller,
  { appId, mode }: AppMode,
  { now, days, by, userId }: { now: number; days: number; by: "event" | "user"; userId: string | null },
): Promise<ApiAnswer<DailyUsage>> {
  const day = (at: number) => new Date(at).toISOString().slice(0, 10);
  return ask.admin(listDailyUse, {
    appId,
    mode,
    by,
    from: day(now - (days - 1) * DAY_MS),
    to: day(now),
    userId: userId ?? undefined,
  });
}

/** The rest of a day, beside the series with a colour of their own. */
const OTHERS = "all others";
/** The most series with a colour of their own. */
const COLOURS = 7;

/** The number that a chart shows. */
export type Measure = "events" | "cents";

const MEASURES: Readonly<Record<Measure, (use: { events: number; costCents: number }) => number>> = {
  events: ({ events }) => events,
  cents: ({ costCents }) => costCents,
};

/** The series of a chart, the largest first, each with its values by day. */
export function seriesOf(
  { by, days }: Pick<DailyUsage, "by" | "days">,
  measure: Measure,
): { name: string; values: number[] }[] {
  const valueOf = MEASURES[measure];
  const nameOf = (part: DailyUsage["days"][number]["parts"][number]) =>
    (by === "event" ? part.event : part.userId) ?? "";
  const names = new Set<string>();
  // Each day names its parts in the same order, without those that it doesn't have.
  const longest = days.toSorted((one, other) => other.parts.length - one.parts.length);
  for (const { parts } of longest) for (const part of parts) names.add(nameOf(part));
  const all = [...names].map((name) => ({
    name,
    values: days.map(({ parts }) => {
      const part = parts.find((each) => nameOf(each) === name);
      return part === undefined ? 0 : valueOf(part);
    }),
  }));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const shown = all.filter(({ values }) => sum(values) > 0)
    .toSorted((one, other) => sum(other.values) - sum(one.values)).slice(0, COLOURS);
  const rest = days.map((day, index) =>
    Math.max(0, rounded(valueOf(day) - shown.reduce((total, { values }) => total + (values[index] ?? 0), 0)))
  );
  return sum(rest) > 0 ? [...shown, { name: OTHERS, values: rest }] : shown;
}

/** Rounds to the six decimal places of cents. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** How far sums may lag behind before pages show it. */
const LAG_SHOWN_MS = 60_000;

/** A note where the newest events are not in the sums yet. */
export function LagNote({ usage: { countedUntil }, now }: { usage: DailyUsage; now: number }) {
  if (Date.parse(countedUntil) >= now - LAG_SHOWN_MS) return null;
  return (
    <div class="note warn">
      <p>
        These sums do not include events since <TimeExact at={countedUntil} />{" "}
        yet. They are updated in the background.
      </p>
    </div>
  );
}

/** The chart with its legend and table. */
export function UsageChart(
  { usage, measure, label }: { usage: DailyUsage; measure: Measure; label: string },
) {
  const series = seriesOf(usage, measure);
  if (series.length === 0) return <p class="empty">No usage in this period</p>;
  const days = usage.days.map(({ day }) => day);
  const text = (value: number) => measure === "cents" ? amountText(value, "cents") : amountText(value);
  return (
    <>
      <div
        class="chart"
        role="img"
        aria-label={`${label}. The table below has the numbers.`}
        data-chart={JSON.stringify({ days, series, measure })}
      >
      </div>
      <p class="hint reading" aria-hidden="true">Hover for details</p>
      <ul class="legend keys">
        {series.map(({ name }, index) => (
          <li>
            <i class={name === OTHERS ? "others" : `colour-${index + 1}`}></i>
            {name}
          </li>
        ))}
      </ul>
      <details class="more">
        <summary>View as table</summary>
        <div class="scroll" tabindex={0} role="region" aria-label={`${label} as a table`}>
          <Table
            isWide
            rows={days}
            columns={[
              { head: "Day", kind: "head", cell: (day) => day },
              ...series.map(({ name, values }): Column<string> => ({
                head: name,
                kind: "number",
                cell: (_, index) => <span title={String(values[index])}>{text(values[index] ?? 0)}</span>,
              })),
            ]}
          />
        </div>
      </details>
    </>
  );
}
