// The most that a call of a model server may use, estimated before the call. The input is a quarter of the bytes of its
// JSON text, in tokens; media within it count a flat number, token arrays their length. The answer is the limit that the
// call names, else a default, times the number of answers. Images count as what they are, and a flat number of tokens.

import { type Amount, amountOf, larger } from "../values/amount.ts";
import type { FieldFault } from "../values/refusal.ts";

/** A call of a model server, as the caller sent it. */
export type ModelCall = Readonly<Record<string, unknown>>;

/** The most that a call may use, in tokens. */
export interface CallEstimate {
  readonly inputTokens: Amount;
  /** Null for a call that has no answer of tokens. */
  readonly maxOutputTokens: Amount | null;
  /** The input with media counted by their size, for a call without a report. */
  readonly inputBySize: Amount;
  /** Whether the call has images, files or sounds. */
  readonly hasMedia: boolean;
  /** Whether the call asks the model to reason. */
  readonly asksReasoning: boolean;
  /** The input of a call that asks for caching: any of it may be written to a cache. 0 for other calls. */
  readonly cacheWriteTokens: Amount;
  /** The same, where the call asks for a cache that is kept for an hour. */
  readonly cacheWrite1hTokens: Amount;
  /** The images that the call asks for; null for a call of text. */
  readonly images: number | null;
}

/** The longest answer, in tokens, that is held for a call without a limit. */
const ANSWER_TOKENS = 1_024;
/** Estimated tokens of one inline image, file or sound. */
const MEDIA_TOKENS = 1_024;
/** Estimated tokens of an image that the model makes. */
const IMAGE_TOKENS = 1_024;
/** Base64 characters of a file or sound for each token, where they are counted by their size. */
const MEDIA_CHARS_PER_TOKEN = { image: Infinity, file: 32, sound: 1_024 } as const;
/** Base64 characters for each token of a PDF in a call of Anthropic's API, which is held by its size. */
const PDF_CHARS_PER_TOKEN = 40;
const BYTES_PER_TOKEN = 4;
const TOKENS_MAX = 1e12;

/** Members that hold the input. The format of the answer, a part of `text`, counts too. */
const INPUTS = ["messages", "input", "instructions", "tools", "functions", "response_format"] as const;
/** Members that limit one answer; the largest is held. */
export const ANSWER_LIMITS = ["max_completion_tokens", "max_tokens", "max_output_tokens"] as const;

const TOO_DEEP: FieldFault = { path: "", message: "The body is nested too deeply" };

/** Estimates the most that a call of OpenAI's API may use; a fault names the member that is invalid. */
export function estimateCall(call: ModelCall, hasAnswer: boolean): CallEstimate | FieldFault {
  const { text } = call;
  const format = typeof text === "object" && text !== null ? (text as ModelCall).format : undefined;
  const input = inputOf([...INPUTS.map((name) => call[name]), format], call.cache_control, mediaOfOpenAI);
  if (input === null) return TOO_DEEP;
  const asked = { ...input, asksReasoning: isReasoning(call), images: null };
  if (!hasAnswer) return { ...asked, maxOutputTokens: null };
  let longest: number | null = null;
  for (const name of ANSWER_LIMITS) {
    const limit = call[name] ?? null;
    if (limit === null) continue;
    if (!isCount(limit)) return { path: name, message: "must be a positive integer" };
    longest = Math.max(longest ?? 0, limit);
  }
  const answers = answersOf(call, longest ?? ANSWER_TOKENS);
  return "path" in answers ? answers : { ...asked, maxOutputTokens: answers.maxOutputTokens };
}

/** The tokens of all answers to a call. */
function answersOf(
  { n }: ModelCall,
  tokensOfOne: number,
): { readonly answers: number; readonly maxOutputTokens: Amount } | FieldFault {
  const answers = n ?? 1;
  if (!isCount(answers)) return { path: "n", message: "must be a positive integer" };
  const tokens = tokensOfOne * answers;
  if (tokens > TOKENS_MAX) return { path: "n", message: `asks for more than ${TOKENS_MAX} tokens` };
  return { answers, maxOutputTokens: amountOf(tokens) };
}

