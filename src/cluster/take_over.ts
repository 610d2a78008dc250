// Taking cells, in the order of rule 16 of the cluster's design: lock; read who had them; see that it answers nothing any
// more, and replay what it left; write the own term; only then load; only then open.

import { monthOf } from "../../actors/budget.ts";
import { type CellParts, Unavailable } from "../../actors/port.ts";
import type { Millis } from "../domain/values/period.ts";
import { isLed } from "../process/clock.ts";
import { LEASE_LIMITS } from "../process/limits.ts";
import { log } from "../process/log.ts";
import { sessionNameOf } from "../storage/journal/ranges.ts";
import { type CellRow, claimCells, readCells } from "../storage/members/cell_store.ts";
import { endMember, endSessionsNamed, readMembers } from "../storage/members/member_store.ts";
import { loadClocks, loadTotals } from "../storage/stores/registry_store.ts";
import type { MemberParts, Note } from "./parts.ts";

/** How often a member that may still answer is looked at. */
const LOOK_MS = 100;
const MONTH_MS = 31 * 86_400_000;

/** Takes those of some cells that nobody holds; answers which. */
export async function takeCells(parts: MemberParts, asked: readonly number[]): Promise<number[]> {
  if (asked.length === 0) return [];
  const startedAt = performance.now();
  const { writer, counts } = parts;
  const locked = await writer.lockCells(asked);
  if (locked.length === 0) return [];
  const rows = await claim(parts, locked);
  await load(parts, rows);
  parts.term.doors.open(locked);
  parts.owners.set(locked, writer.term);
  parts.hub?.noteAll({ cells: locked, term: writer.term } satisfies Note);
  parts.sender.taken(locked);
  counts.cellsTaken += locked.length;
  counts.takeSeconds.observe((performance.now() - startedAt) / 1000);
  return locked;
}

/** Writes the own term into the rows of locked cells; answers the rows as they were. */
async function claim(parts: MemberParts, locked: readonly number[]): Promise<CellRow[]> {
  const { database, writer } = parts;
  const claimed: CellRow[] = [];
  let left = locked;
  while (left.length > 0) {
    const rows = await readCells(database, left);
    for (const [before, group] of Map.groupBy(rows, ({ term }) => term)) {
      if (before !== null && before !== writer.term) await bury(parts, before, group.length);
      const cells = group.map(({ cell }) => cell);
      // Whoever had the lock before us may have written between our read and now: then we look again.
      const taken = await claimCells(database, cells, before, writer.term);
      const given = new Map(taken.map(({ cell, now }) => [cell, now]));
      claimed.push(...group.flatMap((row) => {
        const now = given.get(row.cell);
        return now === undefined ? [] : [{ ...row, clockMs: floorOf(parts, row.clockMs, now) }];
      }));
    }
    const done = new Set(claimed.map(({ cell }) => cell));
    left = locked.filter((cell) => !done.has(cell));
  }
  return claimed;
}

/**
 * No member's clock is ahead of the server's. So whatever moment a dead owner has seen lies before the server's clock
 * now; one that handed the cell over has said its last moment.
 */
function floorOf({ hub }: MemberParts, clockMs: Millis, databaseNow: Millis): Millis {
  return hub === null ? clockMs : Math.max(clockMs, databaseNow);
}

/** Waits until a member answers nothing any more, ends its sessions, and replays what it left in the journal. */
async function bury(parts: MemberParts, term: number, cells: number): Promise<void> {
  const { database, writer, counts } = parts;
  await outlive(parts, term);
  await endMember(database, term);
  if (database.kind === "postgres") await endSessionsNamed(database, sessionNameOf(term));
  await writer.replay(term);
  counts.cellsRescued += cells;
  log("info", "Took over from a member that is gone", { member: term, cells });
}

/**
 * A free lock does not mean that its holder answers nothing any more: its session may have ended from outside, or it may
 * be cut off. It answers for 3 s after its last beat, unless it said that it ended, or a connection to it is refused
 * because its process is gone (rule 2). A time-out proves nothing.
 */
async function outlive({ database, hub }: MemberParts, term: number): Promise<void> {
  // The folder's lock proves that no other process has the embedded store.
  if (database.kind === "embedded") return;
  while (true) {
    const member = (await readMembers(database)).find((row) => row.term === term);
    if (member === undefined || member.hasEnded || member.silentMs >= LEASE_LIMITS.validMs) return;
    const { address } = member;
    if (address !== null && hub !== null && await hub.probe(address, term) === "gone") return;
    const leftMs = LEASE_LIMITS.validMs - member.silentMs;
    await new Promise((resolve) => setTimeout(resolve, Math.min(LOOK_MS, Math.max(leftMs, 1))));
  }
}

/** Loads what is in memory for the workspaces of cells, which now belong to this member. */
async function load(parts: MemberParts, rows: readonly CellRow[]): Promise<void> {
  const { database, changes, registry, term, clock, buckets } = parts;
  // A member that was silent may lack workspaces that were made meanwhile, and would load nothing for them.
  await changes.catchUp();
  if (isLed(clock)) clock.raise(Math.max(0, ...rows.map(({ clockMs }) => clockMs)));
  const all = unionOf(rows.map(({ cell }) => registry.partsOf(cell)));
  // A member whose clock is behind may still count in the month before.
  const totals = await loadTotals(database, all, monthOf(clock.now() - MONTH_MS));
  const clocks = await loadClocks(database, all.realms);
  // All or nothing from here: what one failed attempt left in memory would stand in the way of the next.
  if (term.hasEnded) throw new Unavailable("The term has ended");
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
