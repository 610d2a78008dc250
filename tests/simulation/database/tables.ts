// The rows of the simulated database: the tables of the store in memory, with what SQL can do to them beside
// writing encoded changes, and the tables that no journal reaches. A transaction works on a copy.

import { type Fields, MemoryTables } from "../../support/memory_store.ts";
import { ownerOf } from "../../../src/domain/values/ids.ts";
import type { TableSpec } from "../../../src/storage/rows/columns.ts";
import type { VirtualTime } from "../time.ts";
import { APPENDED, FIRST_TABLE, TABLES } from "../../../src/storage/rows/tables.ts";

/** Tables beside those that the journal reaches. */
const OTHERS = [
  "workspaces",
  "apps",
  "keys",
  "catalogs",
  "test_catalogs",
  "catalog_versions",
  "realms",
  "erasure_jobs",
  "members",
  "cells",
  "webhooks",
  "refusals",
  "failed_requests",
  "audit",
  "audit_begun",
  "stripe_connections",
  "stripe_subscriptions",
  "stripe_purchases",
  "stripe_payments",
  "stripe_refunds",
  "stripe_disputes",
  "stripe_customers",
  "stripe_unhandled",
  "stores",
];

/** All rows of a database at one moment. */
export class SimTables extends MemoryTables {
  journal = new Map<number, string>();
  /** Tables that share rows with a copy until either side changes them. */
  #shared = new Set<string>();
  clusterId = "simulated";
  /** Terms so far. */
  terms = 0;
  /** The version of the registry. */
  version = 0;
  /** The last number of a block of user numbers that was given out. */
  userKeys = 0;
  /** Whether user numbers come from the sequence. */
  keysInSequence = true;
  /** The server's clock. */
  time!: VirtualTime;
  /** Called with users when their rows are removed; a copy has no such callback. */
  onForgotten: (keys: readonly number[]) => void = () => {};

  constructor() {
    super();
    for (const name of OTHERS) this.tables.set(name, new Map());
  }

  /** Every table. */
  get names(): readonly string[] {
    return [...this.tables.keys()];
  }

  /** The same rows, to be changed apart from these. */
  clone(): SimTables {
    const copy = new SimTables();
    for (const [name, rows] of this.tables) copy.tables.set(name, rows);
    this.#shared = new Set(this.tables.keys());
    copy.#shared = new Set(this.#shared);
    copy.journal = new Map(this.journal);
    copy.clusterId = this.clusterId;
    copy.terms = this.terms;
    copy.version = this.version;
    copy.userKeys = this.userKeys;
    copy.keysInSequence = this.keysInSequence;
    copy.time = this.time;
    return copy;
  }

  protected override rows(table: string, isToChange = false): Map<string, Fields> {
    const rows = super.rows(table);
    if (!isToChange || !this.#shared.delete(table)) return rows;
    const own = new Map(rows);
    this.tables.set(table, own);
    return own;
  }

  /** Takes batches out of the journal; answers those that were there. */
  takeFromJournal(seqs: readonly number[]): number[] {
    return seqs.filter((seq) => this.journal.delete(seq));
  }

  /** Writes rows of one table as COPY has them: new ones, or new values of the mutable columns. */
  copy(spec: TableSpec, lines: readonly string[], isNew: boolean): void {
    if (lines.length === 0) return;
    for (const line of isNew ? [] : lines) {
      if (this.#ownerBefore(spec, line) === undefined) continue;
      throw new Error(`${spec.name}: no drain finds the row of ${line}`);
    }
    const mark = String.fromCharCode(FIRST_TABLE + TABLES.indexOf(spec)) + (isNew ? APPENDED : "=");
    this.write(lines.map((line) => mark + line).join("\n"));
    this.#checkUnique(spec.name);
  }

  /** Gives rows to the users of their new values, where these are whom their users became. */
  takeOver(spec: TableSpec, lines: readonly string[]): void {
    for (const line of lines) {
      const before = this.#ownerBefore(spec, line);
      if (before === undefined) continue;
      const after = Number(line.split("\t")[spec.columns.indexOf(spec.found?.user as string)]);
      if (this.list("users", ({ key, merged_into: into }) => key === before && into === after).length === 0) {
        continue;
      }
      const key = line.split("\t").slice(0, spec.keyColumns).join("\t");
      const row = this.rows(spec.name).get(key) as Fields;
      this.rows(spec.name, true).set(key, { ...row, [spec.found?.user as string]: after });
    }
  }

  /** Whose a row is, where that or its time is not what its new value says: the tables find it by both. */
  #ownerBefore({ name, columns, keyColumns, found }: TableSpec, line: string): number | undefined {
    if (found === undefined) return undefined;
    const values = line.split("\t");
    const row = this.rows(name).get(values.slice(0, keyColumns).join("\t"));
    const isSame = (column: string) => row?.[column] === Number(values[columns.indexOf(column)]);
    return row === undefined || isSame(found.user) && isSame(found.at)
      ? undefined
      : row[found.user] as number;
  }

  /** Writes one row of a table that no journal reaches. */
  put(table: string, key: string, row: Fields): void {
    this.rows(table, true).set(key, row);
  }

  /** Gives rows new values; answers how many. */
  update(table: string, isWanted: (row: Fields) => boolean, values: Fields, limit = Infinity): number {
    let changed = 0;
    for (const [key, row] of this.rows(table)) {
      if (changed >= limit || !isWanted(row)) continue;
      this.rows(table, true).set(key, { ...row, ...values });
      changed += 1;
    }
    return changed;
  }

  /** Takes rows away; answers how many. */
  remove(table: string, isWanted: (row: Fields) => boolean, limit = Infinity): number {
    let removed = 0;
    for (const [key, row] of this.rows(table)) {
      if (removed >= limit || !isWanted(row)) continue;
      this.rows(table, true).delete(key);
      removed += 1;
    }
    return removed;
  }

  /** Takes everything of users away, as an erasure does. */
  forget(keys: readonly number[]): void {
    const isGone = (row: Fields) => keys.includes(row.user_key as number);
    for (const { name } of TABLES) if (name !== "users") this.remove(name, isGone);
    this.remove("reservations", ({ id }) => keys.includes(ownerOf("reservation", id as string) ?? 0));
    this.remove(
      "merges",
      (row) => keys.includes(row.from_key as number) || keys.includes(row.to_key as number),
    );
    this.remove("users", ({ key }) => keys.includes(key as number));
  }

  /** The unique indexes that repeat an invariant of the product. */
  #checkUnique(table: string): void {
    const columns = UNIQUE[table];
    if (columns === undefined) return;
    const seen = new Set<string>();
    for (const row of this.rows(table).values()) {
      const values = columns.map((column) => row[column]);
      if (values.includes(null)) continue;
      const key = JSON.stringify(values);
      if (seen.has(key)) throw new Error(`duplicate key in ${table}: ${key}`);
      seen.add(key);
    }
  }
}

const UNIQUE: Readonly<Record<string, readonly string[]>> = { users: ["realm", "id"] };