/** Estimates a call of Anthropic's messages. Its limit may be 0: the call then only fills the cache. */
export function estimateMessages(call: ModelCall): CallEstimate | FieldFault {
  const { system, messages, tools, cache_control, thinking, max_tokens } = call;
  const input = inputOf([system, messages, tools], cache_control, mediaOfAnthropic);
  if (input === null) return TOO_DEEP;
  const limit = max_tokens ?? ANSWER_TOKENS;
  if (limit !== 0 && !isCount(limit)) {
    return { path: "max_tokens", message: "must be an integer of at least 0" };
  }
  const asksReasoning = typeof thinking === "object" && thinking !== null &&
    (thinking as ModelCall).type !== "disabled";
  return { ...input, asksReasoning, images: null, maxOutputTokens: amountOf(limit) };
}

/** Estimates a call for images. */
export function estimateImages(call: ModelCall): CallEstimate | FieldFault {
  const input = inputOf([call.prompt], undefined, mediaOfOpenAI);
  if (input === null) return TOO_DEEP;
  const answers = answersOf(call, IMAGE_TOKENS);
  if ("path" in answers) return answers;
  const { answers: images, maxOutputTokens } = answers;
  return { ...input, hasMedia: true, asksReasoning: false, images, maxOutputTokens };
}

/** Estimates the tokens of images that came without a report. */
export function tokensOfImages(images: number): Amount {
  return amountOf(images * IMAGE_TOKENS);
}

/** What is charged for a call that its caller has left, where nobody reports its usage. */
interface LeftUsage {
  readonly inputTokens: Amount;
  readonly outputTokens: Amount;
}

/**
 * Estimates the usage of a call that its caller has left, at least what was held for a call with media or for a model
 * that reasons: what it thought is not in the text, and leaving must not be cheaper than reading on. Media count by their
 * size.
 *
 * @param written tokens of the text that has arrived
 * @param hasReasoned whether the answer or the model's prices show that it reasons
 */
export function usageOfLeft(
  { inputBySize, maxOutputTokens, hasMedia, asksReasoning }: CallEstimate,
  written: Amount,
  hasReasoned: boolean,
): LeftUsage {
  const isLongest = (hasMedia || asksReasoning || hasReasoned) && maxOutputTokens !== null;
  return { inputTokens: inputBySize, outputTokens: isLongest ? larger(written, maxOutputTokens) : written };
}

const WITHOUT_REASONING: ReadonlySet<unknown> = new Set([undefined, null, "none"]);

function isReasoning({ reasoning, reasoning_effort: effort }: ModelCall): boolean {
  if (typeof reasoning !== "object" || reasoning === null) return !WITHOUT_REASONING.has(effort);
  return (reasoning as ModelCall).effort !== "none" || !WITHOUT_REASONING.has(effort);
}

/** Estimates the tokens of a text by its size in bytes. */
export function tokensOfBytes(bytes: number): Amount {
  return amountOf(Math.ceil(bytes / BYTES_PER_TOKEN));
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= TOKENS_MAX;
}

type InputEstimate = Omit<CallEstimate, "maxOutputTokens" | "asksReasoning" | "images">;

/** The tokens of some members; null for a value that is nested too deeply for JSON. */
function inputOf(
  values: readonly unknown[],
  cacheControl: unknown,
  mediaOf: MediaReader,
): InputEstimate | null {
  const caching = new Caching();
  caching.see("cache_control", cacheControl);
  let bytes = 0;
  let tokens = 0;
  let more = 0;
  let hasMedia = false;
  for (const value of values) {
    const counted = tokenCount(value);
    if (counted !== null) tokens += counted;
    else {
      const sized = sizeOf(value, caching, mediaOf);
      if (sized === null) return null;
      bytes += sized.bytes;
      tokens += sized.mediaTokens;
      more += sized.moreTokens;
      hasMedia ||= sized.mediaTokens > 0 || sized.moreTokens > 0;
    }
  }
  const inputTokens = tokensOfBytes(bytes) + amountOf(tokens);
  return {
    inputTokens,
    inputBySize: inputTokens + amountOf(more),
    hasMedia,
    cacheWriteTokens: caching.isAsked ? inputTokens : 0n,
    cacheWrite1hTokens: caching.isAskedForHour ? inputTokens : 0n,
  };
}

