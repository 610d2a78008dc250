// Types of the hub's interface: the identity of a node, what it receives, and how a call can fail. The channel never looks
// into calls, heads and notifications: they are JSON values of its users.

import { Unavailable } from "../../actors/port.ts";

/** The identity of this process as a node. */
export interface Identity {
  /** The id of the database that the nodes serve; nodes of different databases never connect. */
  readonly database: string;
  /** The secret of the cluster. */
  readonly secret: string;
  /** The version of the protocol; nodes with different versions open no channel. */
  readonly protocol: number;
  /** The term of this node: a positive integer that no other node ever has. */
  readonly term: number;
}

/** The answer to a call. */
export interface Reply {
  /** A JSON value. */
  readonly head: unknown;
  /** Text without lone surrogates; it arrives unchanged. */
  readonly body: string;
}

/** The answer to an HTTP request. */
export interface StreamedReply {
  /** A JSON value. */
  readonly head: unknown;
  readonly body: ReadableStream<Uint8Array> | null;
}

/** Receives what arrives at a hub. */
export interface Receiver {
  /** Answers a peer's call. A rejection makes the answer of that call lost. */
  onCall(call: unknown, from: number): Promise<Reply>;
  /**
   * Answers a peer's HTTP request; `signal` aborts when the peer cancels it or the channel is lost. A rejection makes the
   * answer lost.
   */
  onRequest(head: unknown, body: Uint8Array, from: number, signal: AbortSignal): Promise<StreamedReply>;
  onNote(note: unknown, from: number): void;
  /** A channel to this node was opened. */
  onOpened(term: number): void;
  /**
   * A channel to this node was lost. With `isRefused` its process is certainly gone: its address refuses connections, or
   * another node proved its identity there. This may be reported with the loss, later, or for a node that never had a
   * channel, and is not repeated while it stays true. Channels that the hub was asked to close are not reported.
   */
  onLost(term: number, isRefused: boolean): void;
}

/** The channel was lost, or the peer had no answer: the call may have run. */
export class ChannelLost extends Unavailable {}

/** The call did not run and never will: no channel, a bound is reached, or the peer is closing the channel. */
export class ChannelFull extends Unavailable {}

/** Counters of a hub. */
export class ChannelStats {
  opened = 0;
  /** Channels that ended by themselves. */
  lost = 0;
  /** Connections that proved nothing, or that may not have a channel. */
  refusedPeers = 0;
  framesSent = 0;
  framesReceived = 0;
  bytesSent = 0;
  bytesReceived = 0;
}
