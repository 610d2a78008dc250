// A chart of usage by day: bars on or beside each other, drawn on the server, with a table of the same numbers. The script adds the line that
// says the numbers of the day under the pointer, or of the one that the arrow keys chose.

import type { Measure, Series } from "./daily_usage.tsx";
import { amountText } from "./format.tsx";
import { type Column, Table } from "./table.tsx";

const HEIGHT = 100;
/** The part of a day's width that its bar takes. */
const BAR_WIDTH = 0.8;
const DATES_MAX = 5;
/** The most days that all have their date. */
const WEEK = 7;

/** The chart with its legend and table. */
export function UsageChart(
  { days, series, measure, label, isBeside = false }: {
    days: readonly string[];
    /** From the bottom to the top of a bar. */
    series: readonly Series[];
    measure: Measure;
    label: string;
    /** Whether each series of a day has a bar of its own. */
    isBeside?: boolean;
  },
) {
  if (series.length === 0) return <p class="empty">No usage in this period</p>;
  const text = (value: number) => measure === "cents" ? amountText(value, "cents") : amountText(value);
  const heights = days.flatMap((_, day) => {
    const values = series.map(({ values }) => values[day] ?? 0);
    return isBeside ? values : values.reduce((sum, value) => sum + value, 0);
  });
  // Half of one event is none.
  const most = scaleOf(Math.max(measure === "cents" ? 0 : 2, ...heights));
  return (
    <>
      <div class="chart" tabindex={0} role="group" aria-label={`${label}. The table below has the numbers.`}>
        <div class="scale" aria-hidden="true">
          {[most, most / 2, 0].map((value) => <span>{text(value)}</span>)}
        </div>
        <div class="plot" aria-hidden="true">
          <svg viewBox={`0 0 ${days.length} ${HEIGHT}`} preserveAspectRatio="none">
            {[0, HEIGHT / 2, HEIGHT].map((y) => <line x1="0" x2={days.length} y1={y} y2={y} />)}
            {days.map((day, place) => <Bar {...{ day, place, series, most, text, isBeside }} />)}
          </svg>
          <div class="dates">{datesOf(days).map((day) => <span>{shortDate(day)}</span>)}</div>
        </div>
      </div>
      <p class="hint reading" role="status">
        Hover, or focus the chart and press the arrow keys, for details
      </p>
      <ul class="legend keys">
        {series.map(({ name, colour }) => (
          <li>
            <i class={colour}></i>
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

function Bar({ day, place, series, most, text, isBeside }: {
  day: string;
  place: number;
  series: readonly Series[];
  most: number;
  text: (value: number) => string;
  isBeside: boolean;
}) {
  let top = HEIGHT;
  const width = isBeside ? BAR_WIDTH / series.length : BAR_WIDTH;
  const left = place + (1 - BAR_WIDTH) / 2;
  const shown = series.map((each, index) => ({ ...each, x: rounded(isBeside ? left + index * width : left) }))
    .filter(({ values }) => (values[place] ?? 0) > 0);
  const reading = shown.map(({ name, values }) => `${name} ${text(values[place] ?? 0)}`);
  return (
    <g>
      <title>{[day, ...reading].join(" · ")}</title>
      <rect class="hit" x={place} y="0" width="1" height={HEIGHT} />
      {shown.map(({ values, colour, x }) => {
        const height = rounded((values[place] ?? 0) / most * HEIGHT);
        top = (isBeside ? HEIGHT : top) - height;
        return <rect class={colour} x={x} y={rounded(top)} width={rounded(width)} height={height} />;
      })}
    </g>
  );
}

/** The top of a scale: 1, 2, 4, 6, 8 or 10 times a power of ten, so that its half is short too. */
export function scaleOf(most: number): number {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 4, 6, 8, 10].find((step) => step * power >= most) ?? 10) * power;
}

/** Days that share the width evenly, the first and the last among them. */
function datesOf(days: readonly string[]): string[] {
  if (days.length <= WEEK) return [...days];
  const steps = DATES_MAX - 1;
  return Array.from(
    { length: steps + 1 },
    (_, step) => days[Math.round(step * (days.length - 1) / steps)] as string,
  );
}

const SHORT = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", timeZone: "UTC" });

/** A day as "Nov 20". */
function shortDate(day: string): string {
  return SHORT.format(new Date(`${day}T00:00:00Z`));
}

function rounded(value: number): number {
  return Math.round(value * 1e3) / 1e3;
}
