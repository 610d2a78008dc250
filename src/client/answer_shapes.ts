// Reads answers in the shapes of model servers: their text, whether the model did any work, and the report of the usage. Any
// compatible server may have written an answer, so each member may be missing.

import {
  isMessageEnd,
  messageReport,
  showsMessageWork,
  textOfMessage,
  textOfMessageEvent,
} from "./anthropic_shapes.ts";
import { isFilled, listOf, looseOf } from "./loose.ts";

/** The shapes of answers: OpenAI's with text, Anthropic's, images, and vectors, which have none. */
export type AnswerShape = "chat" | "responses" | "messages" | "images" | "none";

/** Returns a text, or the texts of a list of parts, thoughts and refusals included. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return listOf(value).map((part) => {
    const { text, thinking, refusal } = looseOf(part);
    return textOf(text ?? thinking ?? refusal);
  }).join("");
}

/** Returns the whole text of a complete answer. */
export function textOfAnswer(shape: AnswerShape, answer: unknown): string {
  const { choices, output } = looseOf(answer);
  if (shape === "messages") return textOfMessage(answer);
  if (shape === "chat") return listOf(choices).map((choice) => chatText(looseOf(choice).message)).join("");
  if (shape === "none" || shape === "images") return "";
  return listOf(output).map((item) => {
    const { content, summary, arguments: written, input } = looseOf(item);
    return [written ?? input, content, summary].map(textOf).join("");
  }).join("");
}

/** Returns the text in one event of a stream. */
export function textOfEvent(shape: AnswerShape, event: unknown): string {
  const { choices, type, delta } = looseOf(event);
  if (shape === "messages") return textOfMessageEvent(event);
  if (shape === "chat") return listOf(choices).map((choice) => chatText(looseOf(choice).delta)).join("");
  if (shape === "none" || shape === "images") return "";
  return typeof type === "string" && type.endsWith(".delta") ? textOf(delta) : "";
}

/** Returns the text of a message or of a piece of it. Reasoning and the arguments of tools are text too. */
function chatText(message: unknown): string {
  const { content, refusal, reasoning, reasoning_content, tool_calls, function_call } = looseOf(message);
  const calls = [{ function: function_call }, ...listOf(tool_calls)].map((call) => {
    const { function: called, custom } = looseOf(call);
    const { name, arguments: written, input } = looseOf(called ?? custom);
    return textOf(name) + textOf(written ?? input);
  });
  return [content, reasoning_content ?? reasoning, refusal].map(textOf).join("") + calls.join("");
}

/**
 * Whether a complete answer, or an event of a stream, has any work of the model: text, reasoning, a tool call, a refusal,
 * sound, a vector. An error has none.
 */
export function showsWork(shape: AnswerShape, value: unknown): boolean {
  const { choices, data, type, delta, item, output, response } = looseOf(value);
  if (shape === "messages") return showsMessageWork(value);
  if (shape === "none" || shape === "images") return listOf(data).length > 0;
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

const ENDS: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", "response.failed"]);

/** Whether an event is the last of its stream, where the shape has such events. */
export function isEnd(shape: AnswerShape, event: unknown): boolean {
  if (shape === "messages") return isMessageEnd(event);
  return shape === "responses" && ENDS.has(looseOf(event).type);
}

/** Returns the report in a complete answer, or in an event of a stream; undefined without a report. */
export function reportIn(shape: AnswerShape, value: unknown): unknown {
  const { usage, response } = looseOf(value);
  if (shape === "messages") return messageReport(value);
  const report = shape === "responses" ? usage ?? looseOf(response).usage : usage;
  return report ?? undefined;
}

/** Whether the report in an event of a stream is whole: that at the beginning of a message is not. */
export function isWholeReport(shape: AnswerShape, event: unknown): boolean {
  return shape !== "messages" || looseOf(event).type !== "message_start";
}

/** Joins the reports of one stream: of messages the latest value of each member counts, else the latest report. */
export function joinReports(shape: AnswerShape, before: unknown, next: unknown): unknown {
  if (shape !== "messages") return next;
  const reported = Object.entries(looseOf(next)).filter(([, value]) => value !== null && value !== undefined);
  return { ...looseOf(before), ...Object.fromEntries(reported) };
}
