// A drainer in a thread of its own, seen from the thread that uses it. When the drain's thread fails, all pending and
// later calls fail. A thread that closed its drainer in order waits for the next one: to start another one, with its
// modules, takes 0.1 s of processor time, when a term has ended and callers wait for the next.

import { Unavailable } from "../../../actors/port.ts";
import type { DrainBatch } from "./drain.ts";
import type { Drainer } from "./drainer.ts";
import type { ExpectedDatabase } from "../database.ts";

/** Messages to the thread. */
export type DrainRequest =
  | { readonly kind: "keep"; readonly bytes: Uint8Array; readonly batches: readonly BatchPlace[] }
  | { readonly kind: "hurry" }
  /** The thread that uses the drainer has read a ping. */
  | { readonly kind: "alive" }
  | NumberedRequest;

/** Work that the thread replies to: one piece after another, except that replays run beside the others. */
type AskedRequest =
  | {
    readonly kind: "open";
    readonly url: string;
    readonly term: number;
    readonly expected: ExpectedDatabase | null;
  }
  | { readonly kind: "drain"; readonly seqs: readonly number[]; readonly spreadMs: number }
  | { readonly kind: "replay"; readonly term: number | null }
  | { readonly kind: "close" };

/** Work with the number of its reply. */
export type NumberedRequest = AskedRequest & { readonly id: number };

/** The end of a batch in the bytes of its message; it begins at the end of the previous batch. */
interface BatchPlace {
  readonly seq: number;
  readonly end: number;
}

/** A reply: null when the work is done, else the error message. A ping has the number 0. */
export type DrainReply = { readonly id: number; readonly error: string | null };

/** How long a thread may take to close its session before it is terminated. */
const CLOSE_MS = 2_000;
/**
 * Bytes of batches sent in one message. Each message wakes the thread, which then competes with the answering thread for a
 * core, and no batch is needed there before it is drained.
 */
const MESSAGE_BYTES = 128 * 1024;
/** The most bytes of UTF-8 for one UTF-16 unit of a string. */
const BYTES_OF_UNIT_MAX = 3;

const encoder = new TextEncoder();

/** Threads without a drainer. */
const idle: Worker[] = [];
/** The number of the last request to any thread: a thread that is used again never gets one twice. */
let asked = 0;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

/** Starts a thread with its own session on a server, for the node of a term. */
export async function startDrainThread(
  url: string,
  term: number,
  expected: ExpectedDatabase | null = null,
): Promise<Drainer> {
  const thread = new DrainThread();
  try {
    await thread.ask({ kind: "open", url, term, expected });
  } catch (error) {
    thread.end();
    throw error;
  }
  return thread;
}

class DrainThread implements Drainer {
  readonly #worker = idle.pop() ??
    new Worker(new URL("./drain_worker.ts", import.meta.url), { type: "module" });
  /**
   * Batches that were not sent yet, as bytes. As strings they would survive young-generation collections while they wait,
   * and the answering thread would collect the old generation more often.
   */
  #bytes: Uint8Array<ArrayBuffer> | null = null;
  #unsent: BatchPlace[] = [];
  readonly #waiting = new Map<number, Waiter>();
  #fault: Error | null = null;
  #closing: Promise<void> | null = null;

  constructor() {
    this.#worker.onmessage = ({ data: { id, error } }: MessageEvent<DrainReply>) => {
      if (id === 0) return this.#worker.postMessage({ kind: "alive" } satisfies DrainRequest);
      const waiter = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === null) waiter?.resolve();
      else waiter?.reject(new Unavailable(error));
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#fail(new Unavailable(`The drain's thread failed: ${event.message}`));
    };
  }

  ask(request: AskedRequest): Promise<void> {
    if (this.#fault !== null) return Promise.reject(this.#fault);
    return new Promise((resolve, reject) => {
      const id = ++asked;
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ ...request, id } satisfies NumberedRequest);
    });
  }

  keep({ seq, payload }: DrainBatch): void {
    if (this.#fault !== null) return;
    const bytesMax = payload.length * BYTES_OF_UNIT_MAX;
    let from = this.#unsent.at(-1)?.end ?? 0;
    if (this.#bytes !== null && bytesMax > this.#bytes.length - from) {
      this.#send();
      from = 0;
    }
    this.#bytes ??= new Uint8Array(Math.max(MESSAGE_BYTES, bytesMax));
    const { written } = encoder.encodeInto(payload, this.#bytes.subarray(from));
    this.#unsent.push({ seq, end: from + written });
  }

  drain(seqs: readonly number[], spreadMs: number): Promise<void> {
    this.#send();
    return this.ask({ kind: "drain", seqs, spreadMs });
  }

  hurry(): void {
    if (this.#fault === null) this.#worker.postMessage({ kind: "hurry" } satisfies DrainRequest);
  }

  replay(term: number | null): Promise<void> {
    return this.ask({ kind: "replay", term });
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    this.hurry();
    const closed = this.ask({ kind: "close" }).then(() => true, () => false);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<false>((resolve) => timer = setTimeout(() => resolve(false), CLOSE_MS));
    const isClosed = await Promise.race([closed, late]);
    clearTimeout(timer);
    // Work without a reply may still run, such as a replay.
    if (isClosed && this.#fault === null && this.#waiting.size === 0) this.#release();
    else this.end();
  }

  end(): void {
    this.#worker.terminate();
    this.#fail(new Unavailable("The drain's thread has ended"));
  }

  /** Leaves the thread to the next drainer. */
  #release(): void {
    this.#fail(new Unavailable("The drain's thread has ended"));
    const worker = this.#worker;
    worker.onmessage = null;
    worker.onerror = (event) => {
      event.preventDefault();
      const at = idle.indexOf(worker);
      if (at >= 0) idle.splice(at, 1);
    };
    idle.push(worker);
  }

  /** Sends the batches that were not sent yet. */
  #send(): void {
    const bytes = this.#bytes;
    if (bytes === null) return;
    const batches = this.#unsent;
    this.#bytes = null;
    this.#unsent = [];
    this.#worker.postMessage({ kind: "keep", bytes, batches } satisfies DrainRequest, [bytes.buffer]);
  }

  #fail(fault: Error): void {
    this.#fault ??= fault;
    this.#bytes = null;
    this.#unsent = [];
    for (const { reject } of this.#waiting.values()) reject(this.#fault);
    this.#waiting.clear();
  }
}
