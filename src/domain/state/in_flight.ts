// The open holds of one user that count at guards, which are rates and concurrency limits. What is held at a time is the
// sum of the open holds, and is stored nowhere else.

import { isOfGuard, type Millis } from "../values/period.ts";
import type { Amount } from "../values/amount.ts";
import { SmallMap } from "../values/small_map.ts";
import { areEqualLines, type HoldLine, type Reservation } from "./reservation.ts";

/** An open hold with its lines of guards. */
export interface GuardedHold {
  readonly id: string;
  readonly expiresAt: Millis;
  readonly lines: readonly HoldLine[];
}

/** The open holds of one user that count at guards, and what they hold of each concurrency limit. */
export class InFlight {
  readonly #holds = new SmallMap<GuardedHold>();
  readonly #held = new ByGroup<Amount>();
  /** Of the last hold: most holds of a user are alike, and share them. */
  #lines = NO_LINES;

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

  /** Replaces a reservation by its new value. */
  set(row: Reservation): void {
    const { id, expiresAt } = row;
    const before = this.#holds.get(id);
    for (const line of before?.lines ?? NO_LINES) this.#add(line, -line.taken);
    const lines = guardLines(row, this.#lines);
    if (lines.length > 0) {
      for (const line of lines) this.#add(line, line.taken);
      this.#holds.set(id, { id, expiresAt, lines });
      this.#lines = lines;
    } else if (before !== undefined) this.#holds.delete(id);
  }

  #add({ planId, groupId, window }: HoldLine, taken: Amount): void {
    if (window.kind === "concurrency") this.#held.set(planId, groupId, this.heldOf(planId, groupId) + taken);
  }
}

const NO_LINES: readonly HoldLine[] = [];

/** Returns a reservation as an open hold that counts at guards; null for any other. */
export function guardedHold(row: Reservation): GuardedHold | null {
  const { id, expiresAt } = row;
  const lines = guardLines(row);
  return lines.length === 0 ? null : { id, expiresAt, lines };
}

/** Whether a reservation is an open hold that counts at guards. */
export function isGuarded({ status, lines }: Reservation): boolean {
  if (status !== "held") return false;
  for (const { window } of lines) if (isOfGuard(window)) return true;
  return false;
}

/** Returns the lines of guards of an open hold, or a known list that has the same. */
function guardLines({ status, lines }: Reservation, known = NO_LINES): readonly HoldLine[] {
  if (status !== "held") return NO_LINES;
  let found = 0;
  for (const line of lines) {
    if (!isOfGuard(line.window)) continue;
    const other = known[found];
    if (other === undefined || !areEqualLines(line, other)) {
      return lines.filter(({ window }) => isOfGuard(window));
    }
    found += 1;
  }
  return known.length === found ? known : lines.filter(({ window }) => isOfGuard(window));
}

/** Returns what a hold holds of a concurrency limit. */
export function heldBy(hold: GuardedHold | null | undefined, planId: string, groupId: string): Amount {
  let held = 0n;
  for (const line of hold?.lines ?? NO_LINES) {
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

  #find(planId: string, groupId: string) {
    for (const entry of this.#entries) {
      if (entry.groupId === groupId && entry.planId === planId) return entry;
    }
    return undefined;
  }
}
