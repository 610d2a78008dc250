// The work of an event as text: amounts separated by commas, an empty one for null, without the empty ones at the end. A bare
// track is the empty text.

import type { Usage } from "../../domain/pricing/usage.ts";
import type { Work } from "../../domain/state/work.ts";
import { type Amount, decimalOf, parseAmount } from "../../domain/values/amount.ts";

const UNITS_IN_ORDER = ["count", "tokens", "seconds", "cents", "credits"] as const;

/** Encodes a work: size, cost, credits, milliseconds, usage, what was held. */
export function encodeWork({ size, costCents, credits, heldForMs, usage, held }: Work): string {
  const parts = [
    textOf(size.quantity),
    textOf(size.count),
    textOf(size.inputTokens),
    textOf(size.inputCostCents),
    textOf(size.maxOutputTokens),
    textOf(size.cacheWriteTokens),
    textOf(size.cacheWrite1hTokens),
    textOf(costCents),
    textOf(credits),
    heldForMs ?? "",
  ];
  if (usage !== null || held !== null) {
    parts.push(
      textOf(usage?.inputTokens),
      textOf(usage?.cachedInputTokens),
      textOf(usage?.cacheWriteTokens),
      textOf(usage?.cacheWrite1hTokens),
      textOf(usage?.outputTokens),
      textOf(usage?.reasoningTokens),
      textOf(usage?.seconds),
      textOf(usage?.calls),
    );
  }
  if (held !== null) { for (const unit of UNITS_IN_ORDER) parts.push(decimalOf(held[unit])); }
  let end = parts.length;
  while (end > 0 && parts[end - 1] === "") end -= 1;
  return parts.slice(0, end).join(",");
}

function textOf(amount: Amount | null | undefined): string {
  return amount == null ? "" : decimalOf(amount);
}

/** Decodes a work. */
export function decodeWork(text: string): Work {
  const parts = text.split(",");
  const at = (place: number): Amount | null => {
    const part = parts[place];
    return part === undefined || part === "" ? null : parseAmount(part);
  };
  const heldForMs = parts[9] === undefined || parts[9] === "" ? null : Number(parts[9]);
  const held = parts.length <= HELD ? null : {
    count: at(HELD) ?? 0n,
    tokens: at(HELD + 1) ?? 0n,
    seconds: at(HELD + 2) ?? 0n,
    cents: at(HELD + 3) ?? 0n,
    credits: at(HELD + 4) ?? 0n,
  };
  return {
    size: {
      quantity: at(0),
      count: at(1),
      inputTokens: at(2),
      inputCostCents: at(3),
      maxOutputTokens: at(4),
      cacheWriteTokens: at(5),
      cacheWrite1hTokens: at(6),
    },
    costCents: at(7),
    credits: at(8),
    heldForMs,
    usage: parts.length <= USAGE ? null : usageAt(at),
    held,
  };
}

const USAGE = 10;
const HELD = USAGE + 8;

/** The usage in a text; null where the text has none of its members. */
function usageAt(at: (place: number) => Amount | null): Usage | null {
  const usage: Usage = {
    inputTokens: at(USAGE),
    cachedInputTokens: at(USAGE + 1),
    cacheWriteTokens: at(USAGE + 2),
    cacheWrite1hTokens: at(USAGE + 3),
    outputTokens: at(USAGE + 4),
    reasoningTokens: at(USAGE + 5),
    seconds: at(USAGE + 6),
    calls: at(USAGE + 7),
  };
  return Object.values(usage).some((value) => value !== null) ? usage : null;
}
