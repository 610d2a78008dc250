// Lists as CSV (RFC 4180). Text that a spreadsheet would read as a formula is prefixed with an apostrophe. Every text is in
// quotes: in many countries a semicolon separates cells, and a text after one would be a cell of its own.

import { inParts } from "../../../src/process/downloads.ts";
import type { Download } from "./page_context.ts";

type CsvValue = string | number | null;

/** The column of credits, where there are any: files without them are as before. */
export function withCredits(hasCredits: boolean): "costCredits"[] {
  return hasCredits ? ["costCredits"] : [];
}

/** A CSV file with some members of each row. */
export function csvFile<Column extends string>(
  name: string,
  columns: readonly Column[],
  rows: readonly Readonly<Record<Column, CsvValue>>[],
): Download {
  return { ...fileOf(name), text: linesOf([columns]) + linesOf(cellsOf(columns, rows)) };
}

/** A CSV file that is sent while its rows are read, a page after the other. */
export function csvStream<Column extends string>(
  name: string,
  columns: readonly Column[],
  pages: AsyncIterable<readonly Readonly<Record<Column, CsvValue>>[]>,
): Download {
  async function* lines() {
    yield linesOf([columns]);
    for await (const page of pages) yield linesOf(cellsOf(columns, page));
  }
  return { ...fileOf(name), text: inParts(lines()) };
}

function fileOf(name: string): Pick<Download, "name" | "type"> {
  return { name: `${name}.csv`, type: "text/csv; charset=UTF-8" };
}

function cellsOf<Column extends string>(
  columns: readonly Column[],
  rows: readonly Readonly<Record<Column, CsvValue>>[],
): CsvValue[][] {
  return rows.map((row) => columns.map((column) => row[column]));
}

function linesOf(lines: readonly (readonly CsvValue[])[]): string {
  return lines.map((line) => line.map(fieldOf).join(",") + "\r\n").join("");
}

function fieldOf(value: CsvValue): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** The query that returns the same list as CSV. */
export function csvQuery(query: URLSearchParams): string {
  const copy = new URLSearchParams(query);
  copy.delete("offset");
  copy.set("as", "csv");
  return `?${copy}`;
}

/** Whether a query asks for CSV. */
export function wantsCsv(query: URLSearchParams): boolean {
  return query.get("as") === "csv";
}
