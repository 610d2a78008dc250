// One call of a model under a reservation, shared by the modules for AI SDKs. The input is estimated before the call.
// Afterwards the usage that the model reported is committed, or an estimate if there is no report.

import { HoldfastError, invalidInput } from "./errors.ts";
import {
  releaseWork,
  type ReservedWork,
  reserveWork,
  settleWork,
  type SettlingCalls,
} from "./with_reservation.ts";
import type { DecisionOptions, Held, NotHeld, ReportedUsage, Unmetered } from "./metering_types.ts";
import type { CommitOptions, Metadata, ReservedGroup } from "./wire_types.ts";

/** The user and event of metered calls. */
export interface ModelMetering<Call> extends DecisionOptions {
  /** A client with a secret key. */
  readonly client: SettlingCalls;
  /** The user's id, or a function that returns it for each call. */
  readonly userId: string | ((call: Call) => string | Promise<string>);
  readonly event: string;
  /** Sent with every call, beside its `model`. */
  readonly metadata?: Metadata | undefined;
  /**
   * How long a call's reservation lasts: 10 to 86,400; the app's setting by default. Choose more than the longest answer
   * takes: a reservation that has expired before its commit is charged all the same, but held no quota since then.
   */
  readonly ttlSeconds?: number | undefined;
}

/** The input of a call, estimated. */
export interface InputEstimate {
  readonly inputTokens: number;
  /** The whole input of a call that asks for caching, which may be dearer; missing for other calls. */
  readonly cacheWriteTokens?: number | undefined;
  /** The same, where the call asks for a cache that is kept for an hour. */
  readonly cacheWrite1hTokens?: number | undefined;
}

/** The most that a call may use. */
export interface CallEstimate extends InputEstimate {
  /** Missing for a call without output tokens. */
  readonly maxOutputTokens?: number | undefined;
  /** Images; missing for any other call. */
  readonly count?: number | undefined;
}

/** The output tokens held for a call without a limit. */
export const ANSWER_TOKENS = 1_024;
/** Estimated tokens of one inline image, file or sound. */
const MEDIA_TOKENS = 1_024;
/** Base64 characters of a PDF in Anthropic's messages for each token. */
const PDF_CHARS_PER_TOKEN = 40;
const BYTES_PER_TOKEN = 4;

/**
 * Reserves for a call.
 *
 * @throws HoldfastError of status 429 when the call is refused, with the first reason as code
 */
export async function openCall<Call>(
  { client, userId, event, metadata, ttlSeconds, ...decision }: ModelMetering<Call>,
  call: Call,
  model: string | undefined,
  estimate: CallEstimate,
  signal?: AbortSignal | null,
): Promise<OpenCall> {
  const id = typeof userId === "function" ? await userId(call) : userId;
  // Without this check, the error of the service would name a member that this caller never wrote.
  if (typeof id !== "string") throw invalidInput("userId: must be a string");
  const described = model === undefined ? metadata : { ...metadata, model };
  const { onUnavailable, timeoutMs, onAllowedUnmetered, onCommitError } = decision;
  const asked = {
    ...estimate,
    ttlSeconds,
    userId: id,
    event,
    metadata: described,
    onUnavailable,
    timeoutMs,
    onAllowedUnmetered,
    onCommitError,
  };
  const hold = await reserveWork(client, asked, signal ? { signal } : {});
  if (hold.allowed) return new OpenCall(client, hold, asked);
  throw refusalOf(hold);
}

/**
 * The error of a call that was refused: its code is the first reason, its text names the limits, their users and when they
 * reset.
 */
