// Answers calls that other processes send here: at the owner of the call's workspace, for this process's own cells, or, where
// the call is about no workspace, anywhere.

import { CellGone } from "../../actors/port.ts";
import type { Reply, StreamedReply } from "../../src/channel/hub.ts";
import { notRun } from "../../src/cluster/passing.ts";
import type { CallTarget, CheckedCall, DispatchWorld } from "./call.ts";
import { cellOfCall, runPart } from "./dispatch.ts";
import { callOf, type Message, refusalReply, replyOf } from "./messages.ts";
import { runInside, runOutside } from "./run_inside.ts";

/** Answers a call of another process. Promises are chained by hand where the call need not wait, as nearly all. */
export function receive<World extends DispatchWorld>(
  world: World,
  targets: ReadonlyMap<string, CallTarget<World>>,
  message: Message,
): Promise<Reply | StreamedReply> {
  const [, version, id, , sender] = message;
  try {
    // A key that the sender knows may be newer than this process's registry.
    if (version > world.registry.version || sender === null) return receiveLater(world, targets, message);
    const call = callOf(world, targets, message);
    const cell = cellOfCall(world, call) as number;
    if (!world.term.doors.tryEnter(cell)) return receiveLater(world, targets, message);
    return replyTo(world, call, cell, id);
  } catch (error) {
    return Promise.resolve(refusalReply(id, error));
  }
}

/** Answers a call that may have to wait, for a newer registry or at the door of its cell, or that needs no cell. */
async function receiveLater<World extends DispatchWorld>(
  world: World,
  targets: ReadonlyMap<string, CallTarget<World>>,
  message: Message,
): Promise<Reply | StreamedReply> {
  const [, version, id, , , isPart] = message;
  const { node, term } = world;
  const { counts, owners } = node.parts;
  try {
    await node.reach(version);
    const call = callOf(world, targets, message);
    if (isPart) {
      counts.taken += 1;
      const { answer, cells } = await runPart(world, call, id);
      return replyOf(answer, cells);
    }
    const cell = cellOfCall(world, call);
    if (cell === null) {
      counts.taken += 1;
      return replyOf(await runOutside(world, call, id));
    }
    return await term.doors.enter(cell) ? await replyTo(world, call, cell, id) : notRun(owners.of(cell));
  } catch (error) {
    return refusalReply(id, error);
  }
}

/** Runs a call that has entered its cell, and replies. */
function replyTo<World extends DispatchWorld>(
  world: World,
  call: CheckedCall<World>,
  cell: number,
  id: string,
): Promise<Reply | StreamedReply> {
  const { parts, term } = world.node;
  parts.counts.taken += 1;
  return runInside(world, call, cell, id).then((outcome) => replyOf(outcome)).catch((error) => {
    if (call.target.waitsOutside !== true || !(error instanceof CellGone)) return refusalReply(id, error);
    // It only read, and may read at the new owner.
    const owner = parts.owners.of(cell);
    return notRun(owner === term ? null : owner);
  });
}
