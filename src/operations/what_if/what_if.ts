// What if: decides the recorded events of a span anew under a catalog, and says which calls it refuses. It only reads. It
// works in slices, between which the process answers calls, and holds the users of one batch in memory at a time.

import { type CatalogDocument, compileCatalog } from "../../domain/catalog/catalog.ts";
import type { ModelDocument } from "../../domain/catalog/price_row.ts";
import type { RateDocument } from "../../domain/catalog/rate_row.ts";
import type { Catalog } from "../../domain/catalog/catalog.ts";
import { Fold, type KnownUser } from "../../domain/fold.ts";
import { numberOf } from "../../domain/values/amount.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { WHAT_IF_LIMITS } from "../../process/connection_limits.ts";
import { type Database, yieldToLoop } from "../../storage/database.ts";
import {
  type CountedUser,
  countUsers,
  type EventPlace,
  readKnownUsers,
  readParents,
  readRecorded,
  type Span,
} from "../../storage/queries/what_if.ts";

/** The result: amounts and times as on the wire. */
export interface WhatIf {
  /** Events that were decided anew. */
  readonly events: number;
  /** Calls that the catalog refuses, by UTC day and limit group; `groupId` is null where no limit refused. */
  readonly refused: readonly RefusedOfDay[];
  /** Users with such events. */
  readonly users: number;
  /** The usage of each quota group and window after the span; the first ones of very many. */
  readonly counters: readonly CounterOfUser[];
}

interface RefusedOfDay {
  readonly day: string;
  readonly groupId: string | null;
  readonly calls: number;
  readonly users: number;
}

interface CounterOfUser {
  readonly userId: string;
  readonly groupId: string;
  readonly windowStart: string;
  readonly count: number;
}

/** How far a fold is. */
export interface Progress {
  readonly events: number;
  readonly users: number;
}

/** A span with more events, or an account with more members, than a fold takes. */
export class TooMuch extends Error {}

/** A catalog document, with every price row and rate that the app ever had. */
export interface FoldedCatalog {
  readonly document: CatalogDocument;
  readonly priceRows: readonly ModelDocument[];
  readonly rateRows: readonly RateDocument[];
}

/** Decides the events of a span anew; yields its progress. @throws TooMuch */
export async function* whatIf(
  database: Database,
  span: Span,
  { document, priceRows, rateRows }: FoldedCatalog,
): AsyncGenerator<Progress, WhatIf> {
  // Users keep an archived plan, but a new subscription to it would be refused.
  const plans = document.plans?.map((plan) => ({ ...plan, archived: false }));
  const catalog = compileCatalog({ ...document, plans }, 1, priceRows, rateRows);
  const parents = await readParents(database, span.realm);
  const run = new Run(database, span, catalog, parents);
  for await (const keys of batches(database, span, parents)) {
    yield* run.fold(keys);
  }
  return run.result();
}

/** The users of a span in batches of bounded numbers of users and events. Those of a tree are in one batch. */
async function* batches(
  database: Database,
  span: Span,
  parents: ReadonlyMap<UserKey, UserKey>,
): AsyncGenerator<readonly UserKey[]> {
  const { usersOfBatch, eventsOfBatch } = WHAT_IF_LIMITS;
  const inTree = new Set([...parents].flat());
  let batch: UserKey[] = [];
  let events = 0;
  for await (const user of usersOf(database, span)) {
    if (user.events === 0 || inTree.has(user.key)) continue;
    if (batch.length === usersOfBatch || (batch.length > 0 && events + user.events > eventsOfBatch)) {
      yield batch;
      [batch, events] = [[], 0];
    }
    batch.push(user.key);
    events += user.events;
  }
  if (batch.length > 0) yield batch;
  for (const tree of Map.groupBy(inTree, (key) => rootOf(key, parents)).values()) {
    if (tree.length > WHAT_IF_LIMITS.usersOfTreeMax) throw new TooMuch(TOO_MANY_MEMBERS);
    yield tree;
  }
}

const TOO_MANY_MEMBERS = `An account has more than ${WHAT_IF_LIMITS.usersOfTreeMax} members`;
const TOO_MANY_EVENTS = `The span has more than ${WHAT_IF_LIMITS.eventsMax} events: take a shorter one`;

