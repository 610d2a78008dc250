// The `openai` package, metered: `holdfast-client/openai`. Every call of a model is reserved before it is sent and
// settled when its answer has been read. This happens where requests are sent, so everything built on them is metered
// too: streams, parsed answers, runs with tools.

import { invalidInput } from "./errors.ts";
import { ANSWER_TOKENS, estimateInput, type ModelMetering, type OpenCall, openCall } from "./model_calls.ts";
import { type AnswerShape, meteredAnswer } from "./openai_answers.ts";

/** A client of the `openai` package, from version 5 on. */
export interface OpenAIClient {
  readonly baseURL: string;
  readonly chat: object;
  readonly responses: object;
  // deno-lint-ignore no-explicit-any -- the options of every version and subclass
  withOptions(options: any): unknown;
}

/** The body of a call from its caller. */
export type OpenAICall = Readonly<Record<string, unknown>>;

/** The user and event of metered calls. */
export interface MeterOpenAIOptions extends Omit<ModelMetering<OpenAICall>, "event"> {
  /** By default `openai.chat`, `openai.responses`, `openai.embeddings` or `openai.images`, by the call. */
  readonly event?: string | undefined;
  /**
   * Called once for each kind of call that passes unmetered, such as `/audio`; by default a warning on the console. Give
   * an empty function for calls that you meter yourself.
   */
  readonly onUnmetered?: ((kind: string) => void) | undefined;
}

type Fetch = (url: string | URL | Request, init?: RequestInit & { [CALL]?: Meter }) => Promise<Response>;

/** Parts of a client that its public types do not have. */
interface Sender {
  readonly fetch?: Fetch;
  post(path: string, options?: unknown): { asResponse(): Promise<Response> };
  withOptions(options: unknown): OpenAIClient;
}

/** The options of a request within the package. */
interface RequestOptions {
  /** Fields of a form for a call with files. */
  readonly body?: OpenAICall | FormData;
  readonly signal?: AbortSignal | null;
  readonly fetchOptions?: object;
}

interface CallKind {
  readonly event: string;
  readonly shape: AnswerShape;
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

/** Carries a call from its request to `fetch`. */
const CALL = Symbol("metered call");

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
  const send: Fetch = (openai as unknown as Sender).fetch ?? globalThis.fetch;
  const metered = openai.withOptions({ fetch: meteredFetch(send) }) as Client;
  const sender = metered as unknown as { -readonly [Member in keyof Sender]: Sender[Member] };
  const post = sender.post.bind(sender);
  const { onUnmetered = warn } = options;
  // Clients that are made from this one share its warnings.
  const warned = WARNED.get(options) ?? new Set<string>();
  WARNED.set(options, warned);
  sender.post = (path, given) => {
    const kind = KINDS.get(path);
    if (kind === undefined) {
      const name = `/${path.split("/")[1] ?? ""}`;
      if (!warned.has(name)) onUnmetered(name);
      warned.add(name);
      return post(path, given);
    }
    const begun = begin(kind, given as RequestOptions | Promise<RequestOptions>, options);
    const answer = post(path, begun.then(({ request }) => request));
    // Without an answer there is no end of one at which to settle.
    answer.asResponse().catch(async (error) => {
      const { call, request } = await begun;
      await (request.signal?.aborted === true ? call.leave() : call.fail(error));
    }).catch(() => {});
    return answer;
  };
  sender.withOptions = (more) => meterOpenAI(openai.withOptions(more) as OpenAIClient, options);
  return metered;
}

/** The kinds of calls that were warned of, by the options of their client. */
const WARNED = new WeakMap<MeterOpenAIOptions, Set<string>>();

function warn(kind: string): void {
  console.warn(`holdfast: calls of ${kind} are not metered`);
}

/** Reserves for a call and makes its request. */
async function begin(
  { event, shape }: CallKind,
  given: RequestOptions | Promise<RequestOptions>,
  options: MeterOpenAIOptions,
): Promise<{ readonly call: OpenCall; readonly request: RequestOptions }> {
  const request = await given;
  const { signal } = request;
  const body = fieldsOf(request.body);
  if (body.background === true) {
    throw invalidInput("background: must not be true, because the answer could not be metered");
  }
  const model = typeof body.model === "string" ? body.model : undefined;
  const metering = { ...options, event: options.event ?? event };
  const call = await openCall(metering, body, model, estimateOf(body, shape), signal);
  return {
    call,
    request: {
      ...request,
      ...shape === "chat" ? { body: askingForUsage(body) } : {},
      fetchOptions: { ...request.fetchOptions, [CALL]: meter(call, shape, body) },
    },
  };
}

/** The members of a body, without files. */
function fieldsOf(body: OpenAICall | FormData = {}): OpenAICall {
  if (!(body instanceof FormData)) return body;
  const texts = [...body].filter(([, value]) => typeof value === "string");
  return { ...Object.fromEntries(texts), n: Number(body.get("n") ?? 1) };
}

/** Makes `fetch` settle the call with its answer. */
type Meter = (answer: Response, signal: AbortSignal | null | undefined) => Response;

function meter(call: OpenCall, shape: AnswerShape, body: OpenAICall): Meter {
  const hidesUsage = shape === "chat" && optionsOf(body).include_usage !== true;
  return (answer, signal) => meteredAnswer(answer, call, { shape, hidesUsage, signal });
}

function meteredFetch(send: Fetch): Fetch {
  return async (url, init = {}) => {
    const { [CALL]: meter, ...rest } = init;
    const answer = await send(url, rest);
    return meter === undefined || !answer.ok ? answer : meter(answer, rest.signal);
  };
}

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
