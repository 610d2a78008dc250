// One call of a model under a reservation: what the entries for AI SDKs share. The input is estimated before the call;
// afterwards what the model reported is committed, or an estimate where a call ends without its report.

import { HoldfastError, invalidInput } from "./errors.ts";
import type { SettlingCalls } from "./with_reservation.ts";
import type { ReportedUsage } from "./metering_types.ts";
import type { CommitOptions, Metadata } from "./wire_types.ts";

/** Whose calls these are, and as what they are metered. */
export interface ModelMetering<Call> {
  /** A client with a secret key. */
  readonly client: SettlingCalls;
  /** The user's id, or what tells it from each call. */
  readonly userId: string | ((call: Call) => string | Promise<string>);
  readonly event: string;
  /** Sent with every call, beside its `model`. */
  readonly metadata?: Metadata | undefined;
  /**
   * How long a call's reservation lasts: 10 to 86,400; the app's setting by default. Longer than the longest answer
   * takes: a reservation that has lapsed meanwhile is charged all the same, but held no quota until then.
   */
  readonly ttlSeconds?: number | undefined;
}

/** The most that a call may use. */
export interface CallEstimate {
  readonly inputTokens: number;
  /** Missing for a call that has no answer of tokens. */
  readonly maxOutputTokens?: number | undefined;
}

/** The answer that is held where a call names no limit. */
export const ANSWER_TOKENS = 1_024;
/** What an image, a file or a sound counts that stands in the call itself. */
const MEDIA_TOKENS = 1_024;
const BYTES_PER_TOKEN = 4;

/**
 * Reserves for a call.
 *
 * @throws HoldfastError of status 429 where the call is refused, with the first reason as code
 */
export async function openCall<Call>(
  { client, userId, event, metadata, ttlSeconds }: ModelMetering<Call>,
  call: Call,
  model: string | undefined,
  estimate: CallEstimate,
  signal?: AbortSignal | null,
): Promise<OpenCall> {
  const id = typeof userId === "function" ? await userId(call) : userId;
  // An absent id would be sent as none, and the service would name a member that this caller never wrote.
  if (typeof id !== "string") throw invalidInput("userId: must be a text");
  const described = model === undefined ? metadata : { ...metadata, model };
  const size = { ...estimate, ttlSeconds };
  const hold = await client.reserve(id, event, undefined, described, size, signal ? { signal } : {});
  if (hold.allowed) return new OpenCall(client, hold.reservationId, estimate.inputTokens);
  const [code = "limit_reached"] = hold.reasons;
  throw new HoldfastError({
    code,
    status: 429,
    message: `The call was refused: ${hold.reasons.join(", ")}`,
    details: { reasons: hold.reasons, groups: hold.groups },
  });
}

/** A call under way. It is settled once, by whatever ends it first. */
export class OpenCall {
  readonly #client: SettlingCalls;
  readonly #reservationId: string;
  readonly #inputTokens: number;
  #textBytes = 0;
  #report: ReportedUsage | null = null;
  #settled: Promise<void> | null = null;

  constructor(client: SettlingCalls, reservationId: string, inputTokens: number) {
    this.#client = client;
    this.#reservationId = reservationId;
    this.#inputTokens = inputTokens;
  }

  /** Whether anything has come that is worth charging. */
  get hasBegun(): boolean {
    return this.#textBytes > 0 || this.#report !== null;
  }

  /** Adds to what the model has written. */
  addText(text: string): void {
    if (text !== "") this.#textBytes += bytesOf(text);
  }

  /** Takes the model's own report of what it used. */
  report(usage: ReportedUsage): void {
    this.#report = usage;
  }

  /** What the call has used so far, by the size of its texts. */
  estimate(): { readonly inputTokens: number; readonly outputTokens: number } {
    return { inputTokens: this.#inputTokens, outputTokens: tokensOf(this.#textBytes) };
  }

  /** Commits a complete call. */
  finish(): Promise<void> {
    return this.#settled ??= this.#commit();
  }

  /** Commits what there is, because the caller wants no more of it. The caller's own error says more than ours. */
  leave(): Promise<void> {
    return this.#settled ??= this.#commit().catch(() => {});
  }

  /** Ends a call that failed: released where nothing came of it. The call's own error says more than ours. */
  fail(error: unknown): Promise<void> {
    if (this.hasBegun) return this.leave();
    const errorCode = error instanceof Error ? error.name : undefined;
    return this.#settled ??= this.#client
      .release(this.#reservationId, { reason: "The model call failed", errorCode })
      .catch(() => {});
  }

  async #commit(): Promise<void> {
    const estimated: CommitOptions = { usage: this.estimate() };
    try {
      await this.#client.commit(this.#reservationId, this.#report ?? estimated);
    } catch (error) {
      // Some servers report what no provider does; their answers are still to be paid.
      const isReport = this.#report !== null && error instanceof HoldfastError &&
        error.code === "invalid_request";
      if (!isReport) throw error;
      await this.#client.commit(this.#reservationId, estimated);
    }
  }
}

/** The tokens of an input by its size: texts of any depth, media at a flat rate, lists of tokens by their length. */
export function estimateInput(...values: readonly unknown[]): number {
  let bytes = 0;
  let tokens = 0;
  for (const value of values) {
    if (value === undefined || value === null) continue;
    const counted = countTokens(value);
    if (counted !== null) {
      tokens += counted;
      continue;
    }
    const text = JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, name, member) {
      // Bytes and URLs arrive here as `this` has them: JSON's own form of them is longer than they are.
      const raw = this[name];
      if (raw instanceof Uint8Array || raw instanceof ArrayBuffer) return media();
      return typeof member === "string" && isMedia(this, name, member) ? media() : member;
    });
    bytes += bytesOf(text ?? "");
  }
  return tokensOf(bytes) + tokens;

  function media(): string {
    tokens += MEDIA_TOKENS;
    return "";
  }
}

/** The tokens of an input that comes as tokens, or as several lists of them; null for any other. */
function countTokens(value: unknown): number | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const isTokens = (list: unknown) => Array.isArray(list) && list.every((token) => typeof token === "number");
  if (isTokens(value)) return value.length;
  return value.every(isTokens) ? value.reduce((sum, list) => sum + list.length, 0) : null;
}

/** Media come as data URLs, or as base64 in a part that says of which kind it is. */
function isMedia(part: Readonly<Record<string, unknown>>, name: string, text: string): boolean {
  if (text.startsWith("data:")) return name === "data" || name === "url" || name.includes("_");
  if (name === "file_data") return true;
  if (name !== "data") return false;
  return part.type === "data" || typeof part.format === "string" || typeof part.mediaType === "string";
}

function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

const encoder = new TextEncoder();

function bytesOf(text: string): number {
  return encoder.encode(text).byteLength;
}
