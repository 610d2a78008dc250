// Passing a call on to the owner of its cell. A call is sent once, and again only after its receiver has answered that it
// did not run. After a lost channel or a timeout the call may have run: 503.

import { Unavailable } from "../../actors/port.ts";
import { ChannelFull, type Reply, type StreamedReply } from "../channel/hub.ts";
import { CELL_LIMITS } from "../process/limits.ts";
import type { ClusterNode } from "./node.ts";

/** A call between nodes: the term of the node to relay it to, 0 for the receiver itself, and the call. */
export type PassedCall = readonly [relayTo: number, call: unknown];

/** The head of a reply to a call that did not run, with the owner that the receiver knows; 0 for unknown. */
type NotRun = readonly ["not run", number];

/** Sends a call to a node; null without a way to it. */
export type Sender<Answer extends { readonly head: unknown }> = (owner: number) => Promise<Answer> | null;

/** The reply to a call that did not run: it may be sent again. */
export function notRun(owner: number | null): Reply {
  return { head: ["not run", owner ?? 0] satisfies NotRun, body: "" };
}

/** Whether the head of a reply says that the call did not run. */
export function isNotRun(head: unknown): boolean {
  return ownerIfNotRun(head) !== null;
}

function ownerIfNotRun(head: unknown): number | null {
  return Array.isArray(head) && head[0] === "not run" ? head[1] as number : null;
}

/**
 * Passes a call on to the owner of its cell, and looks for the owner for up to 2 s.
 *
 * @returns null when this node owns the cell by now
 * @throws Unavailable when no owner is found, or the answer was lost
 */
export async function passOn<Answer extends { readonly head: unknown }>(
  node: ClusterNode,
  cell: number,
  send: Sender<Answer>,
): Promise<Answer | null> {
  const { owners, counts, term } = node.parts;
  const until = performance.now() + CELL_LIMITS.doorWaitMs;
  /** Owner named by the last receiver; null after a read of the tables, so that stale nodes cannot bounce a call. */
  let named: number | null = null;
  while (true) {
    if (term.doors.isHere(cell)) return null;
    if (owners.isMoved(cell)) throw new Unavailable("Another store serves this workspace");
    const owner: number | null = named ?? owners.of(cell);
    const reply: Answer | null = owner === null ? null : await sent(send, owner);
    const newOwner: number | null = reply === null ? null : ownerIfNotRun(reply.head);
    if (reply !== null && newOwner === null) {
      counts.passedOn += 1;
      return reply;
    }
    if (performance.now() > until) throw new Unavailable("This workspace has no known owner");
    if (reply !== null) counts.sentAgain += 1;
    if (named === null && newOwner !== null && ![0, owner, node.term].includes(newOwner)) {
      named = newOwner;
      owners.set([cell], newOwner);
    } else {
      named = null;
      await node.lookForOwners();
    }
  }
}

/** Sends a call; null when it was not sent and never will be. */
async function sent<Answer extends { readonly head: unknown }>(
  send: Sender<Answer>,
  owner: number,
): Promise<Answer | null> {
  try {
    return await send(owner);
  } catch (error) {
    if (error instanceof ChannelFull) return null;
    throw error;
  }
}

/** Sends a call on the channel to the owner, or, without one, through a third node that relays it. */
export function callSender(node: ClusterNode, call: unknown): Sender<Reply> {
  const { hub } = node.parts;
  return (owner) => {
    if (hub === null) return null;
    if (hub.isOpen(owner)) return hub.call(owner, [0, call] satisfies PassedCall);
    const relay = node.relayTo(owner);
    return relay === null ? null : hub.call(relay, [owner, call] satisfies PassedCall);
  };
}

/** Sends a call with a streamed answer; it is never relayed. */
export function streamSender(node: ClusterNode, call: unknown, signal: AbortSignal): Sender<StreamedReply> {
  const { hub } = node.parts;
  return (owner) => hub?.isOpen(owner) === true ? hub.request(owner, call, new Uint8Array(), signal) : null;
}
