// Virtual time: one queue of events, ordered by their moment and then by when they were made. Between two events all
// microtasks run, so a run is a pure function of its seed. The globals that the product takes time and chance from
// (timers, performance.now, Date.now, random bytes) lead here while a simulation runs.

import { Random } from "../model/random.ts";

const realImmediate = globalThis.setImmediate;

/** Who an event belongs to; what a dead owner still had to do never happens, and a paused one does it later. */
export interface Owner {
  readonly name: string;
  /** The machine: what its network can reach outlives a process. */
  readonly host: string;
  isAlive: boolean;
  pausedUntil: number;
  /** How far the machine's wall clock is ahead of the server's. */
  skewMs: number;
  /** For how long its monotonic clock was stopped, as while a machine sleeps. */
  sleptMs: number;
  /** What the process takes for the time; null for the server's calendar. */
  clock: (() => number) | null;
}

/** An owner that has just started. */
export function newOwner(name: string, host: string, skewMs: number): Owner {
  return { name, host, isAlive: true, pausedUntil: 0, skewMs, sleptMs: 0, clock: null };
}

/** Another owner of the same process, with a clock of its own: all else befalls both. */
export function ownerBeside(owner: Owner, name: string): Owner {
  return Object.assign(Object.create(owner), { name, clock: null });
}

/** Owns what no process owns: network, database server, clients. */
export const WORLD: Owner = newOwner("world", "world", 0);

interface Event {
  at: number;
  readonly no: number;
  owner: Owner;
  run: (() => void) | null;
  /** For intervals. */
  readonly everyMs: number | null;
  readonly isTimer: boolean;
}

/** The queue of a simulation. */
export class VirtualTime {
  /** Milliseconds since the start. */
  now = 0;
  /** Moves of the calendar beside the passing of time. */
  #jumpedMs = 0;
  /** The owner of the event that is running. */
  current: Owner = WORLD;
  readonly #startsAt: number;
  readonly #random: Random;
  readonly #timers = new Map<number, Event>();
  /** Timers that keep nothing alive: those of modules, which outlive a process of this world and the world itself. */
  readonly #idle = new Set<Event>();
  #heap: Event[] = [];
  #made = 0;

  constructor(startsAt: number, random: Random) {
    this.#startsAt = startsAt;
    this.#random = random;
  }

  /** The server's wall clock: passes with time, and leaps. */
  calendar(): number {
    return this.#startsAt + this.#jumpedMs + Math.floor(this.now);
  }

  /** How far the calendar has leapt, which no timer and no clock of a machine notices. */
  get leaptMs(): number {
    return this.#jumpedMs;
  }

  /** The server's wall clock without its leaps. */
  get unleapt(): number {
    return this.#startsAt + this.now;
  }

  /** The time as the running owner has it. */
  localCalendar(): number {
    return this.current.clock?.() ?? this.calendar();
  }

  /** Sets the wall clock ahead; timers are unaffected. */
  jump(ms: number): void {
    this.#jumpedMs += ms;
  }

  /** Looks at something with the clocks of an owner. */
  seenBy<T>(owner: Owner, look: () => T): T {
    const { current } = this;
    this.current = owner;
    try {
      return look();
    } finally {
      this.current = current;
    }
  }

  /** Runs something later. */
  after(ms: number, owner: Owner, run: () => void): () => void {
    return this.at(this.now + ms, owner, run);
  }

  /** Runs something at a moment. Of two with the same moment the one that was asked for first runs first. */
  at(moment: number, owner: Owner, run: () => void): () => void {
    const event = this.#add(moment, owner, run, null, false);
    return () => {
      event.run = null;
    };
  }

