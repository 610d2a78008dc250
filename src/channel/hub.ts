// The channels of one node to the others. The hub listens, keeps one channel to each peer of its list, and hands over what
// arrives. Of each pair the node with the higher term dials. The hub decides nothing about nodes: its user sets the peers
// and reacts to losses.

import { CHANNEL_LIMITS } from "../process/channel_limits.ts";
import { log, messageOf } from "../process/log.ts";
import { Channel } from "./channel.ts";
import { dial, type Dialer } from "./dial.ts";
import { Admission } from "./admission.ts";
import type { FrameReader } from "./frames.ts";
import type { Connection, Network } from "./network.ts";
import {
  ChannelFull,
  ChannelStats,
  type Identity,
  type Receiver,
  type Reply,
  type StreamedReply,
} from "./shapes.ts";

export { ChannelFull, ChannelLost, ChannelStats } from "./shapes.ts";
export type { Identity, Receiver, Reply, StreamedReply } from "./shapes.ts";

/** A node to keep a channel to. */
interface Peer {
  readonly term: number;
  readonly address: string;
  channel: Channel | null;
  pauseMs: number;
  timer: ReturnType<typeof setTimeout> | null;
  isKnocking: boolean;
  /** Whether the receiver knows that its process is gone. */
  isGone: boolean;
}

/** The channels of one node. */
export class Hub {
  readonly stats: ChannelStats;
  readonly #identity: Identity;
  readonly #receiver: Receiver;
  readonly #network: Network;
  readonly #dialer: Dialer;
  readonly #admission: Admission;
  readonly #peers = new Map<number, Peer>();
  #listening: { readonly address: string; close(): void } | null = null;
  #closed: Promise<void> | null = null;

