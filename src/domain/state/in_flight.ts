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
    this.#held.update(planId, groupId, (held = 0n) => held + taken);
  }
}

const NO_LINES: readonly HoldLine[] = [];

/** Returns the lines of guards of an open hold; null for none. */
export function guardedHold({ id, status, expiresAt, lines }: Reservation): GuardedHold | null {
  if (status !== "held") return null;
  let guards: HoldLine[] | null = null; // Most holds have no such line.
  for (const line of lines) if (isOfGuard(line.window)) (guards ??= []).push(line);
  return guards === null ? null : { id, expiresAt, lines: guards };
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

/** Values by plan and group. A user has few, so a list is searched faster than a map, and no key has to be made. */
export class ByGroup<Value> {
  readonly #entries: { readonly planId: string; readonly groupId: string; value: Value }[] = [];

  get(planId: string, groupId: string): Value | undefined {
    return this.#find(planId, groupId)?.value;
  }

  set(planId: string, groupId: string, value: Value): void {
    const entry = this.#find(planId, groupId);
    if (entry === undefined) this.#entries.push({ planId, groupId, value });
    else entry.value = value;
  }

  /** Replaces a value by what a function makes of it. */
  update(planId: string, groupId: string, next: (value: Value | undefined) => Value): void {
    const entry = this.#find(planId, groupId);
    if (entry === undefined) this.#entries.push({ planId, groupId, value: next(undefined) });
    else entry.value = next(entry.value);
  }

  #find(planId: string, groupId: string) {
    for (const entry of this.#entries) {
      if (entry.groupId === groupId && entry.planId === planId) return entry;
    }
    return undefined;
  }
}
