// Usage by day as pages read it: days up to now, the series of a chart, sums and comparisons.

import type { ApiAnswer, ApiCaller, AppMode } from "./ask.ts";
import { colourOf, coloursOf } from "./colours.ts";
import { TimeExact } from "./format.tsx";
import type { PageRequest } from "./page_context.ts";
import type { AnswerOf } from "../../contract/definition.ts";
import { DAILY_PARTS, listDailyUse } from "../../contract/service.ts";
import { getTestClock } from "../../contract/test_clock.ts";

/** The usage by day as the admin API returns it. */
export type DailyUsage = AnswerOf<typeof listDailyUse>;
export type DayOfUsage = DailyUsage["days"][number];
type PartOfUsage = DayOfUsage["parts"][number];
type DailyPart = (typeof DAILY_PARTS)[number];

const DAY_MS = 86_400_000;

/** The current time of the app's mode. */
export async function nowOf({ ask }: Pick<PageRequest, "ask">, app: AppMode): Promise<number> {
  if (app.mode === "live") return ask.serving.clock.now();
  const clock = await ask.app(app, getTestClock, {});
  return clock.ok ? Date.parse(clock.data.now) : ask.serving.clock.now();
}

/** A day as the API has it. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

/** What to read of daily usage. */
interface DailyQuery {
  readonly by: DailyPart;
  readonly status?: "used" | "blocked";
  readonly order?: "events" | "cost";
  readonly userId?: string | null;
  /** Whether the usage of users below is added to that of `userId`. */
  readonly withMembers?: boolean;
}

/** Reads the usage of the days up to a time. */
export function readDailyUsage(
  ask: ApiCaller,
  app: AppMode,
  { now, days, ...query }: DailyQuery & { readonly now: number; readonly days: number },
): Promise<ApiAnswer<DailyUsage>> {
  return readDays(ask, app, { ...query, from: dayOf(now - (days - 1) * DAY_MS), to: dayOf(now) });
}

/** Reads the usage of a range of days. */
export function readDays(
  ask: ApiCaller,
  { appId, mode }: AppMode,
  { userId = null, withMembers = false, ...query }: DailyQuery & {
    readonly from: string;
    readonly to: string;
  },
): Promise<ApiAnswer<DailyUsage>> {
  return ask.admin(listDailyUse, {
    appId,
    mode,
    ...query,
    userId: userId ?? undefined,
    withMembers: withMembers ? "true" : undefined,
  });
}

/** The days by whose event types colours are chosen on every page. */
export const COLOUR_DAYS = 60;

/** The colours of the event types of an app, by its usage of the last days. */
export function typeColours({ days }: Pick<DailyUsage, "days">): ReadonlyMap<string, string> {
  return coloursOf(days.flatMap(({ parts }) => parts.map(({ event }) => event ?? "")));
}

const NAMELESS: Readonly<Record<DailyPart, string>> = {
  event: "none",
  user: "none",
  model: "no model",
  plan: "no plan",
  hour: "none",
};

/** What a part is called; plans by their names. */
function partName(
  by: DailyPart,
  part: PartOfUsage,
  planNames: ReadonlyMap<string, string> = new Map(),
): string {
  if (part.isUnknown === true) return "unknown";
  const { event, userId, model, planId, hour } = part;
  const name = { event, user: userId, model, plan: planId, hour: hour === null ? null : String(hour) }[by];
  if (name === null) return NAMELESS[by];
  return by === "plan" ? planNames.get(name) ?? name : name;
}

/** The number that a chart shows. */
export type Measure = "events" | "cents" | "blocked";

type Counted = { readonly events: number; readonly costCents: number; readonly blocked: number };

const MEASURES: Readonly<Record<Measure, (use: Counted) => number>> = {
  events: ({ events }) => events,
  cents: ({ costCents }) => costCents,
  blocked: ({ blocked }) => blocked,
};

/** A part of a chart, with its values by day and the class of its colour. */
export interface Series {
  readonly name: string;
  readonly colour: string;
  readonly values: readonly number[];
}

/** The rest of a day, beside the series with a colour of their own. */
const OTHERS = "all others";
/** The most series with a colour of their own. */
const SERIES_MAX = 7;

/**
 * The series of a chart, the largest first.
 *
 * @param colours those of the app's event types; absent where the series are something else
 */
