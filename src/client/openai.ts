// The `openai` package, metered: `holdfast-client/openai`.

import { invalidInput } from "./errors.ts";
import type { AnswerShape } from "./answer_shapes.ts";
import {
  type CallBody,
  type CallKind,
  meterSender,
  type Provider,
  type SenderOptions,
} from "./metered_sender.ts";
import { ANSWER_TOKENS, estimateInput } from "./model_calls.ts";

/** A client of the `openai` package, from version 5 on. */
export interface OpenAIClient {
  readonly baseURL: string;
  readonly chat: object;
  readonly responses: object;
  // deno-lint-ignore no-explicit-any -- the options of every version and subclass
  withOptions(options: any): unknown;
}

/** The body of a call from its caller. */
export type OpenAICall = CallBody;

/** The user and event of metered calls. */
export interface MeterOpenAIOptions extends SenderOptions {
  /** By default `openai.chat`, `openai.responses`, `openai.embeddings` or `openai.images`, by the call. */
  readonly event?: string | undefined;
  /**
   * Called once for each kind of call that passes unmetered, such as `/audio`; by default a warning on the console. Give
   * an empty function for calls that you meter yourself.
   */
  readonly onUnmetered?: ((kind: string) => void) | undefined;
}

/** The calls of models, by their paths. */
const KINDS: ReadonlyMap<string, CallKind> = new Map([
  ["/chat/completions", { event: "openai.chat", shape: "chat" }],
  ["/responses", { event: "openai.responses", shape: "responses" }],
  ["/embeddings", { event: "openai.embeddings", shape: "none" }],
  ["/images/generations", { event: "openai.images", shape: "images" }],
  ["/images/edits", { event: "openai.images", shape: "images" }],
  ["/images/variations", { event: "openai.images", shape: "images" }],
]);

/**
 * Makes a metered client from another one. It meters chat completions, responses, embeddings and images. A refused call
 * rejects with a `HoldfastError` of status 429, with the first reason as code, and nothing is sent to the model. Retries of
 * one call share its reservation. All other calls pass unmetered, with one warning for each kind.
 *
 * @example
 * ```tsx
 * const openai = meterOpenAI(new OpenAI(), { client, userId: "user_1", event: "chat.reply" });
 * const reply = await openai.chat.completions.create({
 *   model: "gpt-4o-mini",
 *   messages: [{ role: "user", content: "Write a haiku." }],
 *   max_completion_tokens: 100,
 * });
 * console.log(reply.choices[0]?.message.content); // "Old pond..."
 * ```
 */
export function meterOpenAI<Client extends OpenAIClient>(
  openai: Client,
  options: MeterOpenAIOptions,
): Client {
  return meterSender(openai, options, PROVIDER);
}

const PROVIDER: Provider = {
  kinds: KINDS,
  free: new Set(),
  nameOf: (path) => `/${path.split("/")[1] ?? ""}`,
  estimate: estimateOf,
  prepare: (body, shape) => {
    if (body.background === true) {
      throw invalidInput("background: must not be true, because the answer could not be metered");
    }
    if (shape !== "chat") return { hidesUsage: false };
    return { body: askingForUsage(body), hidesUsage: optionsOf(body).include_usage !== true };
  },
};

/** The most that a call may use, by the same estimate as the gateway. */
function estimateOf(body: OpenAICall, shape: AnswerShape) {
  if (shape === "images") {
    return { ...estimateInput([body.prompt]), count: typeof body.n === "number" ? body.n : 1 };
  }
  const { messages, input, instructions, tools, functions, response_format, text } = body;
  const format = (text as OpenAICall | undefined)?.format;
  const inputs = [messages, input, instructions, tools, functions, response_format, format];
  const estimated = estimateInput(inputs, { cache_control: body.cache_control });
  if (shape === "none") return estimated;
  const limits = [body.max_completion_tokens, body.max_tokens, body.max_output_tokens]
    .filter((limit) => typeof limit === "number");
  const longest = limits.length === 0 ? ANSWER_TOKENS : Math.max(...limits);
  return { ...estimated, maxOutputTokens: longest * (typeof body.n === "number" ? body.n : 1) };
}

/** Asks for the usage of a chat stream, which is reported only on request. */
function askingForUsage(body: OpenAICall): OpenAICall {
  if (body.stream !== true) return body;
  return { ...body, stream_options: { ...optionsOf(body), include_usage: true } };
}

function optionsOf({ stream_options: options }: OpenAICall): OpenAICall {
  return typeof options === "object" && options !== null ? options as OpenAICall : {};
}
