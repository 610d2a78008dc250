// A stream on its way to its reader that settles a call. A piece is read only when the one before was taken, so nothing
// piles up here, and the last piece waits until the call is settled: whoever has read the answer finds it counted.

import type { OpenCall } from "./model_calls.ts";

/** Looks at the pieces of an answer, and says which go on. */
export interface PieceReader<Piece> {
  /** Whether the last piece that counts has come. */
  readonly hasEnded: boolean;
  take(piece: Piece): readonly Piece[];
  /** What is left when the source has ended. */
  rest(): readonly Piece[];
}

/** The pieces of a source as their reader passes them on. */
export function settlingStream<Piece>(
  source: ReadableStream<Piece>,
  call: OpenCall,
  reader: PieceReader<Piece>,
  signal: AbortSignal | null | undefined,
): ReadableStream<Piece> {
  const from = source.getReader();
  // Whoever stops reading may only abort, and then nothing is asked of this stream any more.
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
        if (reader.hasEnded || (read.done && call.hasBegun)) await settle(() => call.finish());
        else if (read.done) await settle(() => call.fail(new Error("The answer is empty")));
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
