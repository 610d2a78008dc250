// How values are shown: grouped numbers, times in UTC, amounts with their units. The exact value shows on hover.

import type { Unit } from "../../../src/domain/catalog/plan.ts";

const DOLLARS = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const FRACTIONS_OF_CENTS = new Intl.NumberFormat("en-US", {
  style: "currency",
  currency: "USD",
  maximumSignificantDigits: 2,
});
const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** Characters that leave nothing to see or click. */
const UNSEEN = /^[\s\p{C}\p{Z}\u2800\u3164]*$/u;

/** The name of an app or workspace in links and titles: the ID in place of a name that cannot be seen. */
export function shownName(name: string, id: string): string {
  return UNSEEN.test(name) ? id : name;
}

/** An amount in its unit, such as "1,250 tokens" or "$3.20"; the exact value shows on hover. */
export function AmountText({ value, unit }: { value: number; unit?: Unit | undefined }) {
  return <span title={`${value}${unit === undefined ? "" : ` ${unit}`}`}>{amountText(value, unit)}</span>;
}

/** An amount as plain text. */
export function amountText(value: number, unit?: Unit | undefined): string {
  switch (unit) {
    case "cents":
      return (value !== 0 && Math.abs(value) < 1 ? FRACTIONS_OF_CENTS : DOLLARS).format(value / 100);
    case "tokens":
      return `${GROUPED.format(value)} tokens`;
    case "credits":
      return `${GROUPED.format(value)} credits`;
    case "seconds":
      return `${GROUPED.format(value)} s`;
    default:
      return GROUPED.format(value);
  }
}

/** An amount as Stripe has it, in the smallest unit. */
export function moneyText(amount: number, currency: string): string {
  const { maximumFractionDigits: digits = 2 } = new Intl.NumberFormat("en", { style: "currency", currency })
    .resolvedOptions();
  return `${(amount / 10 ** digits).toFixed(digits)} ${currency.toUpperCase()}`;
}

/** A length of time in its largest whole unit, such as "60 s", "10 min" or "5 h". */
export function durationText(seconds: number): string {
  if (seconds % 3600 === 0) return `${GROUPED.format(seconds / 3600)} h`;
  return seconds > 60 && seconds % 60 === 0
    ? `${GROUPED.format(seconds / 60)} min`
    : `${GROUPED.format(seconds)} s`;
}

/** A time to the minute. */
export function Time({ at }: { at: string }) {
  return <time datetime={at} title={at}>{`${at.slice(0, 10)} ${at.slice(11, 16)}`}</time>;
}

/** A time to the minute, or the text `none` for null. */
export function TimeOr({ at, none }: { at: string | null; none: string }) {
  return at === null ? <span class="soft">{none}</span> : <Time at={at} />;
}

/** A time to the minute as plain text. */
export function timeLabel(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** Older times are shown as a date. */
const AGO_DAYS_MAX = 7;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** How long ago a time is, such as "2 h ago"; the exact time shows on hover. `now` is in milliseconds, by the app's clock. */
export function Ago({ at, now }: { at: string; now: number }) {
  return <time datetime={at} title={exactText(at)}>{agoText(at, now)}</time>;
}

/** How long ago a time is, as plain text: minutes, hours or days, and after a week its date. */
export function agoText(at: string, now: number): string {
  const passed = now - Date.parse(at);
  if (passed < MINUTE_MS) return passed > -MINUTE_MS ? "just now" : dateText(at, now);
  if (passed < HOUR_MS) return `${Math.floor(passed / MINUTE_MS)} min ago`;
  if (passed < DAY_MS) return `${Math.floor(passed / HOUR_MS)} h ago`;
  return passed < AGO_DAYS_MAX * DAY_MS ? `${Math.floor(passed / DAY_MS)} d ago` : dateText(at, now);
}

/** When a coming time is, after a word such as "resets": "in 5 h" within a day, else "Dec 1". */
export function comingText(at: string, now: number): string {
  const left = Date.parse(at) - now;
  if (left >= DAY_MS) return dateText(at, now);
  return left >= HOUR_MS
    ? `in ${Math.floor(left / HOUR_MS)} h`
    : `in ${Math.max(Math.ceil(left / MINUTE_MS), 1)} min`;
}

/** A time for a text that is read later, such as "Dec 1, 2026 at 00:00 UTC". */
export function momentText(at: string): string {
  return `${dateText(at)} at ${at.slice(11, 16)} UTC`;
}

/** A date in UTC such as "Dec 1", with the year if it is not the current one. */
function dateText(at: string, now?: number): string {
  const [year, month, day] = at.slice(0, 10).split("-").map(Number);
  const date = `${MONTHS[(month ?? 1) - 1]} ${day}`;
  return now !== undefined && year === new Date(now).getUTCFullYear() ? date : `${date}, ${year}`;
}

/** The exact time, for people to read on hover. */
export function exactText(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;
}

/** A time to the second, for pages about one thing. */
export function TimeExact({ at }: { at: string }) {
  return <time datetime={at} title={at}>{`${at.slice(0, 10)} ${at.slice(11, 19)}`}</time>;
}
