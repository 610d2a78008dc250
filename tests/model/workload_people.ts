// The users of a workload. Without merges there are a few fixed ones. With merges users leave the pool by becoming an
// alias, and new ones join it, so that some users were merged already and others not yet. Every request then names its
// user by an alias as often as by the canonical id.

import type { Input, ModelReply, ModelRequest } from "./document.ts";
import type { Random } from "./random.ts";

/** A user with its ids. */
export interface Person {
  id: string;
  /** Order of arrival. */
  no: number;
  aliases: string[];
}

interface Pair {
  from: string;
  to: string;
}

const POOL_MIN = 8;
const POOL_MAX = 11;

export class People {
  readonly #random: Random;
  readonly #merges: boolean;
  readonly #living: Person[] = [];
  #arrived = 0;

  constructor(random: Random, count: number, merges: boolean) {
    this.#random = random;
    this.#merges = merges;
    for (let i = 0; i < count; i++) this.arrive();
  }

  /** Users that are no aliases, in the order of arrival. */
  get living(): readonly Person[] {
    return this.#living;
  }

  /** A new user. With merges some have ids of anonymous sessions, and ids that need escaping in a path. */
  arrive(id = this.#newId()): Person {
    const person = { id, no: this.#arrived++, aliases: [] };
    this.#living.push(person);
    return person;
  }

  #newId(): string {
    const no = this.#arrived;
    if (this.#merges && no > 0 && no % 6 === 0) return `anon_${no}`;
    if (this.#merges && no > 0 && no % 9 === 0) return `é/${no}? &`;
    return no === 1 ? "User-1" : `user-${no || 1}`;
  }

  /** Whether a new user is due. */
  needsArrival(): boolean {
    const count = this.#living.length;
    return this.#merges && (count < POOL_MIN || (count < POOL_MAX && this.#random.chance(0.01)));
  }

  /** The last user, who never subscribes, with this probability; else one of the others. */
  anyone(last: number): string {
    if (this.#merges) return this.#random.pick(this.#living).id;
    return this.#random.chance(last) ? this.#living.at(-1)!.id : this.subscriber();
  }

  /** A user who may be granted credits: all but the third, whose plan alone decides; with merges most. */
  creditor(): string {
    for (;;) {
      const id = this.anyone(0.12);
      if (this.#merges ? this.#personOf(id)!.no % 7 !== 3 : id !== this.#living[2]?.id) return id;
    }
  }

  /** The last user never subscribes; with merges there are some who do not until they are merged. */
  subscriber(): string {
    const some = this.#merges
      ? this.#living.filter(({ no, aliases }) => no % 5 !== 4 || aliases.length > 0)
      : this.#living.slice(0, Math.max(1, this.#living.length - 1));
    return this.#random.pick(some).id;
  }

  canonical(id: string): string {
    return this.#personOf(id)?.id ?? id;
  }

  /** The request with its user's canonical id. */
  canonized(request: ModelRequest): ModelRequest {
    const { userId } = request.input;
    if (!this.#merges || typeof userId !== "string") return request;
    return { ...request, input: { ...request.input, userId: this.canonical(userId) } };
  }

  /** The request with any of its user's ids, aliases and the canonical one equally often. */
  disguised(request: ModelRequest): ModelRequest {
    const { userId } = request.input;
    if (!this.#merges || typeof userId !== "string") return request;
    const input: Input = { ...request.input, userId: this.anyId(userId) };
    return { ...request, input };
  }

  anyId(id: string): string {
    const aliases = this.#personOf(id)?.aliases ?? [];
    return aliases.length > 0 && this.#random.chance(0.5) ? this.#random.pick(aliases) : this.canonical(id);
  }

  /** Follows what alias calls did; gives back each new alias with its canonical id. */
  observe({ op, input }: ModelRequest, { status, data = {} }: ModelReply): Pair[] {
    if (status !== 200 || input["dryRun"] === true) return [];
    const reports = op === "alias"
      ? [data]
      : op === "aliasBatch"
      ? (data["results"] as { report?: Input }[]).map(({ report }) => report ?? {})
      : [];
    return reports.filter((report) => report["alreadyMerged"] === false).map((report) =>
      this.#merged(String(report["from"]), String(report["to"]))
    );
  }

  #merged(from: string, to: string): Pair {
    const target = this.#personOf(to) ?? this.arrive(to);
    const source = this.#personOf(from) ?? { id: from, no: -1, aliases: [] };
    target.aliases.push(source.id, ...source.aliases);
    const place = this.#living.indexOf(source);
    if (place >= 0) this.#living.splice(place, 1);
    return { from, to: target.id };
  }

  #personOf(id: string): Person | undefined {
    return this.#living.find((person) => person.id === id || person.aliases.includes(id));
  }
}
