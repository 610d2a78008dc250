// A drainer in a thread of its own, seen from the thread that uses it. Messages go there and replies come back, in order.
// When the drain's thread fails, every call that waits for it fails, and so does every later one.

import { Unavailable } from "../../../actors/port.ts";
import type { DrainBatch } from "./drain.ts";
import type { Drainer } from "./drainer.ts";

/** Messages to the thread. It replies to each but `keep` and `hurry`, in order. */
export type DrainRequest =
  | { readonly kind: "open"; readonly url: string; readonly name: string }
  | { readonly kind: "keep"; readonly bytes: Uint8Array; readonly batches: readonly BatchPlace[] }
  | { readonly kind: "drain"; readonly seqs: readonly number[]; readonly spreadMs: number }
  | { readonly kind: "hurry" }
  | { readonly kind: "replay"; readonly term: number | null }
  | { readonly kind: "close" };

/** Where a batch ends in the bytes of its message; it begins where the one before it ends. */
export interface BatchPlace {
  readonly seq: number;
  readonly end: number;
}

/** Its reply: null when the work is done, else what went wrong. */
export type DrainReply = { readonly error: string | null };

/** How long a thread may take to close its session before it is ended. */
const CLOSE_MS = 2_000;
/**
 * Bytes of batches that are sent in one message. Each message wakes the thread, which then competes with the answering
 * thread for a core, and nobody needs a batch to be there before it is drained.
 */
const MESSAGE_BYTES = 128 * 1024;
/** The most bytes of UTF-8 that one unit of a string's length becomes. */
const BYTES_OF_UNIT_MAX = 3;

const encoder = new TextEncoder();

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

/**
 * Starts a thread with a session of its own on a server.
 *
 * @param name what the session is called there
 */
export async function startDrainThread(url: string, name: string): Promise<Drainer> {
  const thread = new DrainThread();
  try {
    await thread.ask({ kind: "open", url, name });
  } catch (error) {
    thread.end();
    throw error;
  }
  return thread;
}

class DrainThread implements Drainer {
  readonly #worker = new Worker(new URL("./drain_worker.ts", import.meta.url), { type: "module" });
  /**
   * Batches that were not sent yet, as bytes. Texts would outlive collections of the young generation while they wait here,
   * and so make the answering thread collect the old one more often.
   */
  #bytes: Uint8Array<ArrayBuffer> | null = null;
  #unsent: BatchPlace[] = [];
  #waiting: Waiter[] = [];
  #fault: Error | null = null;

  constructor() {
    this.#worker.onmessage = ({ data: { error } }: MessageEvent<DrainReply>) => {
      const waiter = this.#waiting.shift();
      if (error === null) waiter?.resolve();
      else waiter?.reject(new Unavailable(error));
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#fail(new Unavailable(`The drain's thread failed: ${event.message}`));
    };
  }

  ask(request: DrainRequest): Promise<void> {
    if (this.#fault !== null) return Promise.reject(this.#fault);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#worker.postMessage(request);
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
    this.hurry();
    return this.ask({ kind: "replay", term });
  }

  async close(): Promise<void> {
    this.hurry();
    const closed = this.ask({ kind: "close" }).catch(() => {});
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, CLOSE_MS));
    await Promise.race([closed, late]);
    clearTimeout(timer);
    this.end();
  }

  end(): void {
    this.#worker.terminate();
    this.#fail(new Unavailable("The drain's thread has ended"));
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
    for (const { reject } of this.#waiting) reject(this.#fault);
    this.#waiting = [];
  }
}
