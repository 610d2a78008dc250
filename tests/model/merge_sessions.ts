// What a merge does to sessions: of two that run, that of the primary's side goes on with the counts of both.

import { pairGroups } from "./rules.ts";
import { empty, type Move, type Side, usageIn } from "./merge_usage.ts";
import { type Place, placeKey, type SubscriptionRow, type User, type World } from "./state.ts";
import { ZERO } from "./decimal.ts";
import type { Window } from "./windows.ts";

/** The session of a group that runs; null for none. */
export function runningSession(
  world: World,
  user: User,
  place: Pick<Place, "planId" | "groupId">,
  now: number,
): Window | null {
  const last = world.sessions.get(placeKey(user.id, place));
  return last && last.end! > now ? last : null;
}

/** The sessions of two users, seen before anything of them moves. */
export class SessionMerge {
  /** The sessions that go on in the surviving plan, by group. */
  readonly windows: ReadonlyMap<string, Window>;
  readonly #world: World;
  readonly #planId: string | null;
  /** That of the primary first. */
  readonly #sides: readonly Side[];
  readonly #to: User;
  readonly #now: number;

  constructor(
    world: World,
    { from, to }: { from: Side; to: Side },
    primary: SubscriptionRow | null,
    now: number,
  ) {
    this.#world = world;
    this.#planId = primary?.planId ?? null;
    this.#sides = primary && from.rows.includes(primary) ? [from, to] : [to, from];
    this.#to = to.user;
    this.#now = now;
    const groups = primary ? world.plan(primary.planId).limits : [];
    this.windows = new Map(groups.flatMap(({ id, period }) => {
      if (period?.type !== "session") return [];
      const running = this.#sides.map((side) => this.#sessionOf(side, primary!.planId, id));
      const [first, second] = running;
      if (first && second) world.note("merges: two sessions run");
      const kept = first ?? second;
      return kept ? [[id, kept]] : [];
    }));
  }

  /** The session that a side would have if it just entered the surviving plan. */
  #sessionOf({ user, running }: Side, planId: string, groupId: string): Window | null {
    const world = this.#world;
    const own = runningSession(world, user, { planId, groupId }, this.#now);
    if (running === null || running.planId === planId) return own;
    const pairs = pairGroups(world.plan(running.planId), world.plan(planId));
    const fromId = pairs.find(({ to }) => to.id === groupId)?.from.id ?? "";
    const brought = running.windows.get(fromId) ?? null;
    if (own === null || brought === null) return own ?? brought;
    const ownCount = world.counter(user.id, planId, groupId, own).count;
    return ownCount >= world.counter(user.id, running.planId, fromId, brought).count ? own : brought;
  }

  /** What a side has in sessions of the surviving plan that do not go on. */
  takeOut({ user }: Side): Move[] {
    const world = this.#world;
    return [...this.windows].flatMap(([groupId, window]) => {
      const place = { planId: this.#planId!, groupId };
      const own = runningSession(world, user, place, this.#now);
      if (own === null || own.start === window.start) return [];
      const left = { ...place, window: own };
      world.pointHolds(user, left, { ...place, window }, false);
      world.forgetLeft(user, left);
      const source = world.lineCounter(user, left);
      if (source.count === ZERO && source.cost === ZERO && source.alerted.size === 0) return [];
      world.note("merges: a session moves into another one");
      const move = { source, target: world.lineCounter(this.#to, { ...place, window }), ...usageIn(source) };
      empty(source);
      return [move];
    });
  }

  /** Choice: of two sessions that other plans left behind, the one that began last. */
  #lastOf(place: Pick<Place, "planId" | "groupId">): Window | null {
    const running = this.#sides.flatMap(({ user }) =>
      runningSession(this.#world, user, place, this.#now) ?? []
    );
    return running.toSorted((a, b) => b.start - a.start)[0] ?? null;
  }

  /** Gives the canonical user the sessions that go on, also those of other plans. */
  unite(): void {
    const { sessions } = this.#world;
    const places = [...sessions.keys()].map((key) => JSON.parse(key) as [string, string, string])
      .filter(([userId]) => this.#sides.some(({ user }) => user.id === userId))
      .map(([, planId, groupId]) => ({ planId, groupId }));
    const goingOn = places.map((place) => {
      const own = place.planId === this.#planId ? this.windows.get(place.groupId) : undefined;
      return { place, window: own ?? this.#lastOf(place) };
    });
    for (const [groupId, window] of this.windows) {
      goingOn.push({ place: { planId: this.#planId!, groupId }, window });
    }
    for (const { place, window } of goingOn) {
      for (const { user } of this.#sides) sessions.delete(placeKey(user.id, place));
      if (window !== null) sessions.set(placeKey(this.#to.id, place), window);
    }
  }
}
