// How values are shown: grouped numbers, times in UTC, amounts with their units. The exact value shows on hover.

import type { Unit } from "../../../src/domain/catalog/plan.ts";

const DOLLARS = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const FRACTIONS_OF_CENTS = new Intl.NumberFormat("en-US", {
  style: "currency",
  currency: "USD",
  maximumSignificantDigits: 2,
});
const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

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

/** A time to the second, for pages about one thing. */
export function TimeExact({ at }: { at: string }) {
  return <time datetime={at} title={at}>{`${at.slice(0, 10)} ${at.slice(11, 19)}`}</time>;
}
