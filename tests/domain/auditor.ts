// The auditor: reads every change that decisions yield and proves that the books balance. A counter is the sum of
// its open holds and its counted events, and of what plan changes and floors adjusted; a user is never due later
// than what falls due next.

import assert from "node:assert/strict";
import { decimalOf } from "domain/amount.ts";
import { type Counter, counterKey } from "domain/counter.ts";
import type { Line, Reservation } from "domain/reservation.ts";
import type { Change, UserState } from "domain/user.ts";

/** Collects changes of any number of users. */
export class Auditor {
  readonly counters = new Map<string, Counter>();
  readonly reservations = new Map<string, Reservation>();
  readonly #held = new Map<string, bigint>();
  readonly #counted = new Map<string, bigint>();
  readonly #ids = new Set<string>();

  /** Takes a decision's changes and checks every counter that they touch. */
  take(changes: readonly Change[]): void {
    const touched = new Set<string>();
    for (const change of changes) {
      switch (change.table) {
        case "counters": {
          const { row } = change;
          assert.ok(row.count >= 0n, `a counter fell to ${decimalOf(row.count)}`);
          const key = keyOf(row.userKey, row.planId, row.groupId, row.windowStart);
          this.counters.set(key, row);
          touched.add(key);
          break;
        }
        case "reservations": {
          const { row } = change;
          assert.equal(row.status === "held", row.settledAt === null);
          const before = this.reservations.get(row.id);
          assert.equal(change.verb === "append", before === undefined, "a row is appended once");
          if (before?.status === "held") this.#add(this.#held, row.userKey, before.lines, -1n, touched);
          if (row.status === "held") this.#add(this.#held, row.userKey, row.lines, 1n, touched);
          this.reservations.set(row.id, row);
          break;
        }
        case "events":
          this.#see(change.row.id);
          this.#add(this.#counted, change.row.userKey, change.row.lines, 1n, touched);
          break;
        case "subscription_events":
          this.#see(change.row.id);
          break;
        case "users":
        case "subscriptions":
          break;
      }
    }
    for (const key of touched) this.#checkCounter(key);
  }

  /** Checks what a state says of itself. */
  checkUser(state: UserState): void {
    const held = [...state.reservations.values()].filter(({ status }) => status === "held");
    assert.equal(state.openHolds, held.length);
    assert.equal(state.holds.next, held.length === 0 ? null : Math.min(...held.map((row) => row.expiresAt)));
    const ends = [...state.subscriptions.values()].flatMap(({ ended, endsAt }) =>
      ended || endsAt === null ? [] : [endsAt]
    );
    const next = Math.min(...held.map(({ expiresAt }) => expiresAt), ...ends);
    if (next !== Infinity) assert.ok((state.user.dueAt ?? Infinity) <= next, "a user is due too late");
  }

  /** A counter that was never written is an empty one: holds of nothing may point at it. */
  #checkCounter(key: string): void {
    const { count = 0n, adjusted = 0n } = this.counters.get(key) ?? {};
    const held = this.#held.get(key) ?? 0n;
    const counted = this.#counted.get(key) ?? 0n;
    const parts = [count, held, counted, adjusted].map(decimalOf).join(", ");
    assert.equal(count, held + counted + adjusted, `counter, holds, events, adjusted: ${parts}`);
  }

  #see(id: string): void {
    assert.ok(!this.#ids.has(id), `the id ${id} was given out twice`);
    this.#ids.add(id);
  }

  #add(
    sums: Map<string, bigint>,
    user: number,
    lines: readonly Line[],
    sign: bigint,
    touched: Set<string>,
  ): void {
    for (const { planId, groupId, window, taken } of lines) {
      const key = keyOf(user, planId, groupId, window.start);
      sums.set(key, (sums.get(key) ?? 0n) + sign * taken);
      touched.add(key);
    }
  }
}

function keyOf(user: number, planId: string, groupId: string, windowStart: number): string {
  return `${user}\n${counterKey(planId, groupId, windowStart)}`;
}
