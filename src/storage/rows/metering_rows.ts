// Reservations and metering events, rows to domain and back, side by side.

import { type Amount, decimalOf, parseAmount } from "../../domain/amount.ts";
import type { CreditLine } from "../../domain/credits/credit.ts";
import type { CounterRef } from "../../domain/metering/counter.ts";
import type { EventLog, MeteringEvent } from "../../domain/metering/event.ts";
import type { Generation } from "../../domain/metering/generation.ts";
import type { HoldLine, Reservation, ReservationStatus } from "../../domain/metering/reservation.ts";
import type { Window } from "../../domain/plans/period.ts";
import type { Unit } from "../../domain/plans/plan.ts";
import { type Cell, copyText, NULL } from "../database.ts";

export interface ReservationRecord {
  id: string;
  user_key: number;
  status: ReservationStatus;
  event: string;
  metadata: string | null;
  quantity: string | null;
  count: string | null;
  amounts: string;
  per_unit: boolean;
  lines: string;
  created_at_ms: number;
  expires_at_ms: number;
  settled_at_ms: number | null;
  credits: string;
  prompt: string | null;
}

/** The line of a reservation. It is built in one piece: every reserve writes one. */
export function encodeReservation(row: Reservation): string {
  const { count, tokens, seconds, cents } = row.amounts;
  return `${copyText(row.id)}\t${row.userKey}\t${row.status}\t${copyText(row.event)}\t${
    copyText(row.metadata)
  }\t${amountCell(row.quantity)}\t${amountCell(row.count)}\t[${decimalOf(count)},${decimalOf(tokens)},${
    decimalOf(seconds)
  },${decimalOf(cents)}]\t${row.perUnit ? "t" : "f"}\t${
    copyText(encodeLines(row.lines))
  }\t${row.createdAt}\t${row.expiresAt}\t${row.settledAt ?? NULL}\t${copyText(encodeCredits(row.credits))}\t${
    copyText(row.prompt)
  }`;
}

function amountCell(amount: Amount | null): string {
  return amount === null ? NULL : decimalOf(amount);
}

export function decodeReservation(record: ReservationRecord): Reservation {
  const [count = "0", tokens = "0", seconds = "0", cents = "0"] = record.amounts.slice(1, -1).split(",");
  return {
    id: record.id,
    userKey: record.user_key,
    status: record.status,
    event: record.event,
    metadata: record.metadata,
    quantity: record.quantity === null ? null : parseAmount(record.quantity),
    count: record.count === null ? null : parseAmount(record.count),
    amounts: {
      count: parseAmount(count),
      tokens: parseAmount(tokens),
      seconds: parseAmount(seconds),
      cents: parseAmount(cents),
    },
    perUnit: record.per_unit,
    lines: decodeLines(record.lines),
    credits: decodeCredits(record.credits),
    prompt: record.prompt,
    createdAt: record.created_at_ms,
    expiresAt: record.expires_at_ms,
    settledAt: record.settled_at_ms,
  };
}

/** The line of a metering event. */
export function encodeEvent(row: MeteringEvent): string {
  return `${copyText(row.id)}\t${row.userKey}\t${row.realm}\t${copyText(row.type)}\t${
    decimalOf(row.quantity)
  }\t${decimalOf(row.costCents)}\t${row.matchStatus}\t${row.createdAt}\t${copyText(row.metadata)}\t${
    copyText(row.reservationId)
  }\t${copyText(row.reason)}\t${copyText(row.errorCode)}\t${copyText(encodeLines(row.lines))}\t${
    encodeUncovered(row.uncovered)
  }\t${copyText(encodeCredits(row.credits))}`;
}

function encodeUncovered(uncovered: MeteringEvent["uncovered"]): string {
  let text = "";
  for (const unit in uncovered) {
    text += `${text === "" ? "" : ","}["${unit}","${decimalOf(uncovered[unit as Unit] as Amount)}"]`;
  }
  return `[${text}]`;
}

export function encodeEventLog(row: EventLog): Cell[] {
  return [row.eventId, row.userKey, row.realm, row.prompt, row.response, row.at];
}

export function encodeGeneration(row: Generation): Cell[] {
  return [
    row.id,
    row.userKey,
    row.realm,
    row.type,
    row.model,
    decimalOf(row.inputTokens),
    decimalOf(row.outputTokens),
    decimalOf(row.costCents),
    row.eventId,
    row.at,
  ];
}

/**
 * Lines as JSON: [[planId, groupId, windowStart, windowEnd, unit, "taken"], ...]. A line of a hold that left counters
 * has them as a seventh element: [[planId, groupId, windowStart, windowEnd], ...].
 */
function encodeLines(lines: readonly HoldLine[]): string {
  let text = "[";
  for (const { planId, groupId, window, unit, taken, left } of lines) {
    if (text !== "[") text += ",";
    const behind = left === undefined ? "" : `,${encodeRefs(left)}`;
    text += `[${quoted(planId)},${quoted(groupId)},${window.start},${window.end},"${unit}","${
      decimalOf(taken)
    }"${behind}]`;
  }
  return text + "]";
}

function encodeRefs(refs: readonly CounterRef[]): string {
  return JSON.stringify(
    refs.map(({ planId, groupId, window: { start, end } }) => [planId, groupId, start, end]),
  );
}

const PLAIN_ID = /^[\w.-]*$/;

/** A text as JSON; most ids need no escape. */
function quoted(text: string): string {
  return PLAIN_ID.test(text) ? `"${text}"` : JSON.stringify(text);
}

type RefCells = [planId: string, groupId: string, start: number, end: number | null];

export function decodeLines(text: string): HoldLine[] {
  const lines = JSON.parse(text) as [...RefCells, unit: Unit, taken: string, left?: RefCells[]][];
  return lines.map(([planId, groupId, start, end, unit, taken, left]) => {
    const window: Window = { start, end };
    const line = { planId, groupId, window, unit, taken: parseAmount(taken) };
    return left === undefined ? line : { ...line, left: left.map(decodeRef) };
  });
}

function decodeRef([planId, groupId, start, end]: RefCells): CounterRef {
  return { planId, groupId, window: { start, end } };
}

/** What was taken from balances, as JSON: [[balanceId, unit, "taken"], ...]. */
function encodeCredits(lines: readonly CreditLine[]): string {
  if (lines.length === 0) return "[]";
  const texts = lines.map(({ balanceId, unit, taken }) =>
    `[${quoted(balanceId)},"${unit}","${decimalOf(taken)}"]`
  );
  return `[${texts.join(",")}]`;
}

export function decodeCredits(text: string): CreditLine[] {
  if (text === "[]") return [];
  const lines = JSON.parse(text) as [string, Unit, string][];
  return lines.map(([balanceId, unit, taken]) => ({ balanceId, unit, taken: parseAmount(taken) }));
}
