// The open holds of one user that count at guards, which are rates and concurrency limits. What is held at a time is the
// sum of the open holds, and is stored nowhere else.

import { isOfGuard, type Millis } from "../values/period.ts";
import type { Amount } from "../values/amount.ts";
import type { HoldLine, Reservation } from "./reservation.ts";

/** An open hold with its lines of guards. */
export interface GuardedHold {
  readonly id: string;
  readonly expiresAt: Millis;
  readonly lines: readonly HoldLine[];
}

/** The open holds of one user that count at guards, and what they hold of each concurrency limit. */
export class InFlight {
  readonly #holds = new Map<string, GuardedHold>();
  readonly #held = new ByGroup<Amount>();

  /** The open holds. */
  get holds(): Iterable<GuardedHold> {
    return this.#holds.values();
  }

  /** Returns an open hold, if it counts at guards. */
  get(id: string): GuardedHold | undefined {
    return this.#holds.get(id);
  }

  /** Returns what open holds hold of a concurrency limit. */
  heldOf(planId: string, groupId: string): Amount {
    return this.#held.get(planId, groupId) ?? 0n;
  }

  /**
   * Replaces a reservation by its new value.
   *
   * @param now what the new value holds at guards
   */
  set(row: Reservation, now: GuardedHold | null = guardedHold(row)): void {
    const { id } = row;
    const before = this.#holds.get(id);
    for (const { planId, groupId, window, taken } of before?.lines ?? NO_LINES) {
      if (window.kind === "concurrency") this.#add(planId, groupId, -taken);
    }
    for (const { planId, groupId, window, taken } of now?.lines ?? NO_LINES) {
      if (window.kind === "concurrency") this.#add(planId, groupId, taken);
    }
    if (now !== null) this.#holds.set(id, now);
    else if (before !== undefined) this.#holds.delete(id);
  }

  #add(planId: string, groupId: string, taken: Amount): void {
    this.#held.set(planId, groupId, (this.#held.get(planId, groupId) ?? 0n) + taken);
  }
}

const NO_LINES: readonly HoldLine[] = [];

/** Returns the lines of guards of an open hold; null for none. */
export function guardedHold({ id, status, expiresAt, lines }: Reservation): GuardedHold | null {
  // Most holds have no such line.
  if (status !== "held" || !lines.some(({ window }) => isOfGuard(window))) return null;
  return { id, expiresAt, lines: lines.filter(({ window }) => isOfGuard(window)) };
}

/** Returns what a hold holds of a concurrency limit. */
export function heldBy(hold: GuardedHold | null | undefined, planId: string, groupId: string): Amount {
  let held = 0n;
  for (const line of hold?.lines ?? []) {
    const isHere = line.planId === planId && line.groupId === groupId;
    if (isHere && line.window.kind === "concurrency") held += line.taken;
  }
  return held;
}

/** Values by plan and group: with two maps no key has to be made. */
export class ByGroup<Value> {
  readonly #plans = new Map<string, Map<string, Value>>();

  get(planId: string, groupId: string): Value | undefined {
    return this.#plans.get(planId)?.get(groupId);
  }

  set(planId: string, groupId: string, value: Value): void {
    const groups = this.#plans.get(planId);
    if (groups === undefined) this.#plans.set(planId, new Map([[groupId, value]]));
    else groups.set(groupId, value);
  }
}
