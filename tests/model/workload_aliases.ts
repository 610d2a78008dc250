// The alias calls that a workload makes by chance: pairs of every kind, sensible and not, alone and in batches.
// The stories around a merge are in workload_merges.ts.

import type { Input, Operation } from "./document.ts";
import type { Random } from "./random.ts";
import type { People, Person } from "./workload_people.ts";

export interface Pair {
  from: string;
  to: string;
}

/** The kinds of pairs, with how often each comes. */
const KINDS = {
  fresh: 14,
  unknownFrom: 6,
  unknownTo: 4,
  anonymous: 6,
  repeated: 22,
  sibling: 8,
  conflict: 16,
  cycle: 12,
  same: 6,
};

export class AliasInputs {
  readonly #random: Random;
  readonly #people: People;
  #unknown = 0;

  constructor(random: Random, people: People) {
    this.#random = random;
    this.#people = people;
  }

  aliasInput(): Input {
    return { ...this.#pair(), ...this.options(0.3) };
  }

  /** One to six pairs, which may build on one another; now and then a pair that is refused alone. */
  batchInput(): Input {
    const random = this.#random;
    const pairs = Array.from({ length: random.whole(1, 6) }, (): Pair => this.#pair());
    if (random.chance(0.3)) pairs.push({ ...random.pick(pairs) });
    if (random.chance(0.2)) pairs.push({ from: "", to: random.pick(pairs).to });
    if (random.chance(0.2)) pairs.unshift({ from: random.pick(pairs).from, to: "t".repeat(201) });
    const { from, to } = random.pick(pairs);
    if (random.chance(0.2) && from !== "" && to.length <= 200) pairs.push({ from: to, to: from });
    return { pairs: pairs.slice(0, 6), ...this.options(0.3) };
  }

  /** The options of an alias call; a dry run with this probability. */
  options(dryRun: number): Input {
    const random = this.#random;
    return {
      ...(random.chance(dryRun) ? { dryRun: true } : random.chance(0.1) ? { dryRun: false } : {}),
      ...(random.chance(0.3) ? { consentGiven: random.chance(0.6) } : {}),
    };
  }

  /** A known or unknown user, by any id, for a read of a customer. */
  someId(): string {
    const random = this.#random;
    return random.chance(0.08) ? this.#newId("ghost") : this.#people.anyId(this.#someone().id);
  }

  #pair(): Pair {
    const random = this.#random;
    const people = this.#people;
    const [one, other] = this.two();
    const merged = people.living.filter(({ aliases }) => aliases.length > 0);
    const kind = random.weighted(KINDS);
    switch (kind) {
      case "fresh":
        return { from: one.id, to: people.anyId(other.id) };
      case "unknownFrom":
        return { from: this.#newId("ghost"), to: people.anyId(one.id) };
      case "unknownTo":
        return { from: one.id, to: this.#newId("ghost") };
      case "anonymous":
        return { from: this.#newId("anon_"), to: people.anyId(one.id) };
      case "same":
        return { from: one.id, to: one.id };
    }
    if (merged.length === 0) return { from: one.id, to: one.id };
    const person = random.pick(merged);
    const stranger = random.pick(people.living.filter((each) => each !== person));
    const alias = random.pick(person.aliases);
    switch (kind) {
      case "repeated":
        return { from: alias, to: person.id };
      case "sibling":
        // With the same alias twice it is a cycle again.
        return { from: alias, to: random.pick(person.aliases) };
      case "conflict":
        return { from: alias, to: random.chance(0.2) ? "no_user" : people.anyId(stranger.id) };
      case "cycle":
        return { from: person.id, to: alias };
    }
  }

  /** Two users. */
  two(): [Person, Person] {
    for (;;) {
      const [one, other] = [this.#someone(), this.#someone()];
      if (one !== other) return [one, other];
    }
  }

  #someone(): Person {
    return this.#random.pick(this.#people.living);
  }

  #newId(kind: string): string {
    return `${kind}${this.#unknown += 1}`;
  }
}

const EMPTY: Input = { from: "", to: "user-1" };

/** Alias requests that must answer invalid_request, whatever the state. */
export const INVALID_ALIASES: { op: Operation; input: Input }[] = [
  { op: "alias", input: {} },
  { op: "alias", input: EMPTY },
  { op: "alias", input: { from: "user-1" } },
  { op: "alias", input: { from: "user-1", to: 7 } },
  { op: "alias", input: { from: "u".repeat(201), to: "u".repeat(201) } },
  { op: "alias", input: { from: "ghost", to: "user-1", dryRun: "yes" } },
  { op: "alias", input: { from: "ghost", to: "user-1", consentGiven: 1 } },
  { op: "aliasBatch", input: {} },
  { op: "aliasBatch", input: { pairs: [] } },
  { op: "aliasBatch", input: { pairs: {} } },
  { op: "aliasBatch", input: { pairs: ["user-1"] } },
  { op: "aliasBatch", input: { pairs: Array(501).fill(EMPTY) } },
  { op: "aliasBatch", input: { pairs: [EMPTY], dryRun: 0 } },
  { op: "customer", input: { userId: "u".repeat(201) } },
];
