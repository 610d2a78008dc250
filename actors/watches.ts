// Watches: callers that wait for the next state of a reading of a user, such as its usage. A turn that changes a user marks
// its watches as stale, and the reading is then made again, by a call like any other. So a caller never sees a state that is
// not durable, and a watch costs a turn one lookup in a map. Changes by time or by a catalog are found by one regular look
// at all watches.
//
// A watch holds no door: it enters its cell for each reading alone. When the cell goes, waiting callers get an error and ask
// the next owner. Each wait names the state that its caller has seen, so no state has to be kept between two waits, or
// moved with the cell.

import type { UserKey } from "../src/domain/values/ids.ts";
import type { Catalog } from "../src/domain/catalog/catalog.ts";
import type { Millis } from "../src/domain/values/period.ts";
import { WATCH_LIMITS } from "../src/process/limits.ts";
import type { Realm } from "./call.ts";
import { CellGone, Unavailable } from "./port.ts";
import { visit, type VisitedTerm } from "./visit.ts";

/** Identifies the state of a reading. */
export interface Mark {
  /** The canonical user's id. */
  readonly id: string;
  /** Null for a user without a row: until a row is stored, the key can change between readings. */
  readonly key: UserKey | null;
  /** Equal for equal texts, apart from what leaves with time. */
  readonly digest: string;
  /** Parts that leave with time, such as slots of rates. A state that only lacks some of them is not a new one. */
  readonly passing: readonly string[];
}

/** A reading of a user. */
export interface Reading extends Mark {
  readonly text: string;
  /** When time alone will change it; null for never. */
  readonly changesAt: Millis | null;
  /** The ids of the users above, whose subscriptions it depends on too. */
  readonly dependsOn: readonly string[];
}

/** A watched reading. */
export interface Watched {
  readonly realm: Realm;
  /** The canonical user's id. */
  readonly id: string;
  /** Distinguishes the readings of one user. */
  readonly variant: string;
  /** Makes the reading; called inside the cell. */
  readonly read: () => Promise<Reading>;
}

/** The result of a wait: a new state, no change within the time, or the end of the user. */
export type Next =
  | { readonly kind: "state"; readonly reading: Reading }
  | { readonly kind: "same" }
  | { readonly kind: "merged" | "erased" };

/** Compares a reading with the state that a caller has seen; null if it is the same. */
export function nextAfter(seen: Mark, reading: Reading): Next | null {
  if (reading.id !== seen.id) return { kind: "merged" };
  if (seen.key !== null && reading.key !== seen.key) return { kind: "erased" };
  return isSame(seen, reading) ? null : { kind: "state", reading };
}

/** Whether a state differs from the seen one at most by what has left with time. */
function isSame(seen: Pick<Mark, "digest" | "passing">, next: Pick<Mark, "digest" | "passing">): boolean {
  return next.digest === seen.digest && next.passing.every((part) => seen.passing.includes(part));
}

interface Waiting {
  readonly seen: Mark;
  readonly until: number;
  readonly resolve: (next: Next) => void;
  readonly reject: (reason: unknown) => void;
}

interface Watch extends Watched {
  readonly waiting: Set<Waiting>;
  /** The last reading; null before the first. */
  last: Omit<Reading, "text"> | null;
  catalog: Catalog | null;
  readAt: number;
  isReading: boolean;
  /** Whether the user may have changed since the last reading began. */
  isStale: boolean;
}

const SAME: Next = { kind: "same" };

/** All watches of a term. */
export class Watches {
  readonly #term: VisitedTerm;
  /** By realm, then by the canonical user's id, then by variant. */
  readonly #byRealm = new Map<number, Map<string, Map<string, Watch>>>();
  readonly #stale = new Set<Watch>();
  #size = 0;
  #staleTimer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer above goes off; Infinity without one. */
  #staleAt = Infinity;
  #lookTimer: ReturnType<typeof setInterval> | null = null;

