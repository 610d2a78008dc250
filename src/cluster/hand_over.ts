// Handing cells over, in the order of rule 16 of the cluster's design: doors shut; calls inside ended, the gate durable,
// the drain committed; what is in memory written or forgotten; the rows free; the locks free; then tell.

import { Unavailable } from "../../actors/port.ts";
import { CELL_LIMITS } from "../process/limits.ts";
import { log } from "../process/log.ts";
import { freeCells } from "../storage/members/cell_store.ts";
import type { MemberParts, Note } from "./parts.ts";

/**
 * Hands cells over, unless their last calls take too long: then the doors open again.
 *
 * @param to who is to be told that they are free; null tells everybody
 * @param closedMs how long the doors may be shut before that
 */
export async function handOver(
  parts: MemberParts,
  cells: readonly number[],
  to: number | null,
  closedMs: number = CELL_LIMITS.closedMs,
): Promise<boolean> {
  const { term, writer, hub, owners, counts } = parts;
  const { doors } = term;
  // Most of the work is done while the doors are open.
  await writeAll(parts, cells);
  const startedAt = performance.now();
  let isQuiet = false;
  try {
    isQuiet = await within(closedMs, doors.shut(cells).then(() => writeAll(parts, cells)));
  } finally {
    // Also where the flush failed because a beat is late: the term may go on.
    if (!isQuiet) doors.open(cells);
  }
  if (!isQuiet) {
    counts.handOversDropped += 1;
    return false;
  }
  try {
    const sides = new Map<number, string | null>();
    for (const cell of cells) {
      term.drop(parts.registry.partsOf(cell));
      sides.set(cell, parts.buckets.remove(cell));
    }
    await freeCells(parts.database, writer.term, parts.clock.now(), sides);
    await writer.unlockCells(cells);
  } catch (error) {
    // What is in memory is gone and the rows may say anything: the next term finds out.
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

/** Writes what is in memory and not in the tables. */
async function writeAll({ term, registry }: MemberParts, cells: readonly number[]): Promise<void> {
  await term.flush();
  await term.refusedCalls.write(cells.flatMap((cell) => [...registry.partsOf(cell).realms]));
}

/** Whether something ends within a time. */
async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), ms));
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
