// Trees of users in a workload: changes of parents of every kind, and short stories about one hold while its user's place
// changes. Each story is a generator that yields requests and is given their answers.

import type { CatalogDocument, Input, LimitGroup, ModelReply, ModelRequest, Operation } from "./document.ts";
import type { Random } from "./random.ts";
import { correction } from "./workload_inputs.ts";
import type { People } from "./workload_people.ts";

interface Planned {
  request: ModelRequest;
  advanceMs: number;
}

type Story = Generator<Planned, void, ModelReply>;

/** What the stories borrow from the workload. */
interface Lent {
  random: Random;
  catalog: CatalogDocument;
  people: People;
  /** Whether users may be merged. */
  merges: boolean;
  /** A call of a user for quota, near what there is room for. */
  asking: (op: "reserve" | "track" | "canUse", userId: string) => Input;
}

/** The share of steps at which a story begins. */
const BEGINS = 0.03;
const STORIES = { moved: 4, ended: 3, late: 2, chain: 0.7, cleared: 4 };
const MERGE_STORIES = { ...STORIES, caller: 4, accounts: 3, taken: 2 };
/** The first users, who are accounts more often than others. */
const ACCOUNTS = 3;

/** A group as an answer shows it. */
export interface ShownGroup {
  readonly quota?: number;
  readonly current?: number;
  readonly count?: number;
  readonly headroomGate?: number;
  /** The caller's share of it. */
  readonly member?: { readonly count: number; readonly quota: number | null };
}

/** The groups that an answer shows, of the caller and of the users above. */
export function shownGroups(data: Input): ShownGroup[] {
  const shown = [data, ...(data["levels"] ?? []) as Input[]];
  return shown.flatMap((each) => (each["groups"] ?? each["counters"] ?? []) as ShownGroup[]);
}

export class Trees {
  readonly #lent: Lent;
  /** User to its path as answers showed it. */
  readonly #paths = new Map<string, string[]>();
  #story: Story | null = null;
  #reply: ModelReply | null = null;
  #fresh = 0;

  constructor(lent: Lent) {
    this.#lent = lent;
  }

  /** The next request of the current story, or of a new one. */
  next(mayBegin: boolean): Planned | null {
    if (!this.#story) {
      if (!mayBegin || !this.#lent.random.chance(BEGINS) || this.#lent.people.living.length < 4) return null;
      this.#story = this.#begin();
      this.#reply = null;
    }
    // The first `next` of a generator takes nothing.
    const { value } = this.#story.next(this.#reply as ModelReply);
    if (!value) this.#story = null;
    return value ?? null;
  }

  observe({ op, input }: ModelRequest, reply: ModelReply): void {
    this.#reply = reply;
    const { path } = reply.data ?? {};
    if (Array.isArray(path)) this.#paths.set(path[0], path);
    else if (op === "users") this.#paths.delete(String(input["userId"]));
  }

  /** Mostly another parent; also none, one below, itself, one nobody knows, and one at the end of a long path. */
  parentInput(): Input {
    const userId = this.#someone();
    const kind = this.#lent.random.weighted({
      account: 40,
      other: 25,
      none: 18,
      deep: 12,
      below: 3,
      fresh: 2,
      self: 1,
    });
    return { userId, parentId: this.#parent(kind, userId), ...this.#limits(kind === "none") };
  }

  #parent(kind: string, userId: string): string | null {
    const { random, people } = this.#lent;
    switch (kind) {
      case "account":
        return people.anyId(random.pick(people.living.slice(0, ACCOUNTS)).id);
      case "none":
        return null;
      case "deep": {
        const deepest = [...this.#paths.values()].toSorted((a, b) => b.length - a.length)[0];
        return deepest?.[0] ?? this.#someone();
      }
      case "below": {
        const below = [...this.#paths.values()].filter((path) => path.slice(1).includes(userId));
        return below.length > 0 ? random.pick(below)[0]! : this.#someone();
      }
      case "fresh":
        return `fresh-${this.#fresh += 1}`;
      case "self":
        return people.anyId(userId);
      default:
        return people.anyId(this.#someone());
    }
  }

  /** Limits of the user's shares: of some groups, also of one that no plan has. */
  #limits(isNone: boolean): Input {
    const { random, catalog } = this.#lent;
    if (random.chance(0.5)) return {};
    const groups = catalog.plans.flatMap(({ limits }) => limits);
    const some = random.chance(0.1)
      ? { lg_nowhere: { quota: random.whole(0, 50) / 10 } }
      : this.#limitsOf(Array.from({ length: random.whole(1, 4) }, () => random.pick(groups)));
    const memberLimits = random.pick(isNone ? [null, {}, null, some] : [null, {}, some, some]);
    return { memberLimits };
  }

  #limitsOf(groups: LimitGroup[]): Record<string, { quota: number }> {
    const part = () => this.#lent.random.pick([0, 0.1, 0.3, 0.5, 0.8, 2]);
    return Object.fromEntries(
      groups.map(({ id, quota }) => [id, { quota: Math.round(quota * part() * 1e3) / 1e3 }]),
    );
  }

