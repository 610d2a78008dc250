// Writes that are sent again until the service takes them: commits that failed, and work that was allowed while the service
// was unavailable. Each keeps its idempotency key and its bytes, so it counts once. What is finally not taken is reported.

import { mayPassLater } from "./decisions.ts";
import { HoldfastError } from "./errors.ts";
import type { Transport, WireCall } from "./transport.ts";

/** The most writes that may wait; a further one is reported at once. */
const WAITING_MAX = 10_000;
const BASE_DELAY_MS = 1_000;
const MAX_DELAY_MS = 30_000;
/** Keys are known to the service for 24 hours. A write that waits longer could count twice, and is reported instead. */
const KEPT_MS = 23 * 3_600_000;

interface Write {
  readonly wire: WireCall;
  readonly idempotencyKey: string;
  readonly since: number;
  readonly onLost: (error: HoldfastError) => void;
}

/** Sends writes in their order, one at a time. */
export class Afterwards {
  readonly #transport: Pick<Transport, "send" | "wait">;
  readonly #waiting: Write[] = [];
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #sending: Promise<HoldfastError | null> | null = null;
  #isAtEnd = false;

  constructor(transport: Pick<Transport, "send" | "wait">) {
    this.#transport = transport;
  }

  /**
   * Adds a write, which is sent within a second.
   *
   * @param onLost called with the reason if the write is finally not taken
   */
  add(wire: WireCall, idempotencyKey: string, onLost: (error: HoldfastError) => void): void {
    if (this.#waiting.length >= WAITING_MAX) {
      onLost(new HoldfastError({ code: "unavailable", status: 0, message: "Too many writes are waiting" }));
      return;
    }
    this.#waiting.push({ wire, idempotencyKey, since: Date.now(), onLost });
    this.#watchEnd();
    this.#schedule();
  }

  /** Sends what waits, and returns the error for which some still waits; null if nothing does. */
  async flush(): Promise<HoldfastError | null> {
    // A round that runs already may have begun with an older state of the service.
    await this.#sending;
    return await this.#start();
  }

  #schedule(): void {
    if (this.#timer !== null || this.#sending !== null || this.#waiting.length === 0) return;
    const delayMs = Math.min(BASE_DELAY_MS * 2 ** this.#failures, MAX_DELAY_MS);
    this.#timer = unreferenced(setTimeout(() => void this.#start(), delayMs));
  }

  #start(): Promise<HoldfastError | null> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    return this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
      this.#schedule();
    });
  }

  /** Sends until a write is not taken because the service is unavailable. */
  async #sendAll(): Promise<HoldfastError | null> {
    for (let write = this.#waiting[0]; write !== undefined; write = this.#waiting[0]) {
      const { wire, idempotencyKey, since, onLost } = write;
      try {
        await this.#transport.send(wire, { idempotencyKey, maxRetries: 0 });
      } catch (thrown) {
        const error = thrown instanceof HoldfastError
          ? thrown
          : new HoldfastError({ code: "network_error", status: 0, message: String(thrown), cause: thrown });
        if (mayPassLater(error) && Date.now() - since < KEPT_MS) {
          this.#failures += 1;
          // To the end, so that one write for which the service fails holds up no other.
          this.#waiting.push(this.#waiting.shift() as Write);
          return error;
        }
        tell(onLost, error);
      }
      this.#failures = 0;
      this.#waiting.shift();
    }
    return null;
  }

  /** Sends the rest at the end of a Node or Deno process, and reports what is then lost. */
  #watchEnd(): void {
    if (this.#isAtEnd) return;
    this.#isAtEnd = true;
    const { process } = globalThis as { process?: { on?(name: string, listener: () => void): void } };
    process?.on?.("beforeExit", () => {
      if (this.#waiting.length === 0) return;
      this.flush().then((error) => {
        if (error === null) return;
        for (const { onLost } of this.#waiting.splice(0)) tell(onLost, error);
      });
    });
  }
}

/** Calls a handler of the caller; its own error must not stop what is sent after it. */
export function tell<Args extends readonly unknown[]>(
  handler: (...args: Args) => void,
  ...args: Args
): void {
  try {
    handler(...args);
  } catch (error) {
    console.error("holdfast: a handler failed:", error);
  }
}

/** A timer that does not keep the process alive. */
export function unreferenced(timer: ReturnType<typeof setTimeout>): ReturnType<typeof setTimeout> {
  const { Deno } = globalThis as { Deno?: { unrefTimer?(id: number): void } };
  if (typeof timer === "number") Deno?.unrefTimer?.(timer);
  else (timer as { unref?(): void }).unref?.();
  return timer;
}
