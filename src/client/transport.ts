// Sends calls: headers, timeouts, retries, and the envelope of answers. It uses only what browsers, workers, Deno and
// Node share. Each try of a write has the same idempotency key and the same bytes, so the service counts it once,
// whichever try succeeded.

import { type Answer, badAnswer, dataOf, readAnswer } from "./answer.ts";
import { type BatchAnswer, Coalescer, type Coalescible, isKind, type Try } from "./coalesce.ts";
import { Deadlines } from "./deadlines.ts";
import { HoldfastError, invalidInput } from "./errors.ts";
import { Keys } from "./keys.ts";
import { DEFAULT_RETRIES, retryDelayMs, type RetryPolicy } from "./retry.ts";
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
  /**
   * Whether calls of reserve, commit, release, canUse and track that are made while others are in flight are sent in one
   * request: true by default. A lone call is always sent at once.
   */
  readonly coalesce?: boolean | undefined;
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

/** A call in each of its tries. */
interface Sending {
  readonly wire: WireCall;
  readonly call: CallOptions;
  /** Begins a try. */
  readonly begin: () => Try;
  /** How long all tries together may take; infinite where each has its own time. */
  readonly withinMs: number;
}

/** Keys that are the same in a header and in a body. */
const PLAIN_KEY = /^[\x21-\x7e]{1,200}$/;
/** A larger call is sent by itself. */
const TOGETHER_BYTES_MAX = 256 * 1024;

