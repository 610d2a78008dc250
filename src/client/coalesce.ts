// Sends calls together: reserve, commit, release, can-use and track. A lone call is sent at once by itself. Calls that
// are made while others are in flight are sent in one request as soon as fewer than four requests are in flight. Each
// call keeps its own promise, time, signal, retries and key; what is sent together is no transaction and has no order.

import type { Answer } from "./answer.ts";
import { HoldfastError } from "./errors.ts";

/** Requests of these calls that may be in flight at a time. */
const OUT_MAX = 4;
const CALLS_MAX = 500;
const BYTES_MAX = 256 * 1024;
/** How long calls are sent one by one to an older service without batches. */
const SINGLES_MS = 10 * 60_000;

/** The kinds of calls, by their paths. */
const KINDS: ReadonlySet<string> = new Set(["/reserve", "/commit", "/release", "/can-use", "/track"]);

/** Whether calls of a path may be sent together. */
export function isKind(path: string): boolean {
  return KINDS.has(path);
}

/** One try of a call. */
export interface Try {
  readonly answer: Promise<Answer>;
  /** Ends the try, because its caller no longer waits. */
  end(reason: unknown): void;
}

/** A call, for all its tries. */
export interface Coalescible {
  readonly path: string;
  /** The JSON text of its body. */
  readonly text: string;
  /** Its idempotency key; undefined for a read. */
  readonly key: string | undefined;
  /** Whether the call is sent by itself: it has its own header, is large, or was in a batch that failed. */
  isAlone: boolean;
  /** Sends the call by itself. */
  start(): Try;
}

/** The answer to a batch. */
export interface BatchAnswer {
  readonly results: readonly BatchResult[];
  readonly requestId: string | null;
}

interface BatchResult {
  readonly status: number;
  readonly ok: boolean;
  readonly data?: unknown;
  readonly error?: { readonly code: string; readonly message: string; readonly details?: unknown };
  readonly retryAfterSeconds?: number;
}

/** The functions by which calls are sent. */
export interface Sender {
  /** Sends a batch, in one try. */
  post(text: string): Promise<BatchAnswer>;
  /** Releases a reservation that no caller waits for any more. */
  release(reservationId: string): void;
  now(): number;
  /** Calls back once the callers that can continue have continued. */
  soon(then: () => void): void;
}

/** A try that waits to be sent, or was sent in a batch. */
class Entry implements Try {
  readonly call: Coalescible;
  readonly answer: Promise<Answer>;
  resolve!: (answer: Answer) => void;
  reject!: (error: unknown) => void;
  isEnded = false;
  /** Set while the try is sent by itself. */
  single: Try | null = null;
  /** Called when the try ends while its batch is in flight. */
  onEnd: ((entry: Entry) => void) | null = null;
  /** Whether its key was sent again after its end: what it may have reserved belongs to the later call. */
  isAskedAgain = false;

  constructor(call: Coalescible) {
    this.call = call;
    this.answer = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  end(reason: unknown): void {
    this.isEnded = true;
    this.single?.end(reason);
    this.onEnd?.(this);
  }
}

/** Sends the calls of one client. */
export class Coalescer {
  readonly #sender: Sender;
  #waiting: Entry[] = [];
  #alone: Entry[] = [];
  /** Tries with a batch in flight and a caller that no longer waits. */
  readonly #left = new Set<Entry>();
  #out = 0;
  #isPlanned = false;
  #singlesUntil = -Infinity;

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  /** Begins a try of a call. */
  begin(call: Coalescible): Try {
    for (const left of this.#left) if (left.call.key === call.key) left.isAskedAgain = true;
    if (this.#sender.now() < this.#singlesUntil) return call.start();
    const entry = new Entry(call);
    if (this.#out === 0 && !this.#isPlanned) this.#sendAlone(entry);
    else this.#queue(entry);
    return entry;
  }

  #queue(entry: Entry): void {
    (entry.call.isAlone ? this.#alone : this.#waiting).push(entry);
    this.#plan();
  }

  #plan(): void {
    if (this.#isPlanned || this.#out >= OUT_MAX || this.#waiting.length + this.#alone.length === 0) return;
    this.#isPlanned = true;
    this.#sender.soon(() => {
      this.#isPlanned = false;
      this.#sendWaiting();
    });
  }

  #sendWaiting(): void {
    while (this.#out < OUT_MAX) {
      const [first, ...others] = this.#take();
      if (first === undefined) return;
      if (others.length === 0) this.#sendAlone(first);
      else this.#sendTogether([first, ...others]);
    }
  }

