// Use by day as a chart: stacked bars by kind of event or by user, with a table of the same numbers for those who do not
// see it. The numbers stand in an attribute; console.js draws them.

import type { AppMode, Asked, Asking } from "./ask.ts";
import { amountText } from "./format.tsx";
import type { PageRequest } from "./page_context.ts";

/** A day as the admin API shows it. */
export interface ShownDay {
  readonly day: string;
  readonly events: number;
  readonly blocked: number;
  readonly costCents: number;
  readonly parts: readonly ShownPart[];
}

/** A kind of event, or a user, on a day. */
export interface ShownPart {
  readonly event: string | null;
  readonly userId: string | null;
  readonly events: number;
  readonly blocked: number;
  readonly costCents: number;
  readonly quantity: number;
}

/** What the admin API answers of use by day. */
export interface DailyUse {
  readonly by: "event" | "user";
  readonly countedUntil: string;
  readonly days: readonly ShownDay[];
}

const DAY_MS = 86_400_000;

/** The app's clock. */
export async function nowOf({ ask }: Pick<PageRequest, "ask">, app: AppMode): Promise<number> {
  if (app.mode === "live") return ask.serving.clock.now();
  const clock = await ask.app<{ now: string }>(app, "getTestClock", {});
  return clock.ok ? Date.parse(clock.data.now) : ask.serving.clock.now();
}

/** Asks for the use of the days up to a moment. */
export function askDailyUse(
  ask: Asking,
  { appId, mode }: AppMode,
  { now, days, by, userId }: { now: number; days: number; by: "event" | "user"; userId: string | null },
): Promise<Asked<DailyUse>> {
  const day = (at: number) => new Date(at).toISOString().slice(0, 10);
  return ask.admin<DailyUse>("listDailyUse", {
    appId,
    mode,
    by,
    from: day(now - (days - 1) * DAY_MS),
    to: day(now),
    userId: userId ?? undefined,
  });
}

/** Events of a day that belong to none of its parts. */
const OTHERS = "everything else";
/** Parts with a colour of their own. */
const COLOURS = 7;

/** What is drawn of each part. */
export type Measure = "events" | "cents";

const MEASURES: Readonly<Record<Measure, (use: { events: number; costCents: number }) => number>> = {
  events: ({ events }) => events,
  cents: ({ costCents }) => costCents,
};

/** The names of the parts, and their values by day. */
export function seriesOf({ by, days }: DailyUse, measure: Measure): { name: string; values: number[] }[] {
  const valueOf = MEASURES[measure];
  const nameOf = (part: ShownPart) => (by === "event" ? part.event : part.userId) ?? "";
  const names = new Set<string>();
  // Each day names them in the same order, and leaves out those that it has not.
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

/** Cents have six places; sums of doubles would show more. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** The chart with its table. */
export function UseChart({ use, measure, label }: { use: DailyUse; measure: Measure; label: string }) {
  const series = seriesOf(use, measure);
  if (series.length === 0) return <p class="empty">Nothing was used in these days.</p>;
  const days = use.days.map(({ day }) => day);
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
      <p class="hint reading" aria-hidden="true">Point at a day for its numbers.</p>
      <ul class="legend keys">
        {series.map(({ name }, index) => (
          <li>
            <i class={name === OTHERS ? "others" : `colour-${index + 1}`}></i>
            {name}
          </li>
        ))}
      </ul>
      <details class="more">
        <summary>The numbers</summary>
        <div class="scroll" tabindex={0} role="region" aria-label={`${label} in numbers`}>
          <table>
            <thead>
              <tr>
                <th>Day</th>
                {series.map(({ name }) => <th class="number">{name}</th>)}
              </tr>
            </thead>
            <tbody>
              {days.map((day, index) => (
                <tr>
                  <th scope="row">{day}</th>
                  {series.map(({ values }) => (
                    <td class="number" title={String(values[index])}>{text(values[index] ?? 0)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}
