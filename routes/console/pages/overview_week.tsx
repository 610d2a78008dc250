// This week against last week: the difference in words, a chart of both, and their numbers.

import type { AppMode } from "../parts/ask.ts";
import { addUp, type DailyUsage, type DayOfUsage, usersADay } from "../parts/daily_usage.tsx";
import { type Compared, differenceText, percentText } from "../parts/figure.tsx";
import { AmountText } from "../parts/format.tsx";
import { appPath } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { UsageChart } from "../parts/usage_chart.tsx";

const WEEK = 7;

/** A number of both weeks. */
interface Measured extends Compared {
  readonly title: string;
  readonly href: string;
  readonly unit?: "cents";
  /** How a larger and a smaller number are called in a sentence; absent for a number that it leaves out. */
  readonly words?: readonly [more: string, less: string];
}

/** The last seven full days against the seven before; nothing without usage in either. @param usage ends today */
export function WeekCard({ app, usage: { days } }: { app: AppMode; usage: Pick<DailyUsage, "days"> }) {
  const [week, before] = [days.slice(-WEEK - 1, -1), days.slice(-2 * WEEK - 1, -WEEK - 1)];
  const rows = measure(app, week, before);
  if (rows.every((row) => row.now === 0 && row.before === 0)) return null;
  const sentence = sentenceOf(rows);
  const events = (of: readonly DayOfUsage[]) => of.map(({ events }) => events);
  const chart = [
    { name: "the week before", colour: "others", values: events(before) },
    { name: "this week", colour: "colour-1", values: events(week) },
  ];
  return (
    <section class="card" aria-labelledby="week">
      <div class="head">
        <h2 id="week">This week against last week</h2>
        <span class="soft">the last 7 full days in UTC, compared with the 7 before</span>
      </div>
      {sentence === null ? null : <p>{sentence}</p>}
      <div class="columns">
        <div>
          <UsageChart
            days={week.map(({ day }) => day)}
            series={chart.filter(({ values }) => values.some((value) => value > 0))}
            measure="events"
            label="Events of this week and of the week before, by day"
            isBeside
          />
        </div>
        <Numbers rows={rows} />
      </div>
    </section>
  );
}

function Numbers({ rows }: { rows: readonly Measured[] }) {
  return (
    <Table
      rows={rows}
      columns={[
        { head: "Number", cell: ({ title, href }) => <a class="row" href={href}>{title}</a> },
        {
          head: "This week",
          kind: "number",
          cell: ({ now, unit }) => <AmountText value={now} unit={unit} />,
        },
        {
          head: "Week before",
          kind: "number",
          cell: ({ before, unit }) => <AmountText value={before} unit={unit} />,
        },
        { head: "Difference", kind: "number", cell: (row) => differenceText(row, row.unit) },
      ]}
    />
  );
}

function measure(
  app: AppMode,
  week: readonly DayOfUsage[],
  before: readonly DayOfUsage[],
): readonly Measured[] {
  const usage = `${appPath(app)}/usage`;
  const [sums, earlier] = [addUp(week), addUp(before)];
  const of = (name: "events" | "blocked" | "costCents") => ({ now: sums[name], before: earlier[name] });
  const [users, usersBefore] = [usersADay(week), usersADay(before)];
  return [
    {
      title: "Events",
      href: `${usage}?days=7`,
      words: ["more events", "fewer events"],
      ...of("events"),
    },
    ...users === null || usersBefore === null ? [] : [{
      title: "Users a day",
      href: `${usage}?by=user&days=7`,
      now: users,
      before: usersBefore,
    }],
    {
      title: "Cost",
      href: `${usage}?by=model&days=7`,
      unit: "cents",
      words: ["higher cost", "lower cost"],
      ...of("costCents"),
    },
    {
      title: "Blocked events",
      href: `${usage}?status=blocked&days=7`,
      words: ["more blocked events", "fewer blocked events"],
      ...of("blocked"),
    },
  ];
}

/**
 * The differences in words, such as "12 % fewer events and 30 % more blocked events than in the week before."; null where only
 * numbers that were 0 changed.
 */
function sentenceOf(rows: readonly Measured[]): string | null {
  const parts = rows.flatMap((row) =>
    row.words === undefined || row.before === 0 || row.now === row.before
      ? []
      : `${percentText(row)} ${row.words[row.now > row.before ? 0 : 1]}`
  );
  if (parts.length > 0) return `${LIST.format(parts)} than in the week before.`;
  if (rows.every(({ before }) => before === 0)) return "There was no usage in the week before.";
  return rows.every(({ now, before }) => now === before) ? "Nothing changed from the week before." : null;
}

const LIST = new Intl.ListFormat("en-US", { type: "conjunction" });
