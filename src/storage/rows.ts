// Rows to domain and back, side by side. A change is encoded once, as a line of COPY's text format behind the number
// of its table; the journal stores those lines and the drain copies them, so a replay after a crash is the same
// code as a drain in ordinary running.

import { decimalOf, parseAmount } from "domain/amount.ts";
import { type Counter, counterKey } from "domain/counter.ts";
import type { MeteringEvent } from "domain/event.ts";
import type { Window } from "domain/period.ts";
import type { Unit } from "domain/plan.ts";
import type { Line, Reservation, ReservationStatus } from "domain/reservation.ts";
import type { Subscription, SubscriptionEvent } from "domain/subscription.ts";
import type { Entitlement, User } from "domain/user.ts";
import type { IdempotencyRow, OperationsRow, RowChange } from "actors/port.ts";
import { copyText } from "storage/database.ts";

/** A value of an encoded row. */
export type Cell = string | number | boolean | null;

/** A table that changes reach through the journal. */
export interface TableSpec {
  readonly name: string;
  readonly columns: readonly string[];
  /** How many leading columns are the primary key. */
  readonly keyColumns: number;
  /** The columns that a put may change. */
  readonly mutable: readonly string[];
}

/**
 * The tables by the digit that stands for them in the journal; the order is part of the journal's format. "!" stands
 * before the columns that a put may change.
 */
export const TABLES: readonly TableSpec[] = [
  table("users", 1, [
    "key",
    "realm",
    "id",
    "!held_plan_id",
    "!held_subscription_id",
    "!held_anchor_ms",
    "!held_started_at_ms",
    "!held_until_ms",
    "!due_at_ms",
  ]),
  table("subscriptions", 1, [
    "id",
    "user_key",
    "!plan_id",
    "provider",
    "external_id",
    "started_at_ms",
    "!ends_at_ms",
    "!ended",
    "!cycle_anchor_at_ms",
    "!custom_limits",
  ]),
  table("subscription_events", 1, [
    "id",
    "user_key",
    "type",
    "subscription_id",
    "plan_id",
    "previous_plan_id",
    "reason",
    "at_ms",
  ]),
  table("counters", 4, [
    "user_key",
    "plan_id",
    "group_id",
    "window_start_ms",
    "!window_end_ms",
    "!count",
    "!adjusted",
    "!cost_cents",
  ]),
  table("reservations", 1, [
    "id",
    "user_key",
    "!status",
    "event",
    "metadata",
    "quantity",
    "count",
    "amounts",
    "per_unit",
    "!lines",
    "created_at_ms",
    "expires_at_ms",
    "!settled_at_ms",
  ]),
  table("events", 1, [
    "id",
    "user_key",
    "realm",
    "type",
    "quantity",
    "cost_cents",
    "match_status",
    "created_at_ms",
    "metadata",
    "reservation_id",
    "reason",
    "error_code",
    "lines",
    "uncovered",
  ]),
  table("idempotency", 2, [
    "realm",
    "key",
    "!request_hash",
    "!status",
    "!body",
    "!user_key",
    "!at_ms",
  ]),
  table("operations", 3, ["workspace_id", "mode", "month", "!used"]),
];

const TABLE_NUMBER: ReadonlyMap<string, string> = new Map(
  TABLES.map(({ name }, index) => [name, String(index)]),
);

/** How many characters stand before the cells of an encoded change: the table's digit and the verb's. */
export const CHANGE_HEAD = 2;
/** The verb of an encoded row that did not exist before. */
export const APPENDED = "+";
const PUT = "=";

/** Encodes a change for journal and drain: table, verb and cells as one line without its line feed. */
export function encodeChange(change: RowChange): string {
  const head = TABLE_NUMBER.get(change.table) as string;
  return head + (change.verb === "append" ? APPENDED : PUT) + copyLine(encodeRow(change));
}

function copyLine(cells: readonly Cell[]): string {
  let line = copyText(cells[0] as Cell);
  for (let place = 1; place < cells.length; place++) line += "\t" + copyText(cells[place] as Cell);
  return line;
}

function encodeRow(change: RowChange): Cell[] {
  switch (change.table) {
    case "users":
      return encodeUser(change.row);
    case "subscriptions":
      return encodeSubscription(change.row);
    case "subscription_events":
      return encodeSubscriptionEvent(change.row);
    case "counters":
      return encodeCounter(change.row);
    case "reservations":
      return encodeReservation(change.row);
    case "events":
      return encodeEvent(change.row);
    case "idempotency":
      return encodeIdempotency(change.row);
    case "operations":
      return encodeOperations(change.row);
  }
}

function table(name: string, keyColumns: number, columns: readonly string[]): TableSpec {
  const mutable = columns.filter((column) => column.startsWith("!")).map((column) => column.slice(1));
  return { name, keyColumns, mutable, columns: columns.map((column) => column.replace("!", "")) };
}

// Users

export interface UserRecord {
  key: number;
  realm: number;
  id: string;
  held_plan_id: string | null;
  held_subscription_id: string | null;
  held_anchor_ms: number | null;
  held_started_at_ms: number | null;
  held_until_ms: number | null;
  due_at_ms: number | null;
}

function encodeUser(row: User): Cell[] {
  const held = row.entitlement;
  const entitlement = held === null
    ? [null, null, null, null, null]
    : [held.planId, held.subscriptionId, held.anchor, held.startedAt, held.until];
  return [row.key, row.realm, row.id, ...entitlement, row.dueAt];
}

