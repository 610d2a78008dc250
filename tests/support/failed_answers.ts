// Answers with status 200 that failed, or look as if they had: what servers send in place of an answer. The gateway and the
// client's module for the `openai` package are tested with this table, so both release and charge the same.

type CallPath = "/chat/completions" | "/responses" | "/embeddings";

/** An answer with status 200. */
interface FailedAnswer {
  readonly name: string;
  readonly path: CallPath;
  /** JSON, or server-sent events as their texts. */
  readonly answer: { readonly json: unknown } | { readonly events: readonly string[] };
  /** Estimated output tokens of an answer that is charged; null for one that is released. */
  readonly output: number | null;
}

const DONE = "data: [DONE]\n\n";
const ERROR = { error: { message: "overloaded", type: "server_error", code: null } };
const ERROR_EVENT = eventOf(ERROR);
const ROLE = delta({ role: "assistant", content: "" });

function eventOf(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function delta(members: object): string {
  return eventOf({ object: "chat.completion.chunk", choices: [{ index: 0, delta: members }], usage: null });
}

function messageOf(members: object): { readonly json: unknown } {
  const message = { role: "assistant", content: null, refusal: null, annotations: [], ...members };
  return { json: { object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop" }] } };
}

function responseEnd(type: string, output: readonly unknown[] = []): string {
  return eventOf({ type, response: { object: "response", status: "failed", output, usage: null } });
}

function itemOf(item: object): string {
  return eventOf({ type: "response.output_item.added", output_index: 0, item });
}

const CHAT = "/chat/completions";
const CALL = { index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "" } };
const EMPTY_PART = { type: "output_text", text: "", annotations: [], logprobs: [] };
const EMPTY_MESSAGE = { type: "message", role: "assistant", content: [] };

export const FAILED_ANSWERS: readonly FailedAnswer[] = [
  { name: "a stream without a byte", path: CHAT, answer: { events: [] }, output: null },
  { name: "only the end", path: CHAT, answer: { events: [DONE] }, output: null },
  { name: "an error event", path: CHAT, answer: { events: [ERROR_EVENT] }, output: null },
  { name: "an error event and the end", path: CHAT, answer: { events: [ERROR_EVENT, DONE] }, output: null },
  { name: "a role, then an error", path: CHAT, answer: { events: [ROLE, ERROR_EVENT, DONE] }, output: null },
  { name: "an error as JSON", path: CHAT, answer: { json: ERROR }, output: null },
  { name: "a message without anything", path: CHAT, answer: messageOf({ content: "" }), output: null },
  { name: "an empty report", path: CHAT, answer: { json: { choices: [], usage: {} } }, output: null },
  {
    name: "a text, then an error",
    path: CHAT,
    answer: { events: [delta({ content: "12345" }), ERROR_EVENT, DONE] },
    output: 2,
  },
  { name: "a refusal", path: CHAT, answer: messageOf({ refusal: "1234" }), output: 1 },
  { name: "a tool call", path: CHAT, answer: { events: [delta({ tool_calls: [CALL] }), DONE] }, output: 1 },
  { name: "reasoning", path: CHAT, answer: { events: [delta({ reasoning: "1234" }), DONE] }, output: 1 },
  {
    name: "thoughts and a text in parts",
    path: CHAT,
    answer: messageOf({
      content: [{ type: "thinking", thinking: [{ type: "text", text: "1234" }] }, {
        type: "text",
        text: "1234",
      }],
    }),
    output: 2,
  },
  {
    name: "a call of a tool without a schema",
    path: CHAT,
    answer: messageOf({
      tool_calls: [{ id: "call_1", type: "custom", custom: { name: "abcd", input: "1234" } }],
    }),
    output: 2,
  },
  { name: "sound", path: CHAT, answer: messageOf({ audio: { id: "audio_1", data: "AAAA" } }), output: 0 },
  {
    name: "hidden reasoning",
    path: CHAT,
    answer: { events: [delta({ reasoning_details: [{ type: "reasoning.encrypted", data: "x" }] }), DONE] },
    output: 0,
  },
  { name: "responses: an error as JSON", path: "/responses", answer: { json: ERROR }, output: null },
  {
    name: "responses: failed as JSON",
    path: "/responses",
    answer: { json: { object: "response", status: "failed", error: ERROR.error, output: [], usage: null } },
    output: null,
  },
  {
    name: "responses: an error event",
    path: "/responses",
    answer: { events: [eventOf({ ...ERROR.error, type: "error" })] },
    output: null,
  },
  {
    name: "responses: failed without a usage",
    path: "/responses",
    answer: { events: [itemOf(EMPTY_MESSAGE), responseEnd("response.failed", [EMPTY_MESSAGE])] },
    output: null,
  },
  {
    name: "responses: an empty part of a text, then failed",
    path: "/responses",
    answer: { events: [responseEnd("response.failed", [{ ...EMPTY_MESSAGE, content: [EMPTY_PART] }])] },
    output: null,
  },
  {
    name: "responses: a text, then failed",
    path: "/responses",
    answer: {
      events: [
        eventOf({ type: "response.output_text.delta", delta: "1234" }),
        responseEnd("response.failed"),
      ],
    },
    output: 1,
  },
  {
    name: "responses: a refusal and thoughts as JSON",
    path: "/responses",
    answer: {
      json: {
        object: "response",
        status: "completed",
        output: [
          { type: "reasoning", summary: [{ type: "summary_text", text: "1234" }] },
          { type: "message", role: "assistant", content: [{ type: "refusal", refusal: "1234" }] },
        ],
      },
    },
    output: 2,
  },
  {
    name: "responses: reasoning, then failed",
    path: "/responses",
    answer: { events: [itemOf({ type: "reasoning", summary: [] }), responseEnd("response.failed")] },
    output: 0,
  },
  { name: "embeddings: an error as JSON", path: "/embeddings", answer: { json: ERROR }, output: null },
  {
    name: "embeddings: vectors",
    path: "/embeddings",
    answer: { json: { object: "list", data: [{ object: "embedding", index: 0, embedding: [0.5] }] } },
    output: 0,
  },
];

/** The body of a call that gets such an answer. */
export function bodyOf({ path, answer }: FailedAnswer): Record<string, unknown> {
  const stream = "events" in answer;
  if (path === CHAT) return { model: "mini", messages: [{ role: "user", content: "Hello" }], stream };
  return { model: "mini", input: "Hello", ...path === "/responses" ? { stream } : {} };
}

/** The input tokens of such a call, by their estimate. */
export function inputOf(failed: FailedAnswer): number {
  const { messages, input } = bodyOf(failed);
  return Math.ceil(JSON.stringify(messages ?? input).length / 4);
}
