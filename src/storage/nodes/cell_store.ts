// The rows of cells: the owner of each, compared and set in one statement. Also the fence of every write beside the
// journal: its transaction first locks the rows of its cells where this node owns them, and fails without them.

import { Unavailable } from "../../../actors/port.ts";
import type { Millis } from "../../domain/values/period.ts";
import { LEASE_LIMITS } from "../../process/limits.ts";
import { log } from "../../process/log.ts";
import { arrayText, type Database, type PinnedSession, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** A cell's row. */
export interface CellRow {
  readonly cell: number;
  /** The term whose range of the journal may hold changes of the cell; null after an orderly hand-over. */
  readonly term: number | null;
  /** The last owner's clock when it handed the cell over. */
  readonly clockMs: Millis;
  /** State that the last owner had only in memory: the rate-limit buckets. Null for none. */
  readonly side: string | null;
  /** Whether another store serves the cell, for ever. */
  readonly isMoved: boolean;
  /** The number of the store that the owner is to hand the cell over to; null for none. */
  readonly movesTo: number | null;
}

/** The number of this store, in a statement: null in a database that was never one of several. */
const OWN_NUMBER = "(select number from stores join registry using (cluster_id))";

/** Reads some cells, or all of them. */
export function readCells(reader: Reader, cells: readonly number[] | null = null): Promise<CellRow[]> {
  return reader.query<CellRow>(
    `select cell, term, clock_ms as "clockMs", side, moves_to as "movesTo",
       store is not null and store is distinct from ${OWN_NUMBER} as "isMoved"
     from cells
     where $1::text is null or cell = any($1::text::int[]) order by cell`,
    [cells === null ? null : arrayText(cells)],
  );
}

/**
 * Makes a node that holds the locks of cells their owner. Waits a bounded time for fenced writes of the last owner.
 *
 * @param before the owner that was read before; cells that have another one by now are left out
 * @param clockMs the node's clock, which may be ahead of the database's after a failover; 0 if it cannot be
 * @returns the cells that were claimed, with the database's clock; none that another store serves
 */
export async function claimCells(
  database: Pick<Database, "transaction">,
  cells: readonly number[],
  before: number | null,
  term: number,
  clockMs: Millis = 0,
): Promise<{ readonly cell: number; readonly now: Millis }[]> {
  return await database.transaction(async (session) => {
    await session.query(`set local lock_timeout = ${LEASE_LIMITS.staleDrainMs}`);
    return await session.query(
      `update cells set term = $3::bigint, side = null, clock_ms = greatest(clock_ms, $4::bigint)
       where cell = any($1::text::int[]) and term is not distinct from $2::bigint
         and (store is null or store = ${OWN_NUMBER})
       returning cell, (extract(epoch from clock_timestamp()) * 1000)::bigint as now`,
      [arrayText(cells), before, term, clockMs],
    );
  });
}

/**
 * Keeps time from going back where the database's clock is behind the times in its tables: after a failover to a server
 * with a slower clock, or when the clock was set back. No later owner's clock begins before the last heartbeat or the last
 * commit that came from the former primary. Heartbeats of the former clock are set to now: they would make dead nodes look
 * alive until this clock has caught up.
 */
export async function keepTime(session: Pick<PinnedSession, "query" | "transaction">): Promise<void> {
  const [row] = await session.query<{ seenMs: Millis | null; nowMs: Millis }>(
    `select ceil(extract(epoch from greatest(max(seen_at), pg_last_xact_replay_timestamp())) * 1000)::bigint as "seenMs",
       (extract(epoch from clock_timestamp()) * 1000)::bigint as "nowMs"
     from members`,
  );
  // The first number is rounded up.
  const aheadMs = (row?.seenMs ?? 0) - (row?.nowMs ?? 0) - 1;
  if (row?.seenMs == null || aheadMs <= 0) return;
  log(
    "warn",
    "The database's clock is behind the times in its tables: time stands still until it has caught up",
    {
      behindMs: aheadMs,
    },
  );
  const { seenMs } = row;
  await session.transaction(async (inner) => {
    await inner.query(`set local lock_timeout = ${LEASE_LIMITS.staleDrainMs}`);
    await inner.query("update cells set clock_ms = $1::bigint where clock_ms < $1::bigint", [seenMs]);
    await inner.query("update members set seen_at = clock_timestamp() where seen_at > clock_timestamp()");
  });
}

/** Cells that an owner gives up. */
export interface FreedCells {
  readonly term: number;
  /** The batches of the term that may hold changes of the cells: after the first seq, up to the second one. */
  readonly batches: readonly [after: number, upTo: number];
  readonly clockMs: Millis;
  /** The state of each cell that its owner had only in memory. */
  readonly sides: ReadonlyMap<number, string | null>;
  /** Whether the cells go to the store that their rows name, and never come back. */
  readonly toStore?: boolean;
}

/**
 * Frees cells; their owner has stopped answering for them. The tables must have all of their changes, because the next owner
 * does not replay: so the journal is looked at in the same statement.
 *
 * @throws Error if a cell has another owner, or the journal may still hold changes of the cells; then none is freed
 */
export async function freeCells(database: Pick<Database, "transaction">, freed: FreedCells): Promise<void> {
  await database.transaction(async (session) => {
    await session.query(`set local lock_timeout = ${LEASE_LIMITS.staleDrainMs}`);
    await freeCellsIn(session, freed);
  });
}

/** The same in a transaction of the caller. */
export async function freeCellsIn(
  session: Pick<Session, "query">,
  { term, batches, clockMs, sides, toStore = false }: FreedCells,
): Promise<void> {
  const cells = [...sides.keys()];
  const freed = await session.query(
    `update cells c set term = null, clock_ms = greatest(c.clock_ms, $2::bigint), side = given.side,
       store = case when $7::boolean then c.moves_to else c.store end,
       moves_to = case when $7::boolean then null else c.moves_to end
     from unnest($3::text::int[], $4::text::text[]) as given(cell, side)
     where c.cell = given.cell and c.term = $1::bigint and (c.moves_to is not null or not $7::boolean)
       and not exists (select 1 from journal where seq > $5::bigint and seq <= $6::bigint)
     returning c.cell`,
    [
      term,
      clockMs,
      arrayText(cells),
      arrayText(cells.map((cell) => sides.get(cell) ?? null)),
      ...batches,
      toStore,
    ],
  );
  if (freed.length !== cells.length) {
    throw new Error("A cell has another owner in the tables, or changes that are only in the journal");
  }
}

/**
 * Locks a cell's row until the end of a transaction, so that a change of its owner waits for the transaction.
 *
 * @throws Unavailable when another node owns the cell
 */
export async function holdCell(session: Pick<Session, "query">, term: number, cell: number): Promise<void> {
  const held = await session.query(
    "select 1 from cells where cell = $1::int and term = $2::bigint for share",
    [cell, term],
  );
  if (held.length === 0) throw new Unavailable("This process does not own the cell any more");
}

/** The same for several cells: all of them, or an error. */
async function holdCells(session: Session, term: number, cells: readonly number[]): Promise<void> {
  const held = await session.query(
    "select cell from cells where cell = any($1::text::int[]) and term = $2::bigint order by cell for share",
    [arrayText(cells), term],
  );
  if (held.length < cells.length) throw new Unavailable("This process does not own the cells any more");
}

/**
 * Runs writes that only the owner of a cell may make, in a transaction that first locks the cell's row. A sweep over many
 * cells names all of them.
 */
export type InCell = <T>(
  cell: number | readonly number[],
  work: (session: Session) => Promise<T>,
) => Promise<T>;

/** Makes the fence of one term. */
export function inCellOf(database: Pick<Database, "transaction">, term: number): InCell {
  return (cell, work) =>
    database.transaction(async (session) => {
      if (typeof cell === "number") await holdCell(session, term, cell);
      else await holdCells(session, term, cell);
      return await work(session);
    });
}
