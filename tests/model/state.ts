// What the model remembers: plain lists of users, aliases, subscription rows, reservations, events, credit
// balances and ledger rows, and the counters as explicit numbers. Each row says which user it belongs to.
// Also the ids that the system chooses: until one is learnt, a row has a placeholder in guillemets, which
// works as an id and which `compare` accepts for any fresh id.

import type { CatalogDocument, LimitGroup, ModelOptions, Period, Plan, WireData } from "./document.ts";
import { atLeastZero, fromNumber, larger, type Micros, ZERO } from "./decimal.ts";
import { Messages } from "./messages.ts";
import type {
  Alias,
  Balance,
  Counter,
  Dated,
  Entered,
  EventRow,
  GuardPlace,
  LedgerRow,
  Named,
  Place,
  Reservation,
  RunRow,
  Sale,
  SubscriptionRow,
  User,
} from "./rows.ts";
import { kindOf } from "./rules.ts";
import { ModelShares } from "./shares.ts";
import { type Anchors, type Window, windowAt } from "./windows.ts";

export type * from "./rows.ts";

/** Everything a model knows, and the few look-ups that all of its parts share. */
export class World {
  /** By canonical id. */
  readonly users = new Map<string, User>();
  /** In the order in which they became aliases. */
  readonly aliases: Alias[] = [];
  readonly reservations: Reservation[] = [];
  readonly runs: RunRow[] = [];
  /** Oldest first. */
  readonly events: EventRow[] = [];
  /** As granted. */
  readonly balances: Balance[] = [];
  /** Oldest first. */
  readonly ledger: LedgerRow[] = [];
  sales: Sale[] = [];
  /** What users took of the groups of those above; by ids, which no merge rewrites. */
  readonly shares = new ModelShares();
  /** Every cursor that an answer showed, with the last row of its page. */
  readonly cursors = new Map<string, LedgerRow>();
  /** What was counted in each slot of a rate, by `placeKey`. */
  readonly rates = new Map<string, Map<number, Micros>>();
  /** The last session of a group that began, by `placeKey`. */
  readonly sessions = new Map<string, Window>();
  /** How often each case that is worth meeting came up. */
  readonly cases = new Map<string, number>();
  /** UTC month (`2026-01`) to metering operations. */
  readonly operations = new Map<string, number>();
  /** Expected messages of webhooks. A copy of the world has its own, which is never read. */
  readonly messages = new Messages();
  /** The id of the user that calls; null for what falls due. */
  cause: string | null = null;
  /** Whether what is being written fell due. */
  isSettling = false;
  /** By canonical id: every turn looks at those of each user. */
  #counters = new Map<string, Map<string, Counter>>();
  readonly #unnamed = new Map<string, Named>();
  /** Some id of a row that was made for a user, without its prefix. */
  readonly #idsByOwner = new Map<string, string>();
  readonly #names = new Set<string>();
  #made = 0;

  constructor(public catalog: CatalogDocument, readonly options: ModelOptions) {}

  /** The user of an id, be it canonical or an alias. */
  user(id: string): User {
    const known = this.aliases.find((alias) => alias.id === id)?.user ?? this.users.get(id);
    if (known) return known;
    const user: User = {
      id,
      subscriptions: [],
      history: [],
      entered: null,
      parentId: null,
      memberLimits: null,
      spendCaps: new Map(),
      selling: new Set(),
      included: [],
      includedAt: -Infinity,
      leftIncludes: [],
      leftLast: [],
      trialIncludes: new Map(),
    };
    this.users.set(id, user);
    return user;
  }

  aliasesOf(userId: string): string[] {
    return this.aliases.filter((alias) => alias.user.id === userId).map(({ id }) => id);
  }

  /** What a new row says of its writing. */
  written(userId: string): Pick<Dated, "by" | "due"> {
    return { by: [userId, ...this.aliasesOf(userId)], due: this.isSettling };
  }