export function refusalOf(
  { reasons, groups = [], levels, refusedBy = [], retryAfterMs }: NotHeld,
): HoldfastError {
  const [code = "limit_reached"] = reasons;
  const own = fullOf(groups);
  const above = (levels ?? []).flatMap(({ userId, groups: ofLevel }) =>
    fullOf(ofLevel).map((group) => ({ ...group, userId }))
  );
  const limits = [...own, ...above].map(({ label, resetsAt, userId }) =>
    `"${label}"${userId === undefined ? "" : ` of "${userId}"`}${
      resetsAt == null ? "" : ` (resets at ${resetsAt})`
    }`
  );
  // Users that refuse without a full limit: their plan has ended. The caller is the first of the path.
  const others = refusedBy.filter((id, place) =>
    !above.some(({ userId }) => userId === id) && !(place === 0 && own.length > 0)
  );
  const at = others.length === 0 ? "" : ` at ${others.map((id) => `"${id}"`).join(", ")}`;
  const [first] = [...own, ...above];
  return new HoldfastError({
    code,
    // A model without a price is a fault of the catalog, not of the user's limits.
    status: code === "unpriced_model" ? 400 : 429,
    retryAfterMs: retryAfterMs ?? null,
    message: `Refused${at}: ${reasons.join(", ")}${limits.length === 0 ? "" : `: ${limits.join(", ")}`}`,
    details: {
      reasons,
      groups,
      label: first?.label,
      resetsAt: first?.resetsAt,
      ...levels === undefined ? {} : { levels, refusedBy },
    },
  });
}

/** The groups without room, which have a label, as limits of the caller. */
function fullOf(groups: readonly ReservedGroup[]): (ReservedGroup & { readonly userId?: string })[] {
  return groups.filter(({ label }) => label !== undefined);
}

/** A call in flight. It is settled once, by its first end. */
export class OpenCall {
  readonly #client: SettlingCalls;
  readonly #hold: Held | Unmetered;
  readonly #asked: ReservedWork & CallEstimate;
  #textBytes = 0;
  #hasWork = false;
  #reports: readonly CommitOptions[] = [];
  #begun: Readonly<Record<string, unknown>> | null = null;
  #settled: Promise<void> | null = null;

  constructor(client: SettlingCalls, hold: Held | Unmetered, asked: ReservedWork & CallEstimate) {
    this.#client = client;
    this.#hold = hold;
    this.#asked = asked;
  }

