// Calls and answers as they travel: all of one turn in one frame. A frame of calls is JSON, `[[id, call], ...]`. A frame
// of answers is a line of JSON, `[[id, head, bodyLength], ...]`, and the bodies one after another, so that no body is
// escaped or parsed. Lengths are in UTF-16 units of the decoded text. A frame of notes is JSON, `[note, ...]`.

import { KIND, ProtocolFault, textFrame, textOf, valueOf } from "./frames.ts";

/** In the place of a body's length: there is no answer, and nobody knows whether the call ran. */
const LOST = -1;
/** In the place of a body's length: the call did not run and never will. */
const NOT_TAKEN = -2;

/** What becomes of a call. */
export type Outcome = "answered" | "lost" | "notTaken";

/** Called with each answer of a frame. */
export type OnAnswer = (id: number, outcome: Outcome, head: unknown, body: string) => void;

/** JSON values that become one frame, or several where they are large. */
export class Batch {
  readonly #kind: number;
  #json = "";
  #bodies = "";

  constructor(kind: number) {
    this.#kind = kind;
  }

  get chars(): number {
    return this.#json.length + this.#bodies.length;
  }

  add(json: string, body = ""): void {
    this.#json += this.#json === "" ? `[${json}` : `,${json}`;
    if (body !== "") this.#bodies += body;
  }

  /** The frame of what was added since the last one, which must not be nothing. */
  take(): Uint8Array {
    const json = `${this.#json}]`;
    const frame = textFrame(this.#kind, this.#kind === KIND.answers ? `${json}\n${this.#bodies}` : json);
    this.#json = this.#bodies = "";
    return frame;
  }
}

/** The member of an answers frame for an answer. */
export function answerJson(id: number, headJson: string, body: string): string {
  return `[${id},${headJson},${body.length}]`;
}

/** The member of an answers frame for a call that has none. */
export function noAnswerJson(id: number, outcome: "lost" | "notTaken"): string {
  return `[${id},null,${outcome === "lost" ? LOST : NOT_TAKEN}]`;
}

/** @throws ProtocolFault for what is no frame of calls; the calls before it were handed on */
export function readCalls(payload: Uint8Array, onCall: (id: number, call: unknown) => void): void {
  for (const entry of listOf(valueOf(textOf(payload)))) {
    if (!Array.isArray(entry) || entry.length !== 2) throw new ProtocolFault("A call has another shape");
    onCall(integerOf(entry[0]), entry[1]);
  }
}

/** @throws ProtocolFault for what is no frame of answers; the answers before it were handed on */
export function readAnswers(payload: Uint8Array, onAnswer: OnAnswer): void {
  const text = textOf(payload);
  const end = text.indexOf("\n");
  if (end < 0) throw new ProtocolFault("Answers have no line");
  let at = end + 1;
  for (const entry of listOf(valueOf(text.slice(0, end)))) {
    if (!Array.isArray(entry) || entry.length !== 3) throw new ProtocolFault("An answer has another shape");
    const id = integerOf(entry[0]);
    const length = integerOf(entry[2]);
    if (length < NOT_TAKEN || at + length > text.length) {
      throw new ProtocolFault("An answer has another length");
    }
    if (length < 0) {
      onAnswer(id, length === LOST ? "lost" : "notTaken", null, "");
    } else {
      onAnswer(id, "answered", entry[1], text.slice(at, at + length));
      at += length;
    }
  }
  if (at !== text.length) throw new ProtocolFault("Answers have other lengths");
}

/** @throws ProtocolFault for what is no frame of notes */
export function readNotes(payload: Uint8Array): readonly unknown[] {
  return listOf(valueOf(textOf(payload)));
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new ProtocolFault("A batch is no list");
  return value;
}

/** A number of a peer that must be whole. */
export function integerOf(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new ProtocolFault("A number is none");
  return value as number;
}