  /**
   * @param receiver receives what arrives; errors that it throws are logged and have no other effect
   * @param stats counters to add to, so that several hubs can share them
   */
  constructor(
    network: Network,
    identity: Identity,
    receiver: Receiver,
    stats: ChannelStats = new ChannelStats(),
  ) {
    this.stats = stats;
    this.#network = network;
    this.#identity = identity;
    this.#receiver = guarded(receiver);
    this.#dialer = { network, identity, stats: this.stats, giveUps: new Set() };
    this.#admission = new Admission({
      identity,
      stats: this.stats,
      isPeer: (term) => this.#peers.has(term),
      onNode: (term, connection, reader) => this.#onNode(term, connection, reader),
    });
  }

  /**
   * Listens; returns the address. The hub connects to no node before `setPeers`.
   *
   * @throws the error of the network when it cannot listen
   */
  async open(): Promise<string> {
    this.#listening = await this.#network.listen((connection) => void this.#admission.admit(connection));
    return this.#listening.address;
  }

  /**
   * Sets the nodes to keep channels to. Channels to other nodes are closed: their calls are lost, and `onLost` is not
   * called. A changed address takes effect when the channel to that node is lost.
   */
  setPeers(peers: readonly { readonly term: number; readonly address: string }[]): void {
    if (this.#closed !== null) return;
    const named = new Map(peers.map((peer) => [peer.term, peer.address]));
    named.delete(this.#identity.term);
    for (const peer of [...this.#peers.values()]) if (!named.has(peer.term)) this.#drop(peer);
    for (const [term, address] of named) {
      const known = this.#peers.get(term);
      if (known?.address === address) continue;
      if (known !== undefined) this.#stopKnocking(known);
      const channel = known?.channel ?? null;
      const peer: Peer = {
        term,
        address,
        channel,
        pauseMs: CHANNEL_LIMITS.redialMs,
        timer: null,
        isKnocking: false,
        isGone: false,
      };
      this.#peers.set(term, peer);
      if (channel !== null) continue;
      // If the other side dials, this side only checks on it when no connection has come for a while.
      if (term < this.#identity.term) void this.#knock(peer);
      else this.#knockLater(peer, CHANNEL_LIMITS.redialMsMax);
    }
    this.#admission.onPeers();
  }

  /** Whether there is a channel to a node. */
  isOpen(term: number): boolean {
    return this.#open(term) !== null;
  }

  /**
   * Calls a node; the call is sent at most once.
   *
   * @throws ChannelFull when it did not run and never will: no channel, or no room
   * @throws ChannelLost when it may have run
   */
  call(term: number, call: unknown): Promise<Reply> {
    // Not async: on this hot path one more promise for each call is measurable.
    try {
      return this.#need(term).call(call);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Sends an HTTP request to a node; resolves with the head of the answer and its body as a stream. Aborting the signal,
   * or cancelling the body, cancels the request at that node.
   *
   * @throws ChannelFull when it did not run and never will
   * @throws ChannelLost when it may have run; also while the body is read, if the channel is lost
   * @throws the signal's reason
   */
  // deno-lint-ignore require-await -- errors must be rejections
  async request(term: number, head: unknown, body: Uint8Array, signal: AbortSignal): Promise<StreamedReply> {
    return this.#need(term).request(head, body, signal);
  }

  /** Sends a notification; it is dropped without a channel or without room. */
  note(term: number, note: unknown): void {
    this.#open(term)?.note(JSON.stringify(note) ?? "null");
  }

  noteAll(note: unknown): void {
    const json = JSON.stringify(note) ?? "null";
    for (const { channel } of this.#peers.values()) if (channel?.isOpen) channel.note(json);
  }

  /**
   * Checks whether a node is alive. "gone" only with proof: its address refuses connections, or another node proves its
   * identity there. "unknown" for everything else, including a timeout.
   */
  async probe(address: string, term: number): Promise<"gone" | "alive" | "unknown"> {
    if (this.#closed !== null) return "unknown";
    // No other process can listen on this address.
    if (address === this.#listening?.address) return term === this.#identity.term ? "alive" : "gone";
    const dialed = await dial(this.#dialer, address, term, "probe");
    if (dialed.state === "alive") dialed.connection.close();
    return dialed.state;
  }

  /**
   * Closes in order: takes no new calls, and waits a short time for answers in flight. After that the port refuses
   * connections, which means to other nodes that this process is gone, so the caller must not answer anything after it.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#admission.close();
    for (const giveUp of [...this.#dialer.giveUps]) giveUp();
    const peers = [...this.#peers.values()];
    for (const peer of peers) this.#stopKnocking(peer);
    await Promise.all(peers.map(({ channel }) => channel?.leave()));
    this.#peers.clear();
    this.#listening?.close();
  }

  #open(term: number): Channel | null {
    const channel = this.#peers.get(term)?.channel;
    return channel?.isOpen ? channel : null;
  }

  #need(term: number): Channel {
    const channel = this.#open(term);
    if (channel === null) throw new ChannelFull(`There is no channel to process ${term}`);
    return channel;
  }

  /** Opens a channel to a node that dialed and proved its identity. It dials only without a channel: the old one is lost. */
  #onNode(term: number, connection: Connection, reader: FrameReader): void {
    const peer = this.#peers.get(term);
    if (peer === undefined || this.#closed !== null) return connection.close();
    if (peer.channel !== null) {
      peer.channel.close();
      peer.channel = null;
      this.stats.lost++;
      this.#receiver.onLost(term, false);
      if (!this.#isCurrent(peer)) return connection.close();
    }
    this.#start(peer, connection, reader);
  }

  #start(peer: Peer, connection: Connection, reader: FrameReader): void {
    this.#stopKnocking(peer);
    const { stats } = this;
    const { term } = peer;
    const channel = new Channel({
      connection,
      reader,
      term,
      receiver: this.#receiver,
      stats,
      onEnd: () => this.#onEnd(channel),
    });
    peer.channel = channel;
    peer.isGone = false;
    stats.opened++;
    this.#receiver.onOpened(term);
    void channel.read();
  }

  #onEnd(channel: Channel): void {
    const peer = this.#peers.get(channel.term);
    if (peer?.channel !== channel) return;
    peer.channel = null;
    this.stats.lost++;
    if (this.#closed !== null) return;
    this.#receiver.onLost(peer.term, false);
    // Checks at once whether the process is gone, unless its channels end as soon as they begin.
    const hasLived = performance.now() - channel.openedAt >= CHANNEL_LIMITS.redialMsMax;
    if (hasLived) peer.pauseMs = CHANNEL_LIMITS.redialMs;
    if (hasLived) this.#knockLater(peer, 0);
    else this.#knockAfterPause(peer);
  }

  /** Dials a peer without a channel. The side of the pair that does not dial only probes who is there. */
  async #knock(peer: Peer): Promise<void> {
    if (peer.isKnocking || peer.channel !== null || !this.#isCurrent(peer)) return;
    peer.isKnocking = true;
    const { address, term } = peer;
    const isDialer = term < this.#identity.term;
    const dialed = address === this.#listening?.address
      ? { state: "gone" } as const
      : await dial(this.#dialer, address, term, isDialer ? "channel" : "probe");
    peer.isKnocking = false;
    if (!this.#isCurrent(peer) || peer.channel !== null) {
      if (dialed.state === "alive") dialed.connection.close();
      return;
    }
    if (dialed.state === "alive" && isDialer) return this.#start(peer, dialed.connection, dialed.reader);
    if (dialed.state === "alive") dialed.connection.close();
    const isNews = dialed.state === "gone" && !peer.isGone;
    peer.isGone = dialed.state === "gone";
    this.#knockAfterPause(peer);
    if (isNews) this.#receiver.onLost(term, true);
  }

  #knockLater(peer: Peer, ms: number): void {
    this.#stopKnocking(peer);
    if (this.#isCurrent(peer)) peer.timer = setTimeout(() => void this.#knock(peer), ms);
  }

  #knockAfterPause(peer: Peer): void {
    this.#knockLater(peer, peer.pauseMs);
    peer.pauseMs = Math.min(peer.pauseMs * 2, CHANNEL_LIMITS.redialMsMax);
  }

  #stopKnocking(peer: Peer): void {
    if (peer.timer !== null) clearTimeout(peer.timer);
    peer.timer = null;
  }

  #isCurrent(peer: Peer): boolean {
    return this.#closed === null && this.#peers.get(peer.term) === peer;
  }

  #drop(peer: Peer): void {
    this.#stopKnocking(peer);
    this.#peers.delete(peer.term);
    peer.channel?.close();
  }
}

/** Wraps a receiver so that an error ends only the call that it concerns. */
function guarded(receiver: Receiver): Receiver {
  const quietly = (notify: () => void) => {
    try {
      notify();
    } catch (error) {
      log("error", "The receiver of a channel failed", { error: messageOf(error) });
    }
  };
  return {
    onCall(call, from) {
      try {
        return receiver.onCall(call, from);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    onRequest: (head, body, from, signal) => receiver.onRequest(head, body, from, signal),
    onNote: (note, from) => quietly(() => receiver.onNote(note, from)),
    onOpened: (term) => quietly(() => receiver.onOpened(term)),
    onLost: (term, isRefused) => quietly(() => receiver.onLost(term, isRefused)),
  };
}
