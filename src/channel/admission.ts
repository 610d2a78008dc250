// Incoming connections until they have proved their identity. Unproved connections share a few places, each for at most
// the time of a hello, and a new one closes the oldest: a stranger that opens many closes mostly its own, while a node
// needs its place for two round trips only.

import { CHANNEL_LIMITS } from "../process/channel_limits.ts";
import { FrameReader, HELLO_BOUNDS } from "./frames.ts";
import { meetDialer, type Meeting, type ProvedDialer } from "./hello.ts";
import type { Connection } from "./network.ts";
import type { ChannelStats, Identity } from "./shapes.ts";

/** What admission needs from its hub. */
interface AdmissionOptions {
  readonly identity: Identity;
  readonly stats: ChannelStats;
  /** Whether the hub keeps a channel to this node. */
  readonly isPeer: (term: number) => boolean;
  /** Receives a connection to a peer after both sides have proved their identity. */
  readonly onNode: (term: number, connection: Connection, reader: FrameReader) => void;
}

/** A node that connected before this process knew of it. */
interface Newcomer {
  readonly connection: Connection;
  readonly enter: () => void;
}

/** Incoming connections that are not channels yet. */
export class Admission {
  readonly #options: AdmissionOptions;
  /** In order of arrival. */
  readonly #unproved = new Set<Connection>();
  readonly #waiting = new Map<number, Newcomer>();
  /** Every connection that is not a channel yet. */
  readonly #connections = new Set<Connection>();
  #isClosed = false;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /** The number of connections that have proved nothing yet. */
  get unproved(): number {
    return this.#unproved.size;
  }

  /** Checks the identity of a connection, and hands it to the hub or closes it. */
  async admit(connection: Connection): Promise<void> {
    if (this.#isClosed) return connection.close();
    const { identity, stats } = this.#options;
    const [oldest] = this.#unproved;
    if (oldest !== undefined && this.#unproved.size >= CHANNEL_LIMITS.unprovedMax) {
      this.#unproved.delete(oldest);
      oldest.close();
    }
    this.#unproved.add(connection);
    this.#connections.add(connection);
    const reader = new FrameReader(connection, stats);
    const timer = setTimeout(() => {
      connection.close();
      this.#forget(connection);
    }, CHANNEL_LIMITS.helloMs);
    try {
      const dialer = await meetDialer({ connection, reader, identity, stats });
      this.#unproved.delete(connection);
      const isNode = await this.#isNode({ connection, reader, identity, stats }, dialer);
      if (!isNode || !this.#connections.has(connection)) return this.#close(connection);
      await dialer.prove();
      if (!this.#connections.delete(connection) || !this.#options.isPeer(dialer.term)) {
        return this.#close(connection);
      }
      this.#options.onNode(dialer.term, connection, reader);
    } catch {
      stats.refusedPeers++;
      this.#close(connection);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Admits waiting nodes that have become peers. */
  onPeers(): void {
    for (const [term, { enter }] of [...this.#waiting]) if (this.#options.isPeer(term)) enter();
  }

  /** Closes all connections here, and all that arrive later. */
  close(): void {
    this.#isClosed = true;
    for (const connection of [...this.#connections]) this.#close(connection);
  }

  /** Whether a proved dialer may have a channel; waits for nodes that are still unknown. */
  async #isNode(meeting: Meeting, dialer: ProvedDialer): Promise<boolean> {
    const { identity, isPeer, stats } = this.#options;
    if (dialer.intent === "probe" || dialer.expected !== identity.term) {
      // Proves who is here: all that a probe asks for, and what a dialer that expected another node has to learn.
      await dialer.prove();
      if (dialer.intent === "channel") stats.refusedPeers++;
      // Waits for the other side to close, so that it has read everything.
      await meeting.reader.next(HELLO_BOUNDS);
      return false;
    }
    const isUnknown = dialer.term > identity.term && !isPeer(dialer.term);
    if (isUnknown) await this.#becomeKnown(dialer.term, meeting.connection);
    if (dialer.term > identity.term && isPeer(dialer.term)) return true;
    stats.refusedPeers++;
    return false;
  }

  /** Resolves when the term has become a peer, or when its connection has been closed. */
  async #becomeKnown(term: number, connection: Connection): Promise<void> {
    this.#waiting.get(term)?.enter();
    if (this.#waiting.size >= CHANNEL_LIMITS.unknownMax) return;
    const { promise, resolve: enter } = Promise.withResolvers<void>();
    const waiting: Newcomer = { connection, enter };
    this.#waiting.set(term, waiting);
    await promise;
    if (this.#waiting.get(term) === waiting) this.#waiting.delete(term);
  }

  #close(connection: Connection): void {
    connection.close();
    this.#forget(connection);
  }

  #forget(connection: Connection): void {
    this.#unproved.delete(connection);
    this.#connections.delete(connection);
    for (const waiting of this.#waiting.values()) if (waiting.connection === connection) waiting.enter();
  }
}
