// Aligned tables for people. Columns of numbers are right-aligned. Control characters in a value never reach the
// terminal: anybody may have chosen a name.

/** A value; null shows as "-". */
export type TableValue = string | number | null | undefined;

const GAP = "  ";
const UNSAFE = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/** A table with a line of titles, without a final line break. */
export function renderTable(titles: readonly string[], rows: readonly (readonly TableValue[])[]): string {
  const isRight = titles.map((_, column) => rows.length > 0 && rows.every((row) => isNumeric(row[column])));
  const texts = [titles, ...rows.map((row) => titles.map((_, column) => textOf(row[column])))];
  const widths = titles.map((_, column) => Math.max(...texts.map((line) => lengthOf(line[column] ?? ""))));
  return texts.map((line) => {
    const fields = line.map((text, column) => pad(text, widths[column] ?? 0, isRight[column] === true));
    return fields.join(GAP).trimEnd();
  }).join("\n");
}

/** A number with its thousands set apart. */
export function numberText(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 6 });
}

/** Text without control characters, which a terminal would obey. */
export function safeText(text: string): string {
  return text.replace(UNSAFE, "\u{fffd}");
}

function textOf(value: TableValue): string {
  if (value === null || value === undefined || value === "") return "-";
  return typeof value === "number" ? numberText(value) : safeText(value);
}

function isNumeric(value: TableValue): boolean {
  return value === null || typeof value === "number";
}

function pad(text: string, width: number, isRight: boolean): string {
  const space = " ".repeat(width - lengthOf(text));
  return isRight ? space + text : text + space;
}

function lengthOf(text: string): number {
  return [...text].length;
}
