// Work under a reservation: however the work ends, the reservation is settled once.

import type { CallOptions } from "./transport.ts";
import type { Held, NotHeld, ReserveAnswer } from "./metering_types.ts";
import type { CommitAnswer, CommitOptions, Metadata, ReleaseOptions, ReserveOptions } from "./wire_types.ts";

/** The reservation before the work. */
export interface ReservedWork extends ReserveOptions {
  readonly userId: string;
  readonly event: string;
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

/** Work that was done and committed. */
export interface Done<Value> {
  readonly allowed: true;
  readonly value: Value;
  readonly hold: Held;
  readonly commit: CommitAnswer;
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
    options?: ReserveOptions,
    call?: CallOptions,
  ): Promise<ReserveAnswer>;
  commit(reservationId: string, options?: CommitOptions, call?: CallOptions): Promise<CommitAnswer>;
  release(reservationId: string, options?: ReleaseOptions, call?: CallOptions): Promise<void>;
}

/** Reserves, runs the work and commits; releases when the work throws. */
export async function reserveAndSettle<Value>(
  calls: SettlingCalls,
  { userId, event, quantity, metadata, ...options }: ReservedWork,
  work: (hold: Held) => Promise<Settled<Value>> | Settled<Value>,
  call: CallOptions = {},
): Promise<Outcome<Value>> {
  const hold: ReserveAnswer = await calls.reserve(userId, event, quantity, metadata, options, call);
  if (!hold.allowed) return hold;
  // The signal ends the work, not its settlement. The idempotency key belongs to the reserve: a key is for one call.
  const { signal: _signal, idempotencyKey: _key, ...settling } = call;
  let settled: Settled<Value>;
  try {
    settled = await work(hold);
  } catch (error) {
    const errorCode = error instanceof Error ? error.name : undefined;
    // A failed release needs no error: the reservation expires by itself, and the caller gets the error of the work.
    await calls.release(hold.reservationId, { reason: "The work failed", errorCode }, settling)
      .catch(() => {});
    throw error;
  }
  const commit = await calls.commit(hold.reservationId, settled.commit, settling);
  return { allowed: true, value: settled.value, hold, commit };
}
