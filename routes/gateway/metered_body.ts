// Passes the body of an answer through. A piece is read from the server only when the caller has taken the one before, so
// a slow reader slows the server down and nothing piles up here. The last piece waits until the call is settled: when a
// caller has read the answer, its usage is counted. After a caller has left, the rest is read for its report alone.

import { brokenBody } from "../../src/process/log.ts";
import type { OpenCall } from "./open_calls.ts";

/**
 * Returns a reader of an answer's body. When the call is aborted, the connection ends and a pending read ends with it. The
 * signal that the fetch got no longer reaches its body once the runtime has collected the request as garbage, so the reader
 * is cancelled here.
 */
export function readerOf({ body }: Response, signal: AbortSignal): ReadableStreamDefaultReader<Uint8Array> {
  const reader = (body ?? new Response("").body as ReadableStream<Uint8Array>).getReader();
  const end = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  return reader;
}

/** Reads the pieces of an answer, and decides which are passed on. */
export interface PieceReader {
  /** Whether the last relevant piece has arrived. */
  readonly hasEnded: boolean;
  take(piece: Uint8Array): readonly Uint8Array[];
  /** The rest, when the server has ended. */
  rest(): Uint8Array;
}

/** The source of a response's body. */
export class MeteredBody implements UnderlyingDefaultSource<Uint8Array> {
  readonly #call: OpenCall;
  readonly #from: ReadableStreamDefaultReader<Uint8Array>;
  readonly #pieces: PieceReader;
  readonly #onFirst: () => void;
  #hasBegun = false;
  #isPassing = false;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;

  /** @param onFirst called when the first piece is passed on */
  constructor(
    call: OpenCall,
    from: ReadableStreamDefaultReader<Uint8Array>,
    pieces: PieceReader,
    onFirst: () => void,
  ) {
    this.#call = call;
    this.#from = from;
    this.#pieces = pieces;
    this.#onFirst = onFirst;
    call.whenLeft(() => void this.#pass());
  }

  pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#controller = controller;
    this.#call.moves();
    return this.#pass();
  }

  cancel(): void {
    this.#call.leave();
  }

  /**
   * Passes the next piece on. After the caller has left, all pieces are only read, by the pass that is waiting for one then,
   * or by one of its own.
   */
  async #pass(): Promise<void> {
    if (this.#isPassing) return;
    this.#isPassing = true;
    while (true) {
      const read = await this.#from.read().catch(() => null);
      if (read === null || this.#call.signal.aborted) {
        const { signal, reservationId } = this.#call;
        const reason = signal.aborted ? ENDED_HERE : CUT_OFF;
        await this.#call.fail(reason);
        // Without this, a part of an answer would look like all of it.
        return this.#controller?.error(brokenBody(reason, { reservationId }));
      }
      this.#call.receives(read.value?.byteLength ?? 0);
      const passed = read.done ? [this.#pieces.rest()] : this.#pieces.take(read.value);
      const hasEnded = read.done || this.#pieces.hasEnded;
      if (hasEnded) await this.#call.finish();
      const isPassed = this.#enqueue(passed);
      if (read.done) return this.#call.hasLeft ? undefined : this.#controller?.close();
      if (hasEnded && this.#call.hasLeft) return void this.#from.cancel().catch(() => {});
      if (!isPassed || this.#call.hasLeft) continue;
      this.#isPassing = false;
      return;
    }
  }

  /** Passes pieces on, unless the caller has left; returns whether there were any. */
  #enqueue(pieces: readonly Uint8Array[]): boolean {
    let isAny = false;
    for (const piece of pieces) {
      if (piece.byteLength === 0) continue;
      const isFirst = !this.#hasBegun;
      this.#hasBegun = isAny = true;
      if (this.#call.hasLeft) continue;
      if (isFirst) this.#onFirst();
      this.#controller?.enqueue(piece);
    }
    return isAny;
  }
}

/** Why an answer has no end where this process ended its call: it stops, or nothing moved for long. */
const ENDED_HERE = "The call was ended before its answer was complete";

/** Why a call fails when its answer has no end. */
export const CUT_OFF = "The model server ended the connection within its answer";

/** Returns the response body of a source. Each piece is read only when the caller asks for it. */
export function bodyOf(source: MeteredBody): ReadableStream<Uint8Array> {
  return new ReadableStream(source, { highWaterMark: 0 });
}
