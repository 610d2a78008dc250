// A number with its label, for the head of a page.

import type { Child } from "hono/jsx";
import { AmountText } from "./format.tsx";

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
