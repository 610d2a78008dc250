// Changes of the tree of users: parents, merges of users in a tree, and erasures. Those of one realm run one at a time, each
// against the tree that the one before left. So two users are never each put under the other at once, and no path gets
// longer than it may.

import { type MemberLimits, PATH_MAX, type UserState } from "../src/domain/state/user.ts";
import type { ParentAnswer } from "../src/domain/accounts/parent.ts";
import type { Actor } from "./actor.ts";
import type { Keeping, Realm, TurnResult } from "./call.ts";
import type { Directory } from "./directory.ts";
import type { UserStore } from "./port.ts";

/** The parts of a term that changes of the tree use. */
export interface TreeTerm {
  readonly directory: Directory;
  readonly store: Pick<UserStore, "hasTree" | "heightBelow" | "someChildren">;
  /** Resolves when the tables hold everything that was decided before the call. */
  readonly flush: () => Promise<void>;
}

/** A call that puts a user under another one, or at the top. */
export interface ParentCall {
  readonly realm: Realm;
  readonly userId: string;
  /** Null for none. */
  readonly parentId: string | null;
  readonly memberLimits: MemberLimits | null | undefined;
  readonly keeping: Keeping<ParentAnswer> | null;
}

/** The changes of trees of a term. */
export class TreeChanges {
  readonly #term: TreeTerm;
  /** The last change of each realm. */
  readonly #last = new Map<number, Promise<unknown>>();
  /** Realms in which a user has a parent, or may have one. */
  readonly #trees = new Set<number>();
  /** Realms that were seen to have none. */
  readonly #flat = new Set<number>();

  constructor(term: TreeTerm) {
    this.#term = term;
  }

  /** Runs a change after every earlier one of its realm. */
  inTurn<T>(realm: number, change: () => Promise<T>): Promise<T> {
    const run = (this.#last.get(realm) ?? Promise.resolve()).then(change, change);
    const settled = run.catch(() => {}).finally(() => {
      if (this.#last.get(realm) === settled) this.#last.delete(realm);
    });
    this.#last.set(realm, settled);
    return run;
  }

  /** Whether a user of a realm may have a parent: then merges and erasures are changes of the tree. */
  async mayHaveTree(realm: number): Promise<boolean> {
    if (this.#trees.has(realm)) return true;
    if (this.#flat.has(realm)) return false;
    const has = await this.#term.store.hasTree(realm);
    // A parent may have been set during the read.
    if (has || this.#trees.has(realm)) this.#trees.add(realm);
    else this.#flat.add(realm);
    return this.#trees.has(realm);
  }

  /** Whether a realm is known to have no tree, without a read. */
  isFlat(realm: number): boolean {
    return this.#flat.has(realm) && !this.#trees.has(realm);
  }

  /** Forgets a realm that another node owns from now on. */
  drop(realm: number): void {
    this.#trees.delete(realm);
    this.#flat.delete(realm);
  }

  /** Puts a user under another one, or at the top. */
  setParent(call: ParentCall): Promise<TurnResult<ParentAnswer>> {
    const { realm } = call.realm;
    this.#trees.add(realm);
    this.#flat.delete(realm);
    return this.inTurn(realm, () => this.#setParent(call));
  }

  /**
   * Takes a user out of its tree, because it is erased: its children come under its parent, and the users above get back what
   * its open holds took there. Within a turn of the realm's changes.
   */
  async leave(realm: Realm, { state }: Actor): Promise<void> {
    const { directory, store, flush } = this.#term;
    const { parentKey } = state.user;
    await flush();
    while (true) {
      const ids = await store.someChildren(state.keys, CHILDREN_STEP);
      if (ids.length === 0) break;
      const input = { parentKey, heightBelow: 0, memberLimits: null };
      const call = { realm, name: "setParent", input, newParent: parentKey } as const;
      await Promise.all(ids.map((id) => directory.runById(id, call)));
      await flush();
    }
    const held = heldAbove(state);
    for (let at = 0; at < held.length; at += HOLDS_STEP) {
      await Promise.all(
        held.slice(at, at + HOLDS_STEP).map((reservationId) => {
          const needs = { reservationId };
          return directory.runById(state.user.id, { realm, name: "detach", input: needs, needs });
        }),
      );
    }
  }

  async #setParent(
    { realm, userId, parentId, memberLimits, keeping }: ParentCall,
  ): Promise<TurnResult<ParentAnswer>> {
    const { directory, store, flush } = this.#term;
    const parent = parentId === null ? null : await directory.actorOf(realm.realm, parentId);
    const actor = await directory.actorOf(realm.realm, userId);
    const parentKey = parent?.state.user.key ?? null;
    await flush();
    const heightBelow = actor.state.recorded ? await store.heightBelow(actor.state.keys) : 0;
    const input = { parentKey, heightBelow, ...memberLimits === undefined ? {} : { memberLimits } };
    return await directory.runById(userId, {
      realm,
      name: "setParent",
      input,
      newParent: parentKey,
      keeping,
    });
  }
}

/** The open holds of a user that have parts at users above. */
export function heldAbove(state: UserState): string[] {
  return [...state.reservations.keys()].filter((id) =>
    state.isOpen(id) && state.reservations.partsOf(id).length > 0
  );
}

/** Children that come under another parent at a time. */
const CHILDREN_STEP = 500;

/** Holds that are given back at a time. */
const HOLDS_STEP = 200;

/** Loads the users above a user, nearest first. For a change of the tree, during which no path changes. */
export async function pathAbove(
  directory: Pick<Directory, "actorByKey">,
  { state: { user } }: Actor,
): Promise<Actor[]> {
  const above: Actor[] = [];
  for (let key = user.parentKey; key !== null && above.length < PATH_MAX;) {
    const actor = await directory.actorByKey(user.realm, key);
    if (actor === null) break;
    above.push(actor);
    key = actor.state.user.parentKey;
  }
  return above;
}
