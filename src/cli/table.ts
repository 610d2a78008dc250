// Aligned tables for people. Columns of numbers are right-aligned. Control characters in a value never reach the
// terminal: a name may come from any user.

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

/** A column: a member of the rows, or a title with a member or a function of a row. */
type Column<Row> = Member<Row> | readonly [title: string, value: Member<Row> | ((row: Row) => TableValue)];
type Member<Row> = keyof Row & string;

/** The columns of a table. */
export type Columns<Row> = readonly Column<Row>[];

/** A table of rows. A column without a title is called as its member: "createdAt" is CREATED. */
export function tableOf<Row>(columns: Columns<Row>, rows: readonly Row[]): string {
  const cells = columns.map((column) =>
    typeof column === "string" ? [titleOf(column), column] as const : column
  );
  const valueOf = (row: Row, value: Member<Row> | ((row: Row) => TableValue)) =>
    typeof value === "function" ? value(row) : cellOf(row[value]);
  return renderTable(
    cells.map(([title]) => title),
    rows.map((row) => cells.map(([, value]) => valueOf(row, value))),
  );
}

function titleOf(member: string): string {
  return member.replace(/(Id|At)$/, "").replaceAll(/[A-Z]/g, (letter) => ` ${letter}`).toUpperCase();
}

function cellOf(value: unknown): TableValue {
  return Array.isArray(value) ? value.join(", ") : value as TableValue;
}

/** A number with its thousands separated. */
export function numberText(value: number): string {
  return value.toLocaleString("en-US", { maximumFractionDigits: 6 });
}

/** A number with its noun: "1 user", "2,000 users". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${numberText(count)} ${count === 1 ? one : many}`;
}

/** Text without control characters, which could steer a terminal. */
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
