// A change as the journal has it.

import type { TableSpec } from "../../src/storage/rows/columns.ts";
import { CHANGE_HEAD, FIRST_TABLE, TABLES } from "../../src/storage/rows/tables.ts";

/** The table of a line, and its columns in COPY's text format. */
export function readLine(line: string): { table: string; columns: Readonly<Record<string, string>> } {
  const { name, columns } = TABLES[line.charCodeAt(0) - FIRST_TABLE] as TableSpec;
  const values = line.slice(CHANGE_HEAD).split("\t");
  return {
    table: name,
    columns: Object.fromEntries(columns.map((column, place) => [column, values[place] as string])),
  };
}
