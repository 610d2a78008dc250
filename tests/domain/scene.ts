// One user's state with a clock, for tests that say each command in a line.

import { amountOf, numberOf } from "../../src/domain/amount.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import { decide } from "../../src/domain/decide.ts";
import type { CallSize } from "../../src/domain/pricing/amounts.ts";
import {
  type Catalog,
  compileCatalog,
  type PackDocument,
  type PlanDocument,
} from "../../src/domain/plans/catalog.ts";
import type { Decision } from "../../src/domain/result.ts";
import { type Change, newUser, UserState } from "../../src/domain/user.ts";
import { countedIds } from "./decide_system.ts";

/** A plan in short: groups of unit count by id and quota, all for events "x.*". */
export function planOf(
  id: string,
  quotas: Record<string, number>,
  more: Partial<PlanDocument> = {},
): PlanDocument {
  return {
    id,
    name: id,
    rank: 1,
    period: { type: "monthly", anchor: "calendar" },
    limits: Object.entries(quotas).map(([group, quota]) => ({
      id: group,
      label: group,
      unit: "count",
      quota,
      matches: [{ event: "x.*" }],
    })),
    ...more,
  };
}

/** A call's size from plain numbers. */
export function sizeOf(members: Partial<Record<keyof CallSize, number>> = {}): CallSize {
  const amount = (value: number | undefined) => value === undefined ? null : amountOf(value);
  const { quantity, count, inputTokens, inputCostCents } = members;
  return {
    quantity: amount(quantity),
    count: amount(count),
    inputTokens: amount(inputTokens),
    inputCostCents: amount(inputCostCents),
  };
}

/** One user behind `decide`. */
export class Scene {
  state: UserState;
  catalog: Catalog;
  now: number;
  /** Everything that was decided, oldest first. */
  readonly changes: Change[] = [];
  readonly #ids = countedIds(7);

  constructor(
    plans: readonly PlanDocument[],
    at = "2026-03-10T12:00:00.000Z",
    packs: readonly PackDocument[] = [],
  ) {
    this.catalog = compileCatalog({ plans, packs }, 1);
    this.now = Date.parse(at);
    const user = newUser(7, 1, "u");
    this.state = new UserState({
      user,
      recorded: false,
      aliases: [],
      subscriptions: [],
      counters: [],
      reservations: [],
      balances: [],
    });
  }

  at(time: string): this {
    this.now = Date.parse(time);
    return this;
  }

  wait(seconds: number): this {
    this.now += seconds * 1000;
    return this;
  }

  /** Decides and applies. */
  do<Name extends CommandName>(
    name: Name,
    input: Commands[Name]["input"],
  ): Decision<Commands[Name]["answer"]> {
    const decision = decide(this.state, name, input, {
      now: this.now,
      catalog: this.catalog,
      ids: this.#ids,
      balancesLeft: null,
    });
    this.state.apply(decision.changes);
    this.changes.push(...decision.changes);
    return decision;
  }

  /** The answer of a command that must not be refused. */
  ask<Name extends CommandName>(name: Name, input: Commands[Name]["input"]): Commands[Name]["answer"] {
    const { result } = this.do(name, input);
    if (!result.ok) throw new Error(`${name} was refused: ${result.refusal.code}`);
    return result.answer;
  }

  /** The code of a command's refusal; "ok" where it was none. */
  code<Name extends CommandName>(name: Name, input: Commands[Name]["input"]): string {
    const { result } = this.do(name, input);
    return result.ok ? "ok" : result.refusal.code;
  }

  subscribe(plan: string, more: Partial<Commands["subscribe"]["input"]> = {}): void {
    this.ask("subscribe", {
      plan,
      provider: null,
      externalId: null,
      customLimits: undefined,
      startsAt: null,
      endsAt: null,
      cycleStart: undefined,
      ...more,
    });
  }

  /** Reserves by count; the id of the reservation, or null where none was allowed. */
  reserve(count: number, more: { event?: string; ttlMs?: number } = {}): string | null {
    const { event = "x.make", ttlMs = null } = more;
    return this.ask("reserve", { event, metadata: null, size: sizeOf({ count }), ttlMs, prompt: null }).hold
      ?.reservationId ?? null;
  }

  /** The counts of the running windows by group. */
  counts(): Record<string, number> {
    const { counters } = this.ask("usage", { event: null });
    return Object.fromEntries(counters.map(({ group, counter }) => [group.id, numberOf(counter.count)]));
  }
}
