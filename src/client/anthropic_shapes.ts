// Reads messages of Anthropic's API and the events of their streams.

import { isFilled, listOf, looseOf } from "./loose.ts";

/** Returns the whole text of a message. Thoughts and the input of tools are text too. */
export function textOfMessage(message: unknown): string {
  return listOf(looseOf(message).content).map(textOfBlock).join("");
}

function textOfBlock(block: unknown): string {
  const { text, thinking, name, input } = looseOf(block);
  const written = input === undefined ? "" : JSON.stringify(input);
  return [text ?? thinking, name].map(ownText).join("") + written;
}

function ownText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns the text in one event of a stream. */
export function textOfMessageEvent(event: unknown): string {
  const { type, delta, content_block: block } = looseOf(event);
  if (type === "content_block_start") {
    const { text, thinking, name } = looseOf(block);
    return [text ?? thinking, name].map(ownText).join("");
  }
  if (type !== "content_block_delta") return "";
  const { text, thinking, partial_json: input } = looseOf(delta);
  return ownText(text ?? thinking ?? input);
}

/** Blocks that are there before the model has written anything in them. */
const EMPTY_FIRST: ReadonlySet<unknown> = new Set(["text", "thinking"]);

/** Whether a message, or an event of a stream, has any work of the model. An error has none. */
export function showsMessageWork(value: unknown): boolean {
  const { type, content, content_block: block, delta } = looseOf(value);
  if (type === "content_block_start") return isWritten(block);
  if (type === "content_block_delta") return isSaid(delta);
  return listOf(content).some(isWritten);
}

function isWritten(block: unknown): boolean {
  const { type, text, thinking } = looseOf(block);
  return EMPTY_FIRST.has(type) ? isFilled(text) || isFilled(thinking) : type !== undefined;
}

function isSaid(delta: unknown): boolean {
  return Object.entries(looseOf(delta)).some(([name, value]) => name !== "type" && isFilled(value));
}

/** Whether a block or an event shows that the model reasons. */
export function showsThinking(event: unknown): boolean {
  const { content_block: block, delta } = looseOf(event);
  return [block, delta].some((part) => /thinking/.test(ownText(looseOf(part).type)));
}

const ENDS: ReadonlySet<unknown> = new Set(["message_stop", "error"]);

/** Whether an event is the last of its stream. Its reader stops at an error too. */
export function isMessageEnd(event: unknown): boolean {
  return ENDS.has(looseOf(event).type);
}

/** Returns the report in a message, or in an event of a stream; undefined without a report. */
export function messageReport(value: unknown): unknown {
  const { usage, message } = looseOf(value);
  return usage ?? looseOf(message).usage ?? undefined;
}
