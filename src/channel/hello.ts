// How two members prove to each other who they are, before anything else is said on a line. Four frames:
//
//   dialer    hello           protocol, a nonce
//   listener  challenge       protocol, a nonce
//   dialer    dialerProof     its term, the term it expects, what it wants, HMAC
//   listener  listenerProof   its term, HMAC
//
// The dialer proves first, so that a stranger learns a protocol number and a random one. Both nonces are under both
// HMACs, so nothing said before can be said again; the role is, so no proof can be sent back to its maker; database,
// protocol, terms and intent are, so nothing of one meeting serves in another.

import { createHmac, timingSafeEqual } from "node:crypto";
import { integerOf } from "./batches.ts";
import { type FrameReader, HELLO_BOUNDS, KIND, ProtocolFault, textFrame, textOf, valueOf } from "./frames.ts";
import type { Line } from "./line.ts";
import type { ChannelStats, Identity } from "./shapes.ts";

/** What a dialer wants: a channel, or only to know who is there. */
export type Intent = "channel" | "probe";

/** A line that is being made a channel. */
export interface Meeting {
  readonly line: Line;
  readonly reader: FrameReader;
  readonly identity: Identity;
  readonly stats: ChannelStats;
}

/** A dialer that has proved who it is. */
export interface ProvedDialer {
  readonly term: number;
  /** The term that it hopes to find here. */
  readonly expected: number;
  readonly intent: Intent;
  /** Proves to it who we are. */
  readonly prove: () => Promise<void>;
}

/** What both proofs of a meeting are made of. */
interface Facts {
  readonly intent: Intent;
  readonly dialer: number;
  readonly expected: number;
  readonly dialerNonce: string;
  readonly listenerNonce: string;
}

const NONCE_BYTES = 32;
/** A nonce or an HMAC. */
const HEX = /^[0-9a-f]{64}$/;
/** Says what the HMACs are for, should the secret ever serve for something else. */
const PURPOSE = "holdfast channel";

/**
 * The dialer's side.
 *
 * @returns the term of the listener, which may be another than the expected one
 * @throws ProtocolFault when the listener proves nothing; what the line throws
 */
export async function meetListener(meeting: Meeting, expected: number, intent: Intent): Promise<number> {
  const { protocol, term } = meeting.identity;
  const dialerNonce = newNonce();
  await say(meeting, KIND.hello, { protocol, nonce: dialerNonce });
  const challenge = await hear(meeting, KIND.challenge);
  if (challenge.protocol !== protocol) throw new ProtocolFault("The peer has another protocol");
  const listenerNonce = hexOf(challenge.nonce);
  const facts: Facts = { intent, dialer: term, expected, dialerNonce, listenerNonce };
  const proof = proofOf(meeting.identity, facts, "dialer");
  await say(meeting, KIND.dialerProof, { term, expected, intent, proof });
  const answer = await hear(meeting, KIND.listenerProof);
  const listener = integerOf(answer.term);
  checkProof(answer.proof, proofOf(meeting.identity, facts, "listener", listener));
  return listener;
}

/**
 * The listener's side, up to the dialer's proof.
 *
 * @throws ProtocolFault when the dialer proves nothing; what the line throws
 */
export async function meetDialer(meeting: Meeting): Promise<ProvedDialer> {
  const { protocol, term: own } = meeting.identity;
  const hello = await hear(meeting, KIND.hello);
  const dialerNonce = hexOf(hello.nonce);
  const listenerNonce = newNonce();
  await say(meeting, KIND.challenge, { protocol, nonce: listenerNonce });
  const { term, expected, intent, proof } = await hear(meeting, KIND.dialerProof);
  if (intent !== "channel" && intent !== "probe") throw new ProtocolFault("The peer wants something else");
  const facts: Facts = {
    intent,
    dialer: integerOf(term),
    expected: integerOf(expected),
    dialerNonce,
    listenerNonce,
  };
  checkProof(proof, proofOf(meeting.identity, facts, "dialer"));
  return {
    term: facts.dialer,
    expected: facts.expected,
    intent,
    prove: () => {
      const proof = proofOf(meeting.identity, facts, "listener", own);
      return say(meeting, KIND.listenerProof, { term: own, proof });
    },
  };
}

function proofOf(
  { database, secret, protocol }: Identity,
  { intent, dialer, expected, dialerNonce, listenerNonce }: Facts,
  role: "dialer" | "listener",
  listener: number | null = null,
): string {
  const said = [
    PURPOSE,
    role,
    intent,
    database,
    protocol,
    dialer,
    expected,
    listener,
    dialerNonce,
    listenerNonce,
  ];
  return createHmac("sha256", secret).update(JSON.stringify(said)).digest("hex");
}

function checkProof(said: unknown, expected: string): void {
  if (!timingSafeEqual(Uint8Array.fromHex(hexOf(said)), Uint8Array.fromHex(expected))) {
    throw new ProtocolFault("The peer does not know the secret");
  }
}

function newNonce(): string {
  return crypto.getRandomValues(new Uint8Array(NONCE_BYTES)).toHex();
}

function hexOf(value: unknown): string {
  if (typeof value !== "string" || !HEX.test(value)) throw new ProtocolFault("A nonce or a proof is none");
  return value;
}

async function say({ line, stats }: Meeting, kind: number, said: object): Promise<void> {
  const frame = textFrame(kind, JSON.stringify(said));
  await line.write(frame);
  stats.framesSent++;
  stats.bytesSent += frame.length;
}

async function hear({ reader }: Meeting, kind: number): Promise<Record<string, unknown>> {
  const frame = await reader.next(HELLO_BOUNDS);
  if (frame?.kind !== kind) {
    throw new ProtocolFault("The peer says something else than its part of the hello");
  }
  const said = valueOf(textOf(frame.payload));
  if (typeof said !== "object" || said === null) throw new ProtocolFault("A part of the hello is no object");
  return said as Record<string, unknown>;
}
