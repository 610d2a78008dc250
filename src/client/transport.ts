// Sends calls: headers, timeouts, retries, and the envelope of answers. It uses only what browsers, workers, Deno and
// Node share. Each try of a write has the same idempotency key and the same bytes, so the service counts it once,
// whichever try succeeded.

import { HoldfastError, invalidInput } from "./errors.ts";
import { DEFAULT_RETRIES, readRetryAfter, retryDelayMs, type RetryPolicy } from "./retry.ts";
import { addressOf, bodyOf } from "./wire.ts";
import type { DecisionOptions, OnTrackError } from "./metering_types.ts";

/** Sends a request as the global `fetch` does. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A retry before it is sent. */
export interface RetryNotice {
  readonly method: string;
  /** Under `/api/v1`. */
  readonly path: string;
  /** 1 for the first retry. */
  readonly retry: number;
  readonly delayMs: number;
  readonly error: HoldfastError;
}

/** Options of a client. */
export interface ClientOptions extends DecisionOptions {
  /**
   * A secret key (`sk_...`) in your backend, a read-only one (`rk_...`) for what only reads, a user's key (`uk_...`) in a program of that user, a public one (`pk_...`)
   * anywhere else.
   */
  readonly apiKey: string;
  /** The address of the service, without `/api`: `https://holdfast.example.com`. */
  readonly baseUrl: string;
  /** With a public key: the token that your backend signed for the user, or a function that fetches a fresh one. */
  readonly endUserToken?: string | (() => string | Promise<string>) | undefined;
  /**
   * How long `reserve` and `canUse` may take in all, retries included: 2,000 by default. For other calls how long one try
   * may take: 30,000 by default, at least 30,000 for commits and releases, and at least 90,000 for `compose` and `aliasMany`.
   */
  readonly timeoutMs?: number | undefined;
  /** How often calls are retried, and after which pauses. */
  readonly retries?: Partial<RetryPolicy> | undefined;
  /** Sends requests in place of the global `fetch`. */
  readonly fetch?: Fetch | undefined;
  /** Called before each retry, for logs and metrics. */
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined;
  /** Called with each event of `trackLater` that was not counted; without it `flush` rejects with them. */
  readonly onTrackError?: OnTrackError | undefined;
}

/** Options of one call. */
export interface CallOptions {
  /** Ends the call, which then rejects with the signal's reason, as `fetch` does. */
  readonly signal?: AbortSignal | undefined;
  /** How long one try may take; for `reserve` and `canUse` the whole call, retries included. */
  readonly timeoutMs?: number | undefined;
  /** The most tries after the first one. */
  readonly maxRetries?: number | undefined;
  /**
   * Makes two writes with the same key and input count as one, for 24 hours. By default each call has its own key.
   * Give one (your job's id, say) where your own code may repeat the call, after a restart for example.
   */
  readonly idempotencyKey?: string | undefined;
  /** Names the call in the service's log and on errors: up to 100 of `A-Z a-z 0-9 . _ -`. */
  readonly requestId?: string | undefined;
  /** Used in place of the client's. */
  readonly endUserToken?: string | undefined;
}

/** The keys that may make a call. With another key it is refused before anything is sent. */
export type Access = "any" | "secret" | "credit_write";

/** A call in the form in which it is sent. */
export interface WireCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Under `/api/v1`, with ids encoded. */
  readonly path: string;
  readonly access: Access;
  readonly query?: object;
  readonly body?: object;
  /** The body's JSON text, if it is already written. */
  readonly text?: string;
  /** Whether a POST changes nothing and so needs no idempotency key. */
  readonly isRead?: boolean;
  /** The least time for one try, unless the call itself sets one. */
  readonly timeoutMinMs?: number;
}

/** How long one try may take by default. */
export const TIMEOUT_MS = 30_000;

/** Sends calls for one key to one service. */
export class Transport {
  readonly #options: ClientOptions;
  readonly #baseUrl: string;
  readonly #isPublic: boolean;
  readonly #retries: RetryPolicy;
  readonly #pause: typeof pause;

