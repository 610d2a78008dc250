// Lists as an address asks for them: a page, by the limit and offset of the API's lists, or the newest rows as a file.

import type { Asked } from "./ask.ts";
import { refusedPage } from "./subject.tsx";
import { wantsCsv } from "./csv.ts";
import type { Download, Shown } from "./page_context.ts";

/** Rows of one page. */
export const PAGE_ROWS = 50;
/** Rows of a list that is kept as a file: so many of the newest. */
export const FILE_ROWS = 1_000;
const ASK_ROWS = 100;
const OFFSET_MAX = 10_000;

/** The part of a list that the API is asked for. */
export interface Part {
  readonly limit: string;
  readonly offset: string;
}

/** A list of the API. */
export interface Listing<Data, Row> {
  readonly read: (part: Part) => Promise<Asked<Data>>;
  readonly rowsOf: (data: Data) => readonly Row[];
  /** The rows as a file to keep. */
  readonly fileOf: (rows: readonly Row[]) => Download;
}

/** Some rows of a list, from an offset. */
export interface Listed<Row> {
  readonly rows: readonly Row[];
  readonly offset: number;
}

/** A page of a list, or the list as a file where the address asks for one; what is shown instead where it is refused. */
export async function listAsAsked<Data, Row>(
  query: URLSearchParams,
  { read, rowsOf, fileOf }: Listing<Data, Row>,
): Promise<Listed<Row> | Download | Shown> {
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
  const page = await ask(PAGE_ROWS, offset);
  return page.ok ? { rows: rowsOf(page.data), offset } : refusedPage(page.error);
}

/** The offset that an address names; 0 for none, or one that no list has. */
function offsetOf(query: URLSearchParams): number {
  const offset = Number(query.get("offset") ?? 0);
  return Number.isInteger(offset) && offset >= 0 && offset <= OFFSET_MAX ? offset : 0;
}

/** Links to the pages before and after. A full page may have one after it. */
export function Pager({ query, offset, rows }: { query: URLSearchParams; offset: number; rows: number }) {
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
      {offset > 0 ? <a href={to(offset - PAGE_ROWS)} rel="prev">Newer</a> : null}
      {isFull ? <a href={to(offset + PAGE_ROWS)} rel="next">Older</a> : null}
    </nav>
  );
}

/** The newest rows of a list, for a file; stops at the first page that is refused. */
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
