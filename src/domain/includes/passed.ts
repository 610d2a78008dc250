// Passed windows: what happened to a user's included credits since it was looked at last. The result is as if each window
// had been settled at its begin, but only what is live now gets rows, entries and messages: windows that began and ended
// without a call are walked through in memory, the first ones of a long time one by one, the others as rounds.

import { type Amount, larger, smaller } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { type CreditBalance, NOTIFIED } from "../state/credit.ts";
import { expireCredits } from "../credits/wallet.ts";
import { isLiveRollover, isSameItem, rolloverTerms } from "../credits/rollover.ts";
import { type BalanceTerms, issueBalance } from "../credits/issue.ts";
import { type Millis, type Window, windowAfter, windowsBetween } from "../values/period.ts";
import { anchorOf } from "../state/subscription.ts";
import { type IncludedBalance, recordsOf } from "./records.ts";
import {
  includersOf,
  isOfSource,
  isOfWindow,
  itemOf,
  type Source,
  sourcesOf,
  termsOf,
  windowOfSource,
} from "./sources.ts";

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
  /** The number of windows of the source that were walked through before, without a turn. */
  readonly walked: number;
}

/** A rollover without a turn since its begin. */
interface Rolled {
  readonly source: Source;
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

/**
 * The last windows of an item that several sources include, which are all walked through. They share a maximum, and their
 * rounds may differ: what they roll over by then does not depend on what was left out.
 */
const SHARED_WINDOWS = 5_000;

/** Walks through the windows of one user, in the order of their ends. What ends at one moment ends before anything begins. */
class Walk {
  readonly #draft: Draft;
  readonly #context: Context;
  readonly #now: Millis;
  #passing: Passing[] = [];
  #rolled: Rolled[] = [];
  /** Rollovers that had a turn, and end by now. */
  #ending: CreditBalance[] = [];
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
    const before = { ...this.#context, now: Math.min(first, this.#now - 1) };
    const sources = sourcesOf(includersOf(this.#draft, before), before.catalog);
    this.#sources = sources;
    this.#passing = records.map((record) => ({
      end: record.expiresAt as Millis,
      id: record.id,
      from: record.grantedAt,
      terms: record,
      source: sources.find((source) => isOfSource(record, source)) ?? null,
      walked: 0,
    }));
    this.#ending = [...rollovers];
    for (;;) {
      const at = Math.min(...this.#passing.map(({ end }) => end), ...this.#ending.map(endOf));
      if (at > this.#now) break;
      this.#endRollovers(at);
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

  #endRollovers(at: Millis): void {
    const over = this.#ending.filter((row) => row.expiresAt === at);
    if (over.length === 0) return;
    this.#ending = this.#ending.filter((row) => row.expiresAt !== at);
    for (const { id } of over) this.#expire(id, at);
    // They leave room for other rollovers of their item.
    this.#passing = this.#passing.map((passing) =>
      over.some((row) => isSameItem(row, passing.terms)) ? { ...passing, walked: 0 } : passing
    );
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
      const walked = passing.id === null ? passing.walked + 1 : 0;
      const skipped = this.#skipRounds(passing.terms, source, walked, at);
      const window = skipped === 0 ? windowOfSource(this.#draft, source, at) : later(source, at, skipped);
      const from = skipped === 0 ? at : window.start;
      const terms = termsOf(source, window);
      this.#passing.push({ end: window.end ?? Infinity, id: null, from, terms, source, walked });
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
    const rollover = source?.include.rollover ?? null;
    if (source === null || rollover === null) return;
    const until = later(source, at, rollover.periods - 1).end ?? Infinity;
    const record = id === null ? undefined : this.#draft.balance(id);
    if (record !== undefined && record.included !== null) {
      this.#draft.adoptBalance({ ...record, included: { ...record.included, rollsUntil: until } });
    }
    const left = record === undefined ? terms.initial : record.remaining;
    const amount = smaller(left, larger(rollover.max - this.#live(terms, at), 0n));
    if (amount > 0n) this.#rolled.push({ source, terms, amount, from: at, until });
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
   * Leaves whole rounds of unused windows out; returns how many windows. A rollover lives for a round. After two rounds with
   * no other change, all rollovers together are at their maximum, or each is a whole window's: then a window rolls over as
   * much as the one a round before.
   */
  #skipRounds(item: BalanceTerms, source: Source, walked: number, at: Millis): number {
    const { row, include: { period, rollover } } = source;
    const round = rollover?.periods ?? 1;
    if (walked <= 2 * round) return 0;
    const ends = this.#ending.filter((each) => isSameItem(each, item)).map(endOf);
    const isShared = this.#sources.some((each) => each !== source && isSameItem(itemOf(each), item));
    const left = windowsBetween(period, at, Math.min(this.#now, ...ends), anchorOf(row)) -
      (isShared ? SHARED_WINDOWS : 0);
    const skipped = Math.max(left - left % round, 0);
    if (skipped === 0) return 0;
    this.#rolled = this.#rolled.map((rolled) => {
      if (rolled.source !== source) return rolled;
      const [window, last] = [rolled.from, rolled.until].map((end) => later(source, end - 1, skipped));
      const [from, until] = [window?.end as Millis, last?.end as Millis];
      return { ...rolled, terms: termsOf(source, window as Window), from, until };
    });
    return skipped;
  }

  #expire(id: string, at: Millis): void {
    expireCredits(this.#draft, this.#draft.balance(id) as CreditBalance, at);
  }

  #issue(terms: BalanceTerms, at: Millis): void {
    issueBalance(this.#draft, terms, { ids: this.#context.ids, now: at });
  }
}

/** The window of a source so many windows after the one that contains a moment. */
function later({ row, include }: Source, at: Millis, windows: number): Window {
  return windowAfter(include.period, at, windows, anchorOf(row), row.startedAt);
}

function endOf({ expiresAt }: CreditBalance): Millis {
  return expiresAt ?? Infinity;
}
