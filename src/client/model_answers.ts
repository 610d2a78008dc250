// Reads answers of model servers while they pass to the caller: counts their text, and keeps the reported usage.

import {
  type AnswerShape,
  isEnd,
  isWholeReport,
  joinReports,
  reportIn,
  showsWork,
  textOfAnswer,
  textOfEvent,
} from "./answer_shapes.ts";
import { PassingEvents } from "./event_stream.ts";
import { listOf, looseOf, parsed } from "./loose.ts";
import type { OpenCall } from "./model_calls.ts";
import { type PieceReader, settlingStream } from "./settling_stream.ts";

/** Options of reading an answer. */
export interface Reading {
  readonly shape: AnswerShape;
  /** Whether to leave out the event that has only the usage, since its caller did not ask for it. */
  readonly hidesUsage: boolean;
  /** Ends the request. */
  readonly signal: AbortSignal | null | undefined;
}

/** The same answer, but its call is settled when it has been read. */
export function meteredAnswer(answer: Response, call: OpenCall, reading: Reading): Response {
  const isStream = answer.headers.get("content-type")?.startsWith("text/event-stream") === true;
  const reader = isStream ? new EventReader(call, reading) : new WholeReader(call, reading);
  const source = answer.body ?? new Blob([]).stream();
  const body = settlingStream(source, call, reader, reading.signal);
  const { status, statusText, headers, url } = answer;
  return Object.defineProperty(new Response(body, { status, statusText, headers }), "url", { value: url });
}

/** Reads an answer that is one JSON value. */
class WholeReader implements PieceReader<Uint8Array> {
  readonly hasEnded = false;
  readonly #call: OpenCall;
  readonly #shape: AnswerShape;
  readonly #decoder = new TextDecoder();
  #text = "";

  constructor(call: OpenCall, { shape }: Reading) {
    this.#call = call;
    this.#shape = shape;
  }

  take(piece: Uint8Array): Uint8Array[] {
    this.#text += this.#decoder.decode(piece, { stream: true });
    return [piece];
  }

  rest(): Uint8Array[] {
    const answer = parsed(this.#text + this.#decoder.decode());
    if (this.#shape === "images") {
      const { usage, data } = looseOf(answer);
      const { input_tokens: input, output_tokens: output } = looseOf(usage);
      this.#call.reportImages(listOf(data).length, input, output);
      return [];
    }
    if (showsWork(this.#shape, answer)) this.#call.addWork();
    this.#call.addText(textOfAnswer(this.#shape, answer));
    reportTo(this.#call, reportIn(this.#shape, answer));
    return [];
  }
}

/** Reads an answer of server-sent events. */
class EventReader implements PieceReader<Uint8Array> {
  hasEnded = false;
  readonly #call: OpenCall;
  readonly #reading: Reading;
  readonly #events = new PassingEvents();
  /** Whether the last event was hidden. */
  #wasHidden = false;
  /** The first part of an incomplete event. */
  #held: Uint8Array = new Uint8Array();
  #images = 0;
  /** The reports so far. */
  #reported: unknown = undefined;

  constructor(call: OpenCall, reading: Reading) {
    this.#call = call;
    this.#reading = reading;
  }

  take(piece: Uint8Array): Uint8Array[] {
    const held = this.#held.byteLength;
    const bytes = new Uint8Array(held + piece.byteLength);
    bytes.set(this.#held);
    bytes.set(piece, held);
    const passed: Uint8Array[] = [];
    /** Everything before it is passed on already, or hidden. */
    let from = 0;
    let start = 0;
    for (const end of this.#events.endsIn(bytes, held)) {
      const event = bytes.subarray(start, end);
      // One byte is the rest of the event before.
      if (event.byteLength > 1) this.#wasHidden = this.#isHidden(event);
      if (this.#wasHidden) {
        if (start > from) passed.push(bytes.subarray(from, start));
        from = end;
      }
      start = end;
    }
    this.#held = bytes.slice(start);
    if (start > from) passed.push(bytes.subarray(from, start));
    return passed;
  }

  rest(): Uint8Array[] {
    const last = this.#held;
    return last.byteLength === 0 || this.#isHidden(last) ? [] : [last];
  }

  /** Reads an event. Returns whether to hide it from the caller. */
  #isHidden(event: Uint8Array): boolean {
    const data = this.#events.dataOf(event);
    if (data === "[DONE]") this.hasEnded = true;
    const value = parsed(data);
    const { shape, hidesUsage } = this.#reading;
    const { type, usage, choices } = looseOf(value);
    if (shape === "images") {
      // Drafts are events too: only a complete image counts.
      if (type !== "image_generation.completed" && type !== "image_edit.completed") return false;
      const { input_tokens: input, output_tokens: output } = looseOf(usage);
      this.#call.reportImages(++this.#images, input, output);
      return false;
    }
    if (showsWork(shape, value)) this.#call.addWork();
    this.#call.addText(textOfEvent(shape, value));
    this.hasEnded ||= isEnd(shape, value);
    const report = reportIn(shape, value);
    if (report === undefined) return false;
    this.#reported = joinReports(shape, this.#reported, report);
    if (!isWholeReport(shape, value)) {
      this.#call.reportBegun(looseOf(this.#reported));
      return false;
    }
    const isReport = reportTo(this.#call, this.#reported);
    return isReport && hidesUsage && listOf(choices).length === 0;
  }
}

/** Passes on a reported usage; returns false for an answer or event without one. */
function reportTo(call: OpenCall, usage: unknown): boolean {
  if (typeof usage !== "object" || usage === null) return false;
  const numbers = Object.entries(usage).filter(([, value]) => typeof value === "number" && value >= 0);
  if (numbers.length === 0) return true;
  // Where a detail is faulty, the totals are left.
  call.report({ providerUsage: usage }, { providerUsage: Object.fromEntries(numbers) });
  return true;
}
