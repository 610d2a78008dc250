// What a channel writes: one write at a time, in order. Whatever one turn of the event loop adds leaves together after it,
// and while a write is under way the next frames fill. Calls and answers go before pieces of streams, one piece after
// each of their frames, so that neither waits long for the other.

import { CHANNEL_LIMITS } from "../process/limits.ts";
import { Batch } from "./batches.ts";
import { KIND, textFrame } from "./frames.ts";
import type { Line } from "./line.ts";
import type { ChannelStats } from "./shapes.ts";

const PING = textFrame(KIND.ping, "");

/** A frame that waits to be written. */
interface Waiting {
  readonly frame: Uint8Array;
  /** Called when its writing begins: from then on the peer may have it. */
  readonly onLeave: (() => void) | null;
}

/** The writing side of a channel. */
export class Outbox {
  readonly #line: Line;
  readonly #stats: ChannelStats;
  readonly #onBroken: (error: unknown) => void;
  readonly #calls = new Batch(KIND.calls);
  readonly #answers = new Batch(KIND.answers);
  readonly #notes = new Batch(KIND.notes);
  /** Frames of batches that were full before they could leave. */
  #sealed: Waiting[] = [];
  /** Frames of requests and their streamed answers. */
  readonly #streams: Waiting[] = [];
  #sealedBytes = 0;
  #streamBytes = 0;
  #isScheduled = false;
  /** When writing began last. */
  #leftAt = -Infinity;
  #isStopped = false;
  #roomWaiters: (() => void)[] = [];
  #lastCall = 0;
  /** The last call whose writing has begun; later ones never left. */
  lastCallLeft = 0;
  /** Pieces handed to the line; a number that stands still during a write shows that the peer takes nothing. */
  writes = 0;
  isWriting = false;

  constructor(line: Line, stats: ChannelStats, onBroken: (error: unknown) => void) {
    this.#line = line;
    this.#stats = stats;
    this.#onBroken = onBroken;
  }

  /** Bytes that wait to be written; of texts their characters. */
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

  /** @param id larger than that of every call before */
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

  /** Adds a frame of a request; those leave in their order. */
  addStreamFrame(frame: Uint8Array, onLeave: (() => void) | null = null): void {
    if (this.#isStopped) return;
    this.#streams.push({ frame, onLeave });
    this.#streamBytes += frame.length;
    this.#schedule();
  }

  /** Tells the peer that this side lives. What is being written tells it as well. */
  ping(): void {
    if (this.isWriting || this.#isStopped) return;
    this.#seal(PING, null);
    this.#schedule();
  }

  /** Null when a stream may add its next piece; else resolves when it may, or when the outbox has stopped. */
  streamRoom(): Promise<void> | null {
    if (this.#isStopped || this.#streamBytes < CHANNEL_LIMITS.streamsWaitingBytesMax) return null;
    return new Promise((resolve) => this.#roomWaiters.push(resolve));
  }

  /** Writes nothing more. */
  stop(): void {
    this.#isStopped = true;
    this.#sealed = [];
    this.#streams.length = 0;
    this.#sealedBytes = this.#streamBytes = 0;
    this.#wakeStreams();
  }

  #add(batch: Batch, json: string, body = ""): void {
    if (this.#isStopped) return;
    // A frame of what waits and of one more that is as large as a frame may be would be too large.
    if (batch.chars > 0 && batch.chars + json.length + body.length > CHANNEL_LIMITS.batchChars) {
      this.#sealBatch(batch);
    }
    batch.add(json, body);
    this.#schedule();
  }

  #sealBatch(batch: Batch): void {
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
    // Each write costs the same for one answer and for fifty. So after a frame the next one gathers for a moment; a
    // channel that is not busy never waits.
    if (performance.now() - this.#leftAt >= CHANNEL_LIMITS.gatherMs) setImmediate(flush);
    else setTimeout(flush, CHANNEL_LIMITS.gatherMs);
  }

  /** Writes what there is; what is added meanwhile leaves after the turn in which the writes have ended. */
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

  async #write({ frame, onLeave }: Waiting): Promise<void> {
    if (this.#isStopped) return;
    onLeave?.();
    const size = CHANNEL_LIMITS.writeBytesMax;
    for (let at = 0; at < frame.length; at += size) {
      await this.#line.write(frame.length <= size ? frame : frame.subarray(at, at + size));
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
