// The users above at which a call is decided. All of them must be in memory, with nothing running in their mailboxes, when
// the call has its turn: then it is decided and applied at every level in one synchronous step, and its changes leave in
// one batch. A call that has to wait for one of them leaves its own mailbox first, waits, and begins its turn again. So no
// call keeps a mailbox while it waits for another user, and calls of different paths never wait for each other in a circle.

import type { CommandName } from "../src/domain/command.ts";
import { ownerOf, type UserKey } from "../src/domain/values/ids.ts";
import { isPlanChangeDue } from "../src/domain/metering/due.ts";
import { type Change, type OlderRows, PATH_MAX, type UserState } from "../src/domain/state/user.ts";
import type { Realm } from "./call.ts";
import type { Mailbox } from "./mailbox.ts";
import { Unavailable } from "./port.ts";

/** An actor as a call of a user below sees it. */
export interface Above {
  readonly state: UserState;
  readonly isBroken: boolean;
  /** Whether no call waits for a turn or loads rows for its own. */
  readonly hasNoneWaiting: boolean;
  readonly mailbox: Mailbox;
  /** Calls of users below that need the actor in memory. */
  pins: number;
  /** Loads a settled reservation of the user, with the counters of its lines. */
  loadSettled(id: string): Promise<OlderRows>;
}

/** Finds the actors of users by their numbers; for an alias that of the canonical user. */
export interface Users<Actor extends Above> {
  /** The actor if it is in memory. */
  inMemoryByKey(key: UserKey): Actor | null;
  /** Loads the user of a realm; null if there is no such user. */
  actorByKey(realm: number, key: UserKey): Promise<Actor | null>;
}

/** Which users above a command needs: those of the path now, those that hold parts of its reservation, or both. */
const REACH: Readonly<Partial<Record<CommandName, { readonly path: boolean; readonly parts: boolean }>>> = {
  reserve: { path: true, parts: false },
  track: { path: true, parts: false },
  canUse: { path: true, parts: false },
  explain: { path: true, parts: false },
  generate: { path: true, parts: false },
  usage: { path: true, parts: false },
  features: { path: true, parts: false },
  subscribe: { path: true, parts: false },
  mirror: { path: true, parts: false },
  user: { path: true, parts: false },
  commit: { path: true, parts: true },
  release: { path: false, parts: true },
  prolong: { path: false, parts: true },
  detach: { path: false, parts: true },
};

/** Receives users whose features may have changed, which users below have too. */
export interface Below {
  readonly size: number;
  touchBelow(realm: number, id: string): void;
}

/** Marks what users below have of some users as changed, if changes not yet applied are about their plans or places. */
export function touchBelow(
  watches: Below,
  actors: readonly Pick<Above, "state">[],
  changes: readonly Change[],
): void {
  if (watches.size === 0) return;
  for (const { state: { user: { realm, key, id, parentKey } } } of actors) {
    const isChanged = changes.some(({ table, row }) =>
      table === "subscriptions"
        ? row.userKey === key
        : table === "users" && row.key === key && row.parentKey !== parentKey
    );
    if (isChanged) watches.touchBelow(realm, id);
  }
}

/** What a call waits for before it can begin its turn again. */
export class Wait {
  /** Waits; what it loads is kept with the visit of the call. */
  readonly over: (visit: Visit) => Promise<unknown>;

  constructor(over: (visit: Visit) => Promise<unknown>) {
    this.over = over;
  }
}

/** What one call has loaded so far. `end` must follow. */
export class Visit {
  /** Settled parts that are in no memory, by id; null for one that is gone with its user. */
  readonly #parts = new Map<string, OlderRows | null>();
  readonly #pinned: Above[] = [];
  #admitted: { readonly actor: Above; readonly id: string }[] = [];

  /** Keeps an actor in memory until the end of the call. */
  pin(actor: Above): void {
    actor.pins += 1;
    this.#pinned.push(actor);
  }

  has(partId: string): boolean {
    return this.#parts.has(partId);
  }

