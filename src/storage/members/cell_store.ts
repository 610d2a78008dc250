// The rows of cells: who owns each, compared and set in one statement, and the fence of every write that does not go
// through the journal (rule 6 of the cluster's design).

import { Unavailable } from "../../../actors/port.ts";
import type { Millis } from "../../domain/values/period.ts";
import { LEASE_LIMITS } from "../../process/limits.ts";
import { arrayText, type Database, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** A cell as its row says. */
export interface CellRow {
  readonly cell: number;
  /** The member whose range of the journal may hold changes of the cell; null when it was handed over in order. */
  readonly term: number | null;
  /** The owner's clock when it handed the cell over. */
  readonly clockMs: Millis;
  /** What the last owner had in memory alone; null for nothing. */
  readonly side: string | null;
}

/** Some cells, or all of them. */
export function readCells(reader: Reader, cells: readonly number[] | null = null): Promise<CellRow[]> {
  return reader.query<CellRow>(
    `select cell, term, clock_ms as "clockMs", side from cells
     where $1::text is null or cell = any($1::text::int[]) order by cell`,
    [cells === null ? null : arrayText(cells)],
  );
}

/**
 * Writes a new owner of cells whose locks it holds; answers which of them still had the owner that it saw, and the
 * database's clock. Waits for writes under the fence of the last owner, for a bounded time.
 */
export async function claimCells(
  database: Pick<Database, "transaction">,
  cells: readonly number[],
  before: number | null,
  term: number,
): Promise<{ readonly cell: number; readonly now: Millis }[]> {
  return await database.transaction(async (session) => {
    await session.query(`set local lock_timeout = ${LEASE_LIMITS.staleDrainMs}`);
    return await session.query(
      `update cells set term = $3::bigint, side = null
       where cell = any($1::text::int[]) and term is not distinct from $2::bigint
       returning cell, (extract(epoch from clock_timestamp()) * 1000)::bigint as now`,
      [arrayText(cells), before, term],
    );
  });
}

/** Hands cells over: nothing of them is left in the journal, and their owner answers nothing of them any more. */
export async function freeCells(
  database: Pick<Database, "transaction">,
  term: number,
  clockMs: Millis,
  sides: ReadonlyMap<number, string | null>,
): Promise<void> {
  const cells = [...sides.keys()];
  const freed = await database.transaction(async (session) => {
    await session.query(`set local lock_timeout = ${LEASE_LIMITS.staleDrainMs}`);
    return await session.query(
      `update cells c set term = null, clock_ms = greatest(c.clock_ms, $2::bigint), side = given.side
       from unnest($3::text::int[], $4::text::text[]) as given(cell, side)
       where c.cell = given.cell and c.term = $1::bigint returning c.cell`,
      [term, clockMs, arrayText(cells), arrayText(cells.map((cell) => sides.get(cell) ?? null))],
    );
  });
  if (freed.length !== cells.length) throw new Error("A cell that was here has another owner in the tables");
}

/**
 * Holds a cell until the end of a transaction: a cell that changes hands waits for it or shuts it out.
 *
 * @throws Unavailable when another member owns the cell
 */
export async function holdCell(session: Pick<Session, "query">, term: number, cell: number): Promise<void> {
  const held = await session.query(
    "select 1 from cells where cell = $1::int and term = $2::bigint for share",
    [cell, term],
  );
  if (held.length === 0) throw new Unavailable("This process does not own the cell any more");
}

/** The same for some cells: all of them are held, or none. */
async function holdCells(session: Session, term: number, cells: readonly number[]): Promise<void> {
  const held = await session.query(
    "select cell from cells where cell = any($1::text::int[]) and term = $2::bigint order by cell for share",
    [arrayText(cells), term],
  );
  if (held.length < cells.length) throw new Unavailable("This process does not own the cells any more");
}

/**
 * Runs writes that only the owner of a cell may make, in a transaction that holds the cell (rule 6). A sweep over many
 * cells names all of them.
 */
export type InCell = <T>(
  cell: number | readonly number[],
  work: (session: Session) => Promise<T>,
) => Promise<T>;

/** The writes of one term. */
export function inCellOf(database: Pick<Database, "transaction">, term: number): InCell {
  return (cell, work) =>
    database.transaction(async (session) => {
      if (typeof cell === "number") await holdCell(session, term, cell);
      else await holdCells(session, term, cell);
      return await work(session);
    });
}