  /** A throwaway copy, in which a dry run can do all that the real call would. */
  copy(): World {
    const copy = new World(this.catalog, this.options);
    const { users, aliases, reservations, runs, events, balances, ledger, operations, rates, sessions } =
      this;
    const { sales } = this;
    const lists = {
      users,
      aliases,
      reservations,
      runs,
      events,
      balances,
      ledger,
      operations,
      rates,
      sessions,
      sales,
    };
    // In one piece, so that rows go on naming one another.
    const { counters, ...rest } = structuredClone({ ...lists, counters: this.#counters });
    Object.assign(copy, rest);
    copy.#counters = counters;
    copy.#made = this.#made;
    return copy;
  }

  plan(planId: string): Plan {
    const plan = this.catalog.plans.find((each) => each.id === planId);
    if (!plan) throw new Error(`the model's catalog has no plan ${planId}`);
    return plan;
  }

  group(planId: string, groupId: string): LimitGroup {
    const group = this.plan(planId).limits.find((each) => each.id === groupId);
    if (!group) throw new Error(`plan ${planId} has no group ${groupId}`);
    return group;
  }

  /** Choice: windows with one start (clamped months, a changed period) share a counter. */
  counter(userId: string, planId: string, groupId: string, window: Window): Counter {
    const windowStart = window.start;
    const key = JSON.stringify([planId, groupId, windowStart]);
    const counters = this.#counters.getOrInsertComputed(userId, () => new Map());
    const known = counters.get(key);
    if (known) {
      const isLater = known.windowEnd !== null && (window.end === null || window.end > known.windowEnd);
      if (isLater) known.windowEnd = window.end;
      return known;
    }
    const { end: windowEnd } = window;
    const place = { userId, planId, groupId, windowStart, windowEnd };
    const counter = newCounter(place);
    counters.set(key, counter);
    return counter;
  }

  /** The counter of a window; one that is never kept where no session runs. */
  counterIn(userId: string, planId: string, groupId: string, window: Window | null): Counter {
    if (window !== null) return this.counter(userId, planId, groupId, window);
    return newCounter({ userId, planId, groupId, windowStart: NaN, windowEnd: null });
  }

  countersOf(userId: string): Counter[] {
    return [...this.#counters.get(userId)?.values() ?? []];
  }

  lineCounter(user: User, line: Place): Counter {
    return this.counter(user.id, line.planId, line.groupId, line.window);
  }

  /**
   * Points the lines of open holds on one counter at another one.
   * @param leaves Whether the counter they leave keeps its count, and so goes on containing them.
   * @returns whether any were of the quota, and how much of these the other counter did not contain before
   */
  pointHolds(user: User, from: Place, to: Place, leaves: boolean): { any: boolean; added: Micros } {
    const pointed = { any: false, added: ZERO };
    for (const hold of this.reservations) {
      if (hold.user !== user || hold.state !== "held") continue;
      for (const line of hold.lines) {
        if (!isSamePlace(line, from)) continue;
        const { planId, groupId, window } = line;
        if (leaves) line.left.push({ planId, groupId, window });
        if (line.left.some((place) => isSamePlace(place, to))) this.note("carry: a hold returns");
        else pointed.added += line.amount - line.overage;
        if (line.amount > line.overage) pointed.any = true;
        line.left = line.left.filter((place) => !isSamePlace(place, to));
        if (!leaves && isSamePlace(line.soldAt, from)) line.soldAt = to;
        Object.assign(line, to);
      }
    }
    return pointed;
  }

  /** Open holds correct a counter no more that they left, where it was set anew. */
  forgetLeft(user: User, gone: Place): void {
    for (const hold of this.reservations) {
      if (hold.user !== user || hold.state !== "held") continue;
      for (const line of hold.lines) line.left = line.left.filter((place) => !isSamePlace(place, gone));
    }
  }

  /** Open holds are no part of a counter that was set anew, but what they sold there is. */
  forgetHolds(user: User, gone: Place): void {
    this.forgetLeft(user, gone);
    for (const hold of this.reservations) {
      if (hold.user !== user || hold.state !== "held") continue;
      for (const line of hold.lines) {
        if (!isSamePlace(line, gone) || line.amount === line.overage) continue;
        this.note("carry: a reset forgets a hold");
        line.amount = line.overage;
      }
    }
  }

  /** The window that a group of the row's plan has at a moment; null for a session that does not run. */
  windowOf(userId: string, row: Anchors & { planId: string }, group: LimitGroup, at: number): Window | null {
    const { period = this.plan(row.planId).period } = group;
    if (period.type === "session") {
      const last = this.sessions.get(placeKey(userId, { planId: row.planId, groupId: group.id }));
      return last && last.end! > at ? last : null;
    }
    const anchors = "customLimits" in row ? this.entered(row as SubscriptionRow, true) : row;
    return windowAt(period as Period, anchors, at);
  }

  /** The window that the row's plan has at a moment. */
  window(row: SubscriptionRow | Entered, at: number): Window {
    const anchors = "row" in row ? row : this.entered(row, true);
    return windowAt(this.plan(row.planId).period, anchors, at);
  }

  /**
   * A plan at its entry. Choice: a lifetime begins when any row of the user first had the plan, of whatever key.
   */
  entered(row: SubscriptionRow, carried: boolean): Entered {
    const { planId, cycleAnchorAt } = row;
    const plan = this.plan(planId);
    const isForLife = [plan, ...plan.limits].some(({ period }) => period?.type === "lifetime");
    const held = isForLife
      ? this.user(row.userId).subscriptions.flatMap((each) => each.held.get(planId) ?? [])
      : [];
    const anchors = isForLife
      ? { startedAt: Math.min(...held), cycleAnchorAt: cycleAnchorAt ?? row.startedAt }
      : { startedAt: row.startedAt, cycleAnchorAt };
    return { row, planId, ...anchors, endedAt: null, carried };
  }

  /** What a row alone gives of a group. */
  ownQuota(row: SubscriptionRow, group: LimitGroup): Micros {
    return row.customLimits.get(group.id) ?? fromNumber(group.quota) * BigInt(row.quantity);
  }

  /** What the primary and the add-ons beside it give of a group. */
  quota(row: SubscriptionRow, group: LimitGroup, at: number): Micros {
    return this.added(row, group, at).reduce((sum, { quota }) => sum + quota, this.ownQuota(row, group));
  }

  /** What each active add-on of the row's user adds to a group. */
  added(
    row: SubscriptionRow,
    to: LimitGroup,
    at: number,
  ): { row: SubscriptionRow; quota: Micros }[] {
    const addOns = this.user(row.userId).subscriptions.filter((each) =>
      this.isAddOn(each) && isActive(each, at)
    );
    return addOns.flatMap((each) => {
      const group = this.plan(each.planId).limits.find((limit) =>
        limit.id === to.id && limit.unit === to.unit && kindOf(limit) === kindOf(to)
      );
      if (group) this.note("add-ons: a quota is added");
      return group ? [{ row: each, quota: this.ownQuota(each, group) }] : [];
    });
  }

  isAddOn(row: SubscriptionRow): boolean {
    return this.plan(row.planId).addon === true;
  }

  /**
   * The quota that a line of a hold has now.
   * Choice: a plan is in force while the primary is on it; otherwise the catalog's quota counts, without
   * custom limits.
   */
  lineQuota(user: User, line: GuardPlace, at: number): Micros {
    const group = this.group(line.planId, line.groupId);
    const primary = this.primary(user, at);
    return primary?.planId === line.planId ? this.quota(primary, group, at) : fromNumber(group.quota);
  }

  /** Active rows that give a plan. */
  active(user: User, at: number): SubscriptionRow[] {
    return user.subscriptions.filter((row) => isActive(row, at) && !this.isAddOn(row));
  }

  rank(row: SubscriptionRow): number {
    return this.plan(row.planId).rank;
  }

  /** Best first: by rank, then latest start. Choice: of equals the row made later. */
  bestFirst(rows: SubscriptionRow[]): SubscriptionRow[] {
    return rows.toSorted((a, b) => this.rank(b) - this.rank(a) || b.startedAt - a.startedAt || b.no - a.no);
  }

  primary(user: User, at: number): SubscriptionRow | null {
    return this.bestFirst(this.active(user, at))[0] ?? null;
  }

  /** Expects a message to webhooks about a user. */
  tell(userId: string, type: string, at: number, data: WireData, ids: Record<string, Named> = {}): void {
    const { cause } = this;
    const causedBy = cause === null || cause === userId || this.isSettling ? {} : { causedBy: cause };
    const ofUser = type === "user.merged" ? data : { userId, ...data, ...causedBy };
    if ("causedBy" in ofUser) this.note("messages: caused by a user below");
    const isWanted = this.messages.tell(userId, { type, at, data: ofUser, ids }) > 0;
    this.note(`messages: ${isWanted ? type : "no webhook wants it"}`);
  }

  countOperation(at: number): void {
    const month = monthOf(at);
    this.operations.set(month, (this.operations.get(month) ?? 0) + 1);
  }

  operationsUsed(at: number): number {
    return this.operations.get(monthOf(at)) ?? 0;
  }

  /** Notes that a case came up, so that a workload can prove that it meets it. */
  note(name: string): void {
    this.cases.set(name, (this.cases.get(name) ?? 0) + 1);
  }

  /** A placeholder for the text that leads on after a ledger row. */
  nameCursor(last: LedgerRow): string {
    const placeholder = `« ${this.#made += 1}»`;
    this.cursors.set(placeholder, last);
    return placeholder;
  }

  /**
   * Whether a hold is handled before another that lapses with it: by id as text. No answer shows the id of a part, but ids of
   * one owner grow, and those of two owners are ordered as any other ids of theirs.
   */
  comesBefore(a: Reservation, b: Reservation): boolean {
    const [idOfA, idOfB] = [a, b].map(({ madeFor }) => this.#idsByOwner.get(madeFor));
    if (a.madeFor === b.madeFor || idOfA === undefined || idOfB === undefined) return a.no < b.no;
    return idOfA < idOfB;
  }

  /** Gives a new row its number and its placeholder, for example «rsv_ 000012». */
  name<T extends Named>(prefix: string, row: Omit<T, "id" | "no">): T {
    const no = this.#made += 1;
    // Of one width, so that placeholders are ordered as texts by when they were made, as ids of one owner are.
    const named = { ...row, no, id: `«${prefix} ${String(no).padStart(6, "0")}»` } as T;
    this.#unnamed.set(named.id, named);
    return named;
  }

  /** Binds a row to the id that the system showed; returns its id from now on. */
  learn(placeholder: string, observed: string): string {
    const last = this.cursors.get(placeholder);
    if (last) {
      // One row may have one cursor every time it ends a page, so these texts may come again.
      this.cursors.set(observed, last);
      return observed;
    }
    const row = this.#unnamed.get(placeholder);
    if (!row) return placeholder;
    if (this.#names.has(observed)) return `«a fresh id, for ${observed} is another row's»`;
    this.#unnamed.delete(placeholder);
    this.#names.add(observed);
    const owner = "madeFor" in row ? row.madeFor : "pack" in row ? (row as Balance).userId : null;
    if (typeof owner === "string") this.#idsByOwner.set(owner, observed.slice(observed.indexOf("_")));
    row.id = observed;
    return observed;
  }
}

/** Names a group of a user. */
export function placeKey(userId: string, { planId, groupId }: GuardPlace): string {
  return JSON.stringify([userId, planId, groupId]);
}

/** A counter without usage. */
export function newCounter(
  place: Pick<Counter, "userId" | "planId" | "groupId" | "windowStart" | "windowEnd">,
): Counter {
  return {
    ...place,
    count: ZERO,
    overage: ZERO,
    cost: ZERO,
    alerted: new Set(),
    alertedQuota: null,
    filler: ZERO,
    blockedTo: ZERO,
    resetAt: null,
  };
}

export function isActive({ ended, endsAt }: SubscriptionRow, at: number): boolean {
  return !ended && (endsAt === null || endsAt > at);
}

/** What a counter shows, and what limits. Choice: what a block filled stays full, also where older holds give back. */
export function shownCount(counter: Counter): Micros {
  return planShown(counter) + counter.overage;
}

/** What takes room of the plan: all but what was sold past it. */
export function planShown({ count, overage, filler, blockedTo }: Counter): Micros {
  return larger(count - overage + filler, blockedTo);
}

/** Fills what takes room of the plan up to an amount; usage takes the place of what filled it before. */
export function fill(counter: Counter, blockedTo: Micros, shown: Micros): void {
  const { count, overage } = counter;
  if (blockedTo > ZERO) Object.assign(counter, { blockedTo, filler: atLeastZero(shown - (count - overage)) });
}

/** Windows of one start share a counter. */
export function isSamePlace(a: Place, b: Place): boolean {
  return a.planId === b.planId && a.groupId === b.groupId && a.window.start === b.window.start;
}

export function monthOf(at: number): string {
  return iso(at).slice(0, 7);
}

export function iso(at: number): string {
  return new Date(at).toISOString();
}

export function isoOrNull(at: number | null): string | null {
  return at === null ? null : iso(at);
}
