// Taking cells. The order makes it exact: lock; read the last owner; if it died, wait until it has stopped answering and
// replay what it left; write the own term; only then load; only then accept calls.

import { monthOf } from "../../actors/budget.ts";
import { type CellParts, Unavailable } from "../../actors/port.ts";
import type { Millis } from "../domain/values/period.ts";
import { isLed } from "../process/clock.ts";
import { LEASE_LIMITS } from "../process/limits.ts";
import { log } from "../process/log.ts";
import { sessionNameOf } from "../storage/journal/ranges.ts";
import { type CellRow, claimCells, readCells } from "../storage/nodes/cell_store.ts";
import { endNode, endSessionsNamed, readNodes } from "../storage/nodes/node_store.ts";
import { loadClocks, loadTotals } from "../storage/stores/registry_store.ts";
import type { NodeParts, Note } from "./parts.ts";
import { rest } from "../process/rest.ts";

/** How often a dead owner that may still answer is checked. */
const LOOK_MS = 100;
const MONTH_MS = 31 * 86_400_000;

/** Cells of one last owner that are being taken. */
export interface Taking {
  readonly cells: readonly number[];
  /** Whether a dead owner has to be outlived and replayed first, which takes long. */
  readonly isLong: boolean;
  /** Resolves when the cells accept calls. */
  readonly done: Promise<void>;
}

/** Takes the free ones among some cells; returns them. */
export async function takeCells(parts: NodeParts, asked: readonly number[]): Promise<number[]> {
  const takings = await beginTaking(parts, asked);
  await Promise.all(takings.map(({ done }) => done));
  return takings.flatMap(({ cells }) => cells);
}

/** Begins to take the free ones among some cells; those of different last owners do not wait for each other. */
export async function beginTaking(parts: NodeParts, asked: readonly number[]): Promise<Taking[]> {
  if (asked.length === 0) return [];
  const { writer, database } = parts;
  const locked = await writer.lockCells(asked);
  if (locked.length === 0) return [];
  const read = await readCells(database, locked);
  const moved = read.flatMap(({ cell, isMoved }) => isMoved ? [cell] : []);
  if (moved.length > 0) await writer.unlockCells(moved);
  const rows = read.filter(({ isMoved }) => !isMoved);
  return [...Map.groupBy(rows, ({ term }) => term)].map(([before, group]) => ({
    cells: group.map(({ cell }) => cell),
    isLong: before !== null && before !== writer.term,
    done: take(parts, group),
  }));
}

async function take(parts: NodeParts, found: readonly CellRow[]): Promise<void> {
  const startedAt = performance.now();
  const { writer, counts, term } = parts;
  const rows = await claim(parts, found);
  await load(parts, rows);
  const cells = rows.map(({ cell }) => cell);
  term.doors.open(cells);
  parts.owners.set(cells, writer.term);
  parts.hub?.noteAll({ cells, term: writer.term } satisfies Note);
  parts.sender.taken(cells);
  counts.cellsTaken += cells.length;
  counts.takeSeconds.observe((performance.now() - startedAt) / 1000);
}

/**
 * Writes the own term into the rows of locked cells.
 *
 * @param found the rows as read
 * @returns the rows that were replaced
 */
async function claim(parts: NodeParts, found: readonly CellRow[]): Promise<CellRow[]> {
  const { database, writer, clock, hub } = parts;
  const claimed: CellRow[] = [];
  let left = found;
  while (left.length > 0) {
    for (const [before, group] of Map.groupBy(left, ({ term }) => term)) {
      if (before !== null && before !== writer.term) await bury(parts, before, group.length);
      const cells = group.map(({ cell }) => cell);
      const taken = await claimCells(database, cells, before, writer.term, hub === null ? 0 : clock.now());
      const given = new Map(taken.map(({ cell, now }) => [cell, now]));
      claimed.push(...group.flatMap((row) => {
        const now = given.get(row.cell);
        return now === undefined ? [] : [{ ...row, clockMs: floorOf(parts, row.clockMs, now) }];
      }));
    }
    const done = new Set(claimed.map(({ cell }) => cell));
    const missed = found.flatMap(({ cell }) => done.has(cell) ? [] : [cell]);
    // The last holder of the lock may have written after our read: then the row is read again.
    left = missed.length === 0 ? [] : await readCells(database, missed);
    if (left.some(({ isMoved }) => isMoved)) throw new Unavailable("Another store serves a cell by now");
  }
  return claimed;
}

