// Passing a call on to the owner of its cell. A call leaves once: it is sent again only after its receiver has said that
// it did not run (rule 4 of the cluster's design). A lost channel or a time-out leaves nobody who knows, and is 503.

import { Unavailable } from "../../actors/port.ts";
import { ChannelFull, type Reply, type StreamedReply } from "../channel/hub.ts";
import { CELL_LIMITS } from "../process/limits.ts";
import type { Member } from "./member.ts";

/** A call between members: to whom a relay passes it, 0 for the receiver itself, and what it is. */
export type PassedCall = readonly [relayTo: number, call: unknown];

/** The head of a reply to a call that did not run: the owner as the receiver knows it, 0 for unknown. */
type NotRun = readonly ["not run", number];

/** Sends a call to a member; null where there is no way to it. */
export type Sender<Answer extends { readonly head: unknown }> = (owner: number) => Promise<Answer> | null;

/** What says that a call did not run, and may be sent again. */
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
 * Passes a call on to whoever owns its cell, and looks for the owner for a bounded time.
 *
 * @returns null when the cell has come here meanwhile
 * @throws Unavailable when nobody who owns the cell is found, or the answer was lost
 */
export async function passOn<Answer extends { readonly head: unknown }>(
  member: Member,
  cell: number,
  send: Sender<Answer>,
): Promise<Answer | null> {
  const { owners, counts, term } = member.parts;
  const until = performance.now() + CELL_LIMITS.doorWaitMs;
  /** Whom the last receiver named, unless we have looked for ourselves since: two that name each other are not believed. */
  let named: number | null = null;
  while (true) {
    if (term.doors.isHere(cell)) return null;
    const owner: number | null = named ?? owners.of(cell);
    const reply: Answer | null = owner === null ? null : await sent(send, owner);
    const newOwner: number | null = reply === null ? null : ownerIfNotRun(reply.head);
    if (reply !== null && newOwner === null) {
      counts.passedOn += 1;
      return reply;
    }
    if (performance.now() > until) throw new Unavailable("Nobody is known to own this workspace");
    if (reply !== null) counts.sentAgain += 1;
    if (named === null && newOwner !== null && ![0, owner, member.term].includes(newOwner)) {
      named = newOwner;
      owners.set([cell], newOwner);
    } else {
      named = null;
      await member.lookForOwners();
    }
  }
}

/** The answer of a member; null where the call has not left this process and never will. */
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

/** Sends a call on the channel to its owner, or through a third member where there is none (rule 14). */
export function callSender(member: Member, call: unknown): Sender<Reply> {
  const { hub } = member.parts;
  return (owner) => {
    if (hub === null) return null;
    if (hub.isOpen(owner)) return hub.call(owner, [0, call] satisfies PassedCall);
    const relay = member.relayTo(owner);
    return relay === null ? null : hub.call(relay, [owner, call] satisfies PassedCall);
  };
}

/** Sends a call whose answer is a stream; never through a third. */
export function streamSender(member: Member, call: unknown, signal: AbortSignal): Sender<StreamedReply> {
  const { hub } = member.parts;
  return (owner) => hub?.isOpen(owner) === true ? hub.request(owner, call, new Uint8Array(), signal) : null;
}
