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
  compared: { readonly now: number; readonly before: number; readonly until?: string } | null;
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

/** A difference such as "+12 % from 300", "+5 from 0" or "unchanged". */
export function deltaText(
  { now, before }: { readonly now: number; readonly before: number },
  unit?: "cents",
): string {
  if (now === before) return "unchanged";
  const sign = now > before ? "+" : "−";
  const from = amountText(before, unit);
  if (before === 0) return `${sign}${amountText(now, unit)} from ${from}`;
  const percent = Math.abs(now - before) / before * 100;
  const digits = percent < 10 ? 1 : 0;
  return `${sign}${percent.toLocaleString("en-US", { maximumFractionDigits: digits })} % from ${from}`;
}
