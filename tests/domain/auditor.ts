// The auditor: reads every change that decisions yield and proves that the books balance. A counter is the sum of
// its open holds and its counted events, and of what plan changes and floors adjusted; a share is that of its member; a balance is the sum of its
// ledger, and what of it is held the sum of its holds; a user is never due later than what falls due next.

import assert from "node:assert/strict";
import { decimalOf } from "../../src/domain/values/amount.ts";
import { type Counter, counterKey } from "../../src/domain/state/counter.ts";
import { type CreditBalance, type CreditLine, expiryDueOf } from "../../src/domain/state/credit.ts";
import type { Line, Reservation } from "../../src/domain/state/reservation.ts";
import type { Amounts } from "../../src/domain/pricing/amounts.ts";
import type { Run } from "../../src/domain/state/run.ts";
import { overageKey, type OverageWindow } from "../../src/domain/state/overage.ts";
import { type Share, shareKey, type ShareLine } from "../../src/domain/state/share.ts";
import type { Change, UserState } from "../../src/domain/state/user.ts";

/** Collects changes of any number of users. */
export class Auditor {
  readonly counters = new Map<string, Counter>();
  readonly reservations = new Map<string, Reservation>();
  readonly balances = new Map<string, CreditBalance>();
  readonly #moved = new Map<string, bigint>();
  readonly #heldCredits = new Map<string, bigint>();
  readonly #held = new Map<string, bigint>();
  /** What open holds and events took as overage, by counter. */
  readonly #sold = new Map<string, bigint>();
  readonly #windows = new Map<string, OverageWindow>();
  /** What events settled, and what messages told, by user, group and window. */
  readonly #settledOverage = new Map<string, bigint>();
  readonly #toldOverage = new Map<string, bigint>();
  readonly #counted = new Map<string, bigint>();
  readonly #runs = new Map<string, Run>();
  readonly #ofRuns: RunCall[] = [];
  readonly #shares = new Map<string, Share>();
  /** Sums of what holds and events took of a share, by its key and the reset from which on it counts. */
  readonly #shared = new Map<string, Map<number, bigint>>();
  readonly #ids = new Set<string>();
  readonly #into = new Map<number, number>();
  /** When the slots of rates stop to count: nothing is said of them then. */
  readonly #slotEnds = new Map<string, number>();

