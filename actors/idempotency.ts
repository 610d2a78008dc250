// First answers by idempotency key, for 24 hours: the same call again gets the first answer, a twin in flight waits for it,
// and another call under the same key is refused. A first answer is kept in one batch with the changes of its turn, so
// both are durable or neither. Answers of 400, 401, 403 and 5xx, and answers with a secret, are not kept.

import { FirstAnswers, nameOf, type RecentAnswer } from "./first_answers.ts";
import { FreshKeys } from "./fresh_keys.ts";
import type { Batch } from "./gate.ts";
import { Loader } from "./loader.ts";
import type { IdempotencyRow, Journal, UserStore } from "./port.ts";
import type { UserKey } from "../src/domain/values/ids.ts";
import type { Millis } from "../src/domain/values/period.ts";
import { RUNTIME_LIMITS, SWEEP_LIMITS } from "../src/process/limits.ts";

/** An answer on the wire: its status and its JSON text. */
export interface WireAnswer {
  readonly status: number;
  readonly body: string;
}

/** A key within its realm, with a hash that identifies the call. */
export interface IdempotentCall {
  readonly realm: number;
  readonly key: string;
  /**
   * A hash of path and body as sent. For a call that may also be sent as an event of a batch: that hash, a dot, and a hash
   * of path and JSON value; from a batch, only the dot and the second hash.
   */
  readonly requestHash: string;
}

/** Whether two calls under one key are the same: by their bytes if both have that hash, else by their values. */
function isSameCall(one: IdempotentCall, other: IdempotentCall): boolean {
  if (one.requestHash === other.requestHash) return true;
  const [text, value] = one.requestHash.split(".");
  const [otherText, otherValue] = other.requestHash.split(".");
  if (text !== "" && otherText !== "") return text === otherText;
  return value !== undefined && value === otherValue;
}

/** The first answer to a call. */
export type FirstAnswer = IdempotentCall & WireAnswer & {
  /** Whether no row of the key can exist; absent where one may. */
  readonly isNew?: boolean;
};

/** The outcome of an idempotent call: the answer of its first run, or the kept one. */
export type IdempotentOutcome<First extends WireAnswer> =
  | {
    readonly kind: "first";
    readonly answer: First;
    /** Whether it was not certain that the key is new, so that it was looked up. */
    readonly wasLookedUp: boolean;
  }
  | KnownOutcome;

/** The outcome of a call that does not run, because the first answer under its key is known. */
export type KnownOutcome =
  | { readonly kind: "replayed"; readonly answer: WireAnswer }
  | { readonly kind: "conflict" };

/** A known first answer; its batch is null once the tables have it. */
type Known = RecentAnswer | { readonly row: IdempotencyRow; readonly batch: null };

/** A call in flight, with its place among the calls of its key until it ends. */
export class Flight {
  readonly call: IdempotentCall;
  /** The key, unique over all realms. */
  readonly name: string;
  /** Resolves when the call before it under the key has ended; null for the first call. */
  readonly before: Promise<void> | null;
  /** The first answer under the key, null for none; undefined before the lookup. */
  known: Known | null | undefined = undefined;
  /** Whether the key was never used before. */
  isNew = false;
  /** Created when a twin waits, which is rare. */
  #end: PromiseWithResolvers<void> | null = null;

  constructor(call: IdempotentCall, name: string, before: Promise<void> | null) {
    this.call = call;
    this.name = name;
    this.before = before;
  }

  get ended(): Promise<void> {
    return (this.#end ??= Promise.withResolvers()).promise;
  }

  end(): void {
    this.#end?.resolve();
  }
}

/** Runs one call a key at a time, and keeps first answers in memory until the tables have them. */
export class Idempotency {
  readonly #flights = new Map<string, Flight>();
  readonly #recent: FirstAnswers;
  readonly #fresh = new FreshKeys();
  readonly #loader: Loader<{ realm: number; key: string }, IdempotencyRow | null>;
  readonly #realNow: () => Millis;

  constructor(
    store: Pick<UserStore, "loadIdempotency">,
    journal: Pick<Journal, "answerOf">,
    realNow: () => Millis,
  ) {
    this.#recent = new FirstAnswers(journal);
    this.#realNow = realNow;
    this.#loader = new Loader(
      (keys) => store.loadIdempotency(keys),
      RUNTIME_LIMITS.loadUsersMax,
      RUNTIME_LIMITS.loadQueueMax,
    );
  }

