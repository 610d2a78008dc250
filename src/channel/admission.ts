// Connections of others to this process, until they have proved who they are. A connection that proves nothing costs its
// place among a few, for at most the time of a hello: another one closes the oldest, so that whoever opens many and
// says nothing closes their own, while a member needs its place for two round trips only.

import { CHANNEL_LIMITS } from "../process/limits.ts";
import { FrameReader, HELLO_BOUNDS } from "./frames.ts";
import { meetDialer, type Meeting, type ProvedDialer } from "./hello.ts";
import type { Line } from "./line.ts";
import type { ChannelStats, Identity } from "./shapes.ts";

/** What it needs of its hub. */
export interface DoorOptions {
  readonly identity: Identity;
  readonly stats: ChannelStats;
  /** Whether this member is one to keep a channel to. */
  readonly isPeer: (term: number) => boolean;
  /** A line to a peer that was proved both ways. */
  readonly onMember: (term: number, line: Line, reader: FrameReader) => void;
}

/** A member that came before this process has heard of it. */
interface Waiting {
  readonly line: Line;
  readonly enter: () => void;
}

/** The listening side's connections on their way to be channels. */
export class Admission {
  readonly #options: DoorOptions;
  /** In the order in which they came. */
  readonly #unproved = new Set<Line>();
  readonly #waiting = new Map<number, Waiting>();
  /** Every line that is not a channel yet. */
  readonly #lines = new Set<Line>();
  #isClosed = false;

  constructor(options: DoorOptions) {
    this.#options = options;
  }

  /** Connections that have proved nothing yet. */
  get unproved(): number {
    return this.#unproved.size;
  }

  /** Hears who a connection is, and hands it on or closes it. */
  async admit(line: Line): Promise<void> {
    if (this.#isClosed) return line.close();
    const { identity, stats } = this.#options;
    const [oldest] = this.#unproved;
    if (oldest !== undefined && this.#unproved.size >= CHANNEL_LIMITS.unprovedMax) {
      this.#unproved.delete(oldest);
      oldest.close();
    }
    this.#unproved.add(line);
    this.#lines.add(line);
    const reader = new FrameReader(line, stats);
    const timer = setTimeout(() => {
      line.close();
      this.#forget(line);
    }, CHANNEL_LIMITS.helloMs);
    try {
      const dialer = await meetDialer({ line, reader, identity, stats });
      this.#unproved.delete(line);
      const isMember = await this.#isMember({ line, reader, identity, stats }, dialer);
      if (!isMember || !this.#lines.has(line)) return this.#close(line);
      await dialer.prove();
      if (!this.#lines.delete(line) || !this.#options.isPeer(dialer.term)) return this.#close(line);
      this.#options.onMember(dialer.term, line, reader);
    } catch {
      stats.refusedPeers++;
      this.#close(line);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Lets in those who came before they were known. */
  onPeers(): void {
    for (const [term, { enter }] of [...this.#waiting]) if (this.#options.isPeer(term)) enter();
  }

  /** Closes what is no channel yet, and everything that still comes. */
  close(): void {
    this.#isClosed = true;
    for (const line of [...this.#lines]) this.#close(line);
  }

  /** Whether a dialer that has proved who it is may have a channel; waits for members that are still unknown. */
  async #isMember(meeting: Meeting, dialer: ProvedDialer): Promise<boolean> {
    const { identity, isPeer, stats } = this.#options;
    if (dialer.intent === "probe" || dialer.expected !== identity.term) {
      // It learns who is here, which is all that a probe wants and what a dialer of somebody else needs to know.
      await dialer.prove();
      if (dialer.intent === "channel") stats.refusedPeers++;
      // The end comes from the other side, so that it has read everything.
      await meeting.reader.next(HELLO_BOUNDS);
      return false;
    }
    const isUnknown = dialer.term > identity.term && !isPeer(dialer.term);
    if (isUnknown) await this.#becomeKnown(dialer.term, meeting.line);
    if (dialer.term > identity.term && isPeer(dialer.term)) return true;
    stats.refusedPeers++;
    return false;
  }

  /** Resolves when the term is a peer, or when its line will never be let in. */
  async #becomeKnown(term: number, line: Line): Promise<void> {
    this.#waiting.get(term)?.enter();
    if (this.#waiting.size >= CHANNEL_LIMITS.unknownMax) return;
    const { promise, resolve: enter } = Promise.withResolvers<void>();
    const waiting: Waiting = { line, enter };
    this.#waiting.set(term, waiting);
    await promise;
    if (this.#waiting.get(term) === waiting) this.#waiting.delete(term);
  }

  #close(line: Line): void {
    line.close();
    this.#forget(line);
  }

  #forget(line: Line): void {
    this.#unproved.delete(line);
    this.#lines.delete(line);
    for (const waiting of this.#waiting.values()) if (waiting.line === line) waiting.enter();
  }
}
