// A number with its label, for the head of a page.

import type { Child } from "hono/jsx";
import { AmountText, amountText } from "./format.tsx";

/** A number with its label, such as "12 events today"; a link where `href` is set. */
export function Figure({ value, unit, text, href }: {
  value: number;
  unit?: "cents" | "credits";
  text: Child;
  href?: string;
}) {
  const content = (
    <>
      <b>
        <AmountText value={value} unit={unit} />
      </b>
      <span>{text}</span>
    </>
  );
  return href === undefined
    ? <div class="figure">{content}</div>
    : <a class="figure" href={href}>{content}</a>;
}

/** A number, with its difference from an earlier time in percent, or as a number if that was 0. */
export function Comparison({ value, unit, text, href, compared }: {
  value: number;
  unit?: "cents";
  text: string;
  href: string;
  /** What is compared, and with `until` up to which time of the day; null where nothing can be. */
  compared: Compared & { readonly until?: string } | null;
}) {
  return (
    <a class="figure" href={href}>
      <b>
        <AmountText value={value} unit={unit} />
      </b>
      <span>{text}</span>
      {compared === null ? null : (
        <span class="delta" title={`${compared.now} against ${compared.before}`}>
          {compared.until === undefined ? null : `${amountText(compared.now, unit)} by ${compared.until}: `}
          {deltaText(compared, unit)}
        </span>
      )}
    </a>
  );
}

/** Two numbers of different times. */
export interface Compared {
  readonly now: number;
  readonly before: number;
}

/** A difference with the number before, such as "+12 % from 300", "+5 from 0" or "unchanged". */
export function deltaText(compared: Compared, unit?: "cents"): string {
  const difference = differenceText(compared, unit);
  return compared.now === compared.before
    ? difference
    : `${difference} from ${amountText(compared.before, unit)}`;
}

/** A difference such as "+12 %", "+5" where the number before was 0, or "unchanged". */
export function differenceText({ now, before }: Compared, unit?: "cents"): string {
  if (now === before) return "unchanged";
  const sign = now > before ? "+" : "−";
  return `${sign}${before === 0 ? amountText(now, unit) : percentText({ now, before })}`;
}

/** How far a number is from the number before, such as "12 %". */
export function percentText({ now, before }: Compared): string {
  const percent = Math.abs(now - before) / before * 100;
  const digits = percent < 10 ? 1 : 0;
  return `${percent.toLocaleString("en-US", { maximumFractionDigits: digits })} %`;
}
