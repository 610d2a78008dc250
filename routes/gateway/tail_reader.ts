// Passes a long answer on piece by piece. Its report is in its last bytes, and its text goes into no log.

import { Buffer } from "node:buffer";
import type { AnswerShape } from "../../src/client/answer_shapes.ts";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import type { PieceReader } from "./metered_body.ts";
import type { Progress } from "./open_calls.ts";
import { reportInTail, tailOf } from "./texts.ts";

/** Each image has one of these members. Within a text of the answer their quotes are escaped. */
const IMAGE_MARKS = ['"b64_json"', '"url"'] as const;
const MARK_BYTES_MAX = Math.max(...IMAGE_MARKS.map((mark) => mark.length));

/** Reads a long answer. */
export class TailReader implements PieceReader, Progress {
  readonly hasEnded = false;
  readonly text = "";
  textBytes = 0;
  report: unknown = undefined;
  readonly #shape: AnswerShape;
  readonly #marks: [number, number] = [0, 0];
  #begin: Uint8Array | null;
  #tail: Uint8Array = new Uint8Array();

  /** @param begin the bytes that have arrived already */
  constructor(begin: Uint8Array, shape: AnswerShape) {
    this.#shape = shape;
    this.#begin = begin;
    this.#read(begin);
  }

  /** The images that have begun. */
  get images(): number {
    return Math.max(...this.#marks);
  }

  get hasWork(): boolean {
    return this.#shape !== "images" || this.images > 0;
  }

  take(piece: Uint8Array): readonly Uint8Array[] {
    this.#read(piece);
    return [this.#taken(), piece];
  }

  rest(): Uint8Array {
    this.report = reportInTail(this.#tail);
    return this.#taken();
  }

  #read(piece: Uint8Array): void {
    if (this.#shape === "images") this.#countImages(piece);
    // Vectors are no text.
    else if (this.#shape !== "none") this.textBytes += piece.byteLength;
    this.#tail = tailOf(this.#tail, piece, GATEWAY_LIMITS.tailBytes);
  }

  /** Counts the marks that end in a piece. */
  #countImages(piece: Uint8Array): void {
    const before = this.#tail.subarray(-MARK_BYTES_MAX + 1);
    const bytes = Buffer.concat([before, piece]);
    for (const [place, mark] of IMAGE_MARKS.entries()) {
      const isOld = (at: number) => at + mark.length <= before.byteLength;
      for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) {
        if (!isOld(at)) this.#marks[place] = (this.#marks[place] ?? 0) + 1;
      }
    }
  }

  #taken(): Uint8Array {
    const begin = this.#begin ?? new Uint8Array();
    this.#begin = null;
    return begin;
  }
}
