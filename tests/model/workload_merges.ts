// Short stories about a merge: what both users did right before it, mostly a dry run, the merge itself, and its
// effects, such as settlements of moved holds and reads by both ids. Each story is a generator that yields
// requests and is given their answers.

import type { CatalogDocument, Input, ModelReply, ModelRequest, Operation, Pack, Plan } from "./document.ts";
import type { Random } from "./random.ts";
import type { AliasInputs } from "./workload_aliases.ts";
import { correction, eventOf, MEMBERS, upsertInput } from "./workload_inputs.ts";
import type { People } from "./workload_people.ts";

interface Planned {
  request: ModelRequest;
  advanceMs: number;
}

type Story = Generator<Planned, void, ModelReply>;

/** What a story borrows from the workload. */
interface Lent {
  random: Random;
  catalog: CatalogDocument;
  people: People;
  inputs: AliasInputs;
  /** A call of a user for quota, near what there is room for. */
  asking: (op: "reserve" | "track", userId: string) => Input;
}

/** The share of steps at which a story begins. */
const BEGINS = 0.011;
const POOL_MIN = 4;
/** What happens to two copies of a grant before their users are merged. */
const FATES = { none: 20, revoke: 26, expire: 26, lapse: 12, overage: 22 };
const STORIES = { plain: 2, held: 3, windows: 2, late: 1, paid: 3, defaults: 2, copies: 6, poor: 7, rich: 3 };

export class MergeStories {
  readonly #lent: Lent;
  #story: Story | null = null;
  #reply: ModelReply | null = null;
  #nowMs = 0;
  #refs = 0;

  constructor(lent: Lent) {
    this.#lent = lent;
  }

  get isTelling(): boolean {
    return this.#story !== null;
  }

  /** The next request of the current story, or of a new one. */
  next(nowMs: number, mayBegin: boolean): Planned | null {
    this.#nowMs = nowMs;
    if (!this.#story) {
      if (!mayBegin) return null;
      this.#story = this.#begin();
      this.#reply = null;
      if (!this.#story) return null;
    }
    // The first `next` of a generator takes nothing.
    const { value } = this.#story.next(this.#reply as ModelReply);
    if (!value) this.#story = null;
    return value ?? null;
  }

  observe(reply: ModelReply): void {
    this.#reply = reply;
  }

  #begin(): Story | null {
    const { random, people, inputs } = this.#lent;
    if (people.needsArrival()) return this.#arrival(people.arrive().id);
    if (!random.chance(BEGINS) || people.living.length < POOL_MIN) return null;
    const [from, to] = inputs.two().map(({ id }) => id) as [string, string];
    return this.#merging(from, to);
  }