async function* usersOf(database: Database, span: Span): AsyncGenerator<CountedUser> {
  const limit = WHAT_IF_LIMITS.usersOfBatch;
  for (let after = "";;) {
    const page = await countUsers(database, span, after, limit);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < limit) return;
    after = last.id;
  }
}

function rootOf(key: UserKey, parents: ReadonlyMap<UserKey, UserKey>): UserKey {
  let root = key;
  for (let parent = parents.get(root); parent !== undefined; parent = parents.get(root)) root = parent;
  return root;
}

/** The sums of a fold over all batches. */
class Run {
  #events = 0;
  #users = 0;
  readonly #refused = new Map<string, { calls: number; users: number }>();
  readonly #counters: CounterOfUser[] = [];
  #sliceEnds = 0;

  constructor(
    readonly database: Database,
    readonly span: Span,
    readonly catalog: Catalog,
    readonly parents: ReadonlyMap<UserKey, UserKey>,
  ) {}

  get progress(): Progress {
    return { events: this.#events, users: this.#users };
  }

  /** Folds the events of some users; yields the progress after each page of them. */
  async *fold(keys: readonly UserKey[]): AsyncGenerator<Progress> {
    const { database, span } = this;
    const known: KnownUser[] = [];
    for (let from = 0; from < keys.length; from += WHAT_IF_LIMITS.usersOfBatch) {
      const some = keys.slice(from, from + WHAT_IF_LIMITS.usersOfBatch);
      known.push(...await readKnownUsers(database, some, span));
    }
    const users = known.map(({ user, ...plans }) => ({
      ...plans,
      user: { ...user, parentKey: this.parents.get(user.key) ?? null },
    }));
    const fold = new Fold(this.catalog, users, span.from);
    const seen = new Set<UserKey>();
    const hit = new Map<string, Set<UserKey>>();
    for (let after: EventPlace | null = null;;) {
      const page = await readRecorded(database, keys, span, after, WHAT_IF_LIMITS.eventsOfBatch);
      for (const event of page.events) {
        if (performance.now() > this.#sliceEnds) await this.#breathe();
        const folded = fold.take(event);
        if (folded === null) continue;
        this.#events += 1;
        seen.add(event.userKey);
        if (folded.isRefused) this.#refuse(event.createdAt, event.userKey, folded.groupIds, hit);
      }
      if (this.#events > WHAT_IF_LIMITS.eventsMax) throw new TooMuch(TOO_MANY_EVENTS);
      if (page.next === null) break;
      after = page.next;
      yield this.progress;
    }
    this.#users += seen.size;
    if (seen.size > 0) yield this.progress;
    for (const [place, of] of hit) this.#refusedAt(place).users += of.size;
    for (const { userId, groupId, windowStart, count } of fold.counters()) {
      if (this.#counters.length === WHAT_IF_LIMITS.countersMax) break;
      const start = new Date(windowStart).toISOString();
      this.#counters.push({ userId, groupId, windowStart: start, count: numberOf(count) });
    }
  }

  async #breathe(): Promise<void> {
    await yieldToLoop();
    this.#sliceEnds = performance.now() + WHAT_IF_LIMITS.sliceMs;
  }

  #refuse(
    at: Millis,
    userKey: UserKey,
    groupIds: readonly string[],
    hit: Map<string, Set<UserKey>>,
  ): void {
    const day = new Date(at).toISOString().slice(0, 10);
    for (const groupId of groupIds.length === 0 ? [null] : groupIds) {
      const place = JSON.stringify([day, groupId]);
      this.#refusedAt(place).calls += 1;
      hit.set(place, (hit.get(place) ?? new Set()).add(userKey));
    }
  }

  #refusedAt(place: string): { calls: number; users: number } {
    const known = this.#refused.get(place) ?? { calls: 0, users: 0 };
    this.#refused.set(place, known);
    return known;
  }

  result(): WhatIf {
    const places = [...this.#refused].toSorted(([one], [other]) => one < other ? -1 : 1);
    const refused = places.map(([place, { calls, users }]) => {
      const [day, groupId]: [string, string | null] = JSON.parse(place);
      return { day, groupId, calls, users };
    });
    return { events: this.#events, refused, users: this.#users, counters: this.#counters };
  }
}
