// Lists as CSV (RFC 4180). A text that a spreadsheet would take for a formula gets an apostrophe in front.

import type { Download } from "./page_context.ts";

export type CsvValue = string | number | null;

/** Rows as a file to keep. */
export function csvFile(
  name: string,
  columns: readonly string[],
  rows: readonly (readonly CsvValue[])[],
): Download {
  const text = [columns, ...rows].map((row) => row.map(fieldOf).join(",") + "\r\n").join("");
  return { name: `${name}.csv`, type: "text/csv; charset=UTF-8", text };
}

function fieldOf(value: CsvValue): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const safe = /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The query of the same list as CSV. */
export function csvQuery(query: URLSearchParams): string {
  const copy = new URLSearchParams(query);
  copy.delete("offset");
  copy.set("as", "csv");
  return `?${copy}`;
}

/** Whether a list is asked for as CSV. */
export function wantsCsv(query: URLSearchParams): boolean {
  return query.get("as") === "csv";
}
