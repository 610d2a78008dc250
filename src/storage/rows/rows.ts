// Rows to domain and back, side by side. A change is encoded once, as a line of COPY's text format behind the number
// of its table; the journal stores those lines and the drain copies them, so a replay after a crash is the same
// code as a drain in ordinary running.

import { decimalOf, parseAmount } from "../../domain/amount.ts";
import { type Counter, counterKey } from "../../domain/metering/counter.ts";
import type { Subscription, SubscriptionEvent } from "../../domain/plans/subscription.ts";
import type { ConsentEntry, Entitlement, Merge, User } from "../../domain/user.ts";
import type { IdempotencyRow, OperationsRow, RowChange } from "../../../actors/port.ts";
import { encodeBalance, encodeLedgerEntry } from "./credit_rows.ts";
import { type Cell, copyText, NULL } from "../database.ts";
import { encodeEvent, encodeEventLog, encodeGeneration, encodeReservation } from "./metering_rows.ts";

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
 * The tables by the character that stands for them in the journal; the order is part of the journal's format. "!"
 * stands before the columns that a put may change.
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
    "!merged_into",
    "!opted_out",
    "!erasing",
    "!plan_carried",
  ]),
  table("subscriptions", 1, [
    "id",
    "!user_key",
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
    "!user_key",
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
    "!credits",
    "!prompt",
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
    "credits",
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
  table("credit_balances", 1, [
    "id",
    "!user_key",
    "realm",
    "pack_id",
    "pack_name",
    "pack_item_id",
    "kind",
    "unit",
    "matches",
    "priority",
    "initial",
    "granted_at_ms",
    "expires_at_ms",
    "!external_ref",
    "source",
    "notes",
    "!remaining",
    "!held",
    "!revoked_amount",
    "!revoked_at_ms",
    "!overage",
  ]),
  table("credit_ledger", 1, [
    "id",
    "user_key",
    "balance_id",
    "pack_id",
    "delta",
    "reason",
    "event_id",
    "reservation_id",
    "notes",
    "at_ms",
  ]),
  table("credit_issues", 1, ["realm", "!issued"]),
  table("merges", 1, ["id", "realm", "from_key", "to_key", "report", "history_keys", "at_ms"]),
  table("history_moves", 1, ["user_key", "at_ms"]),
  table("event_logs", 1, ["event_id", "user_key", "realm", "prompt", "response", "at_ms"]),
  table("generations", 1, [
    "id",
    "user_key",
    "realm",
    "type",
    "model",
    "input_tokens",
    "output_tokens",
    "cost_cents",
    "event_id",
    "at_ms",
  ]),
  table("ai_spend", 2, ["workspace_id", "month", "!cents"]),
  table("consents", 1, ["id", "realm", "distinct_id", "action", "scope", "at_ms"]),
];

/** The character code that stands for the first table. */
export const FIRST_TABLE = "0".charCodeAt(0);

const TABLE_MARK: ReadonlyMap<string, string> = new Map(
  TABLES.map(({ name }, index) => [name, String.fromCharCode(FIRST_TABLE + index)]),
);

/** How many characters stand before the cells of an encoded change: the table's and the verb's. */
export const CHANGE_HEAD = 2;
/** The verb of an encoded row that did not exist before. */
export const APPENDED = "+";
const PUT = "=";

/** Encodes a change for journal and drain: table, verb and cells as one line without its line feed. */
export function encodeChange(change: RowChange): string {
  const head = TABLE_MARK.get(change.table) as string;
  return head + (change.verb === "append" ? APPENDED : PUT) + encodeRow(change);
}

/** Cells of columns that were added after journals had been written without them, by table. */
const LATER_CELLS: ReadonlyMap<string, readonly string[]> = new Map([
  ["users", ["\\N", "0", "f", "t"]],
  ["events", ["[]"]],
  ["reservations", ["[]", "\\N"]],
  ["credit_balances", ["0"]],
]);

/**
 * A payload of the journal with every column of today. A program that takes over from an older one after a crash
 * may find lines that end before the columns added since.
 */
export function withLaterCells(payload: string): string {
  return payload.split("\n").map((line) => {
    const spec = TABLES[line.charCodeAt(0) - FIRST_TABLE] as TableSpec;
    const later = LATER_CELLS.get(spec.name);
    if (later === undefined) return line;
    const missing = spec.columns.length - line.split("\t").length;
    return missing <= 0 ? line : [line, ...later.slice(-missing)].join("\t");
  }).join("\n");
}

function copyLine(cells: readonly Cell[]): string {
  let line = copyText(cells[0] as Cell);
  for (let place = 1; place < cells.length; place++) line += "\t" + copyText(cells[place] as Cell);
  return line;
}

function encodeRow(change: RowChange): string {
  switch (change.table) {
    case "users":
      return copyLine(encodeUser(change.row));
    case "subscriptions":
      return copyLine(encodeSubscription(change.row));
    case "subscription_events":
      return copyLine(encodeSubscriptionEvent(change.row));
    case "counters":
      return encodeCounter(change.row);
    case "reservations":
      return encodeReservation(change.row);
    case "events":
      return encodeEvent(change.row);
    case "idempotency":
      return copyLine(encodeIdempotency(change.row));
    case "operations":
      return copyLine(encodeOperations(change.row));
    case "credit_balances":
      return copyLine(encodeBalance(change.row));
    case "credit_ledger":
      return copyLine(encodeLedgerEntry(change.row));
    case "credit_issues":
      return copyLine([change.row.realm, change.row.issued]);
    case "merges":
      return copyLine(encodeMerge(change.row));
    case "consents":
      return copyLine(encodeConsent(change.row));
    case "event_logs":
      return copyLine(encodeEventLog(change.row));
    case "history_moves":
      return copyLine([change.row.userKey, change.row.at]);
    case "generations":
      return copyLine(encodeGeneration(change.row));
    case "ai_spend":
      return copyLine([change.row.workspaceId, change.row.month, decimalOf(change.row.cents)]);
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
  merged_into: number | null;
  opted_out: number;
  erasing: boolean;
  plan_carried: boolean;
}

function encodeUser({ entitlement: plan, ...row }: User): Cell[] {
  return [
    row.key,
    row.realm,
    row.id,
    plan?.planId ?? null,
    plan?.subscriptionId ?? null,
    plan?.anchor ?? null,
    plan?.startedAt ?? null,
    plan?.until ?? null,
    row.dueAt,
    row.mergedInto,
    row.optedOut,
    row.isErasing,
    plan?.carried ?? true,
  ];
}

function encodeConsent({ id, realm, distinctId, action, scope, at }: ConsentEntry): Cell[] {
  return [id, realm, distinctId, action, scope, at];
}

function encodeMerge(row: Merge): Cell[] {
  return [row.id, row.realm, row.fromKey, row.toKey, row.report, JSON.stringify(row.historyKeys), row.at];
}

export function decodeUser(record: UserRecord): User {
  const entitlement: Entitlement | null = record.held_plan_id === null ? null : {
    planId: record.held_plan_id,
    subscriptionId: record.held_subscription_id as string,
    anchor: record.held_anchor_ms as number,
    startedAt: record.held_started_at_ms as number,
    until: record.held_until_ms,
    carried: record.plan_carried,
  };
  return {
    key: record.key,
    realm: record.realm,
    id: record.id,
    entitlement,
    dueAt: record.due_at_ms,
    mergedInto: record.merged_into,
    optedOut: record.opted_out,
    isErasing: record.erasing,
  };
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

/** The line of a counter. It is built in one piece: every reserve writes one. */
function encodeCounter(row: Counter): string {
  return `${row.userKey}\t${copyText(row.planId)}\t${copyText(row.groupId)}\t${row.windowStart}\t${
    row.windowEnd ?? NULL
  }\t${decimalOf(row.count)}\t${decimalOf(row.adjusted)}\t${decimalOf(row.costCents)}`;
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

// Rows of the runtime itself

function encodeIdempotency(row: IdempotencyRow): Cell[] {
  return [row.realm, row.key, row.requestHash, row.status, row.body, row.userKey, row.at];
}

function encodeOperations(row: OperationsRow): Cell[] {
  return [row.workspaceId, row.mode, row.month, row.used];
}