  /** Takes a decision's changes and checks every counter that they touch, and that counts now. */
  take(changes: readonly Change[], now: number): void {
    for (const change of changes) {
      if (change.table === "users" && change.row.mergedInto !== null) {
        this.#merge(change.row.key, change.row.mergedInto);
      }
    }
    const touched = new Set<string>();
    const balances = new Set<string>();
    const holds = new Set<string>();
    const shares = new Set<string>();
    for (const change of changes) {
      switch (change.table) {
        case "counters": {
          const { row } = change;
          assert.ok(row.count >= 0n, `a counter fell to ${decimalOf(row.count)}`);
          const { block: { filler, upTo } = { filler: 0n, upTo: 1n }, alerted, alertedQuota } = row;
          assert.ok(filler >= 0n && upTo > 0n, "a block without an end");
          assert.ok(alerted.length > 0 || alertedQuota === undefined, "a quota without alerts");
          if (this.#into.has(row.userKey)) {
            assert.deepEqual([row.count, row.adjusted, row.costCents], [0n, 0n, 0n], "an alias has usage");
            break;
          }
          const key = keyOf(row.userKey, row.planId, row.groupId, row.windowStart);
          this.counters.set(key, row);
          if (row.kind === "rate") this.#slotEnds.set(key, row.windowEnd ?? Infinity);
          touched.add(key);
          break;
        }
        case "reservations": {
          const { row } = change;
          assert.equal(row.status === "held", row.settledAt === null);
          const before = this.reservations.get(row.id);
          assert.equal(change.verb === "append", before === undefined, "a row is appended once");
          if (before?.status === "held") {
            this.#share(before.userKey, before.shares, -1n, shares);
            this.#add(this.#held, row.userKey, countedLines(before.lines), -1n, touched);
            this.#hold(before.credits, -1n, balances);
          }
          if (row.status === "held") {
            this.#share(row.userKey, row.shares, 1n, shares);
            this.#add(this.#held, row.userKey, countedLines(row.lines), 1n, touched);
            this.#hold(row.credits, 1n, balances);
          }
          this.reservations.set(row.id, row);
          holds.add(row.partOf ?? row.id);
          break;
        }
        case "runs": {
          const { row } = change;
          assert.equal(change.verb === "append", !this.#runs.has(row.id), "a run is appended once");
          this.#runs.set(row.id, row);
          break;
        }
        case "events":
          if (change.row.runId !== undefined && change.row.runAmounts !== undefined) {
            const { runId, type, runAmounts } = change.row;
            this.#ofRuns.push({ runId, event: type, amounts: runAmounts });
          }
          this.#see(change.row.id);
          for (const { userKey, lines } of [change.row, ...change.row.levels ?? []]) {
            this.#settle(userKey, lines);
            this.#add(this.#counted, userKey, countedLines(lines), 1n, touched);
          }
          this.#share(change.row.userKey, change.row.shares, 1n, shares);
          break;
        case "overage_windows": {
          const { row } = change;
          assert.ok(
            row.pending <= row.total && (row.pending > 0n) === (row.dueAt !== null),
            "what is pending is due",
          );
          if (this.#into.has(row.userKey)) assert.equal(row.total, 0n, "an alias has overage");
          else this.#windows.set(`${row.userKey}\n${row.key}`, row);
          break;
        }
        case "overage_hours": {
          const { row } = change;
          const window = { start: row.windowStart, end: row.windowEnd };
          const key = `${this.#into.get(row.userKey) ?? row.userKey}\n${overageKey({ ...row, window })}`;
          assert.ok(row.amount > 0n, "nothing was reported");
          this.#toldOverage.set(key, (this.#toldOverage.get(key) ?? 0n) + row.amount);
          break;
        }
        case "shares": {
          const { row } = change;
          if (this.#into.has(row.userKey)) {
            assert.deepEqual([row.count, row.costCents], [0n, 0n], "an alias has a share");
            break;
          }
          const key = `${row.userKey}\n${row.key}`;
          this.#shares.set(key, row);
          shares.add(key);
          break;
        }
        case "subscription_events":
          this.#see(change.row.id);
          break;
        case "credit_balances": {
          const { row } = change;
          assert.ok(row.remaining >= 0n && row.held >= 0n, "a balance fell below zero");
          assert.equal(change.verb === "append", !this.balances.has(row.id), "a balance is appended once");
          this.balances.set(row.id, row);
          balances.add(row.id);
          break;
        }
        case "credit_ledger": {
          const { id, balanceId, delta } = change.row;
          this.#see(id);
          this.#moved.set(balanceId, (this.#moved.get(balanceId) ?? 0n) + delta);
          balances.add(balanceId);
          break;
        }
        case "webhook_messages":
          this.#see(change.row.id);
          break;
        case "users":
        case "subscriptions":
        case "merges":
        case "history_moves":
          break;
      }
    }
    for (const key of touched) if ((this.#slotEnds.get(key) ?? Infinity) > now) this.#checkCounter(key);
    if (this.#sold.size > 0) this.#checkSold();
    this.#checkOverage();
    for (const id of balances) this.#checkBalance(id);
    for (const key of shares) this.#checkShare(key);
    for (const id of holds) this.#checkParts(id);
    this.#checkRuns();
  }

  /** Each limit of a run is the sum of the holds and events of its calls, and of those of runs within it. */
  #checkRuns(): void {
    if (this.#runs.size === 0) return;
    const held = [...this.reservations.values()].filter(({ status }) => status === "held");
    for (const run of this.#runs.values()) {
      const isIn = ({ runId }: Pick<Reservation, "runId">) =>
        runId === run.id || (this.#runs.get(runId ?? "")?.around ?? []).includes(run.id);
      const [holds, events] = [held.filter(isIn), this.#ofRuns.filter(isIn)];
      assert.equal(run.openHolds, holds.length, `the open holds of ${run.id}`);
      for (const { event, unit, count, held: heldCount } of run.limits) {
        const sum = (calls: readonly Pick<RunCall, "event" | "amounts">[]) =>
          calls.reduce((all, call) => covers(event, call.event) ? all + call.amounts[unit] : all, 0n);
        assert.deepEqual([heldCount, count], [sum(holds), sum(holds) + sum(events)], `a limit of ${run.id}`);
      }
    }
  }

  /** A hold and its parts are settled in one turn and lapse at one time, though each may be looked at later. */
  #checkParts(id: string): void {
    const hold = this.reservations.get(id);
    assert.ok(hold !== undefined && hold.partOf === undefined, `a part of ${id}, which no caller has`);
    for (const partId of hold.parts ?? []) {
      const part = this.reservations.get(partId);
      assert.equal(part?.partOf, id, `${id} lists a part of another hold`);
      assert.equal(part?.expiresAt, hold.expiresAt, "a part lapses at another time");
      const isLapsing = [hold, part].every((row) => row?.status === "held" || row?.status === "expired");
      assert.ok(isLapsing || part?.status === hold.status, `${part?.status} part of a ${hold.status} hold`);
    }
  }

  /** What the books have of an alias, they have of its canonical user from now on. */
  #merge(from: number, to: number): void {
    for (const [alias, into] of this.#into) if (into === from) this.#into.set(alias, to);
    this.#into.set(from, to);
    for (const sums of [this.#held, this.#counted, this.#sold, this.#settledOverage, this.#toldOverage]) {
      for (const [key, sum] of [...sums]) {
        if (!key.startsWith(`${from}\n`)) continue;
        const moved = `${to}${key.slice(String(from).length)}`;
        sums.set(moved, (sums.get(moved) ?? 0n) + sum);
        sums.delete(key);
      }
    }
    for (const [key, sums] of [...this.#shared]) {
      if (!key.startsWith(`${from}\n`)) continue;
      for (const [since, sum] of sums) this.#addShare(`${to}${key.slice(String(from).length)}`, since, sum);
      this.#shared.delete(key);
    }
  }

  #settle(user: number, lines: readonly Line[]): void {
    for (const line of lines) {
      if (line.overage === undefined) continue;
      const key = `${this.#into.get(user) ?? user}\n${overageKey(line)}`;
      this.#settledOverage.set(key, (this.#settledOverage.get(key) ?? 0n) + line.overage);
    }
  }

  /** What the counters of a group sold is what holds and events took; a merge moves it between windows. */
  #checkSold(): void {
    const sums = new Map([...this.#sold.keys()].map((group) => [group, 0n]));
    for (const [key, { userKey, overage = 0n }] of this.counters) {
      if (this.#into.has(userKey)) continue;
      const group = groupOf(key);
      if (overage !== 0n || sums.has(group)) sums.set(group, (sums.get(group) ?? 0n) + overage);
    }
    for (const [group, overage] of sums) {
      if (this.#into.has(Number(group.split("\n")[0]))) continue;
      assert.equal(
        overage,
        this.#sold.get(group) ?? 0n,
        `overage, and that of holds and events, of ${group}`,
      );
    }
  }

  /** What a window settled is the overage of its events, and all of it is reported or pending. */
  #checkOverage(): void {
    for (const key of new Set([...this.#settledOverage.keys(), ...this.#windows.keys()])) {
      if (this.#into.has(Number(key.split("\n")[0]))) continue;
      const { total = 0n, pending = 0n } = this.#windows.get(key) ?? {};
      assert.equal(total, this.#settledOverage.get(key) ?? 0n, `the settled overage of ${key}`);
      assert.equal(total, (this.#toldOverage.get(key) ?? 0n) + pending, `the told overage of ${key}`);
    }
  }

  /** A share is what holds and events took since its reset; nothing was taken under a later one. */
  #checkShare(key: string): void {
    const sums = this.#shared.get(key) ?? new Map<number, bigint>();
    const row = this.#shares.get(key);
    const since = Math.max(row?.since ?? 0, ...sums.keys());
    const expected = sums.get(since) ?? 0n;
    if (row === undefined && expected === 0n) return;
    assert.deepEqual([row?.count, row?.since], [expected, since], `the share ${key}`);
  }

  #share(
    user: number,
    lines: readonly ShareLine[] | undefined,
    sign: bigint,
    touched: Set<string>,
  ): void {
    for (const line of lines ?? []) {
      const key = `${this.#into.get(user) ?? user}\n${shareKey(line)}`;
      this.#addShare(key, line.since, sign * line.taken);
      touched.add(key);
    }
  }

  #addShare(key: string, since: number, taken: bigint): void {
    const sums = this.#shared.get(key) ?? new Map<number, bigint>();
    this.#shared.set(key, sums.set(since, (sums.get(since) ?? 0n) + taken));
  }

  /** Checks what a state says of itself. */
  checkUser(state: UserState): void {
    const held = [...state.reservations.values()].filter(({ status }) => status === "held");
    assert.equal(state.openHolds, held.length);
    assert.equal(state.holds.next, held.length === 0 ? null : Math.min(...held.map((row) => row.expiresAt)));
    const ends = [...state.subscriptions.values()].flatMap(({ ended, endsAt }) =>
      ended || endsAt === null ? [] : [endsAt]
    );
    const reports = [...state.overages.values()].map(({ dueAt }) => dueAt ?? Infinity);
    const lapses = [...state.balances.values()].map((row) => expiryDueOf(row) ?? Infinity);
    const next = Math.min(...held.map(({ expiresAt }) => expiresAt), ...ends, ...lapses, ...reports);
    for (const row of held) {
      for (const { planId, groupId, window } of row.lines) {
        if (window.kind !== "concurrency") continue;
        const isHere = (line: Line) =>
          line.planId === planId && line.groupId === groupId && line.window.kind === "concurrency";
        const sum = held.flatMap(({ lines }) => lines).filter(isHere).reduce(
          (all, { taken }) => all + taken,
          0n,
        );
        assert.equal(state.inFlight?.heldOf(planId, groupId), sum, "what is in flight");
      }
    }
    if (held.length === 0) assert.deepEqual([...state.inFlight?.holds ?? []], [], "nothing is in flight");
    if (next !== Infinity) assert.ok((state.user.dueAt ?? Infinity) <= next, "a user is due too late");
  }

  /** A counter that was never written is an empty one: holds of nothing may point at it. */
  #checkCounter(key: string): void {
    const { count = 0n, adjusted = 0n, overage } = this.counters.get(key) ?? {};
    assert.notEqual(overage, 0n, "no overage is absent");
    assert.ok((overage ?? 0n) <= count, "more was sold than counted");
    const held = this.#held.get(key) ?? 0n;
    const counted = this.#counted.get(key) ?? 0n;
    const parts = [count, held, counted, adjusted].map(decimalOf).join(", ");
    assert.equal(
      count,
      held + counted + adjusted,
      `counter, holds, events, adjusted of ${key.replaceAll("\n", " ")}: ${parts}`,
    );
  }

  #checkBalance(id: string): void {
    const row = this.balances.get(id);
    assert.ok(row !== undefined, `a movement of ${id}, which was never granted`);
    assert.equal(row.remaining, this.#moved.get(id) ?? 0n, `remaining and ledger of ${id}`);
    assert.equal(row.held, this.#heldCredits.get(id) ?? 0n, `held and open holds of ${id}`);
  }

  #hold(lines: readonly CreditLine[], sign: bigint, touched: Set<string>): void {
    for (const { balanceId, taken } of lines) {
      this.#heldCredits.set(balanceId, (this.#heldCredits.get(balanceId) ?? 0n) + sign * taken);
      touched.add(balanceId);
    }
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
    for (const { planId, groupId, window, taken, overage = 0n } of lines) {
      const key = keyOf(this.#into.get(user) ?? user, planId, groupId, window.start);
      if (window.kind === "rate") this.#slotEnds.set(key, window.end ?? Infinity);
      sums.set(key, (sums.get(key) ?? 0n) + sign * taken);
      if (overage === 0n) continue;
      const group = groupOf(key);
      this.#sold.set(group, (this.#sold.get(group) ?? 0n) + sign * overage);
      touched.add(key);
    }
  }
}

/** A counted event of a run. */
interface RunCall {
  readonly runId: string;
  readonly event: string;
  readonly amounts: Amounts;
}

/** The lines that have a counter: none of concurrency limits. */
function countedLines(lines: readonly Line[]): Line[] {
  return lines.filter(({ window: { kind } }) => kind !== "concurrency");
}

function covers(pattern: string, event: string): boolean {
  return pattern.endsWith("*") ? event.startsWith(pattern.slice(0, -1)) : pattern === event;
}

/** The key of a counter without its window. */
function groupOf(key: string): string {
  return key.slice(0, key.lastIndexOf("\n"));
}

function keyOf(user: number, planId: string, groupId: string, windowStart: number): string {
  return `${user}\n${counterKey(planId, groupId, windowStart)}`;
}
