// Several users in a tree behind `decide`, with a clock: each command is decided at every user of its path. After every
// decision the auditor checks that the books of all of them balance.

import { type Amount, amountOf } from "../../src/domain/values/amount.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import type { Catalog, PackDocument, PlanDocument } from "../../src/domain/catalog/catalog.ts";
import { compileCatalog } from "../../src/domain/catalog/catalog.ts";
import { decide } from "../../src/domain/decide.ts";
import { merge } from "../../src/domain/merging/merge.ts";
import { HoldTexts } from "../../src/domain/state/hold_text.ts";
import type { Decision } from "../../src/domain/state/result.ts";
import { type Change, newUser, UserState } from "../../src/domain/state/user.ts";
import { NO_HISTORY } from "./against_model.ts";
import { Auditor } from "./auditor.ts";
import { countedIds } from "./decide_system.ts";
import { sizeOf, subscription } from "./scene.ts";

/** Users in a tree. */
export class TreeScene {
  readonly states = new Map<string, UserState>();
  readonly auditor = new Auditor();
  catalog: Catalog;
  now: number;
  readonly #ids = countedIds(7);

  constructor(
    plans: readonly PlanDocument[],
    packs: readonly PackDocument[] = [],
    at = "2026-03-10T12:00:00.000Z",
  ) {
    this.catalog = compileCatalog({ plans, packs }, 1);
    this.now = Date.parse(at);
  }

  /** The state of a user, which is made for a new id. */
  state(id: string): UserState {
    const known = this.states.get(id);
    if (known !== undefined) return known;
    const none = { aliases: [], subscriptions: [], counters: [], reservations: [], balances: [] };
    const user = newUser(this.states.size + 1, 1, id);
    const state = new UserState({ user, recorded: false, ...none }, new HoldTexts());
    this.states.set(id, state);
    return state;
  }

  /** The users above, nearest first, then the others: a hold may have parts at any of them. */
  #above(id: string, isSettlement: boolean): UserState[] {
    const above: UserState[] = [];
    const byKey = (key: number) => [...this.states.values()].find(({ keys }) => keys.includes(key));
    for (let key = this.state(id).user.parentKey; key !== null;) {
      const next = byKey(key) as UserState;
      above.push(next);
      key = next.user.parentKey;
    }
    const others = [...this.states.values()].filter((each) => each.user.id !== id && !above.includes(each));
    return isSettlement ? [...above, ...others] : above;
  }

  /** Decides and applies at every level. */
  do<Name extends CommandName>(
    id: string,
    name: Name,
    input: Commands[Name]["input"],
  ): Decision<Commands[Name]["answer"]> {
    const isSettlement = ["commit", "release", "prolong"].includes(name);
    const isAlone = ["settle", "members", "subscribe", "grant"].includes(name);
    const above = isAlone ? [] : this.#above(id, isSettlement);
    const decision = this.#decide(id, name, input, above);
    this.#take(decision.changes);
    return decision;
  }

  #decide<Name extends CommandName>(
    id: string,
    name: Name,
    input: Commands[Name]["input"],
    above: readonly UserState[],
    catalog = this.catalog,
    ids = this.#ids,
  ): Decision<Commands[Name]["answer"]> {
    const context = { now: this.now, catalog, ids, balancesLeft: null, outbox: null };
    return decide(this.state(id), name, input, context, above);
  }

  #take(changes: readonly Change[]): void {
    for (const state of this.states.values()) state.apply(changes);
    this.auditor.take(changes);
    for (const state of this.states.values()) this.auditor.checkUser(state);
  }

  /** The answer of a command that must not be refused. */
  ask<Name extends CommandName>(id: string, name: Name, input: Commands[Name]["input"]) {
    const { result } = this.do(id, name, input);
    if (!result.ok) throw new Error(`${name} was refused: ${result.refusal.code}`);
    return result.answer;
  }

  subscribe(id: string, plan: string): void {
    this.ask(id, "subscribe", subscription(plan));
  }

  /** Puts a user under another one. */
  put(id: string, parentId: string | null, limits?: Record<string, number>): void {
    const parent = parentId === null ? null : this.state(parentId);
    const memberLimits = limits === undefined ? undefined : Object.fromEntries(
      Object.entries(limits).map(([group, quota]): [string, Amount] => [group, amountOf(quota)]),
    );
    const above = parent === null ? [] : [parent, ...this.#above(parentId as string, false)];
    const input = {
      parentKey: parent?.user.key ?? null,
      heightBelow: 0,
      ...memberLimits && { memberLimits },
    };
    this.#take(this.#decide(id, "setParent", input, above).changes);
  }

  /** Reserves; the id of the reservation, or the reasons against it. */
  reserve(id: string, count: number, ttlMs: number | null = null): { hold: string | null; reasons: string } {
    const answer = this.ask(id, "reserve", { ...callOf(count), ttlMs, prompt: null });
    return { hold: answer.hold?.reservationId ?? null, reasons: whyNot(answer) };
  }

  /** Why can-use refuses, and who; "" where it does not. */
  reason(id: string, count: number, catalog = this.catalog): string {
    const above = this.#above(id, false);
    const { result } = this.#decide(id, "canUse", callOf(count), above, catalog, countedIds(1_000));
    if (!result.ok) throw new Error(`canUse was refused: ${result.refusal.code}`);
    return whyNot(result.answer);
  }

  /** Tracks; the code of the answer. */
  track(id: string, count: number, costCents: number | null = null): string {
    const cost = costCents === null ? null : amountOf(costCents);
    const { result } = this.do(id, "track", { ...callOf(count), costCents: cost });
    return result.ok ? result.answer.matchStatus : result.refusal.code;
  }

  commit(id: string, reservationId: string, count?: number): void {
    const actual = count === undefined ? {} : { count: amountOf(count) };
    this.ask(id, "commit", { reservationId, extra: {}, actual, costCents: null });
  }

  release(id: string, reservationId: string): string {
    const { result } = this.do(id, "release", { reservationId, reason: null, errorCode: null });
    return result.ok ? "ok" : result.refusal.code;
  }

  /** Makes a user an alias of another. */
  merge(from: string, to: string): void {
    const context = {
      now: this.now,
      catalog: this.catalog,
      ids: this.#ids,
      balancesLeft: null,
      outbox: null,
    };
    const tree = { isOnePath: false, above: { from: 0, to: 0 }, heightBelow: 0, children: 0 };
    const input = { isDryRun: false, mode: "live", history: NO_HISTORY, analytics: "linked", tree } as const;
    const { result, changes } = merge(this.state(from), this.state(to), input, context);
    if (!result.ok) throw new Error(`merge was refused: ${result.refusal.code}`);
    this.states.delete(from);
    this.#take(changes);
  }

  /** The user's shares at the users above, nearest first: [count, quota] of each group. */
  shares(id: string): (readonly [number, number | null])[][] {
    const { levels } = this.ask(id, "usage", { event: null, withLevels: true });
    const numberOf = (amount: Amount) => Number(amount) / 1_000_000;
    return (levels ?? []).map(({ counters }) =>
      counters.map(({ member }) => {
        if (member === undefined) throw new Error("A level shows no share");
        return [numberOf(member.count), member.quota === null ? null : numberOf(member.quota)] as const;
      })
    );
  }
}

function callOf(count: number) {
  return { event: "x.make", metadata: null, size: sizeOf({ count }) };
}

function whyNot(
  { reasons, refusedBy }: { readonly reasons: readonly string[]; readonly refusedBy: readonly string[] },
) {
  return reasons.length === 0 ? "" : `${reasons.join(" ")} by ${refusedBy.join(" ")}`;
}
