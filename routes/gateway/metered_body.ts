// Passes the body of an answer through. A piece is read from the server only when the caller has taken the one before, so
// a slow reader slows the server down and nothing piles up here. The last piece waits until the call is settled: when a
// caller has read the answer, its usage is counted.

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
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#call.moves();
    let isPassed = false;
    while (!isPassed) {
      const read = await this.#from.read().catch(() => null);
      if (read === null || this.#call.signal.aborted) {
        await this.#call.fail(this.#hasBegun, "The model server ended the connection within its answer");
        // Without this, a part of an answer would look like all of it.
        return controller.error(new Error("The model server ended the connection"));
      }
      this.#call.moves();
      const passed = read.done ? [this.#pieces.rest()] : this.#pieces.take(read.value);
      if (read.done || this.#pieces.hasEnded) await this.#call.finish();
      for (const piece of passed) {
        if (piece.byteLength === 0) continue;
        if (!this.#hasBegun) this.#onFirst();
        this.#hasBegun = isPassed = true;
        controller.enqueue(piece);
      }
      if (read.done) return controller.close();
    }
  }

  cancel(): void {
    this.#call.leave();
  }
}

/** Returns the response body of a source. Each piece is read only when the caller asks for it. */
export function bodyOf(source: MeteredBody): ReadableStream<Uint8Array> {
  return new ReadableStream(source, { highWaterMark: 0 });
}