/** Sends calls for one key to one service. */
export class Transport {
  readonly #options: ClientOptions;
  readonly #baseUrl: string;
  readonly #isPublic: boolean;
  readonly #retries: RetryPolicy;
  readonly #pause: typeof pause;
  /** Null where each call is sent by itself. */
  readonly #coalescer: Coalescer | null;
  readonly #deadlines = new Deadlines();
  /** Idempotency keys of new calls. */
  readonly keys = new Keys();

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
    this.#coalescer = options.coalesce === false ? null : new Coalescer({
      post: (text) => this.#post(text),
      release: (reservationId) => this.#giveBack(reservationId),
      now: () => performance.now(),
      soon,
    });
  }

  /**
   * Sends a call until it is answered or out of retries; resolves to the data of the answer.
   *
   * @param withinMs how long that may take in all; without it each try has its own time
   */
  async send<Data>(wire: WireCall, call: CallOptions = {}, withinMs = Infinity): Promise<Data> {
    if (this.#isPublic) refusePublicKey(wire);
    const text = wire.text ?? (wire.body === undefined ? undefined : bodyOf(wire.body));
    const isWrite = wire.method !== "GET" && wire.isRead !== true;
    const key = isWrite ? call.idempotencyKey ?? this.keys.next() : undefined;
    const { endUserToken } = this.#options;
    // One token for all tries: each has the same headers.
    const sent = typeof endUserToken === "function" && call.endUserToken === undefined
      ? { ...call, endUserToken: await this.#inTime(endUserToken, withinMs) }
      : call;
    const begin = this.#coalescer !== null && text !== undefined && isKind(wire.path)
      ? this.#together(this.#coalescer, wire, sent, key, text)
      : this.#begins(wire, sent, key, text);
    return dataOf(await this.#retrying({ wire, call, begin, withinMs })) as Data;
  }

  /** Makes a token; rejects where that takes all the time of a call. */
  async #inTime(makeToken: () => string | Promise<string>, withinMs: number): Promise<string> {
    if (withinMs === Infinity) return await makeToken();
    let clear = () => {};
    const late = new Promise<never>((_, reject) => {
      clear = this.#deadlines.set(withinMs, () => reject(lateAfter(`${withinMs} ms`)));
    });
    // Also a token that throws at once clears the timer.
    return await Promise.race([Promise.resolve().then(makeToken), late]).finally(clear);
  }

  /** Returns what begins a try of a call that may leave together with others. */
  #together(
    coalescer: Coalescer,
    wire: WireCall,
    call: CallOptions,
    key: string | undefined,
    text: string,
  ): () => Try {
    const isAlone = !isPlain(wire, call, key) || text.length * 3 > TOGETHER_BYTES_MAX;
    // Headers are made before the first try, or by a try that leaves by itself.
    let start = isAlone ? this.#begins(wire, call, key, text) : null;
    const own: Coalescible = {
      path: wire.path,
      text,
      key,
      isAlone,
      start: () => {
        try {
          return (start ??= this.#begins(wire, call, key, text))();
        } catch (error) {
          return { answer: Promise.reject(error), end: () => {} };
        }
      },
    };
    return () => coalescer.begin(own);
  }

  /** Returns what begins a try of a call by itself. */
  #begins(wire: WireCall, call: CallOptions, key: string | undefined, text: string | undefined): () => Try {
    const { endUserToken } = this.#options;
    const token = call.endUserToken ?? (typeof endUserToken === "string" ? endUserToken : undefined);
    const url = addressOf(this.#baseUrl, wire.path, wire.query);
    const headers = this.#headersOf({ key, requestId: call.requestId, token, hasBody: text !== undefined });
    const init: RequestInit = { method: wire.method, headers };
    if (text !== undefined) init.body = text;
    return () => this.#request(url, init);
  }

  /** Sends a batch, in one try. */
  async #post(text: string): Promise<BatchAnswer> {
    const wire: WireCall = { method: "POST", path: "/batch", access: "secret" };
    const begin = this.#begins(wire, {}, undefined, text);
    const answer = await this.#once({ wire, call: {}, begin, withinMs: Infinity });
    const { results, keyPrefix } = dataOf(answer) as Partial<BatchAnswer> & { keyPrefix?: unknown };
    if (!Array.isArray(results)) throw badAnswer(answer.status, answer.requestId, null);
    this.keys.beginWith(keyPrefix);
    return { results, requestId: answer.requestId };
  }

  #giveBack(reservationId: string): void {
    const body = { reservationId, reason: "The caller had gone" };
    const wire: WireCall = { method: "POST", path: "/release", access: "secret", body };
    // A failed release needs no error: the reservation expires by itself.
    this.send(wire).catch(() => {});
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
    const { endUserToken } = this.#options;
    const token = call.endUserToken ??
      (typeof endUserToken === "function" ? await endUserToken() : endUserToken);
    const headers = this.#headersOf({ requestId: call.requestId, token, hasBody: false });
    headers.set("accept", "text/event-stream");
    const send: Fetch = this.#options.fetch ?? ((to, how) => fetch(to, how));
    const response = await send(url, { method: wire.method, headers, signal });
    const { ok, status, body } = response;
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    if (ok && isStream && body !== null) return body;
    readAnswer(response, await response.text());
    throw badAnswer(status, response.headers.get("x-request-id"), null);
  }

  /** What decisions do while the service is unavailable. */
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
    const begin = () => this.#request(url, { method: "GET" });
    const answer = await this.#retrying({ wire, call, begin, withinMs: Infinity });
    return answer.body as Document;
  }

  async #retrying(sending: Sending): Promise<Answer> {
    const { wire: { method, path }, call, withinMs } = sending;
    const until = withinMs === Infinity ? Infinity : performance.now() + withinMs;
    for (let retry = 0;; retry++) {
      try {
        // A first try has just the time of other calls, with which it then shares a timer.
        return await this.#once(sending, retry === 0 ? withinMs : until - performance.now());
      } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        const policy = { ...this.#retries, maxRetries: call.maxRetries ?? this.#retries.maxRetries };
        const delayMs = retryDelayMs(policy, retry, error, Math.random());
        const leftMs = until - performance.now();
        if (delayMs === null || leftMs <= 0 || call.signal?.aborted) throw error;
        if (delayMs < leftMs) this.#options.onRetry?.({ method, path, retry: retry + 1, delayMs, error });
        await this.#pause(Math.min(delayMs, leftMs), call.signal);
        // A timer may fire a fraction of a millisecond early, which is no time for another try.
        if (delayMs >= leftMs) throw lateAfter(`${withinMs} ms, retries included`);
      }
    }
  }

  #headersOf(
    { key, requestId, token, hasBody }: {
      readonly key?: string | undefined;
      readonly requestId: string | undefined;
      readonly token: string | undefined;
      readonly hasBody: boolean;
    },
  ): Headers {
    return headersOf({
      "authorization": `Bearer ${this.#options.apiKey}`,
      "content-type": hasBody ? "application/json" : undefined,
      "idempotency-key": key,
      "x-request-id": requestId,
      "x-end-user-token": token,
    });
  }

  /**
   * One try. Its time begins now, also where it waits to be sent, and covers the answer's body too.
   *
   * @param leftMs what is left of the time of all tries
   */
  #once({ wire, call: { signal, timeoutMs }, begin, withinMs }: Sending, leftMs = Infinity): Promise<Answer> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const ms = leftMs < Infinity
      ? leftMs
      : timeoutMs ?? Math.max(this.#options.timeoutMs ?? TIMEOUT_MS, wire.timeoutMinMs ?? 0);
    const late = () => lateAfter(withinMs < Infinity ? `${withinMs} ms, retries included` : `${ms} ms`);
    if (leftMs <= 0) return Promise.reject(late());
    return new Promise((resolve, reject) => {
      const begun = begin();
      const end = (reason: unknown) => {
        ends();
        reject(reason);
        begun.end(reason);
      };
      const onAbort = () => end(signal?.reason);
      const clear = ms < Infinity ? this.#deadlines.set(ms, () => end(late())) : null;
      const ends = () => {
        clear?.();
        signal?.removeEventListener("abort", onAbort);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      begun.answer.then((value) => {
        ends();
        resolve(value);
      }, (error) => {
        ends();
        reject(error);
      });
    });
  }

  /** Sends a request. */
  #request(url: string, init: RequestInit): Try {
    const stop = new AbortController();
    const answer = async () => {
      try {
        const send: Fetch = this.#options.fetch ?? ((to, how) => fetch(to, how));
        const response = await send(url, { ...init, signal: stop.signal });
        const prefix = response.headers.get("idempotency-key-prefix");
        if (prefix !== null) this.keys.beginWith(prefix);
        return readAnswer(response, await response.text());
      } catch (cause) {
        if (cause instanceof HoldfastError) throw cause;
        const message = "The service is unreachable, or the connection broke";
        throw new HoldfastError({ code: "network_error", status: 0, message, cause });
      }
    };
    return { answer: answer(), end: (reason) => stop.abort(reason) };
  }
}

function lateAfter(time: string): HoldfastError {
  return new HoldfastError({ code: "timeout", status: 0, message: `No answer within ${time}` });
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

/** Whether a call is the same in a batch: without headers or members of its own that a batch would read in another way. */
function isPlain({ body }: WireCall, call: CallOptions, key: string | undefined): boolean {
  return body !== undefined && !("call" in body) && !("idempotencyKey" in body) &&
    call.requestId === undefined && call.endUserToken === undefined &&
    (key === undefined || PLAIN_KEY.test(key));
}

/** Calls back when all that is ready to run has run. */
function soon(then: () => void): void {
  const { setImmediate: next } = globalThis as { setImmediate?: (then: () => void) => unknown };
  if (next === undefined) setTimeout(then, 0);
  else next(then);
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
