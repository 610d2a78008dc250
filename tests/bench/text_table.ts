// Tables for a terminal, shared by all reports of this folder.

import { numberText } from "../../src/cli/table.ts";

const TEXT_COLUMNS = 3;

/** Lines with aligned columns: the first three to the left, numbers to the right. */
export function aligned(rows: readonly (readonly string[])[], textColumns = TEXT_COLUMNS): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row.map((cell, column) =>
      column < textColumns ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)
    ).join("  ").trimEnd()
  );
}

/** A number rounded to a whole one, with its thousands separated. */
export function number(value: number): string {
  return numberText(Math.round(value));
}
