// Events that are sent later, many in a call: `trackLater` collects them. A batch is sent when it is full, when its
// oldest event has waited a second, at `flush`, and at the end of the process. Each event has a key, so that it counts
// once however often it is sent. Each event that was not counted is reported: no event is lost in silence.

import { HoldfastError } from "./errors.ts";
import type { Transport } from "./transport.ts";
import { tell, unreferenced } from "./afterwards.ts";
import { bodyOf } from "./wire.ts";
import type { LaterEvent, OnTrackError } from "./metering_types.ts";
import type { BatchResult } from "./wire_types.ts";

/** An error with its event; `flush` rejects with these. */
export class TrackError extends Error {
  override readonly name = "TrackError";
  readonly event: LaterEvent;
  /** Sending the event again with this key counts it once. */
  readonly idempotencyKey: string;
  declare readonly cause: HoldfastError;

  constructor(cause: HoldfastError, event: LaterEvent, idempotencyKey: string) {
    super(`${event.event} of ${event.userId}: ${cause.message}`, { cause });
    this.event = event;
    this.idempotencyKey = idempotencyKey;
  }
}

const BATCH_EVENTS_MAX = 100;
/** Well below the limit of the service, 8 MiB. */
const BATCH_BYTES_MAX = 4 * 1024 * 1024;
const WAIT_MS = 1000;
/** The most events that may wait. */
const WAITING_MAX = 50_000;
/** The most errors that are kept for `flush`. */
const UNREPORTED_MAX = 10_000;
/** How often an event is sent again if the service is temporarily unavailable. */
const TRIES_MAX = 5;

interface Waiting {
  readonly event: LaterEvent;
  readonly idempotencyKey: string;
  /** The event's JSON text with its key. */
  readonly text: string;
  readonly tries: number;
}

/** Collects events and sends them in order, one batch at a time. */
export class TrackLater {
  readonly #transport: Pick<Transport, "keys" | "send" | "wait">;
  readonly #onError: OnTrackError | null;
  #waiting: Waiting[] = [];
  #unreported: TrackError[] = [];
  #sending: Promise<void> | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isAtEnd = false;

  constructor(transport: Pick<Transport, "keys" | "send" | "wait">, onError: OnTrackError | null) {
    this.#transport = transport;
    this.#onError = onError;
  }

  add(event: LaterEvent): void {
    // Throws at once for an input that cannot be sent.
    const idempotencyKey = this.#transport.keys.next();
    const text = bodyOf({ ...event, idempotencyKey });
    if (this.#waiting.length >= WAITING_MAX) {
      const full = { code: "unavailable", status: 0, message: "Too many events are waiting" };
      this.report(new HoldfastError(full), event, idempotencyKey);
      return;
    }
    this.#waiting.push({ event, idempotencyKey, text, tries: 0 });
    this.#watchEnd();
    if (this.#waiting.length >= BATCH_EVENTS_MAX) this.#start();
    else this.#timer ??= unreferenced(setTimeout(() => this.#start(), WAIT_MS));
  }

  /** Sends all waiting events; rejects with the errors that had no handler. */
  async flush(): Promise<void> {
    while (this.#waiting.length > 0 || this.#sending !== null) {
      this.#start();
      await this.#sending;
    }
    const unreported = this.#unreported;
    this.#unreported = [];
    if (unreported.length > 0) {
      throw new AggregateError(unreported, `${unreported.length} events were not counted`);
    }
  }

  #start(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#sending ??= this.#sendAll().finally(() => this.#sending = null);
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#cut();
      let again: Waiting[];
      try {
        const { results } = await this.#transport.send<{ results: readonly BatchResult[] }>({
          method: "POST",
          path: "/track/batch",
          access: "secret",
          text: `{"events":[${batch.map(({ text }) => text).join(",")}]}`,
        });
        again = this.#take(batch, results);
      } catch (error) {
        const cause = error instanceof HoldfastError
          ? error
          : new HoldfastError({ code: "network_error", status: 0, message: String(error), cause: error });
        for (const { event, idempotencyKey } of batch) this.report(cause, event, idempotencyKey);
        continue;
      }
      if (again.length === 0) continue;
      // They stay in front, so that the events of a user keep their order.
      this.#waiting.unshift(...again);
      await this.#transport.wait(WAIT_MS * (again[0] as Waiting).tries);
    }
  }

  #cut(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const { text } of this.#waiting) {
      bytes += text.length * 3;
      if (count > 0 && (count >= BATCH_EVENTS_MAX || bytes > BATCH_BYTES_MAX * 3)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  /** Reports refused events; returns those to send again. */
  #take(batch: readonly Waiting[], results: readonly BatchResult[]): Waiting[] {
    return batch.flatMap((sent, place) => {
      const result = results[place];
      if (result?.ok === true) return [];
      const error = result?.error ??
        { code: "bad_answer", message: "The answer has no result for this event" };
      const mayPass = error.code === "unavailable" || error.code === "rate_limited";
      if (mayPass && sent.tries < TRIES_MAX) return [{ ...sent, tries: sent.tries + 1 }];
      this.report(new HoldfastError({ ...error, status: 0 }), sent.event, sent.idempotencyKey);
      return [];
    });
  }

  /** Reports an event that was not counted. */
  report(error: HoldfastError, event: LaterEvent, idempotencyKey: string): void {
    if (this.#onError !== null) tell(this.#onError, error, event, { idempotencyKey });
    else if (this.#unreported.length < UNREPORTED_MAX) {
      this.#unreported.push(new TrackError(error, event, idempotencyKey));
    } else console.error(`holdfast: ${event.event} was not counted: ${error.message}`);
  }

  /** Sends the rest at the end of a Node or Deno process. Errors without a handler then go to the console. */
  #watchEnd(): void {
    if (this.#isAtEnd) return;
    this.#isAtEnd = true;
    const { process } = globalThis as { process?: { on?(name: string, listener: () => void): void } };
    process?.on?.("beforeExit", () => {
      if (this.#waiting.length === 0 && this.#sending === null && this.#unreported.length === 0) return;
      this.flush().catch((error: AggregateError) => {
        for (const each of error.errors) console.error(`holdfast: not counted: ${each.message}`);
      });
    });
  }
}