export function decodeUser(record: UserRecord): User {
  const entitlement: Entitlement | null = record.held_plan_id === null ? null : {
    planId: record.held_plan_id,
    subscriptionId: record.held_subscription_id as string,
    anchor: record.held_anchor_ms as number,
    startedAt: record.held_started_at_ms as number,
    until: record.held_until_ms,
  };
  return { key: record.key, realm: record.realm, id: record.id, entitlement, dueAt: record.due_at_ms };
}

// Subscriptions and their history

export interface SubscriptionRecord {
  id: string;
  user_key: number;
  plan_id: string;
  provider: string | null;
  external_id: string | null;
  started_at_ms: number;
  ends_at_ms: number | null;
  ended: boolean;
  cycle_anchor_at_ms: number | null;
  custom_limits: string;
}

function encodeSubscription(row: Subscription): Cell[] {
  const limits = Object.entries(row.customLimits).map(([group, quota]) => [group, decimalOf(quota)]);
  return [
    row.id,
    row.userKey,
    row.planId,
    row.provider,
    row.externalId,
    row.startedAt,
    row.endsAt,
    row.ended,
    row.cycleAnchorAt,
    JSON.stringify(limits),
  ];
}

export function decodeSubscription(record: SubscriptionRecord): Subscription {
  const limits = JSON.parse(record.custom_limits) as [string, string][];
  return {
    id: record.id,
    userKey: record.user_key,
    planId: record.plan_id,
    provider: record.provider,
    externalId: record.external_id,
    startedAt: record.started_at_ms,
    endsAt: record.ends_at_ms,
    ended: record.ended,
    cycleAnchorAt: record.cycle_anchor_at_ms,
    customLimits: Object.fromEntries(limits.map(([group, quota]) => [group, parseAmount(quota)])),
  };
}

function encodeSubscriptionEvent(row: SubscriptionEvent): Cell[] {
  return [
    row.id,
    row.userKey,
    row.type,
    row.subscriptionId,
    row.planId,
    row.previousPlanId,
    row.reason,
    row.at,
  ];
}

// Counters

export interface CounterRecord {
  user_key: number;
  plan_id: string;
  group_id: string;
  window_start_ms: number;
  window_end_ms: number | null;
  count: string;
  adjusted: string;
  cost_cents: string;
}

function encodeCounter(row: Counter): Cell[] {
  return [
    row.userKey,
    row.planId,
    row.groupId,
    row.windowStart,
    row.windowEnd,
    decimalOf(row.count),
    decimalOf(row.adjusted),
    decimalOf(row.costCents),
  ];
}

export function decodeCounter(record: CounterRecord): Counter {
  return {
    key: counterKey(record.plan_id, record.group_id, record.window_start_ms),
    userKey: record.user_key,
    planId: record.plan_id,
    groupId: record.group_id,
    windowStart: record.window_start_ms,
    windowEnd: record.window_end_ms,
    count: parseAmount(record.count),
    adjusted: parseAmount(record.adjusted),
    costCents: parseAmount(record.cost_cents),
  };
}

// Reservations and events

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
}

function encodeReservation(row: Reservation): Cell[] {
  const { count, tokens, seconds, cents } = row.amounts;
  return [
    row.id,
    row.userKey,
    row.status,
    row.event,
    row.metadata,
    row.quantity === null ? null : decimalOf(row.quantity),
    row.count === null ? null : decimalOf(row.count),
    `[${decimalOf(count)},${decimalOf(tokens)},${decimalOf(seconds)},${decimalOf(cents)}]`,
    row.perUnit,
    encodeLines(row.lines),
    row.createdAt,
    row.expiresAt,
    row.settledAt,
  ];
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
    createdAt: record.created_at_ms,
    expiresAt: record.expires_at_ms,
    settledAt: record.settled_at_ms,
  };
}

function encodeEvent(row: MeteringEvent): Cell[] {
  const uncovered = Object.entries(row.uncovered).map(([unit, amount]) => [unit, decimalOf(amount)]);
  return [
    row.id,
    row.userKey,
    row.realm,
    row.type,
    decimalOf(row.quantity),
    decimalOf(row.costCents),
    row.matchStatus,
    row.createdAt,
    row.metadata,
    row.reservationId,
    row.reason,
    row.errorCode,
    encodeLines(row.lines),
    JSON.stringify(uncovered),
  ];
}

/** Lines as JSON: [[planId, groupId, windowStart, windowEnd, unit, "taken"], ...]. */
function encodeLines(lines: readonly Line[]): string {
  let text = "[";
  for (const { planId, groupId, window, unit, taken } of lines) {
    if (text !== "[") text += ",";
    text += `[${quoted(planId)},${quoted(groupId)},${window.start},${window.end},"${unit}","${
      decimalOf(taken)
    }"]`;
  }
  return text + "]";
}

const PLAIN_ID = /^[\w.-]*$/;

/** A text as JSON; most ids need no escape. */
function quoted(text: string): string {
  return PLAIN_ID.test(text) ? `"${text}"` : JSON.stringify(text);
}

export function decodeLines(text: string): Line[] {
  const lines = JSON.parse(text) as [string, string, number, number | null, Unit, string][];
  return lines.map(([planId, groupId, start, end, unit, taken]) => {
    const window: Window = { start, end };
    return { planId, groupId, window, unit, taken: parseAmount(taken) };
  });
}

// Rows of the runtime itself

function encodeIdempotency(row: IdempotencyRow): Cell[] {
  return [row.realm, row.key, row.requestHash, row.status, row.body, row.userKey, row.at];
}

function encodeOperations(row: OperationsRow): Cell[] {
  return [row.workspaceId, row.mode, row.month, row.used];
}
