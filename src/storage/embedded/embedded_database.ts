// The database interface on the embedded PostgreSQL (PGlite), in a folder, or in memory for tests. It has one connection:
// statements run one after another, and everything else waits while a transaction runs.

import type { PGlite } from "@electric-sql/pglite";
import { rest } from "../../process/rest.ts";
import { type Database, type Param, type Session, TYPE_OID } from "../database.ts";
import { Statements } from "./statements.ts";

/**
 * A TextDecoder that keeps U+FEFF at the start of a text. By default it is dropped, PGlite has no option for it, and two
 * different ids could become equal. So this changes the default.
 */
class WholeTextDecoder extends TextDecoder {
  constructor(label?: string, options?: TextDecoderOptions) {
    super(label, { ignoreBOM: true, ...options });
  }
}
globalThis.TextDecoder = WholeTextDecoder;

/** Maintenance is due after this much write-ahead log. */
const MAINTAIN_AFTER_BYTES = 32 * 1024 * 1024;

const TABLES = `select oid::regclass::text as name from pg_class
  where relkind = 'r' and relpersistence = 'p' order by oid`;

/** Of types that both stores read in the same way. */
const PARSERS = { [TYPE_OID.int8]: Number, [TYPE_OID.numeric]: String };

/** Prepared statements live as long as their PGlite. */
const statementsOf = new WeakMap<PGlite, Statements>();

/** Wraps an open PGlite. */
export function embeddedDatabase(lite: PGlite, onClosed: () => void = () => {}): Database {
  Object.assign(lite.parsers, PARSERS);
  const statements = statementsOf.getOrInsertComputed(lite, () => new Statements(lite));
  const session = sessionOf(lite, (text, params) => statements.run(text, params));
  const transaction = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    lite.transaction((inner) => {
      const run: Run = (text, params) => {
        if (inner.closed) throw new Error("Transaction is closed");
        return statements.runWithin(text, params);
      };
      return work(sessionOf(inner, run));
    }) as Promise<T>;
  let maintainedAt = "0/0";
  const database: Database = {
    kind: "embedded",
    url: null,
    query: session.query,
    transaction,
    pin: () => Promise.resolve({ ...session, transaction, close: () => Promise.resolve() }),
    // The only session ends with the store.
    named: () => ({ ...database, close: () => Promise.resolve() }),
    script: async (text) => {
      await lite.exec(text);
    },
    async maintain() {
      const [log] = await session.query<{ at: string; bytes: string }>(
        "select pg_current_wal_lsn()::text as at, pg_current_wal_lsn() - $1::text::pg_lsn as bytes",
        [maintainedAt],
      );
      if (log === undefined || Number(log.bytes) < MAINTAIN_AFTER_BYTES) return;
      // One table at a time, with pauses: a vacuum of all tables at once would hold the thread for a second.
      for (const { name } of await session.query<{ name: string }>(TABLES)) {
        const startedAt = performance.now();
        await lite.exec(`vacuum (analyze) ${name}`);
        await rest(performance.now() - startedAt);
      }
      await lite.exec("checkpoint");
      maintainedAt = log.at;
    },
    close: async () => {
      await lite.close();
      onClosed();
    },
  };
  return database;
}

type Run = <Row>(text: string, params: readonly Param[]) => Promise<Row[]>;

function sessionOf(copier: Pick<PGlite, "query">, run: Run): Session {
  return {
    query: async <Row>(text: string, params: readonly Param[] = []) => await run<Row>(text, params),
    async copy(table, columns, chunks) {
      const blob = new Blob([...chunks]);
      await copier.query(`copy ${table} (${columns.join(", ")}) from '/dev/blob'`, [], { blob });
    },
  };
}
