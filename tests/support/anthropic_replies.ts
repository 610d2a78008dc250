// What a server of Anthropic's API answers: messages, the events of their streams, and the number of tokens of a call.

import { eventOf, type ModelReply, type ModelRequest, SAMPLE } from "./model_server.ts";

/** The usage at the beginning of a stream, and what its end adds. */
const BEGIN_USAGE = {
  input_tokens: 600,
  cache_creation_input_tokens: 100,
  cache_read_input_tokens: 300,
  cache_creation: { ephemeral_5m_input_tokens: 60, ephemeral_1h_input_tokens: 40 },
  output_tokens: 1,
  service_tier: "standard",
};
export const END_USAGE = { output_tokens: 500, input_tokens: null, cache_read_input_tokens: null };

/** A complete message. */
export function messageOf(content: readonly object[], more: Readonly<Record<string, unknown>> = {}) {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude",
    content,
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { ...BEGIN_USAGE, output_tokens: 500 },
    ...more,
  };
}

/** A named event, as every event of Anthropic is. */
export function namedEvent(type: string, members: Readonly<Record<string, unknown>> = {}): string {
  return eventOf({ type, ...members }, type);
}

/** The events of a stream of messages, with the deltas of one block. */
export function* messageEvents(
  deltas: Iterable<object>,
  block: object = { type: "text", text: "" },
  end: Readonly<Record<string, unknown>> | null = END_USAGE,
): Iterable<string> {
  const message = messageOf([], { stop_reason: null, usage: BEGIN_USAGE });
  yield namedEvent("message_start", { message });
  yield namedEvent("ping");
  yield namedEvent("content_block_start", { index: 0, content_block: block });
  for (const delta of deltas) yield namedEvent("content_block_delta", { index: 0, delta });
  yield namedEvent("content_block_stop", { index: 0 });
  if (end === null) return;
  yield namedEvent("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: end });
  yield namedEvent("message_stop");
}

/** The deltas of a text. */
export function textDeltas(pieces: readonly string[]): object[] {
  return pieces.map((text) => ({ type: "text_delta", text }));
}

/** An answer that fits the call. */
export function messageReply(path: string, body: ModelRequest["body"]): ModelReply {
  if (path.includes("count_tokens")) return { answer: { input_tokens: 12 } };
  if (body?.stream === true) return { events: messageEvents(textDeltas(SAMPLE)) };
  return { answer: messageOf([{ type: "text", text: SAMPLE.join("") }]) };
}
