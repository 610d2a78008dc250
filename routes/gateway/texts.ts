// Reads what only the gateway needs of answers: whether the model reasons, the report in the last bytes of a long answer, and
// sizes in bytes.

import type { AnswerShape } from "../../src/client/answer_shapes.ts";
import { showsThinking } from "../../src/client/anthropic_shapes.ts";
import { isFilled, listOf, looseOf, parsed } from "../../src/client/loose.ts";

/** Whether an event of a stream shows that the model reasons. */
export function showsReasoning(shape: AnswerShape, event: unknown): boolean {
  const { choices, type, item } = looseOf(event);
  if (shape === "messages") return showsThinking(event);
  if (shape === "responses") {
    return looseOf(item).type === "reasoning" ||
      typeof type === "string" && type.startsWith("response.reasoning");
  }
  return listOf(choices).some((choice) => {
    const { reasoning, reasoning_content, reasoning_details, content } = looseOf(looseOf(choice).delta);
    const hasThoughts = listOf(content).some((part) => looseOf(part).type === "thinking");
    return hasThoughts || [reasoning, reasoning_content, reasoning_details].some(isFilled);
  });
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const MARK = /"usage"\s*:\s*\{/g;

/**
 * Returns the report in the last bytes of an answer that is too long to be kept: the last object named "usage". The same
 * name in a text of the answer has escaped quotes.
 */
export function reportInTail(bytes: Uint8Array): unknown {
  const text = decoder.decode(bytes);
  const start = [...text.matchAll(MARK)].at(-1);
  if (start === undefined) return undefined;
  const from = start.index + start[0].length - 1;
  let depth = 0;
  for (let place = from; place < text.length; place++) {
    if (text[place] === "{") depth += 1;
    else if (text[place] === "}" && --depth === 0) return parsed(text.slice(from, place + 1));
  }
  return undefined;
}

/** Returns the number of bytes of a text in UTF-8. */
export function bytesOf(text: string): number {
  return text === "" ? 0 : encoder.encode(text).byteLength;
}

/** Returns the last bytes of two pieces together. */
export function tailOf(before: Uint8Array, piece: Uint8Array, bytesMax: number): Uint8Array {
  if (piece.byteLength >= bytesMax) return piece.slice(-bytesMax);
  const kept = before.subarray(Math.max(0, before.byteLength + piece.byteLength - bytesMax));
  const tail = new Uint8Array(kept.byteLength + piece.byteLength);
  tail.set(kept);
  tail.set(piece, kept.byteLength);
  return tail;
}
