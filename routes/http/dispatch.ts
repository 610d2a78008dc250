// Runs every call where it belongs: in this process where it owns the cell of the call's workspace, else at the owner; at
// all owners, with their answers made one; or here, where the call is about no workspace. The answer is the same wherever it
// runs, byte for byte.
//
// A call leaves this process once, and is sent again only after its receiver has replied that it did not run.

import { CellGone, Unavailable } from "../../actors/port.ts";
import type { Reply, StreamedReply } from "../../src/channel/hub.ts";
import { callSender, isNotRun, passOn, streamSender } from "../../src/cluster/passing.ts";
import { CELL_LIMITS } from "../../src/process/limits.ts";
import { cellOf } from "../../src/tenant/cell_of.ts";
import { type Answer, type Handled, success, valueOf } from "./answer.ts";
import {
  type CheckedCall,
  type DispatchWorld,
  idOf,
  type KeylessCall,
  type Origin,
  type Outcome,
} from "./call.ts";
import { messageOf, outcomeOf, type ReplyHead } from "./messages.ts";
import { runInside, runOutside } from "./run_inside.ts";

/** Runs a call where it belongs. */
export function dispatch<World extends DispatchWorld>(
  world: World,
  call: CheckedCall<World>,
  origin: Origin,
): Promise<Outcome> {
  if (call.caller === null && call.target.gather !== undefined) {
    return gathered(world, call, call.target.gather, idOf(origin));
  }
  const cell = cellOfCall(world, call);
  if (cell === null) return runOutside(world, call, origin);
  const mayMove = call.target.waitsOutside === true;
  return !mayMove && world.term.doors.tryEnter(cell)
    ? runInside(world, call, cell, origin)
    : runOrPass(world, call, cell, origin);
}

/** The cell of the workspace that a call is about; null for a call about none. */
export function cellOfCall<World extends DispatchWorld>(
  world: World,
  call: CheckedCall<World>,
): number | null {
  if (call.caller !== null) return call.caller.app.cell;
  const { target, input } = call;
  const about = target.about?.({ world, input }) ?? null;
  if (about === null) return null;
  return "appId" in about ? world.registry.apps.get(about.appId)?.cell ?? null : cellOf(about.workspaceId);
}

/** Runs a call at the owner of its cell, or here once the cell is open here. */
async function runOrPass<World extends DispatchWorld>(
  world: World,
  call: CheckedCall<World>,
  cell: number,
  origin: Origin,
): Promise<Outcome> {
  const { node, term } = world;
  const { mediaType, waitsOutside } = call.target;
  const id = idOf(origin);
  while (true) {
    if (await term.doors.enter(cell)) {
      try {
        return await runInside(world, call, cell, id);
      } catch (error) {
        // It only read, and may read at the new owner.
        if (waitsOutside !== true || !(error instanceof CellGone)) throw error;
        continue;
      }
    }
    const message = messageOf(world, call, id);
    const send = mediaType === undefined || typeof origin === "string"
      ? callSender(node, message)
      : streamSender(node, message, origin.signal);
    const reply = await passOn<Reply | StreamedReply>(node, cell, send);
    if (reply !== null) return await outcomeOf(reply, id);
  }
}

/** One owner's part of an answer that all owners give together. */
interface Part {
  readonly answer: Answer;
  /** The cells that it covers. */
  readonly cells: readonly number[];
}

/** The answers of every owner as one. A cell without an owner is a 503, never a number that is too small. */
async function gathered<World extends DispatchWorld>(
  world: World,
  call: KeylessCall<World>,
  gather: (answers: readonly unknown[]) => unknown,
  id: string,
): Promise<Answer> {
  const { node } = world;
  let until = performance.now() + CELL_LIMITS.doorWaitMs;
  while (true) {
    const askedAt = performance.now();
    const parts = await askAll(world, call, id);
    // A sweep may take minutes; what is bounded is the time without owners.
    until += performance.now() - askedAt;
    const refused = parts?.find(({ answer }) => !answer.ok);
    if (refused !== undefined) return refused.answer;
    const covered = parts?.flatMap(({ cells }) => cells) ?? [];
    // Cells that changed hands meanwhile are missing, or there twice: then every owner is asked again.
    if (
      parts !== null && covered.length === node.parts.owners.cells && new Set(covered).size === covered.length
    ) {
      return success(gather(parts.map(({ answer }) => answer.ok ? answer.data : null)));
    }
    if (performance.now() > until) throw new Unavailable("Some workspaces have no owner now");
    await node.lookForOwners();
  }
}

/** Asks every owner, this process too, for its part; null where an owner cannot be asked. */
async function askAll<World extends DispatchWorld>(
  world: World,
  call: KeylessCall<World>,
  id: string,
): Promise<Part[] | null> {
  const { node } = world;
  const owners = new Set(node.parts.owners.all);
  if (owners.has(null)) return null;
  const send = callSender(node, messageOf(world, call, id, true));
  const asked = [...owners as ReadonlySet<number>].map((owner) =>
    owner === node.term ? runPart(world, call, id) : send(owner)?.then(partOf) ?? null
  );
  // Parts that were begun may fail. An unhandled rejection would end the process, so all are awaited.
  const parts = await Promise.all(asked);
  return parts.includes(null) ? null : parts as Part[];
}

/** The part in a reply; null where the receiver did not run the call. */
function partOf(reply: Reply): Part | null {
  if (isNotRun(reply.head)) return null;
  const [, , , , cells = []] = reply.head as ReplyHead;
  return { answer: valueOf(outcomeOf(reply, "") as Handled), cells };
}

/** This process's part of an answer that all owners give together. */
export async function runPart<World extends DispatchWorld>(
  world: World,
  call: CheckedCall<World>,
  id: string,
): Promise<Part> {
  const { doors } = world.term;
  const before = doors.held.filter((cell) => doors.isOpen(cell));
  const answer = valueOf(await runOutside(world, call, id));
  // The answer may leave out a cell that is being handed over, or was meanwhile, so that one is asked for again.
  return { answer, cells: before.filter((cell) => doors.isOpen(cell)) };
}
