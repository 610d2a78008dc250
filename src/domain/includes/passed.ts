// Passed windows: what happened to a user's included credits since it was looked at last. The result is as if each window
// had been settled at its begin, but only what is live now gets rows, entries and messages: windows that began and ended
// without a call are walked through in memory.

import { type Amount, larger, smaller } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { type CreditBalance, NOTIFIED } from "../state/credit.ts";
import { expireCredits } from "../credits/wallet.ts";
import { isLiveRollover, isSameItem, rolloverOf, rolloverTerms } from "../credits/rollover.ts";
import { type BalanceTerms, issueBalance } from "../credits/issue.ts";
import type { Millis, Period } from "../values/period.ts";
import { type IncludedBalance, recordsOf } from "./records.ts";
import { isOfSource, isOfWindow, type Source, sourcesOf, termsOf, windowOfSource } from "./sources.ts";

/** A window that ends, of a record or of a balance that was never looked at. */
interface Passing {
  readonly end: Millis;
  /** null for a window without a turn. */
  readonly id: string | null;
  /** When its balance is made: at the begin of the window, or later where a catalog changed the period. */
  readonly from: Millis;
  readonly terms: BalanceTerms;
  /** null where the plan no longer includes it. */
  readonly source: Source | null;
}

/** A rollover without a turn since its begin. */
interface Rolled {
  readonly terms: BalanceTerms;
  readonly amount: Amount;
  readonly from: Millis;
  readonly until: Millis;
}

/** Settles all windows and rollovers that ended up to a moment, under the subscriptions of before it. */
export function settlePassed(draft: Draft, context: Context): void {
  if (!context.catalog.hasIncludes && !draft.state.hasIncluded) return;
  const { now } = context;
  const due = recordsOf(draft).filter((record) => isDue(record, now));
  const rollovers = [...draft.balancesInOrder()].filter((row) =>
    row.origin === "rollover" && isDue(row, now)
  );
  if (due.length === 0 && rollovers.length === 0) return;
  new Walk(draft, context).run(due as IncludedBalance[], rollovers);
}

function isDue({ expiresAt, notified, origin, included }: CreditBalance, now: Millis): boolean {
  const isOpen = origin === "rollover" || included?.state === "open";
  return isOpen && expiresAt !== null && expiresAt <= now && (notified & NOTIFIED.expired) === 0;
}

/** Most windows that one look walks through; of a longer time a whole number of rounds of rollovers is left out. */
const WINDOWS_MAX = 5_000;

/** How long windows are that all have one length, in milliseconds. */
const LENGTHS: Readonly<Partial<Record<Period["type"], number>>> = {
  hourly: 3_600_000,
  daily: 86_400_000,
  weekly: 604_800_000,
};

/** Walks through the windows of one user, in the order of their ends. What ends at one moment ends before anything begins. */
class Walk {
  readonly #draft: Draft;
  readonly #context: Context;
  readonly #now: Millis;
  #passing: Passing[] = [];
  #rolled: Rolled[] = [];
  /** What is included, in the order in which a change of plan would give it. */
  #sources: readonly Source[] = [];

  constructor(draft: Draft, context: Context) {
    this.#draft = draft;
    this.#context = context;
    this.#now = context.now;
  }

