// What the hub and those who use it tell each other: who a member is, what it receives, and how a call can fail. The
// channel never looks into calls, heads and notes: they are JSON values of its users.

import { Unavailable } from "../../actors/port.ts";

/** Who this process is to the other members. */
export interface Identity {
  /** The database that the members serve; members of two databases never meet. */
  readonly database: string;
  /** What every member of the database knows and nobody else. */
  readonly secret: string;
  /** The version of what is said on a channel; members that differ open none. */
  readonly protocol: number;
  /** This member's number, a positive integer that no other one ever has. */
  readonly term: number;
}

/** The answer of a call. */
export interface Reply {
  /** A JSON value. */
  readonly head: unknown;
  /** Text that arrives as it was, without lone surrogates. */
  readonly body: string;
}

/** The answer of a whole request. */
export interface StreamedReply {
  /** A JSON value. */
  readonly head: unknown;
  readonly body: ReadableStream<Uint8Array> | null;
}

/** What a hub hands to the process that it belongs to. */
export interface Receiver {
  /** A peer's call; what it rejects with becomes a lost answer for that call alone. */
  onCall(call: unknown, from: number): Promise<Reply>;
  /**
   * A peer's whole request; `signal` aborts when the peer no longer wants the answer or the channel is lost. What it
   * rejects with becomes a lost answer.
   */
  onRequest(head: unknown, body: Uint8Array, from: number, signal: AbortSignal): Promise<StreamedReply>;
  onNote(note: unknown, from: number): void;
  /** A channel to this member was opened. */
  onOpened(term: number): void;
  /**
   * A channel to this member was lost. With `isRefused` its process is gone for sure: its address refuses connections,
   * or somebody else proved to be there. That may come at the loss, later, or for a member that never had a channel;
   * it is told once until something else is learned. What the hub was told to close is not told.
   */
  onLost(term: number, isRefused: boolean): void;
}

/** The channel was lost, or the peer had no answer: nobody knows whether the call ran. */
export class ChannelLost extends Unavailable {}

/** The call did not run and never will: there is no channel, a bound of it is reached, or the peer is closing it. */
export class ChannelFull extends Unavailable {}

/** What a hub has done since it was made. */
export class ChannelStats {
  opened = 0;
  /** Channels that ended without this hub being told to close them. */
  lost = 0;
  /** Connections to this hub that proved nothing, or to be somebody who may not have a channel. */
  refusedPeers = 0;
  framesSent = 0;
  framesReceived = 0;
  bytesSent = 0;
  bytesReceived = 0;
}
