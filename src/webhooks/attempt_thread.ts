// Attempts in a thread of their own, seen from the main thread. The thread starts with the first attempt, and again after
// it failed. An attempt that was lost with the thread does not count against its endpoint.

import { Unavailable } from "../../actors/port.ts";
import { log } from "../process/log.ts";
import type { Attempt, AttemptResult, Transport } from "./transport.ts";

/** Messages to the thread. */
export type AttemptRequest =
  | { readonly kind: "open"; readonly allowsPrivate: boolean }
  | { readonly kind: "attempt"; readonly no: number; readonly attempt: Attempt }
  | { readonly kind: "end"; readonly no: number };

/** Its reply to each attempt. */
export type AttemptReply =
  | { readonly no: number; readonly result: AttemptResult }
  | { readonly no: number; readonly error: string };

interface Waiter {
  readonly resolve: (result: AttemptResult) => void;
  readonly reject: (reason: Error) => void;
}

/** Makes attempts in a thread. */
export class AttemptThread implements Transport {
  readonly #allowsPrivate: boolean;
  readonly #waiting = new Map<number, Waiter>();
  #worker: Worker | null = null;
  #last = 0;

  /** @param allowsPrivate whether `http` and addresses of private networks may be used */
  constructor(allowsPrivate: boolean) {
    this.#allowsPrivate = allowsPrivate;
  }

  attempt(attempt: Attempt, signal: AbortSignal): Promise<AttemptResult> {
    const no = ++this.#last;
    const end = () => this.#post({ kind: "end", no });
    const result = new Promise<AttemptResult>((resolve, reject) => {
      signal.throwIfAborted();
      this.#waiting.set(no, { resolve, reject });
      this.#worker ??= this.#start();
      this.#post({ kind: "attempt", no, attempt });
      signal.addEventListener("abort", end, { once: true });
    });
    return result.finally(() => signal.removeEventListener("abort", end));
  }

  close(): void {
    this.#fail(new Unavailable("The sender's thread has ended"));
  }

  #start(): Worker {
    const worker = new Worker(new URL("./attempt_worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = ({ data: reply }: MessageEvent<AttemptReply>) => {
      const waiter = this.#waiting.get(reply.no);
      this.#waiting.delete(reply.no);
      if ("result" in reply) waiter?.resolve(reply.result);
      else waiter?.reject(new Unavailable(reply.error));
    };
    worker.onerror = (event) => {
      event.preventDefault();
      log("error", "The sender's thread failed", { error: event.message });
      this.#fail(new Unavailable("The sender's thread failed"));
    };
    worker.postMessage({ kind: "open", allowsPrivate: this.#allowsPrivate } satisfies AttemptRequest);
    return worker;
  }

  #post(request: AttemptRequest): void {
    this.#worker?.postMessage(request);
  }

  #fail(fault: Error): void {
    this.#worker?.terminate();
    this.#worker = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(fault);
  }
}
