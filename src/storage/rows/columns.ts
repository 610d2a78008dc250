// How a table's columns are described, once for everything: the encoding for journal and COPY, the upsert, and the way
// from a stored row back to the domain's. A table names a field for each member of its row, in the order of its columns,
// so the compiler reports a member that has no column.

import { type Amount, decimalOf, parseAmount } from "../../domain/amount.ts";
import { type Cell, copyText } from "../database.ts";

/** A row as a query answers it, by column. */
export type StoredRow = Readonly<Record<string, Cell>>;

/** A table as the journal and the drain see it. */
export interface TableSpec {
  readonly name: string;
  readonly columns: readonly string[];
  /** How many leading columns are the primary key. */
  readonly keyColumns: number;
  /** The columns that a put may change. */
  readonly mutable: readonly string[];
  /** Encoded cells of the last columns, which journals of older versions lack. */
  readonly later: readonly string[];
}

/** A table with its encoding. */
export interface Table<Row> extends TableSpec {
  /** The row in COPY's text format, without a line feed. */
  encode(row: Row): string;
  read(stored: StoredRow): Row;
}

/** One member of a row and the columns that hold it. */
export interface Field<Value> {
  readonly columns: readonly string[];
  readonly isMutable: boolean;
  readonly later: readonly string[];
  /** The columns' cells in COPY's text format, tabs between them. */
  encode(value: Value): string;
  read(stored: StoredRow): Value;
}

interface Options {
  /** Whether a put may change the column. */
  readonly mutable?: boolean;
  /** For a column that was added later: its value in rows that an older version wrote into the journal. */
  readonly later?: Cell;
}

/** A member that is stored as it is. */
export function column<Value extends Cell>(name: string, options: Options = {}): Field<Value> {
  return field(name, copyText, (cell) => cell as Value, options);
}

/** An amount, as its exact decimal. */
export function amount(name: string, options: Options = {}): Field<Amount> {
  return field(name, decimalOf, (cell) => parseAmount(cell as string), options);
}

/** A member that one column holds in another form. */
export function mapped<Value>(
  name: string,
  toCell: (value: Value) => Cell,
  fromCell: (cell: Cell) => Value,
  options: Options = {},
): Field<Value> {
  return field(name, (value) => copyText(toCell(value)), fromCell, options);
}

function field<Value>(
  name: string,
  encode: (value: Value) => string,
  fromCell: (cell: Cell) => Value,
  { mutable = false, later }: Options,
): Field<Value> {
  return {
    columns: [name],
    isMutable: mutable,
    later: later === undefined ? [] : [copyText(later)],
    encode,
    read: (stored) => fromCell(stored[name] as Cell),
  };
}

/** A member that several columns hold; a put may change them all. */
export function spread<Value>(
  columns: readonly string[],
  toCells: (value: Value) => readonly Cell[],
  read: (stored: StoredRow) => Value,
): Field<Value> {
  return {
    columns,
    isMutable: true,
    later: [],
    encode: (value) => toCells(value).map(copyText).join("\t"),
    read,
  };
}

/**
 * A table of fields; the order of the members is the order of the columns.
 *
 * @param encodeLine the encoding written out in one piece, for rows that are written so often that a call for each field
 * would be felt
 */
export function table<Row>(
  name: string,
  keyColumns: number,
  fields: { readonly [Member in keyof Row]-?: Field<Row[Member]> },
  encodeLine?: (row: Row) => string,
): Table<Row> {
  const members = Object.keys(fields) as (keyof Row)[];
  const list = Object.values(fields) as Field<Row[keyof Row]>[];
  const encoders = list.map(({ encode }) => encode);
  const [first] = members as [keyof Row];
  const [encodeFirst] = encoders as [(value: Row[keyof Row]) => string];
  return {
    name,
    keyColumns,
    columns: list.flatMap(({ columns }) => columns),
    mutable: list.flatMap(({ columns, isMutable }) => isMutable ? columns : []),
    later: list.flatMap(({ later }) => later),
    encode: encodeLine ?? ((row) => {
      let line = encodeFirst(row[first]);
      for (let place = 1; place < encoders.length; place++) {
        const encode = encoders[place] as (value: Row[keyof Row]) => string;
        line += "\t" + encode(row[members[place] as keyof Row]);
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
