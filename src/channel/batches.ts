// Calls and answers as text: all of one turn in one frame. A frame of calls is JSON, `[[id, call], ...]`. A frame of
// answers is a line of JSON, `[[id, head, bodyLength], ...]`, followed by the bodies, so that no body is escaped or
// parsed. Lengths are in UTF-16 units of the decoded text. A frame of notifications is JSON, `[note, ...]`.

import { KIND, ProtocolFault, textFrame, textOf, valueOf } from "./frames.ts";

/** Instead of a body's length: there is no answer, and the call may have run. */
const LOST = -1;
/** Instead of a body's length: the call did not run and never will. */
const NOT_TAKEN = -2;

/** How a call ended. */
export type CallOutcome = "answered" | "lost" | "notTaken";

/** Called with each answer of a frame. */
type OnAnswer = (id: number, outcome: CallOutcome, head: unknown, body: string) => void;

/** Collects JSON values for one frame. */
export class FrameBatch {
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

  /** Returns the frame of all values since the last frame; there must be at least one. */
  take(): Uint8Array {
    const json = `${this.#json}]`;
    const frame = textFrame(this.#kind, this.#kind === KIND.answers ? `${json}\n${this.#bodies}` : json);
    this.#json = this.#bodies = "";
    return frame;
  }
}

/** The entry of an answers frame for an answer. */
export function answerJson(id: number, headJson: string, body: string): string {
  return `[${id},${headJson},${body.length}]`;
}

/** The entry of an answers frame for a call without an answer. */
export function noAnswerJson(id: number, outcome: "lost" | "notTaken"): string {
  return `[${id},null,${outcome === "lost" ? LOST : NOT_TAKEN}]`;
}

/** Reads a frame of calls. @throws ProtocolFault if malformed; the calls before the fault were handed over */
export function readCalls(payload: Uint8Array, onCall: (id: number, call: unknown) => void): void {
  for (const entry of listOf(valueOf(textOf(payload)))) {
    if (!Array.isArray(entry) || entry.length !== 2) throw new ProtocolFault("Malformed call");
    onCall(integerOf(entry[0]), entry[1]);
  }
}

/** Reads a frame of answers. @throws ProtocolFault if malformed; the answers before the fault were handed over */
export function readAnswers(payload: Uint8Array, onAnswer: OnAnswer): void {
  const text = textOf(payload);
  const end = text.indexOf("\n");
  if (end < 0) throw new ProtocolFault("Answers without a line of JSON");
  let at = end + 1;
  for (const entry of listOf(valueOf(text.slice(0, end)))) {
    if (!Array.isArray(entry) || entry.length !== 3) throw new ProtocolFault("Malformed answer");
    const id = integerOf(entry[0]);
    const length = integerOf(entry[2]);
    if (length < NOT_TAKEN || at + length > text.length) {
      throw new ProtocolFault("Invalid length of an answer");
    }
    if (length < 0) {
      onAnswer(id, length === LOST ? "lost" : "notTaken", null, "");
    } else {
      onAnswer(id, "answered", entry[1], text.slice(at, at + length));
      at += length;
    }
  }
  if (at !== text.length) throw new ProtocolFault("Lengths of answers do not add up");
}

/** Reads a frame of notifications. @throws ProtocolFault if malformed */
export function readNotes(payload: Uint8Array): readonly unknown[] {
  return listOf(valueOf(textOf(payload)));
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new ProtocolFault("Expected an array");
  return value;
}

/** Checks that a value of a peer is an integer. */
export function integerOf(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new ProtocolFault("Expected an integer");
  return value as number;
}
