// The interface through which the sender makes attempts: a thread in the service, a fake in tests.

import type { Millis } from "../domain/values/period.ts";

/** One attempt to deliver a message. */
export interface Attempt {
  readonly messageId: string;
  readonly url: string;
  readonly body: string;
  /** The secrets that sign it, the newest first. */
  readonly secrets: readonly string[];
  /** Real time. */
  readonly at: Millis;
}

/** The outcome of an attempt. */
export interface AttemptResult {
  /** The status of the answer; null without one. */
  readonly status: number | null;
  /** What went wrong, for the customer; null when the message was delivered. */
  readonly fault: string | null;
  /** The first 1 KiB of the answer; left out if there is none. */
  readonly answer?: string;
}

/** Makes attempts. */
export interface Transport {
  /**
   * Makes an attempt. It ends with an answer or a fault, at the latest when the timeout for answers is over.
   *
   * @param signal ends the attempt; it then rejects
   * @throws Unavailable when this process could not make the attempt: that is no failure of the endpoint
   */
  attempt(attempt: Attempt, signal: AbortSignal): Promise<AttemptResult>;
  close(): void;
}
