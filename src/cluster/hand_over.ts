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

/**
 * Hands cells over, unless their last calls take too long: then they accept calls again.
 *
 * @param to the term of the node to notify; null notifies all
 * @param closedMs how long the last calls may take
 * @param toStore whether the cells go to the store that their rows name
 * @returns whether the cells were handed over
 * @throws when freeing them failed, which ends the term
 */
export async function handOver(
  parts: NodeParts,
  cells: readonly number[],
  to: number | null,
  closedMs: number = CELL_LIMITS.closedMs,
  toStore = false,
): Promise<boolean> {
  const { term, writer, hub, owners, counts } = parts;
  const { doors } = term;
  // Most of the work is done while the cells still accept calls.
  await writeAll(parts, cells);
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
