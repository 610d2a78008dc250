// A model server in place of `fetch`, in OpenAI's shapes, and an app whose plan counts what models use.

import type { HoldfastClient } from "../../src/client/client.ts";
import { messageEvents, messageOf, textDeltas } from "../support/anthropic_replies.ts";
import { service } from "./service.ts";
import { clientOf } from "./support.ts";

/** A call as it came. */
export interface ModelRequest {
  readonly path: string;
  // deno-lint-ignore no-explicit-any -- tests look at whatever came
  readonly body: any;
  readonly signal: AbortSignal | null | undefined;
}

type Reply = (request: ModelRequest) => Response | Promise<Response>;

/** Answers as a test says. */
export class Model {
  readonly requests: ModelRequest[] = [];
  reply: Reply;

  constructor(reply: Reply = answerWell) {
    this.reply = reply;
  }

  readonly fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted();
    const body = JSON.parse(String(init.body));
    const { pathname } = new URL(url instanceof Request ? url.url : url);
    const request = { path: pathname.replace("/v1", ""), body, signal: init.signal };
    this.requests.push(request);
    return await this.reply(request);
  };
}

export const MODEL_URL = "http://model.test/v1";

const CHAT_USAGE = {
  prompt_tokens: 1000,
  completion_tokens: 500,
  total_tokens: 1500,
  prompt_tokens_details: { cached_tokens: 400 },
  completion_tokens_details: { reasoning_tokens: 100 },
};

const RESPONSE_USAGE = {
  input_tokens: 1000,
  input_tokens_details: { cached_tokens: 400 },
  output_tokens: 500,
  output_tokens_details: { reasoning_tokens: 100 },
  total_tokens: 1500,
};

/** The pieces of a text of 16 bytes. */
export const PIECES = ["A sam", "ple of ", "text"];
export const TEXT = PIECES.join("");

/** Answers every call well, with a report of its usage where that is asked for. */
export function answerWell({ path, body }: ModelRequest): Response {
  if (path.endsWith("/embeddings")) {
    return Response.json({
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: [0.5, -0.25] }],
      model: body.model,
      usage: { prompt_tokens: 8, total_tokens: 8 },
    });
  }
  if (path.endsWith("/messages")) {
    return body.stream === true
      ? textEvents([...messageEvents(textDeltas(PIECES))].join(""))
      : Response.json(messageOf([{ type: "text", text: TEXT }]));
  }
  if (path.endsWith("/responses")) {
    const response = { ...RESPONSE, usage: RESPONSE_USAGE };
    return body.stream === true
      ? events(PIECES.map((delta) => ({ type: "response.output_text.delta", delta, output_index: 0 })), {
        type: "response.completed",
        response,
      })
      : Response.json(response);
  }
  if (path.endsWith("/chat/completions")) {
    return body.stream === true
      ? events(...chatChunks(body, PIECES))
      : Response.json({ ...CHAT, usage: CHAT_USAGE });
  }
  return Response.json({ object: "list", data: [] });
}

const CHAT = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 0,
  model: "mini",
  choices: [{ index: 0, message: { role: "assistant", content: TEXT }, finish_reason: "stop" }],
};

const RESPONSE = {
  id: "resp_1",
  object: "response",
  created_at: 0,
  status: "completed",
  model: "mini",
  output: [{
    id: "msg_1",
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: TEXT, annotations: [] }],
  }],
};

/** The chunks of a chat; the last one is the report, where it is asked for. */
export function chatChunks(body: ModelRequest["body"], pieces: readonly string[]): unknown[] {
  const chunk = (choices: unknown[], usage: unknown) => ({
    ...CHAT,
    object: "chat.completion.chunk",
    choices,
    usage,
  });
  const isAsked = body.stream_options?.include_usage === true;
  return [
    ...pieces.map((content) =>
      chunk([{ index: 0, delta: { role: "assistant", content }, finish_reason: null }], null)
    ),
    chunk([{ index: 0, delta: {}, finish_reason: "stop" }], null),
    ...isAsked ? [chunk([], CHAT_USAGE)] : [],
    "[DONE]",
  ];
}

export function eventOf(value: unknown): string {
  return `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
}

/** An answer of server-sent events, cut into pieces of bytes that respect no border. */
export function events(...values: readonly unknown[]): Response {
  return textEvents(values.flat().map(eventOf).join(""));
}

/** The same of events as a text. */
export function textEvents(text: string): Response {
  const bytes = new TextEncoder().encode(text);
  return streamOf(async function* () {
    for (let from = 0; from < bytes.length; from += 7) yield await bytes.subarray(from, from + 7);
  });
}

/** An answer of server-sent events, sent while they are made. */
export function streamOf(make: () => AsyncGenerator<Uint8Array>): Response {
  return new Response(ReadableStream.from(make()), { headers: { "content-type": "text/event-stream" } });
}

/** A stream that gives some chunks and then waits, and breaks where its request is aborted. */
export function hangingStream(chunks: readonly unknown[], signal: AbortSignal | null | undefined): Response {
  return streamOf(async function* () {
    yield new TextEncoder().encode(chunks.map(eventOf).join(""));
    // A reader that stops reading before it aborts is noticed too.
    signal?.throwIfAborted();
    const broken = Promise.withResolvers<never>();
    signal?.addEventListener("abort", () => broken.reject(signal.reason));
    await broken.promise;
  });
}

const MATCHES = [{ event: "openai.*" }, { event: "anthropic.*" }, { event: "chat.*" }, { event: "route.*" }];

/** A plan that counts tokens, cents and calls. */
const CATALOG = {
  models: [{
    id: "mini",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 1000,
    cachedInputCentsPerMillionTokens: 100,
    outputCentsPerMillionTokens: 4000,
  }],
  plans: [{
    id: "plan_pro",
    name: "Pro",
    rank: 10,
    period: { type: "monthly", anchor: "calendar" },
    limits: [
      { id: "tokens", label: "Tokens", unit: "tokens", quota: 10_000, matches: MATCHES },
      { id: "cents", label: "Cents", unit: "cents", quota: 100, matches: MATCHES },
      { id: "calls", label: "Calls", unit: "count", quota: 10, matches: MATCHES },
    ],
  }],
};

/** Cents of 600 fresh and 400 cached tokens of input, and 500 of output. */
const REPORTED_CENTS = (600 * 1000 + 400 * 100 + 500 * 4000) / 1_000_000;

/** What a user's counters show, by group. */
export interface Shown {
  readonly tokens: number;
  readonly cents: number;
  readonly calls: number;
}

/** A client of an app of its own, with "u" on the plan. */
export async function meteredUser(): Promise<{ client: HoldfastClient; shown(): Promise<Shown> }> {
  const app = await service.newApp(CATALOG);
  const client = clientOf(service, app);
  await client.subscriptions.upsert({ userId: "u", planId: "plan_pro" });
  return {
    client,
    async shown() {
      const { counters } = await client.usage("u");
      return Object.fromEntries(counters.map(({ groupId, count }) => [groupId, count])) as unknown as Shown;
    },
  };
}

/** Waits until the counters of a user show what is wanted. */
export async function untilShown(shown: () => Promise<Shown>, isWanted: (now: Shown) => boolean) {
  for (;;) {
    const now = await shown();
    if (isWanted(now)) return now;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export const NOTHING: Shown = { tokens: 0, cents: 0, calls: 0 };
export const REPORTED: Shown = { tokens: 1500, cents: REPORTED_CENTS, calls: 1 };
