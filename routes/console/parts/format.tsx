// How values show: numbers in groups of three with the exact one on hover, times in UTC, units in words; and the head of a
// column without words.

import type { Unit } from "../../../src/domain/catalog/plan.ts";

const DOLLARS = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const FRACTIONS_OF_CENTS = new Intl.NumberFormat("en-US", {
  style: "currency",
  currency: "USD",
  maximumSignificantDigits: 2,
});
const GROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** An amount in its unit, such as "1,250 tokens" or "$3.20"; the exact value shows on hover. */
export function AmountText({ value, unit }: { value: number; unit?: Unit }) {
  return <span title={`${value}${unit === undefined ? "" : ` ${unit}`}`}>{amountText(value, unit)}</span>;
}

/** The same as a text. */
export function amountText(value: number, unit?: Unit): string {
  switch (unit) {
    case "cents":
      return (value !== 0 && Math.abs(value) < 1 ? FRACTIONS_OF_CENTS : DOLLARS).format(value / 100);
    case "tokens":
      return `${GROUPED.format(value)} tokens`;
    case "seconds":
      return `${GROUPED.format(value)} s`;
    default:
      return GROUPED.format(value);
  }
}

/** A time, to the minute; the exact one on hover. */
export function Time({ at }: { at: string }) {
  return <time datetime={at} title={at}>{`${at.slice(0, 10)} ${at.slice(11, 16)}`}</time>;
}

/** A time that may be missing. */
export function TimeOr({ at, none }: { at: string | null; none: string }) {
  return at === null ? <span class="soft">{none}</span> : <Time at={at} />;
}

/** A time as a text, to the minute. */
export function timeLabel(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;
}

/** A time to the second, where one thing is looked at closely. */
export function TimeExact({ at }: { at: string }) {
  return <time datetime={at} title={at}>{`${at.slice(0, 10)} ${at.slice(11, 19)}`}</time>;
}

/** The head of a column that says what can be done with a row; links say it by themselves to those who see them. */
export function ActsHead() {
  return (
    <th>
      <span class="visually-hidden">What to do</span>
    </th>
  );
}
