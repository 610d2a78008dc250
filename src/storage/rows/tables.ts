// The journaled tables, and the encoding of a change: a line of COPY's text format behind the table's mark and the verb.
// The journal stores these lines and the drain copies them into the tables, so a replay after a crash runs the same code
// as an ordinary drain.

import type { RowChange } from "../../../actors/port.ts";
import type { TableSpec } from "./columns.ts";
import { CREDIT_BALANCES, CREDIT_LEDGER } from "./credit_rows.ts";
import { COUNTERS, EVENT_LOGS, EVENTS, GENERATIONS, RESERVATIONS } from "./metering_rows.ts";
import { AI_SPEND, CREDIT_ISSUES, IDEMPOTENCY, OPERATIONS } from "./runtime_rows.ts";
import { SUBSCRIPTION_EVENTS, SUBSCRIPTIONS } from "./subscription_rows.ts";
import { WEBHOOK_MESSAGES } from "./message_rows.ts";
import { CONSENTS, HISTORY_MOVES, MERGES, USERS } from "./user_rows.ts";

type RowOf<Name extends RowChange["table"]> = Extract<RowChange, { readonly table: Name }>["row"];

interface Encoder<Row> extends TableSpec {
  encode(row: Row): string;
}

/** Every journaled table by its name. Their order is part of the journal's format: a new table goes to the end. */
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
};

/** The tables in the order of their marks. */
export const TABLES: readonly TableSpec[] = Object.values(BY_NAME);

/** The character code of the first table's mark. */
export const FIRST_TABLE = "0".charCodeAt(0);

const ENCODERS: ReadonlyMap<string, { readonly mark: string; readonly encode: (row: never) => string }> =
  new Map(
    Object.values(BY_NAME).map(({ name, encode }, index) => [
      name,
      { mark: String.fromCharCode(FIRST_TABLE + index), encode },
    ]),
  );

/** How many characters stand before the values of an encoded change: the table's mark and the verb. */
export const CHANGE_HEAD = 2;
/** The verb of a row that did not exist before. */
export const APPENDED = "+";
const PUT = "=";

/** Encodes a change for journal and drain, as one line without its line feed. */
export function encodeChange(change: RowChange): string {
  const { mark, encode } = ENCODERS.get(change.table) as { mark: string; encode: (row: unknown) => string };
  return mark + (change.verb === "append" ? APPENDED : PUT) + encode(change.row);
}

/**
 * A payload of the journal with every column of today. A program that takes over from an older one after a crash may
 * find lines that end before the columns that were added since.
 */
export function withLaterColumns(payload: string): string {
  return payload.split("\n").map((line) => {
    const { columns, later } = TABLES[line.charCodeAt(0) - FIRST_TABLE] as TableSpec;
    if (later.length === 0) return line;
    const missing = columns.length - line.split("\t").length;
    return missing <= 0 ? line : [line, ...later.slice(-missing)].join("\t");
  }).join("\n");
}
