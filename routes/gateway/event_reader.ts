// Reads the server-sent events of an answer as they arrive, without keeping them: which bytes may be passed on, how much text
// there is, and the report of the usage. An event is passed on when it is complete, since it may be a report that the caller
// did not ask for. A very long event is passed on in pieces; its report is in its last bytes.

import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import {
  type AnswerShape,
  isEnd,
  isWholeReport,
  joinReports,
  reportIn,
  showsWork,
  textOfEvent,
} from "../../src/client/answer_shapes.ts";
import { PassingEvents } from "../../src/client/event_stream.ts";
import { looseOf, parsed } from "../../src/client/loose.ts";
import { bytesOf, reportInTail, showsReasoning, tailOf } from "./texts.ts";

const LF = 10;
const CR = 13;
const NOTHING = new Uint8Array();

/** Reads one stream. */
export class EventReader {
  /** The report of the usage; undefined until it has arrived. */
  report: unknown = undefined;
  /** The part of the usage that was reported before that. */
  begun: unknown = undefined;
  /** Whether the last event of the answer has arrived. */
  hasEnded = false;
  /** Bytes of the text that the model wrote. */
  textBytes = 0;
  /** The beginning of that text, where it is kept. */
  text = "";
  /** Whether an event had any work of the model. */
  hasWork = false;
  /** Whether an event showed that the model reasons. */
  hasReasoned = false;
  readonly #shape: AnswerShape;
  readonly #dropsReport: boolean;
  readonly #keepsText: boolean;
  readonly #events = new PassingEvents();
  /** Whether the last event was not passed on. */
  #isDropped = false;
  /** The beginning of an event. */
  #held: Uint8Array = NOTHING;
  /** The last bytes of an event that is being passed on in pieces; else null. */
  #tail: Uint8Array | null = null;

  /**
   * @param dropsReport whether an event with only the report of a chat is not passed on
   * @param keepsText whether the text goes into a log
   */
  constructor(shape: AnswerShape, dropsReport: boolean, keepsText: boolean) {
    this.#shape = shape;
    this.#dropsReport = dropsReport;
    this.#keepsText = keepsText;
  }

  /** Takes the next bytes; returns those to pass on now. */
  take(chunk: Uint8Array): Uint8Array[] {
    let bytes = chunk;
    const searchFrom = this.#held.byteLength;
    if (this.#held.byteLength > 0) {
      bytes = new Uint8Array(this.#held.byteLength + chunk.byteLength);
      bytes.set(this.#held);
      bytes.set(chunk, this.#held.byteLength);
      this.#held = NOTHING;
    }
    const passed: Uint8Array[] = [];
    /** Everything before it is passed on already, or dropped. */
    let from = 0;
    let start = 0;
    for (const end of this.#events.endsIn(bytes, searchFrom)) {
      const event = bytes.subarray(start, end);
      if (this.#tail !== null) {
        this.#endLong(event);
        this.#isDropped = false;
      } // One byte is the rest of the event before.
      else if (event.byteLength > 1) this.#isDropped = this.#isForUs(event);
      if (this.#isDropped) {
        if (start > from) passed.push(bytes.subarray(from, start));
        from = end;
      }
      start = end;
    }
    if (this.#tail !== null || bytes.byteLength - start > GATEWAY_LIMITS.eventBytesMax) {
      const end = beforeLineEnd(bytes, start);
      this.#tail = tailOf(this.#tail ?? NOTHING, bytes.subarray(start, end), GATEWAY_LIMITS.tailBytes);
      start = end;
    }
    this.#held = bytes.slice(start);
    if (start > from) passed.push(bytes.subarray(from, start));
    return passed;
  }

  /** Returns the rest when the stream has ended. */
  rest(): Uint8Array {
    const held = this.#held;
    this.#held = NOTHING;
    return held.byteLength > 0 && this.#isForUs(held) ? NOTHING : held;
  }

  /** Reads the end of a long event. Most of it is passed on already. */
  #endLong(end: Uint8Array): void {
    const tail = tailOf(this.#tail ?? NOTHING, end, GATEWAY_LIMITS.tailBytes);
    this.#tail = null;
    this.hasWork = true;
    // The report of a message is in a short event of its own.
    const report = this.#shape === "messages" ? undefined : reportInTail(tail);
    if (report === undefined) return;
    this.report = report;
    this.hasEnded ||= this.#shape === "responses";
  }

  /** Reads an event; returns whether it is the report that the caller did not ask for. */
  #isForUs(event: Uint8Array): boolean {
    const data = this.#events.dataOf(event);
    if (data === "[DONE]") this.hasEnded = true;
    const value = parsed(data);
    if (value === undefined) return false;
    const text = textOfEvent(this.#shape, value);
    this.textBytes += bytesOf(text);
    this.hasWork ||= showsWork(this.#shape, value);
    this.hasReasoned ||= showsReasoning(this.#shape, value);
    if (this.#keepsText && this.text.length < GATEWAY_LIMITS.loggedChars) this.text += text;
    const report = reportIn(this.#shape, value);
    if (report !== undefined) {
      this.begun = joinReports(this.#shape, this.begun, report);
      if (isWholeReport(this.#shape, value)) this.report = this.begun;
    }
    this.hasEnded ||= isEnd(this.#shape, value);
    const { choices } = looseOf(value);
    return this.#dropsReport && report !== undefined && Array.isArray(choices) && choices.length === 0;
  }
}

/** Returns the index of the line ends at the end of bytes: the next bytes may complete an event with them. */
function beforeLineEnd(bytes: Uint8Array, from: number): number {
  let end = bytes.byteLength;
  while (end > from && (bytes[end - 1] === LF || bytes[end - 1] === CR)) end -= 1;
  return end;
}
