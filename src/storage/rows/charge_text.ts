// What holds and events took of counters and credit balances, as JSON text of their rows.

import { decimalOf, parseAmount } from "../../domain/values/amount.ts";
import type { CounterRef } from "../../domain/state/counter.ts";
import type { CreditLine } from "../../domain/state/credit.ts";
import type { LevelCharge } from "../../domain/state/event.ts";
import type { HoldLine } from "../../domain/state/reservation.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Window, WindowKind } from "../../domain/values/period.ts";
import type { Unit } from "../../domain/catalog/plan.ts";

/**
 * Encodes lines as JSON: [[planId, groupId, windowStart, windowEnd, unit, "taken"], ...]. A line that was moved away from
 * other counters lists these as a seventh element: [[planId, groupId, windowStart, windowEnd], ...]. A line of a session or
 * a guard has its kind as the eighth.
 */
export function encodeLines(lines: readonly HoldLine[]): string {
  return `[${lines.map(encodeHoldLine).join(",")}]`;
}

function encodeHoldLine({ planId, groupId, window, unit, taken, left }: HoldLine): string {
  const parts = [
    quoted(planId),
    quoted(groupId),
    window.start,
    window.end ?? "null",
    `"${unit}"`,
    `"${decimalOf(taken)}"`,
  ];
  if (left !== undefined || window.kind !== undefined) parts.push(encodeRefs(left ?? []));
  if (window.kind !== undefined) parts.push(`"${window.kind}"`);
  return `[${parts.join(",")}]`;
}

function encodeRefs(refs: readonly CounterRef[]): string {
  return JSON.stringify(
    refs.map(({ planId, groupId, window: { start, end } }) => [planId, groupId, start, end]),
  );
}

const PLAIN_ID = /^[\w.-]*$/;

/** Encodes a text as JSON; most ids need no escape. */
export function quoted(text: string): string {
  return PLAIN_ID.test(text) ? `"${text}"` : JSON.stringify(text);
}

type StoredLine = [...RefParts, unit: Unit, taken: string, left?: RefParts[], kind?: WindowKind];
type RefParts = [planId: string, groupId: string, start: number, end: number | null];

export function decodeLines(text: string): HoldLine[] {
  const lines = JSON.parse(text) as StoredLine[];
  return lines.map(([planId, groupId, start, end, unit, taken, left = [], kind]) => {
    const window: Window = kind === undefined ? { start, end } : { start, end, kind };
    const line = { planId, groupId, window, unit, taken: parseAmount(taken) };
    // A line leaves only counters of windows of its own kind.
    return left.length === 0 ? line : { ...line, left: left.map((ref) => decodeRef(ref, kind)) };
  });
}

function decodeRef([planId, groupId, start, end]: RefParts, kind: WindowKind | undefined): CounterRef {
  return { planId, groupId, window: kind === undefined ? { start, end } : { start, end, kind } };
}

/** What an event took from a user above, as stored. */
export interface StoredLevel extends Omit<LevelCharge, "uncovered"> {
  readonly userKey: UserKey;
}

/** Reads what an event took from users above. */
export function decodeLevels(text: string): StoredLevel[] {
  const levels = JSON.parse(text) as [UserKey, unknown, unknown, unknown][];
  return levels.map(([userKey, lines, credits]) => ({
    userKey,
    lines: decodeLines(JSON.stringify(lines)),
    credits: decodeCredits(JSON.stringify(credits)),
  }));
}

/**
 * Encodes what was taken from balances as JSON: [[balanceId, unit, "taken"], ...]. A line that was moved away from other
 * balances lists these as a fourth element: [balanceId, ...].
 */
export function encodeCredits(lines: readonly CreditLine[]): string {
  if (lines.length === 0) return "[]";
  const texts = lines.map(({ balanceId, unit, taken, left }) =>
    `[${quoted(balanceId)},"${unit}","${decimalOf(taken)}"${
      left === undefined ? "" : `,${JSON.stringify(left)}`
    }]`
  );
  return `[${texts.join(",")}]`;
}

export function decodeCredits(text: string): CreditLine[] {
  if (text === "[]") return [];
  const lines = JSON.parse(text) as [string, Unit, string, string[]?][];
  return lines.map(([balanceId, unit, taken, left]) => {
    const line = { balanceId, unit, taken: parseAmount(taken) };
    return left === undefined ? line : { ...line, left };
  });
}
