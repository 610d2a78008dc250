// Work under a reservation: however the work ends, the reservation is settled once. Finished work is never lost: a commit that
// fails is tried again in the background, and the caller gets the result of the work.

import { HoldfastError } from "./errors.ts";
import type { CallOptions } from "./transport.ts";
import type {
  DecisionOptions,
  Held,
  LaterEvent,
  NotHeld,
  ReserveAnswer,
  Unmetered,
  WaitOptions,
} from "./metering_types.ts";
import type { CommitAnswer, CommitOptions, Metadata, ReleaseOptions, ReserveOptions } from "./wire_types.ts";

/** The reservation before the work. */
export interface ReservedWork extends ReserveOptions, DecisionOptions, WaitOptions {
  readonly userId: string;
  readonly event: string;
  /** How many, such as images: 1 by default. */
  readonly count?: ReserveOptions["count"];
  /** For audio and video the seconds. */
  readonly quantity?: number | undefined;
  readonly metadata?: Metadata | undefined;
}

/** The return value of the work. */
export interface Settled<Value> {
  /** The result of the work, for you; it is not sent. */
  readonly value: Value;
  /** The usage to commit, such as the model's `usage` or `providerUsage`; by default the amounts that were reserved. */
  readonly commit?: CommitOptions | undefined;
}

/** Work that was done. */
export interface Done<Value> {
  readonly allowed: true;
  readonly value: Value;
  readonly hold: Held | Unmetered;
  /** Null if the commit failed, or the work was allowed unmetered; `onCommitError` and `onAllowedUnmetered` have why. */
  readonly commit: CommitAnswer | null;
  readonly reasons?: undefined;
}

/** The result of the work and its commit, or the refused reserve, without which the work did not start. */
export type Outcome<Value> = Done<Value> | NotHeld;

/** The calls of the client that are used here. */
export interface SettlingCalls {
  reserve(
    userId: string,
    event: string,
    quantity?: number | undefined,
    metadata?: Metadata | undefined,
    options?: ReserveOptions & WaitOptions,
    call?: CallOptions,
  ): Promise<ReserveAnswer | Unmetered>;
  commit(reservationId: string, options?: CommitOptions, call?: CallOptions): Promise<CommitAnswer>;
  release(reservationId: string, options?: ReleaseOptions, call?: CallOptions): Promise<void>;
  readonly [OWN]?: OwnCalls;
}

/** The member with calls for helpers of the client's own. Registered, so that all copies of this module share it. */
export const OWN: unique symbol = Symbol.for("holdfast.own_calls");

/** Calls for helpers that know when the work has ended. */
export interface OwnCalls {
  /** Reserves. Work that is allowed without a decision is tracked by `trackUnmetered`, when its usage is known. */
  reserve(asked: ReservedWork, call: CallOptions | undefined): Promise<ReserveAnswer | Unmetered>;
  trackUnmetered(asked: ReservedWork, commit: CommitOptions, call: CallOptions | undefined): void;
  /** Commits, or returns the error. It is reported, and a temporary one is retried in the background. */
  commit(
    reservationId: string,
    options: CommitOptions,
    call: CallOptions | undefined,
    faults: CommitFaults,
  ): Promise<CommitAnswer | HoldfastError>;
}

/** How a failed commit is handled. */
interface CommitFaults extends Pick<DecisionOptions, "onCommitError"> {
  /** Whether another usage is committed if this one is refused as invalid; such a refusal is then not reported. */
  readonly hasOther: boolean;
}

/** Splits work into what is sent and what the client itself reads. */
export function partsOf(
  {
    userId,
    event,
    quantity,
    metadata,
    onUnavailable,
    timeoutMs,
    onAllowedUnmetered,
    onCommitError,
    waitSeconds,
    ...size
  }: ReservedWork,
) {
  const decision: DecisionOptions = { onUnavailable, timeoutMs, onAllowedUnmetered, onCommitError };
  return { userId, event, quantity, metadata, size, decision, waitSeconds };
}

/** Reserves for a helper. */
export function reserveWork(
  calls: SettlingCalls,
  asked: ReservedWork,
  call?: CallOptions,
): Promise<ReserveAnswer | Unmetered> {
  const own = calls[OWN];
  if (own !== undefined) return own.reserve(asked, call);
  const { userId, event, quantity, metadata, size, waitSeconds } = partsOf(asked);
  const options = waitSeconds === undefined ? size : { ...size, waitSeconds };
  return calls.reserve(userId, event, quantity, metadata, options, call);
}

