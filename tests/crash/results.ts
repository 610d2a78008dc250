// Results of batches, as outcomes of their calls alone.

import type { Outcome } from "./wire.ts";

/** A result of one event of a batch, as the body of a call about this event alone. */
export type BatchResult = { readonly ok: boolean; readonly error?: { readonly code: string } };

/** The outcome of one event of a batch; that of the batch where it has no results. */
export function outcomeAt(outcome: Outcome, body: BatchResult | undefined): Outcome {
  if (outcome.kind !== "answer" || body === undefined) return outcome;
  const code = body.error?.code;
  const status = body.ok ? 200 : code === "unavailable" ? 503 : code === "limit_reached" ? 429 : 500;
  const headers = new Headers({ "retry-after": "1" });
  return { ...outcome, answer: { ...outcome.answer, status, body, headers } };
}

/** A result of a call that was sent with others. */
export interface CallResult {
  readonly status: number;
  readonly replayed?: boolean;
  readonly retryAfterSeconds?: number;
}

/** The outcome of a call that was sent with others, as if it had been sent alone. */
export function outcomeOf(outcome: Outcome, result: CallResult | undefined): Outcome {
  if (outcome.kind !== "answer" || result === undefined) return outcome;
  const { status, replayed: _replayed, retryAfterSeconds, ...body } = result;
  const headers = new Headers(
    retryAfterSeconds === undefined ? {} : { "retry-after": `${retryAfterSeconds}` },
  );
  return { ...outcome, answer: { ...outcome.answer, status, body, headers } };
}

/** Whether a call has its answer. */
export function isDone(outcome: Outcome): outcome is Extract<Outcome, { kind: "answer" }> {
  return outcome.kind === "answer" && outcome.answer.status !== 503;
}
