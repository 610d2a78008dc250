// The rows of a split: which cells move to a new store, and which of them have moved. The new store begins as a standby of
// this one, so it receives each step as a commit of this store:
// 1. The request names the cells to move.
// 2. A hand-over for each cell: from then on this store does not serve it.
// 3. The release, once all cells are handed over and every process knows that.
// The new store serves only after the release is in its own tables, and only the cells whose rows name it.

import { LEASE_LIMITS } from "../../process/limits.ts";
import { arrayText, type Database, type Session } from "../database.ts";
import { freeCellsIn, type FreedCells } from "../nodes/cell_store.ts";
import { readStoreFacts, type StoreRow } from "../nodes/store_numbers.ts";
import { countUnconfirmed, lockRegistry, readVersion } from "./registry_store.ts";

/** The progress of a split. */
export interface SplitRow {
  /** The name of the new store. */
  readonly to: string;
  /** "open" once the new store has reported that it serves. */
  readonly state: StoreRow["state"];
  /** The cells that were handed over. */
  readonly cells: readonly number[];
  /** The cells that are still to be handed over. */
  readonly left: readonly number[];
}

/** Reads every split of a store, the first one first. */
export async function readSplits(reader: Pick<Session, "query">): Promise<SplitRow[]> {
  const rows = await reader.query<Omit<SplitRow, "cells" | "left"> & { cells: string; left: string }>(
    `select s.name as to, s.state, coalesce(string_agg(c.cell::text, ',' order by c.cell)
         filter (where c.store = s.number), '') as cells,
       coalesce(string_agg(c.cell::text, ',' order by c.cell) filter (where c.moves_to = s.number), '') as left
     from stores s join cells c on c.store = s.number or c.moves_to = s.number
     where s.cluster_id <> (select cluster_id from registry) group by s.number order by s.number`,
  );
  return rows.map(({ cells, left, ...row }) => ({ ...row, cells: numbersOf(cells), left: numbersOf(left) }));
}

function numbersOf(text: string): number[] {
  return text === "" ? [] : text.split(",").map(Number);
}

/** A split that is asked for. */
interface SplitRequest {
  readonly cells: readonly number[];
  /** The new store, which has its number but serves nothing yet. */
  readonly to: StoreRow;
}

/** Why a split was refused. */
export class SplitRefused extends Error {}

/**
 * Asks the owners of cells to hand them over to a new store. The same request again changes nothing.
 *
 * @throws SplitRefused with the reason
 */
export async function requestSplit(
  database: Pick<Database, "transaction">,
  { cells, to }: SplitRequest,
): Promise<void> {
  await database.transaction(async (session) => {
    await lockRegistry(session);
    const splits = await readSplits(session);
    const known = splits.find((split) => split.to === to.name);
    const asked = [...cells].sort((one, other) => one - other);
    if (known !== undefined) {
      const before = [...known.cells, ...known.left].sort((one, other) => one - other);
      if (before.join() === asked.join()) return;
      throw new SplitRefused(`"${to.name}" gets the cells ${before.join(", ")}: a split cannot be changed`);
    }
    if (to.state !== "planned") throw new SplitRefused(`"${to.name}" is a database of this service already`);
    const other = splits.find(({ state }) => state !== "open");
    if (other !== undefined) throw new SplitRefused(`the split to "${other.to}" has not ended`);
    const moved = new Set(splits.flatMap((split) => split.cells));
    const gone = asked.filter((cell) => moved.has(cell));
    if (gone.length > 0) throw new SplitRefused(`the cells ${gone.join(", ")} are on another database`);
    const { own } = await readStoreFacts(session);
    await markOwn(session, own?.number ?? 0);
    const left = await session.query(
      "select from cells where store = $1::int and cell <> all($2::text::int[]) limit 1",
      [own?.number ?? 0, arrayText(asked)],
    );
    if (left.length === 0) throw new SplitRefused("a database must keep at least one of its cells");
    await session.query("update cells set moves_to = $2::int where cell = any($1::text::int[])", [
      arrayText(asked),
      to.number,
    ]);
  });
}

/** From the first split on, each cell names the store that serves it: a copy of this store must not take the cells that stay. */
async function markOwn(session: Session, number: number): Promise<void> {
  await session.query("update cells set store = $1::int where store is null", [number]);
}

/**
 * Hands cells over to the new store that their rows name. Their owner has stopped answering for them. The new version of the
 * registry makes every process drop the workspaces of these cells from memory.
 */
export async function giveToStore(database: Pick<Database, "transaction">, freed: FreedCells): Promise<void> {
  await database.transaction(async (session) => {
    const version = await lockRegistry(session);
    await session.query(`set local lock_timeout = ${LEASE_LIMITS.staleDrainMs}`);
    await freeCellsIn(session, { ...freed, toStore: true });
    await session.query("update registry set version = $1::bigint", [version + 1]);
  });
}

/**
 * Releases new stores that have received all of their cells, once every process of this store knows that the cells are gone.
 *
 * @returns whether no store waits for its release
 */
export async function releaseStores(database: Pick<Database, "transaction" | "query">): Promise<boolean> {
  const waiting = await database.query(
    "select from stores s where state = 'planned' and exists (select from cells where s.number in (store, moves_to))",
  );
  if (waiting.length === 0) return true;
  return await database.transaction(async (session) => {
    await lockRegistry(session);
    if (await countUnconfirmed(session, await readVersion(session)) > 0) return false;
    await session.query(
      `update stores s set state = 'released' where state = 'planned'
         and exists (select from cells where store = s.number)
         and not exists (select from cells where moves_to = s.number)`,
    );
    const left = await session.query("select from cells where moves_to is not null limit 1");
    return left.length === 0;
  });
}
