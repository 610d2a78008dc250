// Reads lists page by page, only as far as the caller reads.

import { HoldfastError } from "./errors.ts";

/** A page, and the cursor of the next page; null on the last page. */
export interface CursorPage<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
}

/** All rows of a list with cursors. */
export async function* pagesByCursor<Row>(
  read: (cursor: string | undefined) => Promise<CursorPage<Row>>,
): AsyncGenerator<Row, void> {
  let cursor: string | undefined;
  while (true) {
    const { rows, next } = await read(cursor);
    yield* rows;
    if (next === null) return;
    cursor = next;
  }
}

/**
 * All rows of a list with offsets, newest first. Rows that arrive meanwhile push known rows onto the next page; those are
 * left out there.
 *
 * @param offsetMax the largest offset of the service. A longer list is an error, since the caller would miss its rest.
 */
export async function* pagesByOffset<Row extends { readonly id: string }>(
  read: (offset: number) => Promise<readonly Row[]>,
  pageRows: number,
  offsetMax: number,
): AsyncGenerator<Row, void> {
  const seen = new Set<string>();
  for (let offset = 0; offset <= offsetMax; offset += pageRows) {
    const rows = await read(offset);
    for (const row of rows) {
      if (seen.has(row.id)) continue;
      seen.add(row.id);
      yield row;
    }
    if (rows.length < pageRows) return;
  }
  throw new HoldfastError({
    code: "invalid_request",
    status: 400,
    message: `The list has more than ${seen.size} rows: narrow it by userId or eventType`,
  });
}
