// Work under a reservation: however the work ends, the reservation is settled once.

import type { CallOptions } from "./transport.ts";
import type { Held, NotHeld, ReserveAnswer } from "./metering_types.ts";
import type { CommitAnswer, CommitOptions, Metadata, ReleaseOptions, ReserveOptions } from "./wire_types.ts";

/** What to reserve before the work. */
export interface ReservedWork extends ReserveOptions {
  readonly userId: string;
  readonly event: string;
  readonly quantity?: number | undefined;
  readonly metadata?: Metadata | undefined;
}

/** What the work returns. */
export interface Settled<Value> {
  /** The work's result, for you; it is not sent. */
  readonly value: Value;
  /** What to commit, such as the model's `usage` or `providerUsage`; what was reserved by default. */
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

/** The work's result and its commit, or the reserve's refusal for which the work did not start. */
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
  // The signal ends the work, not its settlement. The idempotency key is the reserve's: one key cannot serve two calls.
  const { signal: _signal, idempotencyKey: _key, ...settling } = call;
  let settled: Settled<Value>;
  try {
    settled = await work(hold);
  } catch (error) {
    const errorCode = error instanceof Error ? error.name : undefined;
    // A reservation that cannot be released now expires by itself; the work's own error says more.
    await calls.release(hold.reservationId, { reason: "The work failed", errorCode }, settling)
      .catch(() => {});
    throw error;
  }
  const commit = await calls.commit(hold.reservationId, settled.commit, settling);
  return { allowed: true, value: settled.value, hold, commit };
}