  *#merging(from: string, to: string): Story {
    const { random, people } = this.#lent;
    switch (random.weighted(STORIES)) {
      case "plain":
        return yield* this.#merge(from, to);
      case "held":
        return yield* this.#held(from, to);
      case "windows":
        return yield* this.#windows(from, to);
      case "late":
        return yield* this.#late(from, to);
      case "paid":
        return yield* this.#paid(from, to);
      case "defaults":
        return yield* this.#defaults(from, to);
      case "copies":
        return yield* this.#copies(from, to);
      // Two who are new and alike: without a plan, so that credits pay everything, or with nothing but one plan.
      case "poor":
        return yield* this.#copies(people.arrive().id, people.arrive().id);
      case "rich":
        return yield* this.#windows(people.arrive().id, people.arrive().id);
    }
  }

  #say(op: Operation, input: Input, advanceMs = 0): Planned {
    // Two rows of one start and rank would tie for primary.
    return { request: { op, input }, advanceMs: op === "subscribe" ? Math.max(1, advanceMs) : advanceMs };
  }

  #iso(inMs: number): string {
    return new Date(this.#nowMs + inMs).toISOString();
  }

  /** A new user, who mostly subscribes and does something at once. */
  *#arrival(userId: string): Story {
    const { random, catalog, asking } = this.#lent;
    if (random.chance(0.2)) return;
    yield this.#say("subscribe", {
      userId,
      ...upsertInput(random, catalog, this.#nowMs, random.chance(0.5)),
    });
    for (let n = random.whole(0, 2); n > 0; n--) yield this.#say("track", asking("track", userId), 1);
  }

  /** Mostly a dry run, then the merge, then reads by either id. */
  *#merge(from: string, to: string): Story {
    const { random, people, inputs } = this.#lent;
    const input = { from, to: people.anyId(to), ...inputs.options(0) };
    if (random.chance(0.7)) yield this.#say("alias", { ...input, dryRun: true });
    yield this.#say("alias", input);
    const reads: Operation[] = ["customer", "users", "usage", "credits", "ledger", "events"];
    for (let n = random.whole(1, 3); n > 0; n--) {
      const op = random.pick(reads);
      const more = op === "credits" ? { includeExpired: true } : op === "ledger" ? { limit: 12 } : {};
      yield this.#say(op, { userId: random.pick([from, to]), ...more });
    }
    if (random.chance(0.3)) yield this.#say("alias", { ...input, ...inputs.options(0.5) });
  }

  /** Holds of both sides, settled after the merge. */
  *#held(from: string, to: string): Story {
    const { asking } = this.#lent;
    const holds: string[] = [];
    for (const userId of [from, from, from, to]) {
      const { data = {} } = yield this.#say("reserve", asking("reserve", userId));
      if (data["allowed"] === true) holds.push(String(data["reservationId"]));
    }
    yield* this.#merge(from, to);
    for (const id of holds) yield* this.#settle(id, 0.8);
  }

  *#settle(reservationId: string, probability: number, release = 0.3): Story {
    const { random } = this.#lent;
    if (!random.chance(probability)) return;
    if (random.chance(release)) yield this.#say("release", { reservationId });
    else yield this.#say("commit", { reservationId, ...correction(random, [1, 2, 5], this.#lent.catalog) });
  }

  /** Both on one plan, each with usage of one group. */
  *#windows(from: string, to: string): Story {
    const { random, catalog } = this.#lent;
    const plan = random.pick(catalog.plans);
    const group = random.pick(plan.limits);
    const together = this.#start();
    for (const userId of [from, to]) {
      const startsAt = random.pick([{}, together, together, this.#start()]);
      yield this.#say("subscribe", { userId, planId: plan.id, ...startsAt }, random.whole(1, 5000));
      const input = { userId, ...eventOf(random.pick(group.matches)), quantity: 0.5, count: 0.5 };
      yield this.#say("track", { ...input, inputTokens: 1, inputCostCents: 0.5 }, 1);
    }
    yield* this.#merge(from, to);
  }

  /** A start that lies back, so that windows of the two may differ. */
  #start(): Input {
    return { startsAt: this.#iso(-this.#lent.random.whole(1, 20 * 24 * 60 * 60) * 1000) };
  }

  /** A hold that lapses before the merge and is committed after it. */
  *#late(from: string, to: string): Story {
    const { random, asking } = this.#lent;
    const { data = {} } = yield this.#say("reserve", { ...asking("reserve", from), ttlSeconds: 10 });
    yield this.#say("usage", { userId: random.pick([from, to]) }, 10_000 + random.pick([0, 0, 1]));
    yield* this.#merge(from, to);
    if (typeof data["reservationId"] === "string") yield* this.#settle(data["reservationId"], 1);
  }

  /** Both paid; then the best one is canceled and another is promoted. */
  *#paid(from: string, to: string): Story {
    const { random, catalog } = this.#lent;
    for (const [userId, provider] of [[from, "stripe"], [to, "apple"]]) {
      const planId = random.pick(catalog.plans).id;
      const externalId = provider === "stripe" ? "one" : "two";
      yield this.#say("subscribe", { userId, planId, provider, externalId }, random.whole(1, 99));
    }
    yield* this.#merge(from, to);
    const { data = {} } = yield this.#say("customer", { userId: to });
    const duplicates = data["duplicateActiveSubscriptions"] as { primary: Input } | null | undefined;
    if (!duplicates) return;
    const { provider, externalId } = duplicates.primary;
    const endsAt = random.chance(0.4) ? { endsAt: this.#iso(5000) } : {};
    yield this.#say("cancel", { userId: from, provider, externalId, ...endsAt }, 1);
    yield this.#say("users", { userId: from }, random.pick([0, 5000, 5001]));
  }

  /** Two defaults on the best plan, beside a paid row on another. */
  *#defaults(from: string, to: string): Story {
    const { random, catalog } = this.#lent;
    const [best] = catalog.plans.toSorted((a, b) => b.rank - a.rank) as [Plan];
    const lower = catalog.plans.filter(({ rank }) => rank < best.rank);
    const paid = { provider: "stripe", externalId: "one", planId: random.pick(lower).id };
    yield this.#say("subscribe", { userId: from, planId: best.id });
    yield this.#say("subscribe", { userId: to, planId: best.id });
    if (random.chance(0.8)) yield this.#say("subscribe", { userId: random.pick([from, to]), ...paid });
    yield* this.#merge(from, to);
    // An upsert without ids now has two rows to choose from.
    yield this.#say("subscribe", { userId: to, planId: random.pick(catalog.plans).id });
    if (random.chance(0.5)) yield this.#say("cancel", { userId: from }, 1);
  }

  /** The same grant to both, used, held, revoked or expired on either side. */
  *#copies(from: string, to: string): Story {
    const { random, catalog } = this.#lent;
    const packs = (catalog.packs ?? []).filter(({ archived }) => !archived);
    if (packs.length === 0) return;
    const pack = random.pick(packs);
    const fate = random.weighted(FATES);
    const externalRef = fate !== "none" || random.chance(0.4) ? `copy-${this.#refs += 1}` : "order-1";
    const holds: string[] = [];
    const drain = this.#drain(pack, fate === "lapse" ? 10 : null);
    for (const userId of [from, to]) {
      const short = fate === "expire" && (userId === to || random.chance(0.2));
      const expiresAt = short ? { expiresAt: this.#iso(500) } : fate === "expire" ? { expiresAt: null } : {};
      // Of the copy that does not expire all is held now and then.
      const isWhole = fate === "expire" && userId === from && random.chance(0.6);
      const grant = {
        userId,
        packId: pack.id,
        externalRef,
        ...expiresAt,
        quantity: fate === "overage" || isWhole ? 2 : random.pick([1, 2, 5]),
      };
      const { data = {} } = yield this.#say("grant", grant);
      const { balanceId } = data;
      if (typeof balanceId !== "string") continue;
      for (let n = isWhole ? 1 : fate === "overage" ? 2 : random.whole(0, 2); n > 0; n--) {
        const { data: held = {} } = yield this.#say("reserve", { userId, ...drain(isWhole) });
        if (held["allowed"] === true) holds.push(String(held["reservationId"]));
      }
      if (fate === "revoke" && random.chance(0.6)) yield this.#say("revoke", { balanceId });
    }
    if (fate === "expire") yield this.#say("credits", { userId: from, includeExpired: true }, 600);
    // All holds lapse at one moment, and one of the two is looked at first.
    if (fate === "lapse") yield this.#say("usage", { userId: random.pick([from, to]) }, 10_000);
    yield* this.#merge(from, to);
    yield this.#say("ledger", { userId: to, limit: random.pick([2, 4, 20]) });
    for (const id of holds) yield* this.#settle(id, 0.8, 0.5);
    if (random.chance(0.5)) {
      yield this.#say("grant", { userId: from, packId: pack.id, externalRef, quantity: 1 });
    }
  }

  /** Calls that one part of a pack can pay; holds last for the given time, else for a while. */
  #drain(pack: Pack, ttlSeconds: number | null): (isWhole: boolean) => Input {
    const { random } = this.#lent;
    const part = pack.items.length > 0
      ? random.pick(pack.items)
      : { unit: pack.unit!, amount: 2, matches: pack.matches! };
    return (isWhole) => ({
      ...eventOf(random.pick(part.matches)),
      [MEMBERS[part.unit]]: Number(
        (part.amount * (isWhole ? 1 : random.pick([1, 0.9, 0.6, 0.3]))).toFixed(6),
      ),
      ...(ttlSeconds !== null ? { ttlSeconds } : random.chance(0.5) ? { ttlSeconds: 3600 } : {}),
    });
  }
}
