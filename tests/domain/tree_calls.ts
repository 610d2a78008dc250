// Trees for the system made of the pure domain: who is above a user, and the change of a parent as the runtime makes it.

import type { CommandName, Commands } from "../../src/domain/command.ts";
import type { MergeTree } from "../../src/domain/merging/merge.ts";
import { isPlanChangeDue } from "../../src/domain/metering/due.ts";
import { newUser, type User, type UserState } from "../../src/domain/state/user.ts";
import { ownerOf, type UserKey } from "../../src/domain/values/ids.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import type { Input, ModelReply } from "../model/document.ts";
import { childrenOf, heightBelow } from "../support/memory_tree.ts";
import type { DecideSystem } from "./decide_system.ts";
import { SHOW } from "./wire_answer.ts";
import { subscribeOf } from "./wire_input.ts";

/** Commands that count at the users above, show them, or show the features that they give. */
const ON_PATH: readonly CommandName[] = ["reserve", "track", "canUse", "explain", "usage", "user", "commit"]
  .concat(["features", "subscribe", "mirror"]) as CommandName[];

/** Finds users by their numbers; for an alias its canonical user. */
interface Finder {
  stateOfKey(key: UserKey): UserState;
}

/** The rows of all users of a realm. */
interface Tables {
  users(): readonly User[];
}

/** The users above at which a command is decided, nearest first: those of the path, then others with parts of its hold. */
export function levelsOf<Name extends CommandName>(
  users: Finder,
  state: UserState,
  name: Name,
  input: Commands[Name]["input"],
  now: Millis,
): UserState[] {
  const onPath = ON_PATH.includes(name) || isPlanChangeDue(state, now);
  const above: UserState[] = [];
  const add = (level: UserState) => {
    if (level !== state && !above.includes(level)) above.push(level);
  };
  const isChange = name === "setParent";
  const first = isChange ? (input as Commands["setParent"]["input"]).parentKey : state.user.parentKey;
  for (let key = isChange || onPath ? first : null; key !== null;) {
    const level = users.stateOfKey(key);
    if (level === state) break;
    add(level);
    key = level.user.parentKey;
  }
  for (const part of partsNamed(state, input)) add(users.stateOfKey(ownerOf("reservation", part) as UserKey));
  return above;
}

/** The ids of the parts of the hold that an input names. */
export function partsNamed(state: UserState, input: object): readonly string[] {
  const id = "reservationId" in input ? String(input.reservationId) : "";
  return id === "" ? [] : state.reservations.partsOf(id);
}

/** Answers a change of a user's parent. */
export function answerParent(system: DecideSystem, input: Input, now: Millis): ModelReply {
  const { userId, parentId, memberLimits } = input;
  const parentKey = typeof parentId === "string" ? system.stateOf(parentId, now).user.key : null;
  const limits = subscribeOf({ customLimits: memberLimits }).customLimits;
  const state = system.stateOf(String(userId), now);
  const command = {
    parentKey,
    heightBelow: heightBelow(system.tables, state.keys),
    ...limits === undefined ? {} : { memberLimits: limits },
  };
  return system.ask(String(userId), "setParent", command, now, SHOW.setParent);
}

/** The places of two users before their merge. */
export function placesOf(users: Finder, tables: Tables, from: UserState, to: UserState): MergeTree {
  const [aboveFrom, aboveTo] = [from, to].map((state) => levelsOf(users, state, "user", {}, 0)) as [
    UserState[],
    UserState[],
  ];
  return {
    isOnePath: aboveFrom.includes(to) || aboveTo.includes(from),
    above: { from: aboveFrom.length, to: aboveTo.length },
    heightBelow: Math.max(...[from, to].map(({ keys }) => heightBelow(tables, keys))),
    children: childrenOf(tables, from.keys).length,
  };
}

/** The users of scenes that share their books: one realm. */
export class SceneRealm<Of extends { readonly state: UserState; readonly now: Millis }> implements Finder {
  /** By the number of the user; that of an alias leads to its canonical user. */
  readonly #scenes = new Map<UserKey, Of>();

  add(key: UserKey, scene: Of): void {
    for (const [known, each] of this.#scenes) {
      if (each === this.#scenes.get(key)) this.#scenes.set(known, scene);
    }
    this.#scenes.set(key, scene);
  }

  stateOfKey(key: UserKey): UserState {
    return (this.#scenes.get(key) as Of).state;
  }

  users(): User[] {
    return [...this.#scenes].map(([key, { state: { user } }]) =>
      key === user.key ? user : { ...newUser(key, user.realm, ""), mergedInto: user.key }
    );
  }

  /** The users above at which a command of a scene is decided. */
  levelsOf<Name extends CommandName>(
    { state, now }: Of,
    name: Name,
    input: Commands[Name]["input"],
  ): Of[] {
    return levelsOf(this, state, name, input, now).map(({ user }) => this.#scenes.get(user.key) as Of);
  }

  /** The places of two users before their merge; null where no user has a parent. */
  placesOf(from: Of, to: Of): MergeTree | null {
    const isFlat = this.users().every(({ parentKey }) => parentKey === null);
    return isFlat ? null : placesOf(this, this, from.state, to.state);
  }
}
