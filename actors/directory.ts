// The directory: finds the one actor of a user, by end-user id or by the key within a reservation id. An actor is started
// once, however many calls wait for it. One query loads many users. An actor leaves memory only when it is idle and the
// tables have everything of it.

import type { CommandName, Commands } from "../src/domain/command.ts";
import type { UserKey } from "../src/domain/values/ids.ts";
import type { Millis } from "../src/domain/values/period.ts";
import { SharedValues } from "../src/domain/state/shared_values.ts";
import { type AppOfRealm, TextRoom } from "../src/domain/state/text_room.ts";
import { newUser, UserState } from "../src/domain/state/user.ts";
import { secondsSince } from "../src/process/counts/runtime_counts.ts";
import { HOLD_LIMITS, RUNTIME_LIMITS } from "../src/process/limits.ts";
import type { RefusedCall } from "../src/domain/state/refused_call.ts";
import { Actor, type ActorTerm } from "./actor.ts";
import type { Call, Realm, TurnResult } from "./call.ts";
import { Loader } from "./loader.ts";
import { UserKeys } from "./user_keys.ts";
import { type LoadedUser, Unavailable, type UserRef, type UserStore } from "./port.ts";

/** The parts of a term that a directory and its actors use. */
export interface DirectoryOptions {
  readonly term: ActorTerm;
  readonly store: UserStore;
  readonly realNow: () => Millis;
  /** Resolves when the tables hold everything that was decided before the call. */
  readonly drained: () => Promise<void>;
  /** Names the app of a realm; by default each realm is an app of its own. */
  readonly appOf?: AppOfRealm | undefined;
}

/** All actors of a term. */
export class Directory {
  readonly #term: ActorTerm;
  readonly #drained: () => Promise<void>;
  /** By realm, then by end-user id. */
  readonly #byId = new Map<number, Map<string, Actor>>();
  readonly #byKey = new Map<UserKey, Actor>();
  /** One function for all actors: one for each would be two more objects. */
  readonly #onBroken = (broken: Actor) => this.#discard(broken);
  readonly #starting = new Map<string, Promise<Actor | null>>();
  readonly #loader: Loader<UserRef, LoadedUser | null>;
  readonly #keys: UserKeys;
  readonly #shared: SharedValues;
  #timer: ReturnType<typeof setInterval>;
  /** The position of the search for actors to unload, which visits all of them in turn. */
  #hand: Iterator<Actor>;

