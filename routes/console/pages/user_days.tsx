// The last 30 days of a user and of the users below in small: events, blocked events and cost.

import { Ago, amountText } from "../parts/format.tsx";
import { appPath } from "../parts/page.tsx";
import type { PageRequest } from "../parts/page_context.ts";
import { Sparkline } from "../parts/sparkline.tsx";
import type { UserSubject } from "../parts/subject.tsx";
import { type DailyUsage, readDailyUsage } from "../parts/daily_usage.tsx";

/** The sums of the days; null where the call failed. */
type Days = Pick<DailyUsage, "days" | "countedUntil" | "members"> | null;

const DAYS = 30;

/** Reads the sums of the last 30 days. */
export async function readUserDays(
  { ask }: PageRequest,
  { app, user: { userId } }: UserSubject,
  now: number,
): Promise<Days> {
  const read = await readDailyUsage(ask, app, { now, days: DAYS, by: "user", userId, withMembers: true });
  return read.ok ? read.data : null;
}

/** The numbers of the last 30 days, each with its line of days. */
export function UseCard(
  { subject: { app, user }, use, now }: { subject: UserSubject; use: Days; now: number },
) {
  if (use === null) return null;
  const { days, countedUntil, members } = use;
  const of = `?user=${encodeURIComponent(user.userId)}`;
  const lines = [
    { title: "Events", values: days.map(({ events }) => events), unit: undefined },
    { title: "Blocked events", values: days.map(({ blocked }) => blocked), unit: undefined },
    { title: "Cost", values: days.map(({ costCents }) => costCents), unit: "cents" as const },
  ];
  const isEmpty = lines.every(({ values }) => values.every((value) => value === 0));
  return (
    <section class="card" aria-labelledby="days">
      <div class="head">
        <h2 id="days">Last 30 days</h2>
        <span class="choices">
          <span class="soft">
            counted until <Ago at={countedUntil} now={now} />
          </span>
          <a href={`${appPath(app)}/usage${of}`}>Usage</a>
        </span>
      </div>
      {members === undefined || members.counted === 0
        ? null
        : <p class="soft">Includes {membersText(members)} below this user.</p>}
      {isEmpty ? <p class="empty">No usage in this period</p> : (
        <div class="sparklines">
          {lines.map(({ title, values, unit }) => {
            const sum = amountText(values.reduce((total, value) => total + value, 0), unit);
            const most = amountText(Math.max(...values), unit);
            return (
              <div>
                <span class="soft">{title}</span> <b>{sum}</b>{" "}
                <Sparkline
                  values={values}
                  label={`${title} by day: ${sum} in all, at most ${most} on a day`}
                />
              </div>
            );
          })}
        </div>
      )}
    </section>
  );
}

function membersText({ counted, hasMore }: NonNullable<DailyUsage["members"]>): string {
  if (hasMore) return `${amountText(counted)} of the users`;
  return counted === 1 ? "the user" : `the ${amountText(counted)} users`;
}