/** Whether a call asks the provider to cache its input: by any member of this name. */
class Caching {
  isAsked = false;
  isAskedForHour = false;

  see(name: string, value: unknown): void {
    if (name !== "cache_control" || typeof value !== "object" || value === null) return;
    this.isAsked = true;
    this.isAskedForHour ||= (value as ModelCall).ttl === "1h";
  }
}

/** Counts an input that is a list of tokens, or several lists of them; null for any other input. */
function tokenCount(value: unknown): number | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  if (value.every((token) => typeof token === "number")) return value.length;
  const isLists = value.every((list) =>
    Array.isArray(list) && list.every((token) => typeof token === "number")
  );
  return isLists ? value.reduce((sum, list) => sum + list.length, 0) : null;
}

const encoder = new TextEncoder();

/** What one medium counts. */
interface Medium {
  readonly tokens: number;
  /** What it has beyond that by its size. */
  readonly moreTokens: number;
  /** Whether its text is an address or an id, which counts as a text too. */
  readonly isNamed: boolean;
}

/** Recognizes a medium by the member that has it, within its part of a message; null for a text. */
type MediaReader = (part: ModelCall, name: string, text: string) => Medium | null;

interface Sized {
  /** Bytes as JSON, without media. */
  readonly bytes: number;
  readonly mediaTokens: number;
  readonly moreTokens: number;
}

function sizeOf(value: unknown, caching: Caching, mediaOf: MediaReader): Sized | null {
  if (value === undefined || value === null) return { bytes: 0, mediaTokens: 0, moreTokens: 0 };
  let mediaTokens = 0;
  let moreTokens = 0;
  try {
    const text = JSON.stringify(value, function (this: ModelCall, name, member) {
      caching.see(name, member);
      if (typeof member !== "string") return member;
      const medium = mediaOf(this, name, member);
      if (medium === null) return member;
      mediaTokens += medium.tokens;
      moreTokens += medium.moreTokens;
      return medium.isNamed ? member : "";
    });
    return { bytes: encoder.encode(text).byteLength, mediaTokens, moreTokens };
  } catch {
    return null;
  }
}

const MEDIA_MEMBERS: ReadonlySet<string> = new Set(["url", "image_url", "file_url", "file_data"]);

/**
 * Media come as data URLs in members of these names; files and sounds may also come as bare base64. One at an address,
 * which the model server fetches, has the flat number only by its size.
 */
function mediaOfOpenAI(part: ModelCall, name: string, text: string): Medium | null {
  const kind = mediaKind(part, name, text);
  if (kind !== null) return mediumOf(MEDIA_TOKENS, text.length / MEDIA_CHARS_PER_TOKEN[kind]);
  const isAddress = MEDIA_MEMBERS.has(name) && /^https?:/i.test(text);
  return isAddress ? { tokens: 0, moreTokens: MEDIA_TOKENS, isNamed: true } : null;
}

function mediumOf(tokens: number, bySize: number): Medium {
  return { tokens, moreTokens: Math.max(0, Math.ceil(bySize) - tokens), isNamed: false };
}

function mediaKind(part: ModelCall, name: string, text: string): keyof typeof MEDIA_CHARS_PER_TOKEN | null {
  if (name === "file_data") return "file";
  if (MEDIA_MEMBERS.has(name)) {
    return !text.startsWith("data:") ? null : text.startsWith("data:image/") ? "image" : "file";
  }
  return name === "data" && typeof part.format === "string" ? "sound" : null;
}

/** The members of a medium in Anthropic's messages, by the type of its source; a source of type "text" is a text. */
const SOURCES: Readonly<Record<string, string>> = { base64: "data", url: "url", file: "file_id" };

function mediaOfAnthropic({ type, media_type }: ModelCall, name: string, text: string): Medium | null {
  if (typeof type !== "string" || !Object.hasOwn(SOURCES, type) || SOURCES[type] !== name) return null;
  if (type !== "base64") return { tokens: MEDIA_TOKENS, moreTokens: 0, isNamed: true };
  if (media_type !== "application/pdf") return mediumOf(MEDIA_TOKENS, 0);
  const tokens = Math.ceil(text.length / PDF_CHARS_PER_TOKEN);
  return mediumOf(tokens, text.length / MEDIA_CHARS_PER_TOKEN.file);
}
