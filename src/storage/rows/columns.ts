// Describes a table's columns once for all uses: the encoding for journal and COPY, the upsert, and reading a stored row
// back into a domain row. A table has a field for each property of its row, in the order of its columns, so the compiler
// reports a property without a column.

import { type Amount, decimalOf, parseAmount } from "../../domain/values/amount.ts";
import { type ColumnValue, copyText } from "../database.ts";

/** A row as a query returns it, by column. */
export type StoredRow = Readonly<Record<string, ColumnValue>>;

/** A table as journal and drain use it. */
export interface TableSpec {
  readonly name: string;
  readonly columns: readonly string[];
  /** The number of leading columns that are the primary key. */
  readonly keyColumns: number;
  /** The columns of the key that may be null; absent for none. */
  readonly nullable?: readonly string[];
  /** The columns that a put may change. */
  readonly mutable: readonly string[];
  /** SQL of the value that a put gives a column, of the stored row `t` and the put `s`; by default that of the put. */
  readonly valueSql?: Readonly<Record<string, string>>;
  /** Makes one line of two lines of a row in one drain, by the same rules as a put in SQL; by default the later line. */
  readonly over?: (earlier: string, later: string) => string;
  /** How to find rows without an index of their primary key. */
  readonly found?: Found;
  /** Encoded values of the last columns for rows from journals of older versions, which lack them. */
  readonly later: readonly string[];
}

/** How to find rows by other columns than their primary key. */
export interface Found {
  /** The columns to find a row by: its user, and the time of its creation. */
  readonly user: string;
  readonly at: string;
  /** Whether the row of an encoded line may still be stored under the number of an alias of its user. */
  readonly mayBeOfAlias: (line: string) => boolean;
}

/** A table with its encoding. */
export interface Table<Row> extends TableSpec {
  /** Encodes a row in COPY's text format, without a line feed. */
  encode(row: Row): string;
  read(stored: StoredRow): Row;
}

/** A column that was added after the first version of its table. */
export interface Later {
  /** The number of the migration that added it. Such columns follow all others, in the order of their migrations. */
  readonly since: number;
  /** Its value for rows that an older version wrote into the journal. */
  readonly value: ColumnValue;
}

interface Options {
  /** Whether a put may change the column. */
  readonly mutable?: boolean;
  /** Whether a column of the key may be null. */
  readonly nullable?: boolean;
  readonly later?: Later;
}

interface Column<Value> extends Options {
  readonly name: string;
  /** Encodes the value in COPY's text format. */
  readonly encode: (value: Value) => string;
}

/** One property of a row, with its columns. */
export interface Field<Value> {
  readonly columns: readonly Column<Value>[];
  readonly read: (stored: StoredRow) => Value;
}

/** A property that is stored unchanged. */
export function column<Value extends ColumnValue>(name: string, options: Options = {}): Field<Value> {
  return single({ ...options, name, encode: copyText }, (value) => value as Value);
}

/** An amount, stored as its exact decimal. */
export function amount(name: string, options: Options = {}): Field<Amount> {
  return single({ ...options, name, encode: decimalOf }, (value) => parseAmount(value as string));
}

/** A property that one column stores in another form. */
export function mapped<Value>(
  name: string,
  toColumn: (value: Value) => ColumnValue,
  fromColumn: (value: ColumnValue) => Value,
  options: Options = {},
): Field<Value> {
  return single({ ...options, name, encode: (value) => copyText(toColumn(value)) }, fromColumn);
}

function single<Value>(column: Column<Value>, fromColumn: (value: ColumnValue) => Value): Field<Value> {
  return { columns: [column], read: (stored) => fromColumn(stored[column.name] as ColumnValue) };
}

/** A property that several columns store, by name; a put may change all of them. */
export function spread<Value>(
  columns: Readonly<Record<string, { readonly of: (value: Value) => ColumnValue; readonly later?: Later }>>,
  read: (stored: StoredRow) => Value,
): Field<Value> {
  return {
    columns: Object.entries(columns).map(([name, { of, ...options }]) => ({
      ...options,
      name,
      mutable: true,
      encode: (value) => copyText(of(value)),
    })),
    read,
  };
}

/**
 * Makes a table of fields. Its columns are in the order of the properties, followed by those that were added later.
 *
 * @param encodeLine the encoding written out in one piece, for hot rows where a call per column would be measurable
 */
export function table<Row>(
  name: string,
  keyColumns: number,
  fields: { readonly [Member in keyof Row]-?: Field<Row[Member]> },
  encodeLine?: (row: Row) => string,
  found?: Found,
): Table<Row> {
  const members = Object.keys(fields) as (keyof Row)[];
  const columns = members.flatMap((member) => {
    const own = fields[member].columns as readonly Column<unknown>[];
    return own.map((column) => ({ ...column, member }));
  });
  const nullable = columns.filter((each) => each.nullable === true).map((column) => column.name);
  columns.sort((a, b) => (a.later?.since ?? 0) - (b.later?.since ?? 0));
  return {
    name,
    keyColumns,
    columns: columns.map((column) => column.name),
    mutable: columns.filter(({ mutable }) => mutable === true).map((column) => column.name),
    ...(nullable.length === 0 ? {} : { nullable }),
    ...(found === undefined ? {} : { found }),
    later: columns.flatMap(({ later }) => later === undefined ? [] : [copyText(later.value)]),
    encode: encodeLine ?? ((row) => {
      let line = "";
      for (let place = 0; place < columns.length; place++) {
        const { member, encode } = columns[place] as (typeof columns)[number];
        if (place > 0) line += "\t";
        line += encode(row[member]);
      }
      return line;
    }),
    read(stored) {
      const row: Partial<Row> = {};
      for (const member of members) row[member] = fields[member].read(stored);
      return row as Row;
    },
  };
}