export function seriesOf(
  { by, days }: Pick<DailyUsage, "by" | "days">,
  measure: Measure,
  colours?: ReadonlyMap<string, string>,
  planNames?: ReadonlyMap<string, string>,
): Series[] {
  const valueOf = MEASURES[measure];
  const values = new Map<string, number[]>();
  for (const [place, { parts }] of days.entries()) {
    for (const part of parts) {
      const name = partName(by, part, planNames);
      const row = values.get(name) ?? new Array<number>(days.length).fill(0);
      row[place] = rounded((row[place] ?? 0) + valueOf(part));
      values.set(name, row);
    }
  }
  const shown = [...values].filter(([, row]) => sumOf(row) > 0)
    .toSorted(([, one], [, other]) => sumOf(other) - sumOf(one)).slice(0, SERIES_MAX);
  const chosen = colours ?? coloursOf(shown.map(([name]) => name));
  const series = shown.map(([name, row]) => ({ name, colour: colourOf(chosen, name), values: row }));
  const rest = days.map((day, place) =>
    Math.max(0, rounded(valueOf(day) - shown.reduce((total, [, row]) => total + (row[place] ?? 0), 0)))
  );
  return sumOf(rest) > 0 ? [...series, { name: OTHERS, colour: "others", values: rest }] : series;
}

/** The blocked events of each day, to be stacked on the used ones; nothing without any. */
export function blockedSeries({ days }: Pick<DailyUsage, "days">): Series[] {
  const values = days.map(({ blocked }) => blocked);
  return sumOf(values) === 0 ? [] : [{ name: "blocked", colour: "blocked", values }];
}

function sumOf(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Rounds to the six decimal places of cents. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** Numbers of several days. */
export interface Sums extends Counted {
  readonly costCredits: number;
  readonly unpriced: number;
}

/** Adds up days or parts. */
export function addUp(
  rows: readonly (Counted & {
    readonly costCredits?: number | undefined;
    readonly unpriced?: number | undefined;
  })[],
): Sums {
  const sum = (valueOf: (row: typeof rows[number]) => number) => rounded(sumOf(rows.map(valueOf)));
  return {
    events: sum(({ events }) => events),
    blocked: sum(({ blocked }) => blocked),
    costCents: sum(({ costCents }) => costCents),
    costCredits: sum(({ costCredits = 0 }) => costCredits),
    unpriced: sum(({ unpriced = 0 }) => unpriced),
  };
}

/** The average number of users on a day, below 10 with a decimal; null where a day is not known. */
export function usersADay(days: readonly DayOfUsage[]): number | null {
  let sum = 0;
  for (const { users } of days) {
    if (users === null) return null;
    sum += users;
  }
  const mean = sum / days.length;
  return mean < 10 ? Math.round(mean * 10) / 10 : Math.round(mean);
}

/** A part with its sums over all days, and its numbers by day. */
export interface PartSums extends Sums {
  readonly name: string;
  readonly part: PartOfUsage;
  readonly quantity: number;
  readonly byDay: readonly PartOfUsage[];
}

/** Adds up each part over all days, in the order of the answer's leaders: those of a number, most first. */
export function sumsOfParts(
  { by, days }: Pick<DailyUsage, "by" | "days">,
  measure: Measure,
  planNames?: ReadonlyMap<string, string>,
): PartSums[] {
  const found = new Map<string, PartOfUsage[]>();
  for (const part of days.flatMap(({ parts }) => parts)) {
    const name = partName(by, part, planNames);
    found.set(name, [...found.get(name) ?? [], part]);
  }
  const sums = [...found].map(([name, parts]) => ({
    name,
    part: parts[0] as PartOfUsage,
    quantity: rounded(sumOf(parts.map(({ quantity }) => quantity))),
    byDay: parts,
    ...addUp(parts),
  }));
  const valueOf = MEASURES[measure];
  return sums.toSorted((one, other) => valueOf(other) - valueOf(one));
}

/** How far sums may lag behind before pages show it. */
const LAG_SHOWN_MS = 60_000;

/** Whether the sums lag behind so far that they cannot be compared. */
export function lagsBehind({ countedUntil }: Pick<DailyUsage, "countedUntil">, now: number): boolean {
  return Date.parse(countedUntil) < now - LAG_SHOWN_MS;
}

/** A note where the newest events are not in the sums yet. */
export function LagNote({ usage, now }: { usage: DailyUsage; now: number }) {
  if (!lagsBehind(usage, now)) return null;
  const { countedUntil } = usage;
  return (
    <div class="note warn">
      <p>
        These sums do not include events since <TimeExact at={countedUntil} />{" "}
        yet. They are updated in the background.
      </p>
    </div>
  );
}