  /** Takes the tries of the next batch; none if no call waits. */
  #take(): Entry[] {
    const waitsAlone = (entry: Entry) => !entry.isEnded;
    const alone = this.#alone.findIndex(waitsAlone);
    if (alone >= 0) return this.#alone.splice(0, alone + 1).slice(alone);
    this.#alone = [];
    const taken: Entry[] = [];
    let bytes = 0;
    let seen = 0;
    for (const entry of this.#waiting) {
      if (!entry.isEnded) {
        const { length } = entry.call.text;
        // A character has up to three bytes. What surrounds the body in a batch is counted as 300.
        bytes += isAscii(entry.call.text) ? length + 300 : length * 3 + 300;
        if (taken.length > 0 && (bytes > BYTES_MAX || taken.length === CALLS_MAX)) break;
        taken.push(entry);
      }
      seen += 1;
    }
    this.#waiting.splice(0, seen);
    return taken;
  }

  #sendAlone(entry: Entry): void {
    this.#out += 1;
    const single = entry.single = entry.call.start();
    single.answer.then(entry.resolve, entry.reject).then(() => this.#returned());
  }

  #sendTogether(entries: readonly Entry[]): void {
    this.#out += 1;
    let waiting = entries.length;
    let isOut = true;
    // Once no caller waits for this batch, later calls need not wait for its answer. It may still bring reservations to
    // release.
    const returned = () => {
      if (isOut) this.#returned();
      isOut = false;
    };
    const onEnd = (entry: Entry) => {
      this.#left.add(entry);
      waiting -= 1;
      if (waiting === 0) returned();
    };
    for (const entry of entries) entry.onEnd = onEnd;
    const text = `{"calls":[${entries.map(({ call }) => elementOf(call)).join(",")}]}`;
    this.#sender.post(text).then(
      ({ results, requestId }) => {
        for (const [place, entry] of entries.entries()) this.#arrived(entry, results[place], requestId);
      },
      (error) => this.#lost(entries, error),
    ).then(() => {
      if (this.#left.size > 0) { for (const entry of entries) this.#left.delete(entry); }
      returned();
    });
  }

  #returned(): void {
    this.#out -= 1;
    this.#plan();
  }

  /** Gives a call its result. A reservation that no caller waits for, also not under the same key, is released. */
  #arrived(entry: Entry, result: BatchResult | undefined, requestId: string | null): void {
    const { call } = entry;
    if (result?.ok === true) {
      if (entry.isAskedAgain) return;
      if (entry.isEnded) this.#giveBack(call, result.data);
      else entry.resolve({ body: result, status: result.status, requestId });
      return;
    }
    const { code, message, details } = result?.error ??
      { code: "bad_answer", message: "The answer has no result for this call" };
    const retryAfterMs = result?.retryAfterSeconds === undefined ? null : result.retryAfterSeconds * 1000;
    const status = result?.status ?? 0;
    entry.reject(new HoldfastError({ code, status, message, details, requestId, retryAfterMs }));
  }

  #giveBack({ path }: Coalescible, data: unknown): void {
    const { allowed, reservationId } = (data ?? {}) as { allowed?: boolean; reservationId?: string };
    if (path !== "/reserve" || allowed !== true || reservationId === undefined) return;
    this.#sender.release(reservationId);
  }

  /** Sends each call of a failed batch by itself: one bad call must not fail the others. */
  #lost(entries: readonly Entry[], error: unknown): void {
    const status = error instanceof HoldfastError ? error.status : 0;
    const isUnknown = status === 404 || status === 405;
    if (isUnknown) this.#singlesUntil = this.#sender.now() + SINGLES_MS;
    for (const entry of entries) {
      entry.onEnd = null;
      if (entry.isEnded) continue;
      if (isUnknown) {
        entry.single = entry.call.start();
        entry.single.answer.then(entry.resolve, entry.reject);
        continue;
      }
      entry.call.isAlone = true;
      if (status === 400 || status === 413) this.#queue(entry);
      else entry.reject(error);
    }
  }
}

/** A call as an element of a batch. Its own members are last, so that they win over members of the same name. */
function elementOf({ path, text, key }: Coalescible): string {
  const own = `"call":"${path.slice(1)}"${
    key === undefined ? "" : `,"idempotencyKey":${JSON.stringify(key)}`
  }`;
  return text === "{}" ? `{${own}}` : `${text.slice(0, -1)},${own}}`;
}

function isAscii(text: string): boolean {
  // deno-lint-ignore no-control-regex -- every character of ASCII
  return /^[\x00-\x7f]*$/.test(text);
}
