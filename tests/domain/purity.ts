// What shows that a decision is pure: the state it read is the same afterwards, reference by reference.

import assert from "node:assert/strict";
import type { UserState } from "../../src/domain/state/user.ts";

/** Everything of a state that a decision could touch, by reference: rows are frozen, so this is all of it. */
export function referencesOf(state: UserState): unknown[][] {
  return [
    [state.user, state.recorded, state.openHolds, state.holds.next],
    [...state.subscriptions].flat(),
    [...state.counters].flat(),
    [...state.reservations.keys()],
    [...state.balances].flat(),
    [...state.balanceOrder],
  ];
}

/** Fails where a decision changed what it read. */
export function assertSame(after: unknown[][], before: unknown[][]): void {
  const isSame = after.every((list, index) => {
    const known = before[index] as unknown[];
    return list.length === known.length && list.every((value, place) => Object.is(value, known[place]));
  });
  assert.ok(isSame, "a decision changed the state that it read");
}

/** Freezes a row with all that it holds. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}