/**
 * Settles finished work. With a client it never rejects, because finished work is worth more than its commit; a stand-in
 * for a client, which retries nothing, rejects as its commit does.
 *
 * @param commits the usage; the next one is tried if the service refuses one as invalid
 * @returns null if nothing was committed
 */
export async function settleWork(
  calls: SettlingCalls,
  { hold, asked }: { readonly hold: Held | Unmetered; readonly asked: ReservedWork },
  [commit = {}, ...others]: readonly CommitOptions[],
  call?: CallOptions,
): Promise<CommitAnswer | null> {
  const own = calls[OWN];
  if (hold.reservationId === undefined) {
    own?.trackUnmetered(asked, commit, call);
    return null;
  }
  const { reservationId } = hold;
  const hasOther = others.length > 0;
  // The signal ends the work, not its settlement. The key belongs to the reserve, and so does the time of a decision.
  const { signal: _signal, idempotencyKey: _key, timeoutMs: _time, ...settling } = call ?? {};
  const result = own === undefined
    ? await calls.commit(reservationId, commit, settling).catch((error) => ifOther(error, hasOther))
    : await own.commit(reservationId, commit, settling, { onCommitError: asked.onCommitError, hasOther });
  if (!(result instanceof HoldfastError)) return result;
  if (!hasOther || result.code !== "invalid_request") return null;
  return await settleWork(calls, { hold, asked }, others, call);
}

/** A stand-in for the client reports its errors itself; only a refusal for which there is another usage is no error. */
function ifOther(error: unknown, hasOther: boolean): HoldfastError {
  if (hasOther && error instanceof HoldfastError && error.code === "invalid_request") return error;
  throw error;
}

/** Reserves, runs the work and commits; releases when the work throws. */
export async function reserveAndSettle<Value>(
  calls: SettlingCalls,
  asked: ReservedWork,
  work: (hold: Held | Unmetered) => Promise<Settled<Value>> | Settled<Value>,
  call: CallOptions = {},
): Promise<Outcome<Value>> {
  const hold = await reserveWork(calls, asked, call);
  if (!hold.allowed) return hold;
  let settled: Settled<Value>;
  try {
    settled = await work(hold);
  } catch (error) {
    await releaseWork(calls, hold, { reason: "The work failed", error }, call);
    throw error;
  }
  const commit = await settleWork(calls, { hold, asked }, [settled.commit ?? {}], call);
  return { allowed: true, value: settled.value, hold, commit };
}

/** Releases work that failed. A failed release needs no error: the reservation expires by itself. */
export async function releaseWork(
  calls: SettlingCalls,
  { reservationId }: Held | Unmetered,
  { reason, error, errorCode }: {
    readonly reason: string;
    readonly error?: unknown;
    readonly errorCode?: string;
  },
  call: CallOptions = {},
): Promise<void> {
  if (reservationId === undefined) return;
  const { signal: _signal, idempotencyKey: _key, timeoutMs: _time, ...settling } = call;
  const code = error instanceof Error ? error.name : errorCode;
  await calls.release(reservationId, { reason, errorCode: code }, settling).catch(() => {});
}

/** The event of work without a reservation, with the amounts that its commit would have charged. */
export function eventOfWork(asked: ReservedWork, commit: CommitOptions): LaterEvent {
  const { userId, event, quantity, metadata, size } = partsOf(asked);
  const { usage, providerUsage, extra, actual, costCents, response } = commit;
  const sum = (base: number | null | undefined, added: number | null | undefined) =>
    (base ?? 0) + (added ?? 0);
  const isReported = usage != null || providerUsage != null;
  const inputTokens = actual?.tokens ??
    sum(size.inputTokens, extra?.tokens ?? extra?.outputTokens) + (size.maxOutputTokens ?? 0);
  const cents = actual?.cents ??
    (extra?.cents == null && extra?.outputCostCents == null
      ? size.inputCostCents
      : sum(size.inputCostCents, extra.cents ?? extra.outputCostCents));
  const seconds = actual?.seconds ?? (extra?.seconds == null ? quantity : sum(quantity ?? 1, extra.seconds));
  return {
    userId,
    event,
    quantity: seconds ?? undefined,
    metadata,
    count: actual?.count ?? sum(size.count ?? 1, extra?.count),
    ...isReported ? { usage, providerUsage } : { inputTokens, inputCostCents: cents, costCents },
    runId: size.runId,
    prompt: size.prompt,
    response,
  };
}
