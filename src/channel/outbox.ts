// The writing side of a channel: one write at a time, in order. All that one turn of the event loop adds is written
// together after it; while a write is in progress, the next frames fill. Calls and answers go first, followed by one piece
// of a stream, so that neither waits long for the other.

import { CHANNEL_LIMITS } from "../process/channel_limits.ts";
import { FrameBatch } from "./batches.ts";
import { KIND, textFrame } from "./frames.ts";
import type { Connection } from "./network.ts";
import type { ChannelStats } from "./shapes.ts";

const PING = textFrame(KIND.ping, "");

/** A frame that waits to be written. */
interface QueuedFrame {
  readonly frame: Uint8Array;
  /** Called when its writing begins: from then on the peer may receive it. */
  readonly onLeave: (() => void) | null;
}

/** The writing side of a channel. */
export class Outbox {
  readonly #connection: Connection;
  readonly #stats: ChannelStats;
  readonly #onBroken: (error: unknown) => void;
  readonly #calls = new FrameBatch(KIND.calls);
  readonly #answers = new FrameBatch(KIND.answers);
  readonly #notes = new FrameBatch(KIND.notes);
  /** Complete frames that wait to be written. */
  #sealed: QueuedFrame[] = [];
  /** Frames of HTTP requests and their streamed answers. */
  readonly #streams: QueuedFrame[] = [];
  #sealedBytes = 0;
  #streamBytes = 0;
  #isScheduled = false;
  /** When the last write began. */
  #leftAt = -Infinity;
  #isStopped = false;
  #roomWaiters: (() => void)[] = [];
  #lastCall = 0;
  /** The id of the last call that the peer may receive; the writing of later calls has not begun. */
  lastCallLeft = 0;
  /** Pieces written so far; while a write is in progress and this does not change, the peer is not reading. */
  writes = 0;
  isWriting = false;

  constructor(connection: Connection, stats: ChannelStats, onBroken: (error: unknown) => void) {
    this.#connection = connection;
    this.#stats = stats;
    this.#onBroken = onBroken;
  }

  /** Bytes that wait to be written; texts count by their characters. */
  get waitingBytes(): number {
    return this.#sealedBytes + this.#streamBytes + this.#calls.chars + this.#answers.chars +
      this.#notes.chars;
  }

  get isIdle(): boolean {
    return !this.#isScheduled && !this.isWriting;
  }

  hasRoomFor(bytes: number): boolean {
    return this.waitingBytes + bytes <= CHANNEL_LIMITS.waitingBytesMax;
  }

  /** @param id larger than the ids of all calls before */
  addCall(id: number, json: string): void {
    this.#add(this.#calls, `[${id},${json}]`);
    this.#lastCall = id;
  }

  addAnswer(json: string, body: string): void {
    this.#add(this.#answers, json, body);
  }

  addNote(json: string): void {
    this.#add(this.#notes, json);
  }

  /** Adds a frame of an HTTP request or its answer; these are written in order. */
  addStreamFrame(frame: Uint8Array, onLeave: (() => void) | null = null): void {
    if (this.#isStopped) return;
    this.#streams.push({ frame, onLeave });
    this.#streamBytes += frame.length;
    this.#schedule();
  }

  /** Shows the peer that this side lives, unless a write in progress shows the same. */
  ping(): void {
    if (this.isWriting || this.#isStopped) return;
    this.#seal(PING, null);
    this.#schedule();
  }

  /** Null if a stream may add its next piece; else resolves when it may, or when the outbox has stopped. */
  streamRoom(): Promise<void> | null {
    if (this.#isStopped || this.#streamBytes < CHANNEL_LIMITS.streamsWaitingBytesMax) return null;
    return new Promise((resolve) => this.#roomWaiters.push(resolve));
  }

  /** Stops writing and drops what waits. */
  stop(): void {
    this.#isStopped = true;
    this.#sealed = [];
    this.#streams.length = 0;
    this.#sealedBytes = this.#streamBytes = 0;
    this.#wakeStreams();
  }

  #add(batch: FrameBatch, json: string, body = ""): void {
    if (this.#isStopped) return;
    // The waiting batch and a new value of the largest size would exceed the bound of a frame together.
    if (batch.chars > 0 && batch.chars + json.length + body.length > CHANNEL_LIMITS.batchChars) {
      this.#sealBatch(batch);
    }
    batch.add(json, body);
    this.#schedule();
  }

  #sealBatch(batch: FrameBatch): void {
    const lastCall = this.#lastCall;
    const onLeave = () => {
      this.lastCallLeft = lastCall;
    };
    this.#seal(batch.take(), batch === this.#calls ? onLeave : null);
  }

  #seal(frame: Uint8Array, onLeave: (() => void) | null): void {
    this.#sealed.push({ frame, onLeave });
    this.#sealedBytes += frame.length;
  }

  #schedule(): void {
    if (this.#isScheduled || this.isWriting) return;
    this.#isScheduled = true;
    const flush = () => {
      this.#isScheduled = false;
      void this.#flush();
    };
    // A write costs the same for one answer as for fifty, so a frame soon after another one waits to gather more. A
    // channel that is not busy never waits.
    if (performance.now() - this.#leftAt >= CHANNEL_LIMITS.gatherMs) setImmediate(flush);
    else setTimeout(flush, CHANNEL_LIMITS.gatherMs);
  }

  /** Writes what waits; what is added meanwhile is written after that. */
  async #flush(): Promise<void> {
    if (this.#isStopped) return;
    this.isWriting = true;
    this.#leftAt = performance.now();
    try {
      for (const batch of [this.#calls, this.#answers, this.#notes]) {
        if (batch.chars > 0) this.#sealBatch(batch);
      }
      const sealed = this.#sealed;
      this.#sealed = [];
      for (const waiting of sealed) {
        await this.#write(waiting);
        this.#sealedBytes -= waiting.frame.length;
      }
      const piece = this.#streams.shift();
      if (piece !== undefined) {
        await this.#write(piece);
        this.#streamBytes -= piece.frame.length;
        this.#wakeStreams();
      }
    } catch (error) {
      this.#onBroken(error);
    } finally {
      this.isWriting = false;
    }
    if (this.waitingBytes > 0 && !this.#isStopped) this.#schedule();
  }

  async #write({ frame, onLeave }: QueuedFrame): Promise<void> {
    if (this.#isStopped) return;
    onLeave?.();
    const size = CHANNEL_LIMITS.writeBytesMax;
    for (let at = 0; at < frame.length; at += size) {
      await this.#connection.write(frame.length <= size ? frame : frame.subarray(at, at + size));
      this.writes++;
    }
    this.#stats.framesSent++;
    this.#stats.bytesSent += frame.length;
  }

  #wakeStreams(): void {
    if (this.#roomWaiters.length === 0) return;
    const waiters = this.#roomWaiters;
    this.#roomWaiters = [];
    for (const wake of waiters) wake();
  }
}
