// The open holds of one user by expiry: a binary heap that answers "what is due" without changing anything, so
// that a decision can ask and only `apply` acts. Settled holds stay as stale entries until they surface or make
// up half of the heap.

import type { Millis } from "domain/period.ts";

interface Entry {
  readonly at: Millis;
  readonly id: string;
}

/** Whether an id still names an open hold. */
type IsOpen = (id: string) => boolean;

const COMPACT_FROM = 1024;

/** A heap of (expiry, reservation id); the earliest entry is always an open hold. */
export class ExpiryQueue {
  #heap: Entry[] = [];

  /** The earliest expiry of an open hold, or null. */
  get next(): Millis | null {
    return this.#heap[0]?.at ?? null;
  }

  /** Adds a hold. */
  add(at: Millis, id: string): void {
    const heap = this.#heap;
    let place = heap.length;
    const entry = { at, id };
    heap.push(entry);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = heap[parent] as Entry;
      if (above.at <= at) break;
      heap[place] = above;
      place = parent;
    }
    heap[place] = entry;
  }

  /** Drops settled entries from the top, and all of them once they outnumber the open ones. */
  trim(isOpen: IsOpen, openCount: number): void {
    if (this.#heap.length > COMPACT_FROM && this.#heap.length > openCount * 2) {
      this.#heap = this.#heap.filter((entry) => isOpen(entry.id)).sort((a, b) => a.at - b.at);
      return;
    }
    while (this.#heap.length > 0 && !isOpen((this.#heap[0] as Entry).id)) this.#removeTop();
  }

  /** The ids of open holds that lapse at or before a moment, earliest first, then by id. */
  due(now: Millis, isOpen: IsOpen): Entry[] {
    const found: Entry[] = [];
    const next = [0];
    for (let place = next.pop(); place !== undefined; place = next.pop()) {
      const entry = this.#heap[place];
      if (entry === undefined || entry.at > now) continue;
      if (isOpen(entry.id)) found.push(entry);
      next.push(place * 2 + 1, place * 2 + 2);
    }
    return found.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  }

  /** The earliest expiry of an open hold for which the test holds, or null. */
  earliest(isOpen: IsOpen): Millis | null {
    let best = Infinity;
    const next = [0];
    for (let place = next.pop(); place !== undefined; place = next.pop()) {
      const entry = this.#heap[place];
      if (entry === undefined || entry.at >= best) continue;
      if (isOpen(entry.id)) best = entry.at;
      else next.push(place * 2 + 1, place * 2 + 2);
    }
    return best === Infinity ? null : best;
  }

  #removeTop(): void {
    const heap = this.#heap;
    const last = heap.pop() as Entry;
    if (heap.length === 0) return;
    let place = 0;
    while (true) {
      let child = place * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1] as Entry).at < (heap[child] as Entry).at) child += 1;
      const below = heap[child] as Entry;
      if (below.at >= last.at) break;
      heap[place] = below;
      place = child;
    }
    heap[place] = last;
  }
}