/**
 * The earliest moment for the clock of the new owner. No node's clock is ahead of the server's, so every moment that a
 * dead owner used is before the server's clock now; an orderly hand-over stored the last moment. So did this node when it
 * joined, where the server is another one with a clock that is behind (`keepTime`).
 */
function floorOf({ hub }: NodeParts, clockMs: Millis, databaseNow: Millis): Millis {
  return hub === null ? clockMs : Math.max(clockMs, databaseNow);
}

/** Waits until a dead owner has stopped answering, ends its sessions, and replays what it left in the journal. */
async function bury(parts: NodeParts, term: number, cells: number): Promise<void> {
  const { database, writer, counts } = parts;
  await outlive(parts, term);
  await endNode(database, term);
  if (database.kind === "postgres") await endSessionsNamed(database, sessionNameOf(term));
  await writer.replay(term);
  counts.cellsRescued += cells;
  log("info", "Took over the cells of a process that is gone", { term, cells });
}

/**
 * Waits until a node has stopped answering. A free lock does not prove that: the server may have ended its session, or
 * the network may have cut it off. A node may answer for 3 s after its last heartbeat, unless its row says that it
 * ended, or its address refuses connections because the process is gone. A timeout proves nothing.
 */
async function outlive({ database, hub }: NodeParts, term: number): Promise<void> {
  // The lock on the folder proves that no other process uses the embedded store.
  if (database.kind === "embedded") return;
  while (true) {
    const node = (await readNodes(database)).find((row) => row.term === term);
    if (node === undefined || node.hasEnded || node.silentMs >= LEASE_LIMITS.validMs) return;
    const { address } = node;
    if (address !== null && hub !== null && await hub.probe(address, term) === "gone") return;
    const leftMs = LEASE_LIMITS.validMs - node.silentMs;
    await rest(Math.min(LOOK_MS, Math.max(leftMs, 1)));
  }
}

/** Loads into memory what an owner keeps for the workspaces of its cells. */
async function load(parts: NodeParts, rows: readonly CellRow[]): Promise<void> {
  const { database, changes, registry, term, clock, buckets } = parts;
  // Without the newest registry this node would load nothing for workspaces that were created meanwhile.
  await changes.catchUp();
  if (isLed(clock)) clock.raise(Math.max(0, ...rows.map(({ clockMs }) => clockMs)));
  const all = unionOf(rows.map(({ cell }) => registry.partsOf(cell)));
  // A node with a clock that is behind may still count in the previous month.
  const totals = await loadTotals(database, all, monthOf(clock.now() - MONTH_MS));
  const clocks = await loadClocks(database, all.realms);
  if (isLed(clock)) clock.raise(Math.max(0, ...clocks.map(({ usedMs }) => usedMs)));
  // No await from here on: a failed attempt must leave nothing in memory.
  if (term.hasEnded || term.doors.isSealed) throw new Unavailable("The term has ended");
  term.assertEmpty(all);
  term.admit(totals);
  for (const { realm, offsetMs } of clocks) {
    const known = registry.realms.get(realm);
    if (known !== undefined) known.clockOffsetMs = offsetMs;
  }
  for (const { cell, side } of rows) buckets.admit(cell, side);
}

function unionOf(all: readonly CellParts[]): CellParts {
  return {
    workspaces: new Set(all.flatMap(({ workspaces }) => [...workspaces])),
    realms: new Set(all.flatMap(({ realms }) => [...realms])),
  };
}
