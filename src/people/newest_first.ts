// Merges rows of several sources into one list, newest first, page by page. Each source is read in bounded runs in the
// order of an index, so nothing is read twice and memory does not grow with the rows.

import type { Place } from "../storage/queries/person_export.ts";

/** The place after every row. */
export const END: Place = { at_ms: Number.MAX_SAFE_INTEGER, id: "" };

/** Reads rows of a source that come before a place, newest first. */
type ReadRun<Row extends Place> = (source: string, before: Place, limit: number) => Promise<Row[]>;

const RUN_ROWS_MIN = 16;

interface Run<Row extends Place> {
  readonly source: string;
  readonly rows: readonly Row[];
  readonly next: number;
}

/** Yields all rows of the sources in pages. */
export async function* newestFirst<Row extends Place>(
  sources: readonly string[],
  read: ReadRun<Row>,
  { pageRows, heldRows }: { readonly pageRows: number; readonly heldRows: number },
): AsyncGenerator<Row[]> {
  const fair = Math.floor(heldRows / Math.max(1, sources.length));
  const runRows = Math.min(pageRows, Math.max(RUN_ROWS_MIN, fair));
  // Sorted by their next rows, the newest last.
  const runs: Run<Row>[] = [];
  const readOn = async (source: string, before: Place) => {
    const rows = await read(source, before, runRows);
    if (rows.length > 0) insert(runs, { source, rows, next: 0 });
  };
  for (const source of sources) await readOn(source, END);
  let page: Row[] = [];
  for (let run = runs.pop(); run !== undefined; run = runs.pop()) {
    const row = headOf(run);
    page.push(row);
    if (run.next + 1 < run.rows.length) insert(runs, { ...run, next: run.next + 1 });
    else await readOn(run.source, row);
    if (page.length === pageRows) {
      yield page;
      page = [];
    }
  }
  if (page.length > 0) yield page;
}

function headOf<Row extends Place>({ rows, next }: Run<Row>): Row {
  return rows[next] as Row;
}

function insert<Row extends Place>(runs: Run<Row>[], run: Run<Row>): void {
  let low = 0;
  let high = runs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isNewer(headOf(run), headOf(runs[middle] as Run<Row>))) low = middle + 1;
    else high = middle;
  }
  runs.splice(low, 0, run);
}

function isNewer(a: Place, b: Place): boolean {
  return a.at_ms === b.at_ms ? a.id > b.id : a.at_ms > b.at_ms;
}
