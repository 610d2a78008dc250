// Passes a stream to its reader and settles a call at its end. A piece is read only after the one before was taken, so
// there is no queue. The last piece waits until the call is settled: a reader of the whole answer finds it counted.

import type { OpenCall } from "./model_calls.ts";

/** Reads the pieces of an answer, and decides which are passed on. */
export interface PieceReader<Piece> {
  /** Whether the last piece that counts has arrived; the end of the source is an end too. */
  readonly hasEnded: boolean;
  take(piece: Piece): readonly Piece[];
  /** The rest at the end of the source. */
  rest(): readonly Piece[];
}

/** The pieces of a source that its reader passes on. */
export function settlingStream<Piece>(
  source: ReadableStream<Piece>,
  call: OpenCall,
  reader: PieceReader<Piece>,
  signal: AbortSignal | null | undefined,
): ReadableStream<Piece> {
  const from = source.getReader();
  // A reader that stops may only abort the request, without canceling this stream.
  const leave = () => void call.leave();
  signal?.addEventListener("abort", leave, { once: true });
  const settle = async (end: () => Promise<void>) => {
    signal?.removeEventListener("abort", leave);
    await end();
  };
  return new ReadableStream<Piece>({
    async pull(controller) {
      for (;;) {
        let read: ReadableStreamReadResult<Piece>;
        try {
          read = await from.read();
        } catch (error) {
          await settle(() => signal?.aborted === true ? call.leave() : call.fail(error));
          throw error;
        }
        const pieces = read.done ? reader.rest() : reader.take(read.value);
        if (read.done || reader.hasEnded) await settle(() => call.finish());
        for (const piece of pieces) controller.enqueue(piece);
        if (read.done) return controller.close();
        if (pieces.length > 0) return;
      }
    },
    async cancel(reason) {
      await settle(() => call.leave());
      await from.cancel(reason);
    },
  }, { highWaterMark: 0 });
}