  run(records: readonly IncludedBalance[], rollovers: readonly CreditBalance[]): void {
    const first = Math.min(...records.map(({ expiresAt }) => expiresAt ?? Infinity), this.#now);
    // Nothing about the subscriptions changed since the first of these windows ended.
    const sources = sourcesOf(this.#draft, { ...this.#context, now: Math.min(first, this.#now - 1) });
    this.#sources = sources;
    this.#passing = records.map((record) => ({
      end: record.expiresAt as Millis,
      id: record.id,
      from: record.grantedAt,
      terms: record,
      source: sources.find((source) => isOfSource(record, source)) ?? null,
    }));
    const ends = rollovers.map(({ id, expiresAt }) => ({ id, at: expiresAt as Millis }));
    for (;;) {
      const at = Math.min(...this.#passing.map(({ end }) => end), ...ends.map((end) => end.at));
      if (at > this.#now) break;
      for (const { id } of ends.filter((end) => end.at === at)) this.#expire(id, at);
      ends.splice(0, ends.length, ...ends.filter((end) => end.at > at));
      this.#rolled = this.#rolled.filter(({ until }) => until > at);
      this.#endWindows(at);
    }
    for (const { terms, amount, from, until } of this.#rolled) {
      if (until > this.#now) this.#issue(rolloverTerms(terms, amount, until), from);
    }
    for (const passing of this.#inOrder(this.#passing)) {
      const { id, from, terms } = passing;
      if (id === null && from < this.#now && !this.#isKnown(passing)) this.#issue(terms, from);
    }
  }

  #endWindows(at: Millis): void {
    const over = this.#inOrder(this.#passing.filter(({ end }) => end === at));
    this.#passing = this.#passing.filter(({ end }) => end > at);
    for (const { id } of over) if (id !== null) this.#expire(id, at);
    for (const passing of over) {
      this.#roll(passing, at);
      const { source } = passing;
      // A trial includes credits in one window.
      if (source === null || source.isTrial) continue;
      const from = this.#skipped(source, at);
      const window = windowOfSource(this.#draft, source, from);
      const terms = termsOf(source, window);
      this.#passing.push({ end: window.end ?? Infinity, id: null, from, terms, source });
    }
  }

  /** Whether a window that began before has its balance: another period took over from it in between. */
  #isKnown({ source, terms: { included } }: Passing): boolean {
    if (source === null || included === null) return false;
    const window = { start: included.windowStart, end: included.windowEnd };
    return recordsOf(this.#draft).some((record) => isOfWindow(record, source, window));
  }

  /**
   * The order in which windows of one moment end, and the next ones begin. It does not depend on earlier looks: windows
   * share the room of their rollovers, and what is alike in all else is used in the order of its making.
   */
  #inOrder(passing: readonly Passing[]): Passing[] {
    const placeOf = ({ source }: Passing) =>
      source === null ? this.#sources.length : this.#sources.indexOf(source);
    return passing.toSorted((a, b) => placeOf(a) - placeOf(b));
  }

  /** Lets what is left of a window go on, as far as the maximum of live rollovers allows. */
  #roll({ id, terms, source }: Passing, at: Millis): void {
    const planId = terms.included?.planId ?? "";
    const rollover = source === null ? null : rolloverOf(this.#context.catalog, planId, terms.packId);
    if (source === null || rollover === null) return;
    let until = at;
    for (let windows = 0; windows < rollover.periods; windows++) {
      until = windowOfSource(this.#draft, source, until).end ?? Infinity;
    }
    const record = id === null ? undefined : this.#draft.balance(id);
    if (record !== undefined && record.included !== null) {
      this.#draft.adoptBalance({ ...record, included: { ...record.included, rollsUntil: until } });
    }
    const left = record === undefined ? terms.initial : record.remaining;
    const amount = smaller(left, larger(rollover.max - this.#live(terms, at), 0n));
    if (amount > 0n) this.#rolled.push({ terms, amount, from: at, until });
  }

  /** The sum of the live rollovers of a pack item. */
  #live(item: BalanceTerms, at: Millis): Amount {
    let sum = 0n;
    for (const row of this.#draft.balancesInOrder()) {
      if (isLiveRollover(row, item, at)) sum += row.remaining;
    }
    for (const { terms, amount } of this.#rolled) if (isSameItem(terms, item)) sum += amount;
    return sum;
  }

  /**
   * The begin of the next window to walk through. After a while of unused windows rollovers come round in as many windows
   * as they live, so whole rounds can be left out of a time that is very long.
   */
  #skipped({ include: { rollover, period } }: Source, at: Millis): Millis {
    const length = LENGTHS[period.type];
    if (length === undefined) return at;
    const more = Math.floor((this.#now - at) / length) - WINDOWS_MAX;
    if (more <= 0) return at;
    const rounds = Math.floor(more / (rollover?.periods ?? 1));
    return at + rounds * (rollover?.periods ?? 1) * length;
  }

  #expire(id: string, at: Millis): void {
    expireCredits(this.#draft, this.#draft.balance(id) as CreditBalance, at);
  }

  #issue(terms: BalanceTerms, at: Millis): void {
    issueBalance(this.#draft, terms, { ids: this.#context.ids, now: at });
  }
}
