// Reads answers in OpenAI's forms while they pass to the caller: counts their text, and keeps the reported usage.

import type { OpenCall } from "./model_calls.ts";
import { type PieceReader, settlingStream } from "./settling_stream.ts";

/** The two forms of answers with text, and that of images; embeddings have no text. */
export type AnswerShape = "chat" | "responses" | "images" | "none";

/** Options of reading an answer. */
export interface Reading {
  readonly shape: AnswerShape;
  /** Whether to leave out the event that has only the usage, since its caller did not ask for it. */
  readonly hidesUsage: boolean;
  /** Ends the request. */
  readonly signal: AbortSignal | null | undefined;
}

type Loose = Readonly<Record<string, unknown>>;

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
    const { usage, choices, output, data } = looseOf(answer);
    if (this.#shape === "images") {
      const { input_tokens: input, output_tokens: output } = looseOf(usage);
      this.#call.reportImages(listOf(data).length, input, output);
      return [];
    }
    if (showsWork(this.#shape, answer)) this.#call.addWork();
    this.#call.addText(this.#shape === "chat" ? textOfChoices(choices, "message") : textOfOutput(output));
    reportTo(this.#call, usage);
    return [];
  }
}

const ENDS: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", "response.failed"]);
const END_OF_EVENT = /\r\n\r\n|\n\n|\r\r/;

/** Reads an answer of server-sent events. */
class EventReader implements PieceReader<Uint8Array> {
  hasEnded = false;
  readonly #call: OpenCall;
  readonly #reading: Reading;
  readonly #decoder = new TextDecoder();
  readonly #encoder = new TextEncoder();
  /** The first part of an incomplete event. */
  #held = "";
  #images = 0;

  constructor(call: OpenCall, reading: Reading) {
    this.#call = call;
    this.#reading = reading;
  }

  take(piece: Uint8Array): Uint8Array[] {
    this.#held += this.#decoder.decode(piece, { stream: true });
    let passed = "";
    for (let end = END_OF_EVENT.exec(this.#held); end !== null; end = END_OF_EVENT.exec(this.#held)) {
      const event = this.#held.slice(0, end.index + end[0].length);
      this.#held = this.#held.slice(event.length);
      if (!this.#isHidden(event)) passed += event;
    }
    return passed === "" ? [] : [this.#encoder.encode(passed)];
  }

  rest(): Uint8Array[] {
    const last = this.#held + this.#decoder.decode();
    return last === "" || this.#isHidden(last) ? [] : [this.#encoder.encode(last)];
  }

  /** Reads an event. Returns whether to hide it from the caller. */
  #isHidden(event: string): boolean {
    const data = dataOf(event);
    if (data === "[DONE]") this.hasEnded = true;
    const value = parsed(data);
    const { type, delta, usage, choices, response } = looseOf(value);
    if (this.#reading.shape === "images") {
      // Drafts are events too: only a complete image counts.
      if (type !== "image_generation.completed" && type !== "image_edit.completed") return false;
      const { input_tokens: input, output_tokens: output } = looseOf(usage);
      this.#call.reportImages(++this.#images, input, output);
      return false;
    }
    if (showsWork(this.#reading.shape, value)) this.#call.addWork();
    if (this.#reading.shape === "responses") {
      if (typeof type === "string" && type.endsWith(".delta")) this.#call.addText(textOf(delta));
      if (!ENDS.has(type)) return false;
      reportTo(this.#call, looseOf(response).usage);
      this.hasEnded = true;
      return false;
    }
    this.#call.addText(textOfChoices(choices, "delta"));
    const isReport = reportTo(this.#call, usage);
    return isReport && this.#reading.hidesUsage && listOf(choices).length === 0;
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

/**
 * Whether a complete answer, or an event of a stream, has any work of the model: text, reasoning, a tool call, a refusal,
 * sound, a vector. An error has none.
 */
function showsWork(shape: AnswerShape, value: unknown): boolean {
  const { choices, data, type, delta, item, output, response } = looseOf(value);
  if (shape === "none") return listOf(data).length > 0;
  if (shape === "chat") {
    return listOf(choices).some((choice) => {
      const { message, delta } = looseOf(choice);
      return isWritten(message) || isWritten(delta);
    });
  }
  if (typeof type === "string" && type.endsWith(".delta")) return isFilled(delta);
  return [item, ...listOf(output), ...listOf(looseOf(response).output)].some((each) => {
    const { type, content } = looseOf(each);
    return type === "message" ? listOf(content).some(isWritten) : type !== undefined;
  });
}

/** Members of messages and of their parts that are there before the model has written anything. */
const NO_WORK: ReadonlySet<string> = new Set(["role", "type", "annotations", "logprobs"]);

function isWritten(message: unknown): boolean {
  return Object.entries(looseOf(message)).some(([name, value]) => !NO_WORK.has(name) && isFilled(value));
}

function isFilled(value: unknown): boolean {
  if (typeof value === "string") return value !== "";
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

/** The model's text in a chat. Thoughts and the arguments of tools are text too. */
function textOfChoices(choices: unknown, member: "message" | "delta"): string {
  return listOf(choices).map((choice) => {
    const written = looseOf(looseOf(choice)[member]);
    const calls = [{ function: written.function_call }, ...listOf(written.tool_calls)].map((call) => {
      const { function: called, custom } = looseOf(call);
      const { name, arguments: given, input } = looseOf(called ?? custom);
      return textOf(name) + textOf(given ?? input);
    });
    const thoughts = written.reasoning_content ?? written.reasoning;
    return [written.content, thoughts, written.refusal].map(textOf).join("") + calls.join("");
  }).join("");
}

/** The model's text in a complete answer of responses. */
function textOfOutput(output: unknown): string {
  return listOf(output).map((item) => {
    const { content, summary, arguments: given, input } = looseOf(item);
    return [given ?? input, content, summary].map(textOf).join("");
  }).join("");
}

/** The data of an event; "" for a comment. */
function dataOf(event: string): string {
  const lines = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(line[5] === " " ? 6 : 5)).join("\n");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function looseOf(value: unknown): Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Loose : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A text, or the texts of a list of parts, thoughts and refusals included. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return listOf(value).map((part) => {
    const { text, thinking, refusal } = looseOf(part);
    return textOf(text ?? thinking ?? refusal);
  }).join("");
}
