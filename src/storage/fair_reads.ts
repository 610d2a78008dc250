// Reads of tables, shared out among apps. A read may take seconds, and one app may ask for many at a time: each app has a
// share of the connections, and what it asks beyond that waits behind its own reads alone. The service's own reads, those
// of no app, always have a connection left.

import { Unavailable } from "../../actors/port.ts";
import { READ_LIMITS } from "../process/connection_limits.ts";
import type { Database } from "./database.ts";

/** Reads of the service itself. */
const OWN = "";

interface Waiting {
  readonly begin: () => void;
  readonly timer: ReturnType<typeof setTimeout> | null;
}

/** The reads of one app, or of the service itself. */
interface Share {
  running: number;
  readonly waiting: Set<Waiting>;
}

/** Counts of reads, for metrics. */
interface ReadCounts {
  /** Reads that were refused, because too many of their app ran and waited. */
  readsRefused: number;
}

/** The reads of one process. */
export class FairReads {
  readonly #database: Database;
  readonly #counts: ReadCounts;
  /** Shares with reads, in the order in which the next ones begin. */
  readonly #shares = new Map<string, Share>();
  #running = 0;
  #runningOfApps = 0;
  #waiting = 0;

  constructor(database: Database, counts: ReadCounts) {
    this.#database = database;
    this.#counts = counts;
  }

  /** Reads that run. */
  get running(): number {
    return this.#running;
  }

  /** Reads that wait for a connection. */
  get waiting(): number {
    return this.#waiting;
  }

  /** The database as calls of an app use it; null for the service itself. */
  of(appId: string | null): Database {
    const database = this.#database;
    return {
      ...database,
      query: (text, params) => this.#run(appId ?? OWN, () => database.query(text, params)),
      transaction: (work) => this.#run(appId ?? OWN, () => database.transaction(work)),
    };
  }

  async #run<T>(owner: string, read: () => Promise<T>): Promise<T> {
    let share = this.#shares.get(owner);
    if (share === undefined) this.#shares.set(owner, share = { running: 0, waiting: new Set() });
    if (!this.#mayBegin(owner, share)) await this.#wait(owner, share);
    else this.#count(owner, share, 1);
    try {
      return await read();
    } finally {
      this.#count(owner, share, -1);
      if (share.running === 0 && share.waiting.size === 0) this.#shares.delete(owner);
      this.#beginNext();
    }
  }

  #mayBegin(owner: string, share: Share): boolean {
    if (this.#running >= READ_LIMITS.connections || share.running >= READ_LIMITS.ofAppMax) return false;
    return owner === OWN || this.#runningOfApps < READ_LIMITS.ofAppsMax;
  }

  #count(owner: string, share: Share, one: 1 | -1): void {
    share.running += one;
    this.#running += one;
    if (owner !== OWN) this.#runningOfApps += one;
  }

  /** Waits for a connection; it is counted as running then. The service's own reads wait as long as it takes. */
  #wait(owner: string, share: Share): Promise<void> {
    if (owner !== OWN && share.waiting.size >= READ_LIMITS.waitingOfAppMax) {
      this.#counts.readsRefused += 1;
      return Promise.reject(tooMany());
    }
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#waiting -= 1;
        share.waiting.delete(waiting);
        if (waiting.timer !== null) clearTimeout(waiting.timer);
      };
      const begin = () => {
        end();
        this.#count(owner, share, 1);
        resolve();
      };
      const giveUp = () => {
        end();
        this.#counts.readsRefused += 1;
        reject(tooMany());
      };
      const timer = owner === OWN ? null : setTimeout(giveUp, READ_LIMITS.waitMs);
      const waiting: Waiting = { begin, timer };
      share.waiting.add(waiting);
      this.#waiting += 1;
    });
  }

  /** Begins waiting reads while there is room, one of each app in turn. */
  #beginNext(): void {
    let isFound = true;
    while (isFound) {
      isFound = false;
      for (const [owner, share] of this.#shares) {
        const [first] = share.waiting;
        if (first === undefined || !this.#mayBegin(owner, share)) continue;
        first.begin();
        // Behind all others.
        this.#shares.delete(owner);
        this.#shares.set(owner, share);
        isFound = true;
        break;
      }
    }
  }
}

function tooMany(): Unavailable {
  return new Unavailable("Too many reads of this app are running; retry later");
}
