// Decisions: reserve and can-use, which a caller waits for before its work. Each has a time in all, retries included. After
// several failures in a row a breaker answers at once, and tries the service once a second.

import { HoldfastError } from "./errors.ts";
import { mayPass } from "./retry.ts";
import type { DecisionOptions, Unmetered } from "./metering_types.ts";
import type { CallOptions, Transport, WireCall } from "./transport.ts";

/** How long a decision may take in all. */
const DECISION_MS = 2_000;
/** Failures in a row after which decisions are answered without the service. */
const FAILURES_MAX = 5;
/** How often one decision is then tried all the same. */
const PROBE_EVERY_MS = 1_000;

/** What `onUnavailable: "allow"` answers while the service is unavailable. */
export const UNMETERED: Unmetered = Object.freeze({ allowed: true, matched: false, unmetered: true });

/**
 * Whether the service could not decide: it was not reached, did not answer in time, or failed. A refusal by its rules, and
 * a rate limit, are answers.
 */
export function isUnavailable(error: HoldfastError): boolean {
  if (error.code === "rate_limited") return false;
  return mayPass(error) || error.code === "internal_error" ||
    (error.code === "bad_answer" && error.status >= 500);
}

/** Whether the same write may be taken later. */
export function mayPassLater(error: HoldfastError): boolean {
  return isUnavailable(error) || error.code === "rate_limited";
}

/** Counts failures in a row, and says which calls are still sent. */
export class Breaker {
  readonly #now: () => number;
  #failures = 0;
  #probedAt = 0;

  /** @param now a clock in milliseconds; tests pass their own */
  constructor(now: () => number = () => Date.now()) {
    this.#now = now;
  }

  /** Whether the service failed too often in a row. */
  get isOpen(): boolean {
    return this.#failures >= FAILURES_MAX;
  }

  /** Whether a call is sent now. While the breaker is open that is one call a second. */
  mayTry(): boolean {
    if (!this.isOpen) return true;
    if (this.#now() - this.#probedAt < PROBE_EVERY_MS) return false;
    this.#probedAt = this.#now();
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures += 1;
    this.#probedAt = this.#now();
  }
}

/** Sends decisions. */
export class Decisions {
  readonly #transport: Pick<Transport, "send">;
  readonly #defaults: DecisionOptions;
  readonly #breaker: Breaker;

  constructor(transport: Pick<Transport, "send">, defaults: DecisionOptions, breaker = new Breaker()) {
    this.#transport = transport;
    this.#defaults = defaults;
    this.#breaker = breaker;
  }

  /** Returns the decision, or with `onUnavailable: "allow"` the error for which there is none. */
  async ask<Answer>(
    wire: WireCall,
    call: CallOptions = {},
    options: DecisionOptions = {},
  ): Promise<Answer | NoDecision> {
    const onUnavailable = options.onUnavailable ?? this.#defaults.onUnavailable;
    const withinMs = call.timeoutMs ?? options.timeoutMs ?? this.#defaults.timeoutMs ?? DECISION_MS;
    const isProbe = this.#breaker.isOpen;
    if (!this.#breaker.mayTry()) return withoutDecision(notAsked(), onUnavailable);
    try {
      const limited = isProbe ? { ...call, maxRetries: 0 } : call;
      const answer = await this.#transport.send<Answer>(wire, limited, withinMs);
      this.#breaker.succeeded();
      return answer;
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      if (isUnavailable(error)) {
        this.#breaker.failed();
        return withoutDecision(error, onUnavailable);
      }
      if (error.status > 0) this.#breaker.succeeded();
      throw error;
    }
  }
}

/** The service could not decide, and the caller wants the work to go on. */
export class NoDecision {
  readonly error: HoldfastError;

  constructor(error: HoldfastError) {
    this.error = error;
  }
}

function withoutDecision(error: HoldfastError, onUnavailable: DecisionOptions["onUnavailable"]): NoDecision {
  if (onUnavailable !== "allow") throw error;
  return new NoDecision(error);
}

function notAsked(): HoldfastError {
  return new HoldfastError({
    code: "unavailable",
    status: 0,
    message: `The service failed ${FAILURES_MAX} times in a row; it is tried again every second`,
  });
}
