// Lists as the query asks for them: a page by limit and offset or by a cursor, or the newest rows as CSV.

import type { ApiAnswer } from "./ask.ts";
import { dataOf } from "./subject.tsx";
import { csvQuery, wantsCsv } from "./csv.ts";
import type { Download } from "./page_context.ts";

/** Rows of one page. */
export const PAGE_ROWS = 50;
/** Rows of a CSV file, the newest of a list. */
export const FILE_ROWS = 1_000;
const ASK_ROWS = 100;
const OFFSET_MAX = 10_000;

/** The limit and offset of a call. */
export interface Part {
  readonly limit: string;
  readonly offset: string;
}

/** How a list is read from the API. */
interface Listing<Data, Row> {
  readonly read: (part: Part) => Promise<ApiAnswer<Data>>;
  readonly rowsOf: (data: Data) => readonly Row[];
  /** The rows as a CSV file. */
  readonly fileOf: (rows: readonly Row[]) => Download;
}

/** A page of a list. */
interface Listed<Row> {
  readonly rows: readonly Row[];
  readonly offset: number;
}

/** Reads a page of a list, or its newest rows as a file where the query asks for CSV. */
export async function listAsAsked<Data, Row>(
  query: URLSearchParams,
  { read, rowsOf, fileOf }: Listing<Data, Row>,
): Promise<Listed<Row> | Download> {
  const ask = (limit: number, offset: number) => read({ limit: String(limit), offset: String(offset) });
  if (wantsCsv(query)) {
    return fileOf(
      await newestRows(async (limit, offset) => {
        const page = await ask(limit, offset);
        return page.ok ? rowsOf(page.data) : null;
      }),
    );
  }
  const offset = offsetOf(query);
  return { rows: rowsOf(await ask(PAGE_ROWS, offset).then(dataOf)), offset };
}

/** The offset in a query; 0 where it is missing or out of range. */
export function offsetOf(query: URLSearchParams): number {
  const offset = Number(query.get("offset") ?? 0);
  return Number.isInteger(offset) && offset >= 0 && offset <= OFFSET_MAX ? offset : 0;
}

/** The link that exports a list as CSV. */
export function CsvLink({ query }: { query: URLSearchParams }) {
  return <a href={csvQuery(query)} download>Export CSV (latest {FILE_ROWS.toLocaleString("en-US")})</a>;
}

/** Links to the newer and older pages. A full page may have an older one. */
export function Pager({ query, offset, rows, words = ["Newer", "Older"] }: {
  query: URLSearchParams;
  offset: number;
  rows: number;
  words?: readonly [before: string, after: string];
}) {
  const to = (next: number) => {
    const copy = new URLSearchParams(query);
    copy.delete("as");
    if (next <= 0) copy.delete("offset");
    else copy.set("offset", String(next));
    return `?${copy}`;
  };
  const isFull = rows >= PAGE_ROWS && offset + PAGE_ROWS <= OFFSET_MAX;
  if (offset === 0 && !isFull) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {offset > 0 ? <a href={to(offset - PAGE_ROWS)} rel="prev">{words[0]}</a> : null}
      {isFull ? <a href={to(offset + PAGE_ROWS)} rel="next">{words[1]}</a> : null}
    </nav>
  );
}

/** Links to the first and the next page of a list that is read by a cursor. */
export function CursorPager({ query, cursor, first = "Newest", next = "Older" }: {
  query: URLSearchParams;
  /** That of the next page; null on the last one. */
  cursor: string | null;
  first?: string;
  next?: string;
}) {
  const isFirst = !query.get("cursor");
  if (isFirst && cursor === null) return null;
  const to = (place: string | null) => {
    const copy = new URLSearchParams(query);
    if (place === null) copy.delete("cursor");
    else copy.set("cursor", place);
    return `?${copy}`;
  };
  return (
    <nav class="pager" aria-label="Pages">
      {isFirst ? null : <a href={to(null)} rel="prev">{first}</a>}
      {cursor === null ? null : <a href={to(cursor)} rel="next">{next}</a>}
    </nav>
  );
}

/** Reads the newest rows of a list, up to the first page that fails. */
async function newestRows<Row>(
  page: (limit: number, offset: number) => Promise<readonly Row[] | null>,
): Promise<Row[]> {
  const rows: Row[] = [];
  while (rows.length < FILE_ROWS) {
    const more = await page(ASK_ROWS, rows.length);
    if (more === null) break;
    rows.push(...more);
    if (more.length < ASK_ROWS) break;
  }
  return rows;
}
