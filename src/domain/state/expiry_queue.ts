// The open holds of one user by expiry: a binary heap. Reading it changes nothing, so a decision can ask what is due, and
// only `apply` changes the heap. A prolonged hold is added again, so an entry is stale once its hold lapses at another
// time. Stale entries stay in the heap until they reach its top or make up half of it. Times and ids are in two plain
// arrays: a hold then costs no object, and comparisons read plain numbers.

import type { Millis } from "../values/period.ts";

interface Entry {
  readonly at: Millis;
  readonly id: string;
}

/** Whether an id still names an open hold that lapses at this time. */
type IsOpen = (id: string, at: Millis) => boolean;

const COMPACT_FROM = 1024;

/** A heap of (expiry, reservation id); the earliest entry is always that of an open hold. */
export class ExpiryQueue {
  #times: Millis[] = [];
  #ids: string[] = [];

  /** The earliest expiry of an open hold, or null. */
  get next(): Millis | null {
    return this.#times[0] ?? null;
  }

  /** Adds a hold, or its later expiry. */
  add(at: Millis, id: string): void {
    const times = this.#times;
    const ids = this.#ids;
    let place = times.length;
    times.push(at);
    ids.push(id);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = times[parent] as Millis;
      if (above <= at) return;
      times[place] = above;
      ids[place] = ids[parent] as string;
      times[parent] = at;
      ids[parent] = id;
      place = parent;
    }
  }

  /** Drops stale entries from the top, and all of them once they outnumber the open holds. */
  trim(isOpen: IsOpen, openCount: number): void {
    if (this.#ids.length > COMPACT_FROM && this.#ids.length > openCount * 2) {
      const open = this.#entries().filter(({ at, id }) => isOpen(id, at)).sort((a, b) => a.at - b.at);
      this.#times = open.map(({ at }) => at);
      this.#ids = open.map(({ id }) => id);
      return;
    }
    while (this.#ids.length > 0 && !isOpen(this.#ids[0] as string, this.#times[0] as number)) {
      this.#removeTop();
    }
  }

  /** The ids of open holds that lapse at or before a moment, earliest first, then by id. */
  due(now: Millis, isOpen: IsOpen): Entry[] {
    const found: Entry[] = [];
    const next = [0];
    for (let place = next.pop(); place !== undefined; place = next.pop()) {
      const at = this.#times[place];
      if (at === undefined || at > now) continue;
      const id = this.#ids[place] as string;
      if (isOpen(id, at)) found.push({ at, id });
      next.push(place * 2 + 1, place * 2 + 2);
    }
    return found.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  }

  /** Whether more than so many entries, stale ones included, lapse at or before a moment. */
  hasMore(now: Millis, most: number): boolean {
    let count = 0;
    const next = [0];
    for (let place = next.pop(); place !== undefined; place = next.pop()) {
      const at = this.#times[place];
      if (at === undefined || at > now) continue;
      if (++count > most) return true;
      next.push(place * 2 + 1, place * 2 + 2);
    }
    return false;
  }

  /** The times of all entries, stale ones included, that lapse at or before a moment, earliest first. */
  timesUpTo(now: Millis): Float64Array {
    return Float64Array.from(this.#times.filter((at) => at <= now)).sort();
  }

  /** The earliest expiry of an open hold for which the test holds, or null. */
  earliest(isOpen: IsOpen): Millis | null {
    let best = Infinity;
    const next = [0];
    for (let place = next.pop(); place !== undefined; place = next.pop()) {
      const at = this.#times[place];
      if (at === undefined || at >= best) continue;
      if (isOpen(this.#ids[place] as string, at)) best = at;
      else next.push(place * 2 + 1, place * 2 + 2);
    }
    return best === Infinity ? null : best;
  }

  #entries(): Entry[] {
    return this.#times.map((at, place) => ({ at, id: this.#ids[place] as string }));
  }

  #removeTop(): void {
    const times = this.#times;
    const ids = this.#ids;
    const at = times.pop() as Millis;
    const id = ids.pop() as string;
    if (times.length === 0) return;
    let place = 0;
    while (true) {
      let child = place * 2 + 1;
      if (child >= times.length) break;
      if (child + 1 < times.length && (times[child + 1] as Millis) < (times[child] as Millis)) child += 1;
      const below = times[child] as Millis;
      if (below >= at) break;
      times[place] = below;
      ids[place] = ids[child] as string;
      place = child;
    }
    times[place] = at;
    ids[place] = id;
  }
}