  /** Adds what was loaded of a part. */
  add(partId: string, rows: OlderRows | null): void {
    this.#parts.set(partId, rows);
  }

  /** Gives a part to the actor of its user, for the turn that follows. */
  lend(actor: Above, id: string): void {
    const rows = this.#parts.get(id);
    if (rows == null) return;
    const userKey = actor.state.user.key;
    actor.state.admit({ ...rows, reservations: rows.reservations.map((row) => ({ ...row, userKey })) });
    this.#admitted.push({ actor, id });
  }

  /** Takes back the parts that the turn left alone. */
  takeBack(): void {
    for (const { actor, id } of this.#admitted) {
      if (actor.state.reservations.stored(id)?.status === "expired") actor.state.forget(id);
    }
    this.#admitted = [];
  }

  end(): void {
    for (const actor of this.#pinned) actor.pins -= 1;
  }
}

/** What decides where a call counts, beside its user. */
export interface Counting {
  readonly name: CommandName;
  /** The reservation that it settles; empty for none. */
  readonly reservationId: string;
  /** The number of a new parent, for a change of the tree; null for any other call. */
  readonly newParent: UserKey | null;
  readonly realm: Pick<Realm, "catalog" | "now">;
}

/** Returns the users above at which a call counts, nearest first; or what it has to wait for. */
export function levelsOf<Actor extends Above>(
  users: Users<Actor>,
  actor: Actor,
  call: Counting,
  visit: Visit | null,
): readonly Actor[] | Wait {
  const reach = REACH[call.name];
  const { user, reservations } = actor.state;
  const onPath = reach?.path === true || tellsFeatures(actor.state, call.realm);
  const firstKey = call.newParent ?? (onPath ? user.parentKey : null);
  const parts = reach?.parts === true ? reservations.partsOf(call.reservationId) : NO_PARTS;
  if (firstKey === null && parts.length === 0) return [];
  const levels: Actor[] = [];
  for (let key = firstKey; key !== null;) {
    const above = users.inMemoryByKey(key);
    if (above === null) return loading(users, user.realm, key);
    if (above === actor || levels.length >= PATH_MAX) break;
    levels.push(above);
    key = above.state.user.parentKey;
  }
  for (const id of parts) {
    const owner = ownerOf("reservation", id);
    if (owner === null || visit?.has(id) === true && users.inMemoryByKey(owner) === null) continue;
    const above = users.inMemoryByKey(owner);
    if (above === null) return loading(users, user.realm, owner, id);
    if (!above.state.reservations.has(id) && visit?.has(id) !== true) return loadingPart(above, id);
    if (!levels.includes(above) && above !== actor) levels.push(above);
  }
  for (const level of levels) {
    if (level.isBroken) throw new Unavailable("This user's account is being loaded again");
    if (!level.hasNoneWaiting) return new Wait(() => level.mailbox.run(() => {}));
  }
  for (const id of parts) {
    const owner = ownerOf("reservation", id);
    const above = owner === null ? null : users.inMemoryByKey(owner);
    if (above !== null && !above.state.reservations.has(id)) visit?.lend(above, id);
  }
  return levels;
}

/** Whether a call settles a change of the user's plan: the message about it contains features of the users above. */
function tellsFeatures(state: UserState, realm: Counting["realm"]): boolean {
  return realm.catalog.features.types.size > 0 && isPlanChangeDue(state, realm.now());
}

const NO_PARTS: readonly string[] = [];

function loading(users: Users<Above>, realm: number, key: UserKey, partId: string | null = null): Wait {
  return new Wait(async (visit) => {
    const actor = await users.actorByKey(realm, key);
    if (actor !== null) return visit.pin(actor);
    if (partId === null) throw new Unavailable("The account above this user is not there");
    visit.add(partId, null);
  });
}

function loadingPart(actor: Above, id: string): Wait {
  return new Wait(async (visit) => {
    visit.pin(actor);
    const rows = await actor.loadSettled(id);
    visit.add(id, rows.reservations.length === 0 ? null : rows);
  });
}
