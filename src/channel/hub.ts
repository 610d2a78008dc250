// The channels of one member to the others. It listens, keeps one channel to each member that it is told of, and hands on
// what arrives. Of each pair the member with the higher term dials. It decides nothing about members: who there is, and
// what follows from a loss, is its user's.

import { CHANNEL_LIMITS } from "../process/limits.ts";
import { log, messageOf } from "../process/log.ts";
import { Channel } from "./channel.ts";
import { dial, type Dialer } from "./dial.ts";
import { Admission } from "./admission.ts";
import type { FrameReader } from "./frames.ts";
import type { Line, Network } from "./line.ts";
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

/** A member to keep a channel to. */
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

/** The channels of one member. */
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
   * @param receiver is handed what arrives; whatever it throws is logged and changes nothing here
   * @param stats counts what this hub does; one that others have counted with goes on
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
      onMember: (term, line, reader) => this.#onMember(term, line, reader),
    });
  }

  /**
   * Listens and answers the address. Nothing is connected before `setPeers` names somebody.
   *
   * @throws what the network throws when it cannot listen
   */
  async open(): Promise<string> {
    this.#listening = await this.#network.listen((line) => void this.#admission.admit(line));
    return this.#listening.address;
  }

  /**
   * The members to keep channels to; a channel to anyone else is closed, with its calls lost and without `onLost`. A
   * member whose address is another one keeps its channel until that is lost.
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
      // The other side of the pair dials; this one looks after it only when it doesn't come.
      if (term < this.#identity.term) void this.#knock(peer);
      else this.#knockLater(peer, CHANNEL_LIMITS.redialMsMax);
    }
    this.#admission.onPeers();
  }

  /** Whether calls can be made to a member. */
  isOpen(term: number): boolean {
    return this.#open(term) !== null;
  }

  /**
   * Calls a member; the call leaves once.
   *
   * @throws ChannelFull when it did not run and never will: no channel, or no room
   * @throws ChannelLost when nobody knows whether it ran
   */
  call(term: number, call: unknown): Promise<Reply> {
    // Not async: this way is hot, and a promise more for each call costs.
    try {
      return this.#need(term).call(call);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Sends a member a whole request; resolves with the head of the answer, whose body streams. Aborting the signal, or
   * cancelling the body, tells the member.
   *
   * @throws ChannelFull when it did not run and never will
   * @throws ChannelLost when nobody knows whether it ran; a body that breaks off throws it as well
   * @throws the signal's reason
   */
  // deno-lint-ignore require-await -- what cannot be sent is a rejection
  async request(term: number, head: unknown, body: Uint8Array, signal: AbortSignal): Promise<StreamedReply> {
    return this.#need(term).request(head, body, signal);
  }

  /** Sends a hint: without a channel, or without room, it is dropped. */
  note(term: number, note: unknown): void {
    this.#open(term)?.note(JSON.stringify(note) ?? "null");
  }

  noteAll(note: unknown): void {
    const json = JSON.stringify(note) ?? "null";
    for (const { channel } of this.#peers.values()) if (channel?.isOpen) channel.note(json);
  }

  /**
   * Whether a member is gone for sure: refused, or somebody else with a valid proof answers at its address. "unknown" for
   * everything else, a time-out too.
   */
  async probe(address: string, term: number): Promise<"gone" | "alive" | "unknown"> {
    if (this.#closed !== null) return "unknown";
    // Where this process listens, nobody else does.
    if (address === this.#listening?.address) return term === this.#identity.term ? "alive" : "gone";
    const dialed = await dial(this.#dialer, address, term, "probe");
    if (dialed.state === "alive") dialed.line.close();
    return dialed.state;
  }

  /**
   * Ends in good order: nothing new, answers under way are still written for a moment. From then on connections are
   * refused, which tells the others that this process is gone: whoever closes a hub must answer nothing more.
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
    if (channel === null) throw new ChannelFull(`There is no channel to member ${term}`);
    return channel;
  }

  /** A line on which a member with a higher term has proved who it is. It dials only when it has no channel any more. */
  #onMember(term: number, line: Line, reader: FrameReader): void {
    const peer = this.#peers.get(term);
    if (peer === undefined || this.#closed !== null) return line.close();
    if (peer.channel !== null) {
      peer.channel.close();
      peer.channel = null;
      this.stats.lost++;
      this.#receiver.onLost(term, false);
      if (!this.#isCurrent(peer)) return line.close();
    }
    this.#start(peer, line, reader);
  }

  #start(peer: Peer, line: Line, reader: FrameReader): void {
    this.#stopKnocking(peer);
    const { stats } = this;
    const { term } = peer;
    const channel = new Channel({
      line,
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
    // Asked at once whether the process is gone, unless its channels end as soon as they begin.
    const hasLived = performance.now() - channel.openedAt >= CHANNEL_LIMITS.redialMsMax;
    if (hasLived) peer.pauseMs = CHANNEL_LIMITS.redialMs;
    if (hasLived) this.#knockLater(peer, 0);
    else this.#knockAfterPause(peer);
  }

  /** Dials a member that has no channel. The member of the pair that must not dial only asks who is there. */
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
      if (dialed.state === "alive") dialed.line.close();
      return;
    }
    if (dialed.state === "alive" && isDialer) return this.#start(peer, dialed.line, dialed.reader);
    if (dialed.state === "alive") dialed.line.close();
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

/** A receiver whose faults end nothing but the call that they are about. */
function guarded(receiver: Receiver): Receiver {
  const quietly = (tell: () => void) => {
    try {
      tell();
    } catch (error) {
      log("error", "A channel's receiver failed", { error: messageOf(error) });
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
