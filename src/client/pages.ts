// Reads lists page by page, only as far as the caller goes.

import { HoldfastError } from "./errors.ts";

/** A page, and the cursor of the next one; null on the last page. */
export interface CursorPage<Row> {
  readonly rows: readonly Row[];
  readonly next: string | null;
}

/** All rows of a list that is paged by a cursor. */
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
 * All rows of a list that is paged by offset, newest first. Rows that arrive meanwhile push known rows onto the next
 * page; those are left out there.
 *
 * @param offsetMax the last offset that the service answers. A longer list is an error, so that nobody takes a part of
 * it for all of it.
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
    message: `The list goes on beyond ${seen.size} rows: ask for less of it, by userId or eventType`,
  });
}
