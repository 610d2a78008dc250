// The interface to SQL. A PostgreSQL server and the embedded PGlite implement it, and every statement of the project runs on
// both. int8 is read as a number, because all bigint values are below 2^53, and numeric as its exact text.

/** A value that can be bound to a statement; arrays are bound as text (`arrayText`) and cast. */
export type Param = string | number | boolean | null;

/** Runs statements one after another on one connection. */
export interface Session {
  /** Runs one statement with $1-style parameters. */
  query<Row = Record<string, unknown>>(text: string, params?: readonly Param[]): Promise<Row[]>;
  /** Copies rows into a table: chunks of COPY's text format, each line ended by a line feed. */
  copy(table: string, columns: readonly string[], chunks: Iterable<string>): Promise<void>;
}

/** A connection that is never silently replaced, so session state (locks, settings) lives as long as the session. */
export interface PinnedSession extends Session {
  /** Runs statements in one transaction on this connection; rolled back when the work throws. */
  transaction<T>(work: (session: Session) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Connections for one purpose. */
interface PoolOptions {
  readonly connections: number;
  /** How long a statement may run before the server ends it. */
  readonly statementMs?: number;
}

/** Which database an address must lead to. Held against each new connection, since an address may lead elsewhere one day. */
export interface ExpectedDatabase {
  /** The cluster id in its registry; null until it is known. */
  clusterId: string | null;
}

/** A database: short statements from a pool, transactions, and pinned sessions. */
export interface Database {
  readonly kind: "postgres" | "embedded";
  /** The address under which another thread can open the same database; null on the embedded store. */
  readonly url: string | null;
  /** Left out: any database at the address will do. */
  readonly expected?: ExpectedDatabase;
  query<Row = Record<string, unknown>>(text: string, params?: readonly Param[]): Promise<Row[]>;
  transaction<T>(work: (session: Session) => Promise<T>): Promise<T>;
  /** Opens a pinned session; `onClose` is called when its connection is gone, for any reason. */
  pin(onClose: () => void): Promise<PinnedSession>;
  /**
   * Opens the same database with sessions of another name, by which a server can end them. The caller closes it. The
   * embedded store returns itself, and closing that has no effect.
   *
   * @param options by default the connections of this one, and statements without a time limit
   */
  named(name: string, options?: PoolOptions): Database;
  /** Checkpoints and vacuums the embedded store when due. A server does this by itself. */
  maintain(): Promise<void>;
  /** Runs a script of several statements without parameters. */
  script(text: string): Promise<void>;
  close(): Promise<void>;
}

/** Checks that a database answers. @throws the error if it does not */
export async function probe(database: Pick<Database, "query">): Promise<void> {
  await database.query("select 1");
}

/** A value of an encoded row. */
export type ColumnValue = string | number | boolean | null;

/** NULL in COPY's text format. */
export const NULL = "\\N";

/** Encodes a value for COPY: NULL as \N, control characters and backslashes escaped. */
export function copyText(value: ColumnValue): string {
  if (value === null) return NULL;
  if (typeof value !== "string") return value === true ? "t" : value === false ? "f" : String(value);
  return NEEDS_ESCAPE.test(value) ? value.replace(ESCAPED, (char) => ESCAPES[char] as string) : value;
}

const NEEDS_ESCAPE = /[\\\n\r\t]/;
const ESCAPED = /[\\\n\r\t]/g;
const ESCAPES: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Reads a text that `copyText` encoded. */
export function copiedText(encoded: string): string | null {
  if (encoded === NULL) return null;
  return encoded.includes("\\") ? encoded.replace(ESCAPE, (escape) => CHARS[escape] ?? escape) : encoded;
}

const ESCAPE = /\\./g;
const CHARS = Object.fromEntries(Object.entries(ESCAPES).map(([char, escape]) => [escape, char]));

/** Encodes values as a PostgreSQL array, to be bound as text and cast. */
export function arrayText(values: readonly (string | number | boolean | null)[]): string {
  let text = "{";
  for (let index = 0; index < values.length; index++) {
    if (index > 0) text += ",";
    const value = values[index] as string | number | boolean | null;
    text += value === null ? "NULL" : typeof value === "string" ? quoteElement(value) : String(value);
  }
  return text + "}";
}

function quoteElement(value: string): string {
  return PLAIN_ELEMENT.test(value) ? `"${value}"` : `"${value.replace(QUOTED_CHARS, "\\$&")}"`;
}

const PLAIN_ELEMENT = /^[^"\\]*$/;
const QUOTED_CHARS = /["\\]/g;

/**
 * SQL of the condition that a realm is among those of a parameter, an array as text. It reads the array once. `any($1::text::int[])`
 * reads it again for each row that no index finds, which takes 9 ms with 40,000 realms.
 */
export function isAmong(realm: string, parameter: string): string {
  return `(${realm} in (select unnest(${parameter}::text::int[]))) is true`;
}

/** Lets other work of the event loop run. Long encodings call it between pieces. */
export function yieldToLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** OIDs of the PostgreSQL types that both stores must read in the same way. */
export const TYPE_OID = { int8: 20, numeric: 1700 } as const;

/** SQLSTATE of a lock that was not available in time. */
export const LOCK_NOT_AVAILABLE = "55P03";

/** Whether the database refused values as such, so that the same statement fails again: SQLSTATEs of classes 22 and 54. */
export function isOfValues(error: unknown): boolean {
  return /^(22|54)/.test(String((error as { code?: unknown } | null)?.code));
}
