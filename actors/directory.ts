// The directory: from an end-user id, or the key that a reservation id names, to the one actor of that user. An
// actor is started once however many calls wait for it, loads go out many users to a query, and an actor leaves
// memory only when it is idle and the tables have everything of it.

import type { CommandName, Commands } from "../src/domain/command.ts";
import type { UserKey } from "../src/domain/values/ids.ts";
import type { Millis } from "../src/domain/values/period.ts";
import { HoldTexts } from "../src/domain/state/hold_text.ts";
import { newUser, UserState } from "../src/domain/state/user.ts";
import { secondsSince } from "../src/process/counts/runtime_counts.ts";
import { RUNTIME_LIMITS } from "../src/process/limits.ts";
import type { RefusedCall } from "../src/domain/state/refused_call.ts";
import { Actor, type ActorTerm, type Call, type Realm, type TurnResult } from "./actor.ts";
import { Loader } from "./loader.ts";
import { UserKeys } from "./user_keys.ts";
import { type LoadedUser, Unavailable, type UserRef, type UserStore } from "./port.ts";

/** What a directory needs beside what its actors share. */
export interface DirectoryOptions {
  readonly term: ActorTerm;
  readonly store: UserStore;
  readonly realNow: () => Millis;
}

/** All actors of a term. */
export class Directory {
  readonly #term: ActorTerm;
  /** By realm, then by end-user id. */
  readonly #byId = new Map<number, Map<string, Actor>>();
  readonly #byKey = new Map<UserKey, Actor>();
  /** One for all: a function for each actor would be two objects more. */
  readonly #onBroken = (broken: Actor) => this.#discard(broken);
  readonly #starting = new Map<string, Promise<Actor | null>>();
  readonly #loader: Loader<UserRef, LoadedUser | null>;
  readonly #keys: UserKeys;
  readonly #texts = new HoldTexts();
  #timer: ReturnType<typeof setInterval>;
  /** Where the search for actors to unload goes on; it goes round all of them. */
  #hand: Iterator<Actor>;

