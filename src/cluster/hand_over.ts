// Handing cells over. The order makes it exact: stop accepting calls; wait for the calls that run, until their changes
// are durable and in the tables; write or drop what is in memory; free the rows; free the locks; then notify.

import type { Batch } from "../../actors/gate.ts";
import { Unavailable } from "../../actors/port.ts";
import { CELL_LIMITS } from "../process/limits.ts";
import { log } from "../process/log.ts";
import { within } from "../process/rest.ts";
import { firstSeq } from "../storage/journal/ranges.ts";
import { freeCells } from "../storage/nodes/cell_store.ts";
import { giveToStore } from "../storage/stores/split_store.ts";
import type { NodeParts, Note } from "./parts.ts";

/** How cells are handed over. */
export interface Way {
  /** The term of the node to notify; null notifies all. */
  readonly to: number | null;
  /** How long the last calls may take. */
  readonly closedMs?: number;
  /** Whether the cells go to the store that their rows name. */
  readonly toStore?: boolean;
}

/**
 * Hands cells over, unless their last calls take too long: then they accept calls again.
 *
 * @returns whether the cells were handed over
 * @throws when freeing them failed, which ends the term
 */
export async function handOver(parts: NodeParts, cells: readonly number[], way: Way): Promise<boolean> {
  // Most of the work is done while the cells still accept calls.
  await writeAll(parts, cells);
  return await handOverNow(parts, cells, way);
}

/** Cells that were to be handed over, and whether they were. */
export interface Attempt {
  readonly cells: readonly number[];
  readonly isDone: boolean;
}

/**
 * Hands over those of some cells that no call is inside of, all at once: none of them waits for the calls of another. Where
 * each has a call inside, it tries the first cell alone.
 *
 * @throws like `handOver`
 */
export async function handOverSome(parts: NodeParts, cells: readonly number[], way: Way): Promise<Attempt> {
  const { doors } = parts.term;
  await writeAll(parts, cells);
  const empty = cells.filter((cell) => doors.isEmpty(cell));
  const chosen = empty.length > 0 ? empty : cells.slice(0, 1);
  return { cells: chosen, isDone: await handOverNow(parts, chosen, way) };
}

/** The rest of a hand-over, once the tables have what was done before. */
async function handOverNow(
  parts: NodeParts,
  cells: readonly number[],
  { to, closedMs = CELL_LIMITS.closedMs, toStore = false }: Way,
): Promise<boolean> {
  const { term, writer, hub, owners, counts } = parts;
  const { doors } = term;
  const startedAt = performance.now();
  let isQuiet = false;
  /** Every change of the cells is in a batch up to this one. */
  let last: Batch | null = null;
  const empty = async () => {
    await doors.shut(cells);
    last = term.gate.tip;
    await writeAll(parts, cells);
  };
  try {
    isQuiet = await within(closedMs, empty());
  } finally {
    // Also after a flush that failed because a heartbeat is late: the term may go on.
    if (!isQuiet) doors.open(cells);
  }
  if (!isQuiet) {
    counts.handOversDropped += 1;
    return false;
  }
  try {
    const sides = new Map<number, string | null>();
    for (const cell of cells) {
      await term.drop(parts.registry.partsOf(cell));
      sides.set(cell, parts.buckets.remove(cell));
    }
    const batches = [firstSeq(writer.term), await seqOf(last)] as const;
    const freed = { term: writer.term, batches, clockMs: parts.clock.now(), sides };
    await (toStore ? giveToStore(parts.database, freed) : freeCells(parts.database, freed));
    await writer.unlockCells(cells);
  } catch (error) {
    // The memory of the cells is gone, and their rows may or may not be free: the next term reads them anew.
    term.fail(error instanceof Error ? error : new Unavailable("A hand-over failed", { cause: error }));
    throw error;
  }
  owners.set(cells, null);
  const note: Note = { cells, term: null };
  if (to === null) hub?.noteAll(note);
  else hub?.note(to, note);
  doors.give(cells);
  parts.sender.given(cells);
  counts.cellsHandedOver += cells.length;
  counts.handOverSeconds.observe((performance.now() - startedAt) / 1000);
  log("debug", "Handed cells over", { cells: cells.length, to });
  return true;
}

/** The place of a batch in the journal; that of no batch is before all of them. */
async function seqOf(batch: Batch | null): Promise<number> {
  await batch?.durable;
  return batch?.seq ?? 0;
}

/** Writes into the tables what only memory has. */
async function writeAll({ term, registry }: NodeParts, cells: readonly number[]): Promise<void> {
  await term.flush();
  await term.refusedCalls.write(cells.flatMap((cell) => [...registry.partsOf(cell).realms]));
}