  #someone(): string {
    return this.#lent.random.pick(this.#lent.people.living).id;
  }

  #begin(): Story {
    const { random, people, merges } = this.#lent;
    const [u, p, q] = this.#three();
    switch (random.weighted(merges ? MERGE_STORIES : STORIES as typeof MERGE_STORIES)) {
      case "moved":
        return this.#moved(u, p, random.pick([q, null]));
      case "late":
        return this.#moved(u, p, random.pick([q, null]), 10);
      case "ended":
        return this.#ended(u, p);
      case "chain":
        return this.#chain();
      case "cleared":
        return this.#cleared(u, p);
      case "caller":
        return random.chance(0.5) ? this.#meeting(u, p, p, u) : this.#meeting(u, p, u, p);
      case "accounts":
        return this.#accounts(u, people.anyId(p), q);
      case "taken":
        return this.#taken(u, p, q);
    }
  }

  #three(): [string, string, string] {
    const { random, people } = this.#lent;
    const ids = people.living.map(({ id }) => id);
    const draw = () => ids.splice(random.whole(0, ids.length - 1), 1)[0]!;
    return [draw(), draw(), draw()];
  }

  #say(op: Operation, input: Input, advanceMs = 0): Planned {
    return { request: { op, input }, advanceMs };
  }

  /** Puts a user under another one, each at the top of a tree before. */
  *#put(userId: string, parentId: string): Story {
    yield this.#say("parent", { userId: parentId, parentId: null });
    yield this.#say("parent", { userId, parentId });
  }

  *#hold(userId: string, ttlSeconds: number | null): Generator<Planned, string[], ModelReply> {
    const { random, asking } = this.#lent;
    const holds: string[] = [];
    for (let n = random.whole(1, 2); n > 0; n--) {
      const more = ttlSeconds === null ? {} : { ttlSeconds };
      const { data = {} } = yield this.#say("reserve", { ...asking("reserve", userId), ...more });
      if (typeof data["reservationId"] === "string") holds.push(data["reservationId"]);
    }
    return holds;
  }

  *#settle(holds: string[]): Story {
    const { random } = this.#lent;
    for (const reservationId of holds) {
      if (random.chance(0.25)) yield this.#say("release", { reservationId });
      else yield this.#say("commit", { reservationId, ...correction(random, [1, 2, 5], this.#lent.catalog) });
    }
  }

  /** Moves a user under open holds, and settles them, perhaps after they lapsed. */
  *#moved(u: string, p: string, q: string | null, ttlSeconds: number | null = null): Story {
    const { random } = this.#lent;
    yield* this.#put(u, p);
    const holds = yield* this.#hold(u, ttlSeconds);
    yield this.#say("parent", { userId: u, parentId: q });
    yield this.#say("usage", { userId: random.pick([u, p]), levels: true }, (ttlSeconds ?? 0) * 1000);
    yield* this.#settle(holds);
    yield this.#say("users", { userId: p });
  }

  /** An account enters a plan by reset while a member holds some of it; what it held settles afterwards. */
  *#cleared(u: string, p: string): Story {
    const { random, catalog, asking } = this.#lent;
    const [reset, other] = ["reset", "carry"].map((policy) =>
      random.pick(catalog.plans.filter(({ onPlanChange }) => onPlanChange === policy))
    ) as [CatalogDocument["plans"][number], CatalogDocument["plans"][number]];
    const memberLimits = this.#limitsOf(reset.limits.filter(() => random.chance(0.6)));
    yield* this.#put(u, p);
    yield this.#say("parent", { userId: u, parentId: p, memberLimits });
    yield this.#say("subscribe", { userId: p, planId: reset.id }, 1);
    const ttlSeconds = random.chance(0.4) ? 10 : null;
    const holds = yield* this.#hold(u, ttlSeconds);
    yield this.#say("track", asking("track", u));
    for (const { id } of [other, reset]) yield this.#say("subscribe", { userId: p, planId: id }, 1);
    yield this.#say("usage", { userId: u, levels: true }, random.chance(0.5) ? (ttlSeconds ?? 0) * 1000 : 0);
    yield this.#say("track", asking("track", u));
    yield* this.#settle(holds);
    yield this.#say("usage", { userId: u, levels: true });
  }

  /** A path that is as long as it may be, and what would make it longer; then it is taken apart. */
  *#chain(): Story {
    const { random, people, merges, asking } = this.#lent;
    const ids = people.living.slice(-8).map(({ id }) => id);
    const [top, middle, last] = [ids[0]!, ids[4]!, ids.at(-1)!];
    for (const userId of ids) yield this.#say("parent", { userId, parentId: null });
    for (const [place, userId] of ids.slice(1).entries()) {
      yield this.#say("parent", { userId, parentId: ids[place]! });
    }
    const long = `long-${this.#fresh += 1}`;
    yield this.#say("parent", { userId: long, parentId: last });
    yield this.#say("parent", { userId: top, parentId: long });
    yield this.#say("parent", { userId: top, parentId: last });
    if (merges) yield this.#say("alias", { from: top, to: last });
    yield this.#say("reserve", asking("reserve", last));
    yield this.#say("users", { userId: last });
    yield this.#say("parent", { userId: middle, parentId: null });
    for (const userId of ids) {
      if (random.chance(0.7)) yield this.#say("parent", { userId, parentId: null });
    }
  }

  /** Ends the plan of an account under a member that calls. */
  *#ended(u: string, p: string): Story {
    const { asking } = this.#lent;
    yield* this.#put(u, p);
    const holds = yield* this.#hold(u, null);
    for (let n = 0; n < 3; n++) {
      const { code } = yield this.#say("cancel", { userId: p }, 1);
      if (code !== undefined) break;
    }
    for (const op of ["canUse", "reserve", "track"] as const) yield this.#say(op, asking(op, u));
    yield* this.#settle(holds);
  }

  /** A caller and the account at which it holds become one user. */
  *#meeting(u: string, p: string, from: string, to: string): Story {
    const { random } = this.#lent;
    yield* this.#put(u, p);
    const ttlSeconds = random.chance(0.4) ? 10 : null;
    const holds = yield* this.#hold(u, ttlSeconds);
    if (random.chance(0.2)) yield this.#say("alias", { from, to });
    yield this.#say("parent", { userId: u, parentId: null });
    if (random.chance(0.5)) yield this.#say("alias", { from, to, dryRun: true });
    yield this.#say("alias", { from, to });
    yield this.#say("usage", { userId: to }, random.chance(0.5) ? (ttlSeconds ?? 0) * 1000 : 1);
    yield* this.#settle(holds);
    yield this.#say("ledger", { userId: to, limit: 12 });
    yield this.#say("events", { userId: to, limit: 5 });
  }

  /** Two accounts of one path become one, each with a part of a hold. */
  *#accounts(u: string, p: string, q: string): Story {
    const { random } = this.#lent;
    yield* this.#put(p, q);
    yield this.#say("parent", { userId: u, parentId: p });
    const ttlSeconds = random.chance(0.4) ? 10 : null;
    const holds = yield* this.#hold(u, ttlSeconds);
    yield this.#say("parent", { userId: p, parentId: null });
    yield this.#say("alias", { from: p, to: q });
    yield this.#say("usage", { userId: u, levels: true }, random.chance(0.5) ? (ttlSeconds ?? 0) * 1000 : 1);
    yield* this.#settle(holds);
    yield this.#say("users", { userId: q });
  }

  /** A user takes over the parent of its alias, while both call. */
  *#taken(u: string, p: string, q: string): Story {
    const { random } = this.#lent;
    yield* this.#put(u, p);
    if (random.chance(0.5)) yield this.#say("parent", { userId: q, parentId: null });
    const holds = [...yield* this.#hold(u, null), ...yield* this.#hold(q, null)];
    yield this.#say("alias", { from: u, to: q });
    yield* this.#settle(holds);
    yield* this.#hold(q, null);
    yield this.#say("parent", { userId: u, parentId: p });
  }
}
