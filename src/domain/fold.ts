// The fold: recorded events are decided anew, in the order of their times, under a catalog that may be another one. Each
// event is decided as a track of its work, by `decide` as in the service. A commit counts past the quota, since its work was
// done: where the track does not fit, the reserve of what was held decides. Its windows are those of its reserve.
//
// Runs are left out: their limits are no part of a catalog.

import type { Catalog } from "./catalog/catalog.ts";
import { isGuard } from "./catalog/plan.ts";
import type { CommandName, Commands } from "./command.ts";
import { decide } from "./decide.ts";
import { type FoldedPlans, type KnownPlans, plansFrom, type Step } from "./fold_plans.ts";
import type { CommitInput } from "./metering/commit.ts";
import type { TrackInput } from "./metering/track.ts";
import type { Amounts, CallSize } from "./pricing/amounts.ts";
import type { Decision } from "./state/result.ts";
import { SharedValues } from "./state/shared_values.ts";
import { newUser, PATH_MAX, type User, UserState } from "./state/user.ts";
import type { Work } from "./state/work.ts";
import type { Amount } from "./values/amount.ts";
import { type IdKind, type IdSource, ownedId, type UserKey } from "./values/ids.ts";
import { metadataOf } from "./values/match.ts";
import type { Millis } from "./values/period.ts";

/** A recorded event, with the canonical user of then. */
export interface RecordedEvent {
  readonly userKey: UserKey;
  readonly type: string;
  /** As JSON text. */
  readonly metadata: string | null;
  readonly createdAt: Millis;
  readonly work: Work;
  /** Whether it is a released reservation, which counts nowhere but may have begun a session. */
  readonly isReleased: boolean;
}

/** A user of a fold. */
export interface KnownUser extends KnownPlans {
  readonly user: Pick<User, "key" | "realm" | "id" | "parentKey" | "memberLimits" | "spendCaps">;
}

/** The result of an event: the groups with too little left, where any refused it. */
interface Folded {
  readonly isRefused: boolean;
  readonly groupIds: readonly string[];
}

/** The usage of a limit group in a window. */
interface FoldedCounter {
  readonly userId: string;
  readonly groupId: string;
  readonly windowStart: Millis;
  readonly count: Amount;
}

interface Member {
  readonly state: UserState;
  readonly steps: FoldedPlans["steps"];
  /** The next step. */
  next: number;
}

/** Longer than any hold of a fold lasts: it is settled in the same moment. */
const HOLD_MS = 86_400_000;

/** Decides recorded events of some users anew. The users of a tree belong into one fold. */
export class Fold {
  readonly #catalog: Catalog;
  readonly #members = new Map<UserKey, Member>();
  readonly #ids: IdSource = countingIds();