  constructor({ term, store, realNow }: DirectoryOptions) {
    this.#term = term;
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

  /** Actors in memory. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Puts a call to a user by end-user id; an id that nothing is known of starts empty. */
  runById<Name extends CommandName>(
    id: string,
    call: Call<Name>,
  ): Promise<TurnResult<Commands[Name]["answer"]>> {
    const { realm } = call.realm;
    const actor = this.#byId.get(realm)?.get(id);
    if (actor !== undefined) return actor.run(call);
    return this.#start({ realm, id }).then((started) => (started as Actor).run(call));
  }

  /** Counts a call of an end-user id that was refused without a turn. */
  async countRefused(realm: Realm, id: string, call: RefusedCall): Promise<void> {
    const actor = await this.actorOf(realm.realm, id);
    await actor.countRefused(realm, call);
  }

  /** The actor of an end-user id; that of the canonical user for an alias. */
  async actorOf(realm: number, id: string): Promise<Actor> {
    return this.inMemory(realm, id) ?? await this.#start({ realm, id }) as Actor;
  }

  /** The same where it is in memory, else null. It may have left memory after the next await. */
  inMemory(realm: number, id: string): Actor | null {
    return this.#byId.get(realm)?.get(id) ?? null;
  }

  /**
   * Whether two ids stand for one user. Only the first one is looked up, so that somebody who may ask for that one
   * cannot make the service load others.
   */
  async isSameUser(realm: number, id: string, other: string): Promise<boolean> {
    if (id === other) return true;
    const { user, aliases } = (await this.actorOf(realm, id)).state;
    return user.id === other || aliases.some((alias) => alias.id === other);
  }

  /** Whether an actor is the one of its user. */
  has(actor: Actor): boolean {
    return this.#byKey.get(actor.state.user.key) === actor;
  }

  /** Hands a user over to the one that it was merged into; the state of the latter knows the new aliases. */
  retire(from: Actor, to: Actor): void {
    from.successor = to;
    this.#register(to);
    const { user } = from.state;
    this.#term.watches.touch(user.realm, user.id);
  }

  /** Puts a call to the user with a key; null when no user of the call's realm has it. */
  async runByKey<Name extends CommandName>(
    key: UserKey,
    call: Call<Name>,
  ): Promise<TurnResult<Commands[Name]["answer"]> | null> {
    const actor = this.#byKey.get(key) ?? await this.#start({ realm: call.realm.realm, key });
    if (actor === null || actor.state.user.realm !== call.realm.realm) return null;
    return actor.run(call);
  }

  /** Waits for loads under way that could still bring a user's rows. */
  async settleStarts({ state: { user, aliases } }: Actor): Promise<void> {
    const names = [user, ...aliases].flatMap((named) => namesOf(user.realm, named));
    await Promise.allSettled(names.map((name) => this.#starting.get(name)));
  }

  /** Lets go of a user that is no more: calls that wait for it are refused and may be sent again. */
  evict(actor: Actor): void {
    actor.isBroken = true;
    this.#remove(actor);
    const { realm, id } = actor.state.user;
    this.#term.watches.endErased(realm, id);
  }

  /** Lets go of actors that are idle and had no turn for long. */
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
   * Unloads idle actors that had no turn since the search came by last, while there are too many (the clock
   * algorithm). Each start of an actor takes a few steps, because looking at all actors at once would hold up every
   * turn.
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
   * Lets go of every actor of some realms, whose owner is another member from now on. Nobody calls for them any more
   * and the tables have everything of them, so a load that is still under way has nobody to answer to either.
   */
  dropRealms(realms: Iterable<number>): void {
    for (const realm of realms) {
      const actors = new Set(this.#byId.get(realm)?.values());
      for (const actor of actors) {
        actor.isBroken = true;
        this.#remove(actor);
      }
      this.#byId.delete(realm);
    }
  }

  /** Actors in memory of a realm. */
  sizeOf(realm: number): number {
    return this.#byId.get(realm)?.size ?? 0;
  }

  /** Stops the housekeeping; the actors are left to the collector. */
  close(): void {
    clearInterval(this.#timer);
  }

  /** Lets a broken actor go once the tables have what it acknowledged; until then its user is unavailable. */
  #discard(actor: Actor): void {
    this.#term.flush().then(() => this.#remove(actor), () => {});
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

  /** Makes the actor of loaded rows, unless the same user was started by its other name meanwhile. */
  #admit(ref: UserRef, rows: LoadedUser | null): Actor | null | Promise<Actor> {
    if (rows !== null) {
      const known = this.#byKey.get(rows.user.key);
      if (known !== undefined) return known;
      return this.#add(new UserState({ ...rows, recorded: true }, this.#texts));
    }
    if ("key" in ref) return null;
    const key = this.#keys.take();
    return typeof key === "number" ? this.#addNew(key, ref) : key.then((taken) => this.#addNew(taken, ref));
  }

  #addNew(key: UserKey, { realm, id }: { readonly realm: number; readonly id: string }): Actor {
    const none = { subscriptions: [], counters: [], reservations: [], balances: [] };
    const rows = { user: newUser(key, realm, id), recorded: false, aliases: [], ...none };
    return this.#add(new UserState(rows, this.#texts));
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

  /** An actor stays while its user is being loaded: that load may have read the tables before the last turns. */
  #remove(actor: Actor): void {
    const { user, aliases } = actor.state;
    const names = [user, ...aliases];
    const isStarting = names.some((named) =>
      namesOf(user.realm, named).some((name) => this.#starting.has(name))
    );
    if (!actor.isBroken && isStarting) return;
    this.#term.counts.actorsLetGo += 1;
    const byId = this.#byId.get(user.realm);
    for (const { key, id } of names) {
      // An actor that was given up earlier may have a successor that was loaded since.
      if (this.#byKey.get(key) === actor) this.#byKey.delete(key);
      if (byId?.get(id) === actor) byId.delete(id);
    }
  }
}

/** A user's names among the starts under way: by key and by id, in the realm in which it is asked for. */
function namesOf(realm: number, { key, id }: { readonly key: UserKey; readonly id: string }): string[] {
  return [nameOf({ realm, key }), nameOf({ realm, id })];
}

function nameOf(ref: UserRef): string {
  return "key" in ref ? `${ref.realm}#${ref.key}` : `${ref.realm}/${ref.id}`;
}
