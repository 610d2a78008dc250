// Runs: the task of an agent, with a budget of its own that all calls of the task share. A run belongs to one user and to no
// path. Runs nest: a call counts in its run and in all runs around it. Whether a run is over follows from its row and the
// time alone, so nothing falls due.

import type { Unit } from "../catalog/plan.ts";
import type { Amounts } from "../pricing/amounts.ts";
import type { Amount } from "../values/amount.ts";
import type { UserKey } from "../values/ids.ts";
import type { Millis } from "../values/period.ts";

/** The most that the calls of a run may use of one unit. */
export interface RunLimit {
  readonly id: string;
  readonly unit: Unit;
  /** The pattern of the events that count. */
  readonly event: string;
  readonly quota: Amount;
  /** Counted events and open holds. */
  readonly count: Amount;
  /** The part of `count` in open holds. */
  readonly held: Amount;
}

export interface Run {
  readonly id: string;
  readonly userKey: UserKey;
  readonly realm: number;
  readonly name: string | null;
  /** As JSON text. The tables alone keep it: in memory it is null once the run exists. */
  readonly metadata: string | null;
  /** The ids of the runs around it, innermost first. */
  readonly around: readonly string[];
  readonly limits: readonly RunLimit[];
  /** Open holds of its calls, and of those of runs within it. */
  readonly openHolds: number;
  readonly createdAt: Millis;
  readonly expiresAt: Millis;
  /** When a call ended it; null for a run that no call ended. */
  readonly endedAt: Millis | null;
  /** The reason that this call gave. */
  readonly reason: string | null;
}

/** The most runs of a nesting, the outermost included. */
export const NESTING_MAX = 4;

/** How long a run is known after its end. */
export const ENDED_KEPT_MS = 30 * 24 * 3_600_000;

/** When a run ended or will end. */
export function endOf({ endedAt, expiresAt }: Pick<Run, "endedAt" | "expiresAt">): Millis {
  return endedAt ?? expiresAt;
}

/** Whether a run has ended by a moment. */
export function hasEnded(run: Pick<Run, "endedAt" | "expiresAt">, now: Millis): boolean {
  return run.endedAt !== null || now >= run.expiresAt;
}

/** Whether a run ended so long ago that it is unknown. */
export function isForgotten(run: Pick<Run, "endedAt" | "expiresAt">, now: Millis): boolean {
  return now > endOf(run) + ENDED_KEPT_MS;
}

/** How a call or a settlement changes the counts of a run. */
export interface RunStep {
  readonly event: string;
  readonly count: Amounts;
  readonly held: Amounts;
  readonly openHolds: -1 | 0 | 1;
}

const NO_AMOUNTS: Amounts = { count: 0n, tokens: 0n, cents: 0n, seconds: 0n, credits: 0n };

/** An event that counts, of a call without a hold or of a hold that had lapsed. */
export function eventStep(event: string, amounts: Amounts): RunStep {
  return { event, count: amounts, held: NO_AMOUNTS, openHolds: 0 };
}

/** A new hold. */
export function holdStep(event: string, amounts: Amounts): RunStep {
  return { event, count: amounts, held: amounts, openHolds: 1 };
}

/** The end of a hold, with what its event counts in place of the held amounts. */
export function settleStep(event: string, held: Amounts, final: Amounts = NO_AMOUNTS): RunStep {
  return { event, count: difference(final, held), held: difference(NO_AMOUNTS, held), openHolds: -1 };
}

function difference(one: Amounts, other: Amounts): Amounts {
  return {
    count: one.count - other.count,
    tokens: one.tokens - other.tokens,
    cents: one.cents - other.cents,
    seconds: one.seconds - other.seconds,
    credits: one.credits - other.credits,
  };
}