  /** @param from the moment at which the users begin, without usage */
  constructor(catalog: Catalog, users: Iterable<KnownUser>, from: Millis) {
    this.#catalog = catalog;
    const shared = new SharedValues();
    for (const { user, ...known } of users) {
      const { subscriptions, balances, steps } = plansFrom(known, from, catalog);
      const rows = { recorded: true, aliases: [], counters: [], reservations: [], subscriptions, balances };
      const row = { ...newUser(user.key, user.realm, user.id), ...user };
      this.#members.set(user.key, { state: new UserState({ ...rows, user: row }, shared), steps, next: 0 });
    }
    // So that each has entered its plan before it may change.
    for (const { state } of this.#members.values()) this.#decide(state, "settle", {}, from);
  }

  /** Decides an event; null for one that counts nowhere, and for one of no user of this fold. */
  take({ userKey, type, metadata: text, createdAt, work, isReleased }: RecordedEvent): Folded | null {
    const member = this.#members.get(userKey);
    if (member === undefined) return null;
    const above = this.#above(member.state);
    for (const each of [member, ...above]) this.#advance(each, createdAt);
    const { size, costCents, usage, credits, heldForMs, held } = work;
    const at = createdAt - (heldForMs ?? 0);
    const metadata = metadataOf(text);
    const input: TrackInput = { event: type, metadata, size, costCents, usage, credits };
    const states = above.map(({ state }) => state);
    if (isReleased) {
      if (held !== null) this.#settle(member.state, input, held, at, states, isReleased);
      return null;
    }
    const { result, refusedCall } = this.#decide(member.state, "track", input, at, states);
    if (result.ok) return COUNTED;
    if (held !== null && this.#settle(member.state, input, held, at, states, isReleased)) return COUNTED;
    return { isRefused: true, groupIds: refusedCall?.groupIds ?? [] };
  }

  /** Reserves what was held, and if that is allowed releases it or commits the work. */
  #settle(
    state: UserState,
    { event, metadata, size, costCents, usage, credits }: TrackInput,
    held: Amounts,
    at: Millis,
    above: readonly UserState[],
    isReleased: boolean,
  ): boolean {
    const reserve = { event, metadata, size: sizeOf(held), ttlMs: HOLD_MS };
    const { result } = this.#decide(state, "reserve", reserve, at, above);
    const hold = result.ok ? result.answer.hold : null;
    if (hold === null) return false;
    const { reservationId } = hold;
    const commit: CommitInput = {
      reservationId,
      extra: {},
      actual: actualOf(size, credits ?? null),
      costCents,
      usage: usage ?? null,
    };
    const parts = state.reservations.get(reservationId)?.parts ?? [];
    if (isReleased) {
      this.#decide(state, "release", { reservationId, reason: null, errorCode: null }, at, above);
    } else this.#decide(state, "commit", commit, at, above);
    for (const each of [state, ...above]) for (const id of [reservationId, ...parts]) each.forget(id);
    return true;
  }

  /** The usage of all users by quota group and window, where there is any. */
  *counters(): Iterable<FoldedCounter> {
    for (const { state } of this.#members.values()) {
      const guards = this.#guards(state);
      for (const { planId, groupId, windowStart, count, kind } of state.counters.values()) {
        if (count === 0n || kind === "rate" || guards.has(`${planId}\n${groupId}`)) continue;
        yield { userId: state.user.id, groupId, windowStart, count };
      }
    }
  }

  #guards(state: UserState): ReadonlySet<string> {
    const plans = new Set([...state.counters.values()].map(({ planId }) => planId));
    return new Set(
      [...plans].flatMap((id) =>
        (this.#catalog.plans.get(id)?.groups ?? []).filter(isGuard).map((group) => `${id}\n${group.id}`)
      ),
    );
  }

  /** The members above a user, nearest first. */
  #above({ user }: UserState): readonly Member[] {
    if (user.parentKey === null) return NO_MEMBERS;
    const path: Member[] = [];
    let next = this.#members.get(user.parentKey);
    while (next !== undefined && path.length < PATH_MAX) {
      path.push(next);
      const { parentKey } = next.state.user;
      next = parentKey === null ? undefined : this.#members.get(parentKey);
    }
    return path;
  }

  /** Lets happen to a member what happened up to a moment. */
  #advance(member: Member, now: Millis): void {
    for (let step = member.steps[member.next]; step !== undefined && step.at <= now;) {
      member.next += 1;
      this.#do(member.state, step);
      step = member.steps[member.next];
    }
  }

  #do(state: UserState, step: Step): void {
    switch (step.kind) {
      case "subscribe":
        this.#decide(state, "subscribe", step.input, step.at);
        break;
      case "end": {
        const { provider, externalId } = step.row;
        this.#decide(state, "cancel", { provider, externalId, endsAt: null, reason: null }, step.at);
        break;
      }
      case "credits":
        state.apply([{ verb: "append", table: "credit_balances", row: step.balance }]);
    }
  }

  /** Decides a command and applies its changes: also a refused one settles what is due. */
  #decide<Name extends CommandName>(
    state: UserState,
    name: Name,
    input: Commands[Name]["input"],
    now: Millis,
    above: readonly UserState[] = NO_STATES,
  ): Decision<Commands[Name]["answer"]> {
    const context = { now, catalog: this.#catalog, ids: this.#ids, balancesLeft: null, outbox: null };
    const decision = decide(state, name, input, context, above);
    for (const each of [state, ...above]) each.apply(decision.changes);
    return decision;
  }
}

const COUNTED: Folded = { isRefused: false, groupIds: [] };
const NO_MEMBERS: readonly Member[] = [];
const NO_STATES: readonly UserState[] = [];

function sizeOf({ count, tokens, seconds, cents }: Amounts): CallSize {
  return { quantity: seconds, count, inputTokens: tokens, inputCostCents: cents };
}

/** The amounts of a work that a commit takes as final. */
function actualOf({ quantity, count, inputTokens, inputCostCents }: CallSize, credits: Amount | null) {
  const amounts = { seconds: quantity, count, tokens: inputTokens, cents: inputCostCents, credits };
  return Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount !== null)) as CommitInput[
    "actual"
  ];
}

/** Ids that only need to differ within one fold. */
function countingIds(): IdSource {
  let issued = 0;
  const next = () => String(issued++).padStart(20, "0");
  return {
    next: (kind: IdKind) => `${kind}_${next()}`,
    nextOwned: (kind, owner) => ownedId(kind, owner, next()),
  };
}
