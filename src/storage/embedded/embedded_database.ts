// The database interface on the embedded PostgreSQL (PGlite), in a folder, or in memory for tests. There is one connection.
// Statements run one after another, and a transaction keeps all others out while it runs.

import { PGlite } from "@electric-sql/pglite";
import { type Database, type Param, type Session, TYPE_OID } from "../database.ts";

/**
 * A TextDecoder drops U+FEFF at the start of a text by default. PGlite decodes each value with one and has no option for
 * it, so two different ids could become one. We change the default instead.
 */
class WholeTextDecoder extends TextDecoder {
  constructor(label?: string, options?: TextDecoderOptions) {
    super(label, { ignoreBOM: true, ...options });
  }
}
globalThis.TextDecoder = WholeTextDecoder;

/** How much write-ahead log makes the next maintenance due. */
const MAINTAIN_AFTER_BYTES = 32 * 1024 * 1024;

/** The part of PGlite that both the database and a transaction offer. */
type Runner = Pick<PGlite, "query" | "exec">;

/** Set once: PGlite copies all of its parsers for a query that brings some of its own. */
const PARSERS = { [TYPE_OID.int8]: Number, [TYPE_OID.numeric]: String };

/** Wraps an open PGlite. */
export function embeddedDatabase(lite: PGlite, onClosed: () => void = () => {}): Database {
  Object.assign(lite.parsers, PARSERS);
  const session = sessionOf(lite);
  const transaction = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    lite.transaction((inner) => work(sessionOf(inner))) as Promise<T>;
  let maintainedAt = "0/0";
  const database: Database = {
    kind: "embedded",
    url: null,
    query: session.query,
    transaction,
    pin: () => Promise.resolve({ ...session, transaction, close: () => Promise.resolve() }),
    // There is one session, which ends with the store.
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
      await lite.exec("vacuum (analyze)");
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

function sessionOf(runner: Runner): Session {
  return {
    query: async <Row>(text: string, params: readonly Param[] = []) => {
      const result = await runner.query<Row>(text, [...params]);
      return result.rows;
    },
    async copy(table, columns, chunks) {
      const blob = new Blob([...chunks]);
      await runner.query(`copy ${table} (${columns.join(", ")}) from '/dev/blob'`, [], { blob });
    },
  };
}