  constructor({ term, store, realNow, drained, appOf }: DirectoryOptions) {
    this.#term = term;
    this.#drained = drained;
    this.#shared = new SharedValues(new TextRoom(HOLD_LIMITS, appOf));
    this.#keys = new UserKeys(() => store.nextKeys());
    this.#loader = new Loader(
      async (refs) => {
        const startedAt = performance.now();
        const loaded = await store.load(refs, realNow());
        term.counts.loadSeconds.observe(secondsSince(startedAt));
        return loaded;
      },
      RUNTIME_LIMITS.loadUsersMax,
      RUNTIME_LIMITS.loadQueueMax,
    );
    this.#hand = this.#byKey.values();
    this.#timer = setInterval(() => this.passivate(), RUNTIME_LIMITS.passivateEveryMs);
  }

  /** The texts of holds in memory. */
  get textRoom(): Pick<TextRoom, "bytes" | "bytesOfAppMost"> {
    return this.#shared.holds.room;
  }

  /** Actors in memory. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Runs a call of a user, by end-user id; an unknown id starts as an empty user. */
  runById<Name extends CommandName>(
    id: string,
    call: Call<Name>,
  ): Promise<TurnResult<Commands[Name]["answer"]>> {
    const { realm } = call.realm;
    const actor = this.#byId.get(realm)?.get(id);
    if (actor !== undefined) return actor.run(call);
    return this.#start({ realm, id }).then((started) => (started as Actor).run(call));
  }

  /** Counts a call of a user that was refused without a turn. */
  async countRefused(realm: Realm, id: string, call: RefusedCall): Promise<void> {
    const actor = await this.actorOf(realm.realm, id);
    await actor.countRefused(realm, call);
  }

  /** Returns the actor of an end-user id; for an alias that of the canonical user. */
  async actorOf(realm: number, id: string): Promise<Actor> {
    return this.inMemory(realm, id) ?? await this.#start({ realm, id }) as Actor;
  }

  /** Returns the actor if it is in memory, else null. It may leave memory during the next await. */
  inMemory(realm: number, id: string): Actor | null {
    return this.#byId.get(realm)?.get(id) ?? null;
  }

  /** Returns the actor of a number if it is in memory; for an alias that of the canonical user. */
  inMemoryByKey(key: UserKey): Actor | null {
    return this.#byKey.get(key) ?? null;
  }

  /** Returns the actor of a user of a realm, by number; null if there is no such user. */
  async actorByKey(realm: number, key: UserKey): Promise<Actor | null> {
    const actor = this.#byKey.get(key) ?? await this.#start({ realm, key });
    return actor?.state.user.realm === realm ? actor : null;
  }

  /**
   * Whether two ids name one user. Only the first one is loaded, so that a caller with access to that user cannot make the
   * service load others.
   */
  async isSameUser(realm: number, id: string, other: string): Promise<boolean> {
    if (id === other) return true;
    const { user, aliases } = (await this.actorOf(realm, id)).state;
    return user.id === other || aliases.some((alias) => alias.id === other);
  }

  /** Whether an actor still is its user's actor. */
  has(actor: Actor): boolean {
    return this.#byKey.get(actor.state.user.key) === actor;
  }

  /** Replaces the actor of an alias by that of the canonical user, which has the new aliases. */
  retire(from: Actor, to: Actor): void {
    from.successor = to;
    from.state.reservations.leave();
    this.#register(to);
    const { user } = from.state;
    this.#term.watches.touch(user.realm, user.id);
    this.#term.watches.touchBelow(user.realm, user.id);
  }

  /** Runs a call of the user with a key; null if no user of the call's realm has it. */
  async runByKey<Name extends CommandName>(
    key: UserKey,
    call: Call<Name>,
  ): Promise<TurnResult<Commands[Name]["answer"]> | null> {
    const actor = this.#byKey.get(key) ?? await this.#start({ realm: call.realm.realm, key });
    if (actor === null || actor.state.user.realm !== call.realm.realm) return null;
    return actor.run(call);
  }

  /** Waits for running loads of a user's rows. */
  async settleStarts({ state: { user, aliases } }: Actor): Promise<void> {
    const names = [user, ...aliases].flatMap((named) => namesOf(user.realm, named));
    await Promise.allSettled(names.map((name) => this.#starting.get(name)));
  }

  /** Unloads an erased user: waiting calls are refused and may be sent again. */
  evict(actor: Actor): void {
    actor.isBroken = true;
    this.#remove(actor);
    const { realm, id } = actor.state.user;
    this.#term.watches.endErased(realm, id);
  }

  /** Unloads actors that are idle and had no turn for long. */
  passivate(): void {
    const now = performance.now();
    const idleSince = now - RUNTIME_LIMITS.actorIdleMs;
    for (const actor of this.#byKey.values()) {
      if (actor.hadTurn) actor.seenAt = now;
      actor.hadTurn = false;
      if (actor.seenAt <= idleSince && actor.isIdle) this.#remove(actor);
    }
  }

  /**
   * Unloads idle actors that had no turn since the last visit of the search, while there are too many (the clock
   * algorithm). Each start of an actor makes a few steps of the search: a look at all actors would delay every turn.
   */
  #makeRoom(): void {
    for (let step = 0; step < RUNTIME_LIMITS.roomSteps; step++) {
      if (this.#byKey.size < RUNTIME_LIMITS.actorsMax) return;
      const { done, value: actor } = this.#hand.next();
      if (done === true) this.#hand = this.#byKey.values();
      else if (actor.isRecent) actor.isRecent = false;
      else if (actor.isIdle) this.#remove(actor);
    }
  }

  /**
   * Unloads every actor of a realm, which another node owns from now on, one at each step. Its calls go to the new owner,
   * and the tables have everything, so the results of running loads are not needed either.
   */
  *dropRealm(realm: number): Iterable<void> {
    for (const actor of new Set(this.#byId.get(realm)?.values())) {
      actor.isBroken = true;
      this.#remove(actor);
      yield;
    }
    this.#byId.delete(realm);
  }

  /** Actors in memory of a realm. */
  sizeOf(realm: number): number {
    return this.#byId.get(realm)?.size ?? 0;
  }

  /** Stops the search for idle actors. */
  close(): void {
    clearInterval(this.#timer);
  }

  /** Unloads a broken actor once the tables have what it acknowledged; until then its user is unavailable. */
  #discard(actor: Actor): void {
    this.#drained().then(() => this.#remove(actor), () => {});
  }

  #start(ref: UserRef): Promise<Actor | null> {
    const name = nameOf(ref);
    const waiting = this.#starting.get(name);
    if (waiting !== undefined) return waiting;
    this.#makeRoom();
    if (this.#byKey.size >= RUNTIME_LIMITS.actorsMax * 2) {
      return Promise.reject(new Unavailable("Too many users are active"));
    }
    const started = this.#loader.load(ref)
      .then((rows) => this.#admit(ref, rows))
      .finally(() => this.#starting.delete(name));
    this.#starting.set(name, started);
    return started;
  }

  /** Makes the actor of loaded rows, unless the user was started under its other name meanwhile. */
  #admit(ref: UserRef, rows: LoadedUser | null): Actor | null | Promise<Actor> {
    if (rows !== null) {
      const known = this.#byKey.get(rows.user.key);
      if (known !== undefined) return known;
      return this.#add(new UserState({ ...rows, recorded: true }, this.#shared));
    }
    if ("key" in ref) return null;
    const key = this.#keys.take();
    return typeof key === "number" ? this.#addNew(key, ref) : key.then((taken) => this.#addNew(taken, ref));
  }

  #addNew(key: UserKey, { realm, id }: { readonly realm: number; readonly id: string }): Actor {
    const none = { subscriptions: [], counters: [], reservations: [], balances: [] };
    const rows = { user: newUser(key, realm, id), recorded: false, aliases: [], ...none };
    return this.#add(new UserState(rows, this.#shared));
  }

  #add(state: UserState): Actor {
    this.#term.counts.actorsStarted += 1;
    const actor = new Actor(state, this.#term, this.#onBroken);
    this.#register(actor);
    return actor;
  }

  #register(actor: Actor): void {
    const { user, aliases } = actor.state;
    let byId = this.#byId.get(user.realm);
    if (byId === undefined) this.#byId.set(user.realm, byId = new Map());
    for (const { key, id } of [user, ...aliases]) {
      this.#byKey.set(key, actor);
      byId.set(id, actor);
    }
  }

  /** Keeps an actor while its user is being loaded: the load may have read the tables before the last turns. */
  #remove(actor: Actor): void {
    const { user, aliases } = actor.state;
    const names = [user, ...aliases];
    const isStarting = names.some((named) =>
      namesOf(user.realm, named).some((name) => this.#starting.has(name))
    );
    if (!actor.isBroken && isStarting) return;
    this.#term.counts.actorsLetGo += 1;
    actor.state.reservations.leave();
    const byId = this.#byId.get(user.realm);
    for (const { key, id } of names) {
      // The user of an actor that was given up may have been loaded again since.
      if (this.#byKey.get(key) === actor) this.#byKey.delete(key);
      if (byId?.get(id) === actor) byId.delete(id);
    }
  }
}

/** The names of a user among the running starts: by key and by id, within a realm. */
function namesOf(realm: number, { key, id }: { readonly key: UserKey; readonly id: string }): string[] {
  return [nameOf({ realm, key }), nameOf({ realm, id })];
}

function nameOf(ref: UserRef): string {
  return "key" in ref ? `${ref.realm}#${ref.key}` : `${ref.realm}/${ref.id}`;
}