  /**
   * Makes the row of a first answer.
   *
   * @param userKey the user with whom it is erased; null for an answer about no stored user
   */
  keep({ realm, key, requestHash, status, body }: FirstAnswer, userKey: UserKey | null): IdempotencyRow {
    return { realm, key, requestHash, status, body, userKey, at: this.#realNow() };
  }

  /** Remembers a first answer, the last change of a batch, until the batch is in the tables. */
  remember({ realm }: IdempotentCall, batch: Batch): void {
    this.#recent.add(realm, batch);
  }

  /** Forgets the first answers of erased users. */
  forget(users: readonly UserKey[]): void {
    this.#recent.forget(users);
  }

  /** Forgets, in steps, what memory has of realms that another node owns from now on. */
  *dropRealms(realms: ReadonlySet<number>): Iterable<void> {
    for (const realm of realms) this.#fresh.drop(realm);
    yield* this.#recent.dropRealms(realms);
  }

  /** What memory has of a realm: first answers, and prefixes of keys. */
  sizeOf(realm: number): number {
    return this.#recent.sizeOf(realm) + this.#fresh.sizeOf(realm);
  }

  /** Returns what the keys of new calls of a realm should begin with: such a key needs no look-up while it is new. */
  keyPrefixOf(realm: number): string {
    return this.#fresh.prefixOf(realm);
  }

  /**
   * Runs a call unless its first answer is known or in flight. Calls of one key run in the order of their arrival. All
   * calls of a batch arrive at once, so two batches with the same keys never wait for each other.
   */
  async run<First extends WireAnswer>(
    call: IdempotentCall,
    first: () => Promise<First>,
  ): Promise<IdempotentOutcome<First>> {
    const flight = this.begin(call);
    return flight === null ? { kind: "conflict" } : await this.runBegun(flight, first);
  }

  /**
   * Gives a call its place among the calls of its key. `end` or `runBegun` must follow.
   *
   * @returns null if another call is in flight under the key: a conflict
   */
  begin(call: IdempotentCall): Flight | null {
    const name = nameOf(call);
    const before = this.#flights.get(name);
    if (before !== undefined && !isSameCall(before.call, call)) return null;
    const flight = new Flight(call, name, before?.ended ?? null);
    // Each call passes here before it is decided, so a key without a mark has no first answer.
    if (this.#fresh.take(call.realm, call.key)) {
      flight.known = null;
      flight.isNew = true;
    }
    this.#flights.set(name, flight);
    return flight;
  }

  /** Ends a call that has begun; the next one under its key can run. */
  end(flight: Flight): void {
    if (this.#flights.get(flight.name) === flight) this.#flights.delete(flight.name);
    flight.end();
  }

  /** Runs a call that has begun, and ends it. */
  async runBegun<First extends WireAnswer>(
    flight: Flight,
    first: () => Promise<First>,
  ): Promise<IdempotentOutcome<First>> {
    try {
      await flight.before;
      const wasLookedUp = flight.known === undefined;
      if (wasLookedUp) await this.lookUp([flight]);
      // A first answer that is not durable yet may never be: its term can end before its append.
      await flight.known?.batch?.durable;
      return this.#outcome(flight) ?? { kind: "first", answer: await first(), wasLookedUp };
    } finally {
      this.end(flight);
    }
  }

  /**
   * Looks up the first answers of calls that do not wait for others, with one promise for all.
   *
   * @returns null if that needs no query; the promise rejects with Unavailable
   */
  lookUp(flights: readonly Flight[]): Promise<void> | null {
    const asked = flights.filter((flight) => {
      if (flight.known === null) return false;
      flight.known = this.#recent.get(flight.name);
      return flight.known === undefined;
    });
    if (asked.length === 0) return null;
    return this.#loader.loadAll(asked.map(({ call }) => call)).then((rows) => {
      for (const [place, flight] of asked.entries()) {
        const row = rows[place] ?? null;
        flight.known = row === null ? null : { row, batch: null };
      }
    });
  }

  /**
   * Returns the outcome of a call after its lookup; null if the call must run.
   *
   * @param awaited receives the batch that must be durable before the answer is sent
   */
  outcomeNow(flight: Flight, awaited: Set<Batch>): KnownOutcome | null {
    const batch = flight.known?.batch ?? null;
    if (batch !== null && !batch.isDurable) awaited.add(batch);
    return this.#outcome(flight);
  }

  #outcome({ call, known }: Flight): KnownOutcome | null {
    if (known == null || known.row.at + SWEEP_LIMITS.idempotencyKeptMs <= this.#realNow()) return null;
    return isSameCall(known.row, call) ? { kind: "replayed", answer: known.row } : { kind: "conflict" };
  }
}