  constructor(term: VisitedTerm) {
    this.#term = term;
  }

  /** Watches in memory. */
  get size(): number {
    return this.#size;
  }

  /**
   * Resolves with the first state that differs from the seen one, or with "same" after a bounded time.
   *
   * @throws CellGone if the cell is not here any more
   * @throws Unavailable if the reading failed, or too many different ones of the user are watched
   */
  next(watched: Watched, seen: Mark): Promise<Next> {
    if (!this.#term.isServing) return Promise.reject(new Unavailable("The term has ended"));
    const { realm: { realm }, id, variant } = watched;
    const variants = this.#byRealm.get(realm)?.get(id);
    if (variants?.has(variant) === false && variants.size >= WATCH_LIMITS.variantsMax) {
      return Promise.reject(new Unavailable("Too many different readings of this user are watched"));
    }
    const watch = this.#of(watched);
    return new Promise((resolve, reject) => {
      watch.waiting.add({ seen, resolve, reject, until: performance.now() + WATCH_LIMITS.waitMs });
      const { last } = watch;
      // If another caller that has seen the same state waits already, no reading is needed.
      const isKnown = last !== null && last.key === seen.key && isSame(seen, last);
      if (!isKnown) this.#markStale(watch);
    });
  }

  /** Marks a user as changed. */
  touch(realm: number, id: string): void {
    if (this.#size === 0) return;
    const watches = this.#byRealm.get(realm)?.get(id);
    if (watches === undefined) return;
    for (const watch of watches.values()) this.#markStale(watch);
  }

  /**
   * Marks the users below a user as changed. All watches of the realm are looked at: its subscriptions and its parent seldom
   * change.
   */
  touchBelow(realm: number, id: string): void {
    for (const watches of this.#byRealm.get(realm)?.values() ?? []) {
      for (const watch of watches.values()) {
        // A reading that runs may have been made before the change.
        if (watch.isReading || watch.last?.dependsOn.includes(id) === true) this.#markStale(watch);
      }
    }
  }

  /** Ends the watches of an erased user. A later wait notices the erasure by the user's key. */
  endErased(realm: number, id: string): void {
    for (const watch of this.#byRealm.get(realm)?.get(id)?.values() ?? []) {
      for (const { resolve } of watch.waiting) resolve({ kind: "erased" });
      watch.waiting.clear();
      this.#remove(watch);
    }
  }

  /** Ends the watches of some realms, because their cell has gone. */
  dropRealms(realms: Iterable<number>): void {
    for (const realm of realms) {
      for (const watches of this.#byRealm.get(realm)?.values() ?? []) {
        for (const watch of watches.values()) this.#fail(watch, new CellGone());
      }
    }
  }

  /** Watches in memory of a realm's users. */
  sizeOf(realm: number): number {
    return this.#byRealm.get(realm)?.size ?? 0;
  }

  /** Ends all watches with the term. */
  close(fault: Error): void {
    for (const watch of this.#all()) this.#fail(watch, fault);
    clearTimeout(this.#staleTimer);
  }

  *#all(): Iterable<Watch> {
    for (const byId of this.#byRealm.values()) {
      for (const watches of byId.values()) yield* watches.values();
    }
  }

  #of(watched: Watched): Watch {
    const { realm, id, variant } = watched;
    let byId = this.#byRealm.get(realm.realm);
    if (byId === undefined) this.#byRealm.set(realm.realm, byId = new Map());
    let watches = byId.get(id);
    if (watches === undefined) byId.set(id, watches = new Map());
    let watch = watches.get(variant);
    if (watch === undefined) {
      watch = {
        ...watched,
        waiting: new Set(),
        last: null,
        catalog: null,
        readAt: -Infinity,
        isReading: false,
        isStale: false,
      };
      watches.set(variant, watch);
      this.#size += 1;
      this.#lookTimer ??= setInterval(() => this.#look(), WATCH_LIMITS.lookEveryMs);
    }
    return watch;
  }

  /** Forgets a watch without waiting callers. */
  #remove(watch: Watch): void {
    const { realm, id, variant } = watch;
    const byId = this.#byRealm.get(realm.realm);
    const watches = byId?.get(id);
    if (byId === undefined || watches?.get(variant) !== watch) return;
    watches.delete(variant);
    if (watches.size === 0) byId.delete(id);
    if (byId.size === 0) this.#byRealm.delete(realm.realm);
    this.#stale.delete(watch);
    this.#size -= 1;
    if (this.#size > 0 || this.#lookTimer === null) return;
    clearInterval(this.#lookTimer);
    this.#lookTimer = null;
  }

  #markStale(watch: Watch): void {
    watch.isStale = true;
    if (watch.isReading) return;
    this.#stale.add(watch);
    this.#readAt(watch.readAt + WATCH_LIMITS.readEveryMs);
  }

  /** Schedules readings. They begin in an event loop turn of their own, after the call that made a change. */
  #readAt(at: number): void {
    if (at >= this.#staleAt) return;
    clearTimeout(this.#staleTimer);
    this.#staleAt = at;
    this.#staleTimer = setTimeout(() => this.#readStale(), Math.max(0, at - performance.now()));
  }

  /** Makes the stale readings; a reading that was made just now waits a little. */
  #readStale(): void {
    this.#staleAt = Infinity;
    const now = performance.now();
    let nextAt = Infinity;
    for (const watch of this.#stale) {
      const at = watch.readAt + WATCH_LIMITS.readEveryMs;
      if (at > now) nextAt = Math.min(nextAt, at);
      else {
        this.#stale.delete(watch);
        void this.#read(watch, now);
      }
    }
    if (nextAt < Infinity) this.#readAt(nextAt);
  }

  async #read(watch: Watch, now: number): Promise<void> {
    watch.isReading = true;
    watch.isStale = false;
    watch.readAt = now;
    const { realm } = watch;
    watch.catalog = realm.catalog;
    try {
      const reading = await visit(this.#term, realm.cell, watch.read);
      if (reading === null) throw new CellGone();
      if (!this.#term.isServing) throw new Unavailable("The term has ended");
      this.#tell(watch, reading);
    } catch (error) {
      this.#fail(watch, error);
    } finally {
      watch.isReading = false;
    }
    if (watch.waiting.size === 0) this.#remove(watch);
    else if (watch.isStale) this.#markStale(watch);
  }

  #tell(watch: Watch, reading: Reading): void {
    const { text: _, ...last } = reading;
    watch.last = last;
    for (const waiting of watch.waiting) {
      const next = nextAfter(waiting.seen, reading);
      if (next === null) continue;
      watch.waiting.delete(waiting);
      waiting.resolve(next);
    }
  }

  #fail(watch: Watch, error: unknown): void {
    for (const { reject } of watch.waiting) reject(error);
    watch.waiting.clear();
    this.#remove(watch);
  }

  /** Finds readings that time or a catalog changed, cells that have gone, and callers that have waited long enough. */
  #look(): void {
    const now = performance.now();
    for (const watch of this.#all()) {
      const { realm, last, waiting } = watch;
      if (!this.#term.doors.isHere(realm.cell)) {
        this.#fail(watch, new CellGone());
        continue;
      }
      // Callers are in the order of their arrival.
      for (const one of waiting) {
        if (one.until > now) break;
        waiting.delete(one);
        one.resolve(SAME);
      }
      if (waiting.size === 0) {
        if (!watch.isReading) this.#remove(watch);
      } else if (last !== null && !watch.isStale && this.#hasLapsed(watch, last.changesAt)) {
        this.#markStale(watch);
      }
    }
  }

  #hasLapsed({ realm, catalog }: Watch, changesAt: Millis | null): boolean {
    return realm.catalog !== catalog || changesAt !== null && realm.now() >= changesAt;
  }
}
