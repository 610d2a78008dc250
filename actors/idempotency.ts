// First answers by idempotency key: the same call again gets the first answer, a twin in flight waits for it, and
// another call under the same key is refused. A first answer is kept with the changes of the turn that made it,
// in one batch. Section 1 of the decisions, "Idempotency-Key".

import type { Batch } from "./gate.ts";
import { Loader } from "./loader.ts";
import type { IdempotencyRow, UserStore } from "./port.ts";
import type { UserKey } from "../src/domain/ids.ts";
import type { Millis } from "../src/domain/plans/period.ts";
import { RUNTIME_LIMITS, SWEEP_LIMITS } from "../src/process/limits.ts";

/** An answer as it goes out: its status and its JSON text. */
export interface WireAnswer {
  readonly status: number;
  readonly body: string;
}

/** A key in its realm, with what the call is known by. */
export interface IdempotentCall {
  readonly realm: number;
  readonly key: string;
  /**
   * A hash of path and body as they were sent; for a call that may also come as a part of another one, behind a dot a hash
   * of path and value, which stands alone where it came as such a part.
   */
  readonly requestHash: string;
}

/** Whether two calls under one key are the same: by their texts where both have one, else by their values. */
function isSameCall(one: IdempotentCall, other: IdempotentCall): boolean {
  if (one.requestHash === other.requestHash) return true;
  const [text, value] = one.requestHash.split(".");
  const [otherText, otherValue] = other.requestHash.split(".");
  const isByValue = text === "" || otherText === "";
  return isByValue && value !== undefined && value === otherValue;
}

/** The first answer to a call. */
export type FirstAnswer = IdempotentCall & WireAnswer;

/** What became of an idempotent call: what its first run came to, or the answer that was kept of it. */
export type IdempotentOutcome<First extends WireAnswer> =
  | { readonly kind: "first"; readonly answer: First }
  | { readonly kind: "replayed"; readonly answer: WireAnswer }
  | { readonly kind: "conflict" };

interface Flight {
  readonly call: IdempotentCall;
  readonly ended: Promise<void>;
}

/** Runs one call a key at a time, and has first answers in memory until the tables have them. */
export class Idempotency {
  readonly #flights = new Map<string, Flight>();
  readonly #recent = new Map<string, { readonly row: IdempotencyRow; readonly batch: Batch }>();
  readonly #loader: Loader<{ realm: number; key: string }, IdempotencyRow | null>;
  readonly #realNow: () => Millis;

  constructor(store: Pick<UserStore, "loadIdempotency">, realNow: () => Millis) {
    this.#realNow = realNow;
    this.#loader = new Loader(
      (keys) => store.loadIdempotency(keys),
      RUNTIME_LIMITS.loadUsersMax,
      RUNTIME_LIMITS.loadQueueMax,
    );
  }

  /**
   * The row that keeps a first answer.
   *
   * @param userKey the user with whom it is erased; null where it is about nobody in the tables
   */
  keep({ realm, key, requestHash, status, body }: FirstAnswer, userKey: UserKey | null): IdempotencyRow {
    return { realm, key, requestHash, status, body, userKey, at: this.#realNow() };
  }

  /** Remembers a first answer that is on its way with a batch. */
  remember(row: IdempotencyRow, batch: Batch): void {
    this.#recent.set(nameOf(row), { row, batch });
    for (const [name, known] of this.#recent) {
      if (!known.batch.isDrained) break;
      this.#recent.delete(name);
    }
  }

  /** Forgets the first answers of users who are no more. */
  forget(users: readonly UserKey[]): void {
    for (const [name, { row, batch }] of this.#recent) {
      // An answer that belongs to no user may still name one, so it goes too, once the tables have it.
      const isGone = row.userKey === null ? batch.isDrained : users.includes(row.userKey);
      if (isGone) this.#recent.delete(name);
    }
  }

  /** Forgets the first answers of realms that another member owns from now on; the tables have them. */
  dropRealms(realms: ReadonlySet<number>): void {
    for (const [name, { row }] of this.#recent) if (realms.has(row.realm)) this.#recent.delete(name);
  }

  /** First answers in memory of a realm. */
  sizeOf(realm: number): number {
    return [...this.#recent.values()].filter(({ row }) => row.realm === realm).length;
  }

  /**
   * Runs a call unless its first answer is known or on its way. Calls of one key take their turns in the order in which they
   * came: those of a batch come at once, so two batches with the same keys never wait for each other.
   */
  async run<First extends WireAnswer>(
    call: IdempotentCall,
    first: () => Promise<First>,
  ): Promise<IdempotentOutcome<First>> {
    const name = nameOf(call);
    const before = this.#flights.get(name);
    if (before !== undefined && !isSameCall(before.call, call)) return { kind: "conflict" };
    const { promise, resolve } = Promise.withResolvers<void>();
    const flight = { call, ended: promise };
    this.#flights.set(name, flight);
    try {
      await before?.ended;
      const known = await this.#find(call);
      if (known === null) return { kind: "first", answer: await first() };
      if (!isSameCall(known, call)) return { kind: "conflict" };
      return { kind: "replayed", answer: known };
    } finally {
      if (this.#flights.get(name) === flight) this.#flights.delete(name);
      resolve();
    }
  }

  async #find(call: IdempotentCall): Promise<IdempotencyRow | null> {
    const recent = this.#recent.get(nameOf(call));
    // A first answer that is not durable yet may never be: its term can end before its append does.
    if (recent !== undefined) await recent.batch.durable;
    const row = recent?.row ?? await this.#loader.load({ realm: call.realm, key: call.key });
    if (row === null || row.at + SWEEP_LIMITS.idempotencyKeptMs <= this.#realNow()) return null;
    return row;
  }
}

function nameOf({ realm, key }: { readonly realm: number; readonly key: string }): string {
  return `${realm}/${key}`;
}
