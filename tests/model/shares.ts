// Shares as the model keeps them: a list of everything that took something of them. A share is added up anew for each
// question, so there is no sum that could be forgotten.

import { fromNumber, type Micros } from "./decimal.ts";
import type { LimitGroup, Unit } from "./document.ts";
import type { User, World } from "./state.ts";
import type { Window } from "./windows.ts";

/** A group of an account in a window. */
export interface SharedPart {
  /** The account's id at the time. */
  readonly account: string;
  readonly group: string;
  readonly unit: Unit;
  /** The window's start. */
  readonly window: number;
}

/** A hold or an event of a member, at one group of one account. */
interface Taking extends SharedPart {
  readonly id: string;
  /** How many resets the account's group had had in this window. */
  readonly generation: number;
  amount: bigint;
  /** From when on it counts no more; null for an event. */
  lapsesAt: number | null;
}

/** Every taking of every member. */
export class ModelShares {
  /** By the member's id at the time. */
  readonly #takings = new Map<string, Taking[]>();
  readonly #generations = new Map<string, number>();

  /** Adds what a call takes, at each account that takes part. */
  take(
    id: string,
    member: string,
    parts: readonly SharedPart[],
    amountOf: (unit: Unit) => bigint,
    lapsesAt: number | null = null,
  ): void {
    const takings = this.#takings.getOrInsertComputed(member, () => []);
    for (const part of parts) {
      takings.push({
        id,
        ...part,
        generation: this.#generation(part),
        amount: amountOf(part.unit),
        lapsesAt,
      });
    }
  }

  /** Makes a hold an event of final amounts, or nothing; whether any of it was from before a reset. */
  settle(id: string, amountOf: (unit: Unit) => bigint): boolean {
    const settled = [...this.#takings.values()].flat().filter((taking) => taking.id === id);
    for (const taking of settled) {
      taking.amount = amountOf(taking.unit);
      taking.lapsesAt = null;
    }
    return settled.some((taking) => taking.generation !== this.#generation(taking));
  }

  /** Clears the shares of every member in a group and window; whether there was anything in them. */
  reset(part: Omit<SharedPart, "unit">): boolean {
    const name = nameOf(part);
    const generation = this.#generation(part);
    this.#generations.set(name, generation + 1);
    return [...this.#takings.values()].flat().some((taking) =>
      nameOf(taking) === name && taking.generation === generation && taking.amount > 0n
    );
  }

  /** What a member used of a group and window at a moment, under any of its ids and of its account's. */
  count(
    members: readonly string[],
    accounts: readonly string[],
    { group, unit, window }: Omit<SharedPart, "account">,
    now: number,
  ): bigint {
    return members.flatMap((id) => this.#takings.get(id) ?? []).filter((taking) =>
      taking.group === group && taking.unit === unit && taking.window === window &&
      accounts.includes(taking.account) && taking.generation === this.#generation(taking) &&
      (taking.lapsesAt === null || taking.lapsesAt > now)
    ).reduce((sum, { amount }) => sum + amount, 0n);
  }

  #generation(part: Omit<SharedPart, "unit">): number {
    return this.#generations.get(nameOf(part)) ?? 0;
  }
}

function nameOf({ account, group, window }: Omit<SharedPart, "unit">): string {
  return JSON.stringify([account, group, window]);
}

/** A group of a plan in force, at a moment. */
interface SharedPlace {
  group: LimitGroup;
  /** Null: a session that does not run. */
  window: Window | null;
  now: number;
}

/** What a member used of a group of a user above it, and the most that it may use; null for no limit. */
export function memberOf(
  world: World,
  member: User,
  account: User,
  { group, window, now }: SharedPlace,
): { count: Micros; quota: Micros | null } {
  const [members, accounts] = [member, account].map(({ id }) => [id, ...world.aliasesOf(id)]) as [
    string[],
    string[],
  ];
  const part = { group: group.id, unit: group.unit, window: window?.start ?? NaN };
  const countOf = (ofMember: string[], ofAccount: string[]) =>
    world.shares.count(ofMember, ofAccount, part, now);
  const count = countOf(members, accounts);
  if (count > countOf([member.id], accounts)) world.note("shares: members become one");
  if (count > countOf(members, [account.id])) world.note("shares: accounts become one");
  const ofAll = group.perMember === undefined ? null : fromNumber(group.perMember.quota);
  return {
    count,
    quota: member.memberLimits?.get(group.id) ?? ofAll,
  };
}

/** Clears the shares of all members of a user in a group, as its plan is entered. */
export function resetShares(world: World, { id }: User, group: string, window: Window): void {
  for (const account of [id, ...world.aliasesOf(id)]) {
    const hadAny = world.shares.reset({ account, group, window: window.start });
    if (hadAny) world.note("shares: cleared as a plan is entered");
  }
}
