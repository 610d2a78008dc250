// Work under a hold: whatever becomes of the work, the hold is settled, once.

import type {
  CommitAnswer,
  CommitOptions,
  Held,
  NotHeld,
  ReleaseOptions,
  ReserveAnswer,
  ReserveOptions,
} from "./metering_shapes.ts";
import type { Metadata } from "./shapes.ts";
import type { CallOptions } from "./transport.ts";

/** What to reserve before the work. */
export interface ReservedWork extends ReserveOptions {
  readonly userId: string;
  readonly event: string;
  readonly quantity?: number | undefined;
  readonly metadata?: Metadata | undefined;
}

/** What the work came to. */
export interface Settled<Value> {
  /** Yours; nothing is sent of it. */
  readonly value: Value;
  /** How to commit; as reserved where it is left out. */
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

/** What became of the work: done and committed, or not begun for the reasons of the reserve. */
export type Outcome<Value> = Done<Value> | NotHeld;

/** The calls that work under a hold makes: those of the client. */
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

/** Reserves, works, commits; releases when the work throws. */
export async function reserveAndSettle<Value>(
  calls: SettlingCalls,
  { userId, event, quantity, metadata, ...options }: ReservedWork,
  work: (hold: Held) => Promise<Settled<Value>> | Settled<Value>,
  call: CallOptions = {},
): Promise<Outcome<Value>> {
  const hold: ReserveAnswer = await calls.reserve(userId, event, quantity, metadata, options, call);
  if (!hold.allowed) return hold;
  // The work's signal must not end its settlement, and the key is the reserve's.
  const { signal: _signal, idempotencyKey: _key, ...settling } = call;
  let settled: Settled<Value>;
  try {
    settled = await work(hold);
  } catch (error) {
    const errorCode = error instanceof Error ? error.name : undefined;
    // A hold that could not be released lapses by itself; what the work threw says more.
    await calls.release(hold.reservationId, { reason: "The work failed", errorCode }, settling)
      .catch(() => {});
    throw error;
  }
  const commit = await calls.commit(hold.reservationId, settled.commit, settling);
  return { allowed: true, value: settled.value, hold, commit };
}
