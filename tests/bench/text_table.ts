// Tables for a terminal, shared by all that prints one.

const TEXT_COLUMNS = 3;

/** Lines whose columns stand under each other: the first three to the left, numbers to the right. */
export function aligned(rows: readonly (readonly string[])[], textColumns = TEXT_COLUMNS): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row.map((cell, column) =>
      column < textColumns ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)
    ).join("  ").trimEnd()
  );
}

/** A whole number with its thousands told apart. */
export function number(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
