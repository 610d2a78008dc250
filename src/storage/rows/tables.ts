// The journaled tables, and the encoding of a change: the table's mark, the verb, and a line of COPY's text format. The
// journal stores these lines and the drain copies them into the tables, so a replay after a crash runs the same code as an
// ordinary drain.

import type { IdempotencyRow, JournalEntry, RowChange } from "../../../actors/port.ts";
import type { TableSpec } from "./columns.ts";
import { CREDIT_BALANCES, CREDIT_LEDGER } from "./credit_rows.ts";
import { COUNTERS, EVENT_LOGS, EVENTS, GENERATIONS, RESERVATIONS } from "./metering_rows.ts";
import { OVERAGE_HOURS, OVERAGE_WINDOWS } from "./overage_rows.ts";
import { RUNS } from "./run_rows.ts";
import {
  AI_SPEND,
  CREDIT_ISSUES,
  GATEWAY_SPEND,
  IDEMPOTENCY,
  OPERATIONS,
  readAnswer,
} from "./runtime_rows.ts";
import { SHARES } from "./share_rows.ts";
import { SUBSCRIPTION_EVENTS, SUBSCRIPTIONS } from "./subscription_rows.ts";
import { END_USER_KEYS } from "./end_user_key_rows.ts";
import { TOP_UPS } from "./top_up_rows.ts";
import { USER_SUMMARIES } from "./summary_rows.ts";
import { WEBHOOK_MESSAGES } from "./message_rows.ts";
import { CONSENTS, HISTORY_MOVES, MERGES, USERS } from "./user_rows.ts";

type RowOf<Name extends RowChange["table"]> = Extract<RowChange, { readonly table: Name }>["row"];

interface Encoder<Row> extends TableSpec {
  encode(row: Row): string;
}

/** Every journaled table by name. The order is part of the journal's format: a new table goes to the end. */
const BY_NAME: { readonly [Name in RowChange["table"]]: Encoder<RowOf<Name>> } = {
  users: USERS,
  subscriptions: SUBSCRIPTIONS,
  subscription_events: SUBSCRIPTION_EVENTS,
  counters: COUNTERS,
  reservations: RESERVATIONS,
  events: EVENTS,
  idempotency: IDEMPOTENCY,
  operations: OPERATIONS,
  credit_balances: CREDIT_BALANCES,
  credit_ledger: CREDIT_LEDGER,
  credit_issues: CREDIT_ISSUES,
  merges: MERGES,
  history_moves: HISTORY_MOVES,
  event_logs: EVENT_LOGS,
  generations: GENERATIONS,
  ai_spend: AI_SPEND,
  consents: CONSENTS,
  webhook_messages: WEBHOOK_MESSAGES,
  gateway_spend: GATEWAY_SPEND,
  runs: RUNS,
  end_user_keys: END_USER_KEYS,
  shares: SHARES,
  top_ups: TOP_UPS,
  overage_windows: OVERAGE_WINDOWS,
  overage_hours: OVERAGE_HOURS,
  user_summaries: USER_SUMMARIES,
};

/** The tables in the order of their marks. */
export const TABLES: readonly TableSpec[] = Object.values(BY_NAME);

/** The character code of the mark of the first table. */
export const FIRST_TABLE = "0".charCodeAt(0);

interface TableEncoder {
  /** The prefix of an encoded row, by verb. */
  readonly heads: { readonly append: string; readonly put: string };
  readonly encode: (row: unknown) => string;
}

/** The length of the prefix of an encoded change: the table's mark and the verb. */
export const CHANGE_HEAD = 2;
/** The verb of a row that did not exist before. */
export const APPENDED = "+";
const PUT = "=";

const ENCODERS: ReadonlyMap<string, TableEncoder> = new Map(
  Object.values(BY_NAME).map(({ name, encode }, index) => {
    const mark = String.fromCharCode(FIRST_TABLE + index);
    return [name, {
      heads: { append: mark + APPENDED, put: mark + PUT },
      encode: encode as TableEncoder["encode"],
    }];
  }),
);

/** Encodes a change as one line. */
export function lineOf({ table, verb, row }: RowChange): string {
  const { heads, encode } = ENCODERS.get(table) as TableEncoder;
  return heads[verb] + encode(row);
}

/** Returns the row of a first answer by its line. */
export function answerOf(line: string): IdempotencyRow {
  return readAnswer(line.slice(CHANGE_HEAD));
}

/** Encodes changes for journal and drain, one per line. */
export function encodeChanges(entries: readonly JournalEntry[]): string {
  return entries.map((entry) => typeof entry === "string" ? entry : lineOf(entry)).join("\n");
}

/**
 * Adds columns that a payload of the journal lacks. After a crash of an older program its lines end before the columns
 * that were added later.
 */
export function withLaterColumns(payload: string): string {
  return payload.split("\n").map((line) => {
    const { columns, later } = TABLES[line.charCodeAt(0) - FIRST_TABLE] as TableSpec;
    if (later.length === 0) return line;
    const missing = columns.length - line.split("\t").length;
    return missing <= 0 ? line : [line, ...later.slice(-missing)].join("\t");
  }).join("\n");
}
