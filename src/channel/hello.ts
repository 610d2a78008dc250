// How two nodes prove their identity to each other, before anything else on a connection. Four frames:
//
//   dialer    hello           protocol, a nonce
//   listener  challenge       protocol, a nonce
//   dialer    dialerProof     its term, the term it expects, its intent, HMAC
//   listener  listenerProof   its term, HMAC
//
// The dialer proves its identity first, so a stranger learns only a protocol number and a random one. Each HMAC covers
// both nonces, so that no recorded frame can be used again; the role, so that no proof can be sent back to its sender;
// and database, protocol, terms and intent, so that no proof is valid in another handshake.

import { createHmac, timingSafeEqual } from "node:crypto";
import { integerOf } from "./batches.ts";
import { type FrameReader, HELLO_BOUNDS, KIND, ProtocolFault, textFrame, textOf, valueOf } from "./frames.ts";
import type { Connection } from "./network.ts";
import type { ChannelStats, Identity } from "./shapes.ts";

/** The intent of a dialer: to open a channel, or only to learn which node is there. */
export type Intent = "channel" | "probe";

/** A handshake in progress. */
export interface Meeting {
  readonly connection: Connection;
  readonly reader: FrameReader;
  readonly identity: Identity;
  readonly stats: ChannelStats;
}

/** A dialer that has proved its identity. */
export interface ProvedDialer {
  readonly term: number;
  /** The term that it expects here. */
  readonly expected: number;
  readonly intent: Intent;
  /** Proves our identity to the dialer. */
  readonly prove: () => Promise<void>;
}

/** What both proofs cover. */
interface Facts {
  readonly intent: Intent;
  readonly dialer: number;
  readonly expected: number;
  readonly dialerNonce: string;
  readonly listenerNonce: string;
}

const NONCE_BYTES = 32;
/** The format of a nonce and of an HMAC. */
const HEX = /^[0-9a-f]{64}$/;
/** Separates these HMACs from any other use of the secret. */
const PURPOSE = "holdfast channel";

/**
 * Runs the dialer's side.
 *
 * @returns the term of the listener, which may differ from the expected one
 * @throws ProtocolFault when the listener proves nothing; errors of the connection
 */
export async function meetListener(meeting: Meeting, expected: number, intent: Intent): Promise<number> {
  const { protocol, term } = meeting.identity;
  const dialerNonce = newNonce();
  await send(meeting, KIND.hello, { protocol, nonce: dialerNonce });
  const challenge = await receive(meeting, KIND.challenge);
  if (challenge.protocol !== protocol) throw new ProtocolFault("The peer has another protocol");
  const listenerNonce = hexOf(challenge.nonce);
  const facts: Facts = { intent, dialer: term, expected, dialerNonce, listenerNonce };
  const proof = proofOf(meeting.identity, facts, "dialer");
  await send(meeting, KIND.dialerProof, { term, expected, intent, proof });
  const answer = await receive(meeting, KIND.listenerProof);
  const listener = integerOf(answer.term);
  checkProof(answer.proof, proofOf(meeting.identity, facts, "listener", listener));
  return listener;
}

/**
 * Runs the listener's side, up to the dialer's proof.
 *
 * @throws ProtocolFault when the dialer proves nothing; errors of the connection
 */
export async function meetDialer(meeting: Meeting): Promise<ProvedDialer> {
  const { protocol, term: own } = meeting.identity;
  const hello = await receive(meeting, KIND.hello);
  const dialerNonce = hexOf(hello.nonce);
  const listenerNonce = newNonce();
  await send(meeting, KIND.challenge, { protocol, nonce: listenerNonce });
  const { term, expected, intent, proof } = await receive(meeting, KIND.dialerProof);
  if (intent !== "channel" && intent !== "probe") throw new ProtocolFault("Unknown intent");
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
      return send(meeting, KIND.listenerProof, { term: own, proof });
    },
  };
}

function proofOf(
  { database, secret, protocol }: Identity,
  { intent, dialer, expected, dialerNonce, listenerNonce }: Facts,
  role: "dialer" | "listener",
  listener: number | null = null,
): string {
  const facts = [
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
  return createHmac("sha256", secret).update(JSON.stringify(facts)).digest("hex");
}

function checkProof(proof: unknown, expected: string): void {
  if (!timingSafeEqual(Uint8Array.fromHex(hexOf(proof)), Uint8Array.fromHex(expected))) {
    throw new ProtocolFault("The peer does not know the secret");
  }
}

function newNonce(): string {
  return crypto.getRandomValues(new Uint8Array(NONCE_BYTES)).toHex();
}

function hexOf(value: unknown): string {
  if (typeof value !== "string" || !HEX.test(value)) throw new ProtocolFault("Malformed nonce or proof");
  return value;
}

async function send({ connection, stats }: Meeting, kind: number, message: object): Promise<void> {
  const frame = textFrame(kind, JSON.stringify(message));
  await connection.write(frame);
  stats.framesSent++;
  stats.bytesSent += frame.length;
}

async function receive({ reader }: Meeting, kind: number): Promise<Record<string, unknown>> {
  const frame = await reader.next(HELLO_BOUNDS);
  if (frame?.kind !== kind) {
    throw new ProtocolFault("Unexpected frame in the handshake");
  }
  const message = valueOf(textOf(frame.payload));
  if (typeof message !== "object" || message === null) {
    throw new ProtocolFault("A frame of the handshake is not an object");
  }
  return message as Record<string, unknown>;
}