  /** Whether there is any work of the model, or a report of its usage. */
  get #hasBegun(): boolean {
    return this.#hasWork || this.#reports.length > 0;
  }

  /** Adds to the model's text. */
  addText(text: string): void {
    if (text === "") return;
    this.#textBytes += bytesOf(text);
    this.#hasWork = true;
  }

  /** Notes work of the model that is no text, such as a tool call or sound. */
  addWork(): void {
    this.#hasWork = true;
  }

  /** Keeps the usage that the model reported, in several forms: the service reads the first one that it knows. */
  report(...forms: readonly (ReportedUsage & Pick<CommitOptions, "actual">)[]): void {
    this.#reports = forms;
  }

  /** Keeps what was reported at the beginning of an answer. Without a later report its output is estimated by the text. */
  reportBegun(usage: Readonly<Record<string, unknown>>): void {
    this.#begun = usage;
  }

  /** Keeps the number of images that came, and their tokens where the model reported them; no image is no work. */
  reportImages(images: number, inputTokens: unknown, outputTokens: unknown): void {
    if (images === 0) return;
    const tokens = isTokens(inputTokens) && isTokens(outputTokens) ? { inputTokens, outputTokens } : {};
    this.report({ usage: { ...tokens, calls: images }, actual: { count: images } });
  }

  /** The usage so far, estimated by the size of its texts. */
  estimate(): { readonly inputTokens: number; readonly outputTokens: number } {
    return { inputTokens: this.#asked.inputTokens, outputTokens: tokensOf(this.#textBytes) };
  }

  /**
   * Commits a complete call; one without a report and any work of the model has failed. A commit that fails is reported and
   * retried; the caller gets its answer all the same.
   */
  finish(): Promise<void> {
    if (!this.#hasBegun) return this.fail(new Error("The answer is empty"));
    return this.#settled ??= this.#commit();
  }

  /** Commits the usage so far, because the caller stopped reading. Errors are left out: the caller has its own. */
  leave(): Promise<void> {
    return this.#settled ??= this.#commit().catch(() => {});
  }

  /** Ends a call that failed: releases it if there was no work. Errors are left out: the caller gets that of the call. */
  fail(error: unknown): Promise<void> {
    if (this.#hasBegun) return this.leave();
    const failed = { reason: "The model call failed", error };
    return this.#settled ??= releaseWork(this.#client, this.#hold, failed);
  }

  #atBegin(): readonly CommitOptions[] {
    if (this.#begun === null) return [];
    const { output_tokens: reported } = this.#begun;
    const output = Math.max(isTokens(reported) ? reported : 0, tokensOf(this.#textBytes));
    return [{ providerUsage: { ...this.#begun, output_tokens: output } }];
  }

  async #commit(): Promise<void> {
    const estimated: CommitOptions = { usage: this.estimate() };
    // Some servers report a usage in a form of their own. Their answers are charged by the estimate.
    const usages = [...this.#reports, ...this.#atBegin(), estimated];
    await settleWork(this.#client, { hold: this.#hold, asked: this.#asked }, usages);
  }
}

/**
 * Estimates the tokens of an input: texts at any depth by size, media at a flat rate, lists of tokens by length. A member
 * `cache_control` or `cacheControl` anywhere in it, or in the options of the call, asks for caching.
 */
export function estimateInput(values: readonly unknown[], options?: unknown): InputEstimate {
  let bytes = 0;
  let tokens = 0;
  let isCached = false;
  let isCachedForHour = false;
  for (const value of values) {
    if (value === undefined || value === null) continue;
    const counted = countTokens(value);
    if (counted === null) bytes += bytesOf(sized(value));
    else tokens += counted;
  }
  const inputTokens = tokensOf(bytes) + tokens;
  sized(options);
  return {
    inputTokens,
    ...isCached ? { cacheWriteTokens: inputTokens } : {},
    ...isCachedForHour ? { cacheWrite1hTokens: inputTokens } : {},
  };

  function sized(value: unknown): string {
    const text = JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, name, member) {
      // `this` has bytes and URLs in their own form, which is shorter than the form of JSON.
      const raw = this[name];
      if (CACHE_MEMBERS.has(name) && typeof raw === "object" && raw !== null) {
        isCached = true;
        isCachedForHour ||= (raw as { readonly ttl?: unknown }).ttl === "1h";
      }
      if (raw instanceof Uint8Array || raw instanceof ArrayBuffer) return media();
      if (typeof member !== "string" || !isMedia(this, name, member)) return member;
      return media(
        this.media_type === "application/pdf" ? member.length / PDF_CHARS_PER_TOKEN : MEDIA_TOKENS,
      );
    });
    return text ?? "";
  }

  function media(size = MEDIA_TOKENS): string {
    tokens += Math.ceil(size);
    return "";
  }
}

const CACHE_MEMBERS: ReadonlySet<string> = new Set(["cache_control", "cacheControl"]);

/** The number of tokens of an input that is a list of tokens, or of such lists; null for any other. */
function countTokens(value: unknown): number | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const isTokens = (list: unknown) => Array.isArray(list) && list.every((token) => typeof token === "number");
  if (isTokens(value)) return value.length;
  return value.every(isTokens) ? value.reduce((sum, list) => sum + list.length, 0) : null;
}

/** Whether a text is media: a data URL, or base64 in a part with a media type. */
function isMedia(part: Readonly<Record<string, unknown>>, name: string, text: string): boolean {
  if (text.startsWith("data:")) return name === "data" || name === "url" || name.includes("_");
  if (name === "file_data") return true;
  if (name !== "data") return false;
  return part.type === "data" || part.type === "base64" || typeof part.format === "string" ||
    typeof part.mediaType === "string";
}

/** Whether a value is a reported number of tokens. */
export function isTokens(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value < Infinity;
}

function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

const encoder = new TextEncoder();

function bytesOf(text: string): number {
  return encoder.encode(text).byteLength;
}