  /** @param wait waits between tries; tests pass their own */
  constructor(options: ClientOptions, wait: typeof pause = pause) {
    const { apiKey, baseUrl } = options;
    if (!/^[spru]k_/.test(apiKey)) {
      throw new TypeError("apiKey: must be a key that begins with sk_, rk_, uk_ or pk_");
    }
    if (!/^https?:\/\/[^/?#]+[^?#]*$/.test(baseUrl)) {
      throw new TypeError("baseUrl: must be an address such as https://holdfast.example.com");
    }
    this.#options = options;
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#isPublic = apiKey.startsWith("pk_");
    this.#retries = { ...DEFAULT_RETRIES, ...options.retries };
    this.#pause = wait;
  }

  /** Sends a call until it is answered or out of retries; resolves to the data of the answer. */
  async send<Data>(wire: WireCall, call: CallOptions = {}): Promise<Data> {
    if (this.#isPublic) refusePublicKey(wire);
    const url = addressOf(this.#baseUrl, wire.path, wire.query);
    const init: RequestInit = { method: wire.method, headers: await this.#headersOf(wire, call) };
    if (wire.text !== undefined) init.body = wire.text;
    else if (wire.body !== undefined) init.body = bodyOf(wire.body);
    const answer = await this.#retrying(wire, call, () => this.#once(wire, call, url, init));
    return dataOf(answer) as Data;
  }

  /** How often calls are retried, and after which pauses. */
  get retries(): RetryPolicy {
    return this.#retries;
  }

  /** Whether each try fetches its own end-user token. */
  get fetchesTokens(): boolean {
    return typeof this.#options.endUserToken === "function";
  }

  /** Waits for a time; rejects with the signal's reason when it is aborted. */
  wait(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#pause(ms, signal);
  }

  /** Opens a stream of events, in one try. Resolves to its body when the service has accepted the call. */
  async openStream(
    wire: WireCall,
    call: CallOptions,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    if (this.#isPublic) refusePublicKey(wire);
    const url = addressOf(this.#baseUrl, wire.path, wire.query);
    const headers = await this.#headersOf(wire, call);
    headers.set("accept", "text/event-stream");
    const send: Fetch = this.#options.fetch ?? ((to, how) => fetch(to, how));
    const response = await send(url, { method: wire.method, headers, signal });
    const { ok, status, body } = response;
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    if (ok && isStream && body !== null) return body;
    readAnswer(response, await response.text());
    throw badAnswer(status, response.headers.get("x-request-id"), null);
  }

  /** What the client's decisions do while the service is unavailable. */
  get decisions(): DecisionOptions {
    const { onUnavailable, timeoutMs, onAllowedUnmetered, onCommitError } = this.#options;
    return { onUnavailable, timeoutMs, onAllowedUnmetered, onCommitError };
  }

  get onTrackError(): OnTrackError | null {
    return this.#options.onTrackError ?? null;
  }

  /** Reads a document that needs no key and has no envelope: an export. */
  async download<Document>(url: string, call: CallOptions = {}): Promise<Document> {
    const wire: WireCall = { method: "GET", path: "/export-download", access: "any" };
    const answer = await this.#retrying(wire, call, () => this.#once(wire, call, url, { method: "GET" }));
    return answer.body as Document;
  }

  async #retrying(wire: WireCall, call: CallOptions, once: () => Promise<Answer>): Promise<Answer> {
    const policy = { ...this.#retries, maxRetries: call.maxRetries ?? this.#retries.maxRetries };
    for (let retry = 0;; retry++) {
      try {
        return await once();
      } catch (error) {
        const delayMs = error instanceof HoldfastError
          ? retryDelayMs(policy, retry, error, Math.random())
          : null;
        if (delayMs === null || call.signal?.aborted) throw error;
        const { method, path } = wire;
        this.#options.onRetry?.({ method, path, retry: retry + 1, delayMs, error: error as HoldfastError });
        await this.#pause(delayMs, call.signal);
      }
    }
  }

  async #headersOf(wire: WireCall, call: CallOptions): Promise<Headers> {
    const { apiKey, endUserToken } = this.#options;
    const isWrite = wire.method !== "GET" && wire.isRead !== true;
    const token = call.endUserToken ??
      (typeof endUserToken === "function" ? await endUserToken() : endUserToken);
    const members = {
      "authorization": `Bearer ${apiKey}`,
      "content-type": wire.body === undefined && wire.text === undefined ? undefined : "application/json",
      "idempotency-key": isWrite ? call.idempotencyKey ?? newKey() : undefined,
      "x-request-id": call.requestId,
      "x-end-user-token": token,
    };
    return headersOf(members);
  }

  /** One try. Its timeout covers the answer's body too. */
  async #once(wire: WireCall, call: CallOptions, url: string, init: RequestInit): Promise<Answer> {
    const { signal } = call;
    signal?.throwIfAborted();
    const timeoutMs = call.timeoutMs ??
      Math.max(this.#options.timeoutMs ?? TIMEOUT_MS, wire.timeoutMinMs ?? 0);
    const stop = new AbortController();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      stop.abort();
    }, timeoutMs);
    const onAbort = () => stop.abort(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const send: Fetch = this.#options.fetch ?? ((to, how) => fetch(to, how));
      const response = await send(url, { ...init, signal: stop.signal });
      return readAnswer(response, await response.text());
    } catch (cause) {
      if (cause instanceof HoldfastError) throw cause;
      if (signal?.aborted) throw signal.reason;
      const parts = isLate
        ? { code: "timeout", message: `No answer within ${timeoutMs} ms` }
        : { code: "network_error", message: "The service is unreachable, or the connection broke" };
      throw new HoldfastError({ ...parts, status: 0, cause });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }
}

interface Answer {
  readonly body: unknown;
  readonly status: number;
  readonly requestId: string | null;
}

/** The body of a success. Throws for an error of the service, and for an answer from another program. */
function readAnswer({ ok, status, headers }: Response, text: string): Answer {
  const requestId = headers.get("x-request-id");
  const retryAfterMs = readRetryAfter(headers.get("retry-after"), Date.now());
  const body = parse(text);
  if (ok && body !== undefined) return { body, status, requestId };
  const error = (body as { error?: Record<string, unknown> } | null | undefined)?.error;
  if (typeof error?.code === "string" && typeof error.message === "string") {
    const { code, message, details } = error as { code: string; message: string; details?: unknown };
    throw new HoldfastError({ code, status, message, details, requestId, retryAfterMs });
  }
  throw badAnswer(status, requestId, retryAfterMs);
}

function dataOf({ body, status, requestId }: Answer): unknown {
  const { ok, data } = (body ?? {}) as { ok?: unknown; data?: unknown };
  if (ok !== true || data === undefined) throw badAnswer(status, requestId, null);
  return data;
}

function badAnswer(status: number, requestId: string | null, retryAfterMs: number | null): HoldfastError {
  const message = `The answer with status ${status} is not from the service; check baseUrl`;
  return new HoldfastError({ code: "bad_answer", status, message, requestId, retryAfterMs });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refusePublicKey({ access, path }: WireCall): void {
  if (access === "any") return;
  throw new HoldfastError({
    code: access === "secret" ? "requires_secret_key" : "forbidden",
    status: 403,
    message: `${path.split("/", 3).join("/")} requires a secret key, but this client has a public key`,
  });
}

/** Headers without undefined ones. Text that is not allowed in a header is an invalid input, not a network error. */
function headersOf(members: Readonly<Record<string, string | undefined>>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    try {
      headers.set(name, value);
    } catch (cause) {
      throw invalidInput(`${name}: has characters that are not allowed in a header`, cause);
    }
  }
  return headers;
}

/** A random key. Pages without a secure context have no `crypto.randomUUID`. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Waits; rejects with the signal's reason when it is aborted. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Checks an option that the client itself reads: a whole number in a range. */
export function requireWhole(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw invalidInput(`${name}: must be a whole number from ${min} to ${max}`);
}