  /** Runs the next event and everything that follows from it at once; false when no event is left. */
  async step(): Promise<boolean> {
    this.#dropOver();
    const event = this.#pop();
    if (event === null) return false;
    this.now = Math.max(this.now, event.at);
    const { owner, run, everyMs } = event;
    if (owner.pausedUntil > this.now) {
      // Who wakes finds messages and timers waiting, and not always the timers first.
      event.at = owner.pausedUntil + (event.isTimer ? this.#random.whole(0, 3) : 0);
      this.#push(event);
      return true;
    }
    this.current = owner;
    if (this.#idle.delete(event)) event.run = null;
    run?.();
    await new Promise<void>((resolve) => realImmediate(() => resolve()));
    this.current = WORLD;
    if (everyMs !== null && event.run !== null) {
      event.at = this.now + everyMs;
      this.#push(event);
    }
    return true;
  }

  /** The moment of the next event. */
  get next(): number {
    this.#dropOver();
    return this.#heap[0]?.at ?? Infinity;
  }

  /** Takes away the first events as long as they will never happen: most timers are cleared before they are due. */
  #dropOver(): void {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (first.run !== null && first.owner.isAlive) return;
      this.#pop();
    }
  }

  /** Leads the globals here until the returned function is called. */
  install(): () => void {
    const random = this.#random;
    const real = {
      setTimeout: globalThis.setTimeout,
      clearTimeout: globalThis.clearTimeout,
      setInterval: globalThis.setInterval,
      clearInterval: globalThis.clearInterval,
      setImmediate: globalThis.setImmediate,
    };
    const { performance: { now: realNow }, Date: { now: realDate }, crypto } = globalThis;
    const { unrefTimer } = Deno;
    const { getRandomValues, randomUUID } = crypto;
    const timer = (everyMs: boolean) => (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
      const event = this.#add(
        this.now + Math.max(1, ms),
        this.current,
        () => run(...args),
        everyMs ? Math.max(1, ms) : null,
      );
      this.#timers.set(event.no, event);
      return event.no;
    };
    const clear = (id: unknown) => {
      const event = this.#timers.get(id as number);
      if (event !== undefined) event.run = null;
      this.#timers.delete(id as number);
    };
    Object.assign(globalThis, {
      setTimeout: timer(false),
      setInterval: timer(true),
      clearTimeout: clear,
      clearInterval: clear,
      setImmediate: (run: () => void) => void this.#add(this.now, this.current, run, null),
    });
    Deno.unrefTimer = (id) => {
      const event = this.#timers.get(id as number);
      if (event === undefined) return;
      event.owner = WORLD;
      this.#idle.add(event);
    };
    performance.now = () => this.now - this.current.sleptMs;
    Date.now = () => Math.floor(this.unleapt + this.current.skewMs);
    crypto.getRandomValues = ((bytes: Uint8Array) => {
      for (let index = 0; index < bytes.length; index++) bytes[index] = random.whole(0, 255);
      return bytes;
    }) as typeof crypto.getRandomValues;
    let uuids = 0;
    crypto.randomUUID = () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, "0")}` as const;
    return () => {
      this.#endIdle();
      Deno.unrefTimer = unrefTimer;
      Object.assign(globalThis, real);
      performance.now = realNow;
      Date.now = realDate;
      Object.assign(crypto, { getRandomValues, randomUUID });
    };
  }

  /** Lets idle timers end before the world does: a module that waits for one would wait for it in the next world. */
  #endIdle(): void {
    for (const event of this.#idle) {
      const { run } = event;
      event.run = null;
      run?.();
    }
  }

  #add(at: number, owner: Owner, run: () => void, everyMs: number | null, isTimer = true): Event {
    const event = { at, no: ++this.#made, owner, run, everyMs, isTimer };
    this.#push(event);
    return event;
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let place = heap.push(event) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(event, heap[parent] as Event)) break;
      heap[place] = heap[parent] as Event;
      place = parent;
    }
    heap[place] = event;
  }

  #pop(): Event | null {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined) return null;
    if (heap.length === 0) return first;
    let place = 0;
    while (true) {
      let child = place * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child += 1;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[place] = heap[child] as Event;
      place = child;
    }
    heap[place] = last;
    return first;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || a.at === b.at && a.no < b.no;
}
