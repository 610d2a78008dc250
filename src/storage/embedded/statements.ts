// Statements on PGlite, run as the driver of a server runs them: one that is repeated is parsed once, its plan is kept, and
// one call carries all its messages. `PGlite.query` parses and plans every time, with a call for each message.

import { type PGlite, protocol } from "@electric-sql/pglite";
import type { Param } from "../database.ts";

const { serialize, messages: { DatabaseError, DataRowMessage, RowDescriptionMessage } } = protocol;

/** Statements that are remembered. Each prepared one takes some tens of kilobytes. */
const STATEMENTS_MAX = 256;

/** Where PostgreSQL reports that a prepared statement is gone, or that it returns other columns since a table changed. */
const STALE = ["FetchPreparedStatement", "RevalidateCachedQuery"];

/** The statements of one open PGlite. */
export class Statements {
  readonly #lite: PGlite;
  /** By text, the longest unused first: the name of the prepared statement, or "" for a text that ran once. */
  readonly #names = new Map<string, string>();
  /** Prepared statements that the next call closes. */
  #closing: string[] = [];
  #prepared = 0;

  constructor(lite: PGlite) {
    this.#lite = lite;
  }

  /** Runs a statement on its own. */
  async run<Row>(text: string, params: readonly Param[]): Promise<Row[]> {
    await this.#lite._checkReady();
    return await this.#lite._runExclusiveTransaction(async () => {
      const rows = await this.runWithin<Row>(text, params).catch((error: unknown) => {
        if (!(error instanceof DatabaseError) || !STALE.includes(error.routine ?? "")) throw error;
        return this.runWithin<Row>(text, params);
      });
      await this.#lite.syncToFs();
      return rows;
    });
  }

  /** Runs a statement of the transaction that is open. @throws DatabaseError */
  runWithin<Row>(text: string, params: readonly Param[]): Promise<Row[]> {
    return this.#lite.runExclusive(async () => {
      const known = this.#names.get(text);
      const name = known === "" ? `s${++this.#prepared}` : known ?? "";
      const parts = this.#closing.splice(0).map((gone) => serialize.close({ type: "S", name: gone }));
      if (!known) parts.push(serialize.parse({ name, text }));
      const values = params.map((param) => param === null ? null : String(param));
      parts.push(serialize.bind({ statement: name, values }), serialize.describe({ type: "P" }));
      parts.push(serialize.execute({}), serialize.sync());
      this.#names.delete(text);
      try {
        const received = await this.#lite.execProtocolStream(joined(parts), { syncToFs: false });
        this.#remember(text, name);
        return this.#rowsOf<Row>(received);
      } catch (error) {
        if (name !== "") this.#closing.push(name);
        throw error;
      }
    });
  }

  #remember(text: string, name: string): void {
    this.#names.set(text, name);
    if (this.#names.size <= STATEMENTS_MAX) return;
    const [[oldest, gone] = ["", ""]] = this.#names;
    this.#names.delete(oldest);
    if (gone !== "") this.#closing.push(gone);
  }

  #rowsOf<Row>(received: Awaited<ReturnType<PGlite["execProtocolStream"]>>): Row[] {
    const columns: { name: string; parse: ((text: string) => unknown) | undefined }[] = [];
    const rows: Record<string, unknown>[] = [];
    for (const message of received) {
      if (message instanceof RowDescriptionMessage) {
        for (const { name, dataTypeID } of message.fields) {
          columns.push({ name, parse: this.#lite.parsers[dataTypeID] });
        }
      } else if (message instanceof DataRowMessage) {
        const row: Record<string, unknown> = {};
        for (const [at, { name, parse }] of columns.entries()) {
          const text = message.fields[at] ?? null;
          row[name] = text === null || parse === undefined ? text : parse(text);
        }
        rows.push(row);
      }
    }
    return rows as Row[];
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
