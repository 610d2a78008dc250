// Random lives of customers at Stripe, told in any order and more than once: credits given never exceed what was paid for,
// and whatever was paid for is granted in the end, or in the list of what is not.

import assert from "node:assert/strict";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import { numberOf } from "../../../src/domain/values/amount.ts";
import { answerMessage } from "../../../src/domain/stripe/answer_message.ts";
import { readMessage, type StripeMessage } from "../../../src/domain/stripe/message.ts";
import type { StripeAct } from "../../../src/domain/stripe/outcome.ts";
import { Random } from "../../model/random.ts";
import { Scene } from "../scene.ts";
import { KeptFacts } from "./kept_facts.ts";
import {
  arrivals,
  EARLY_PACKS,
  isReversed,
  PACKS,
  PLANS,
  type Sale,
  type SoldLine,
  StripeWorld,
} from "./stripe_world.ts";

const SEEDS = 400;
const USERS = ["ada", "bob"];

/** The service in memory: facts, users, and what is kept because it is not granted. */
class Receiver extends KeptFacts {
  catalog = compileCatalog({ plans: PLANS, packs: EARLY_PACKS }, 1);
  readonly #users = new Map<string, Scene>();
  /** By event: the message, and the object that was paid for. */
  readonly #owed = new Map<string, { readonly message: StripeMessage; readonly objectId: string }>();

  take(event: object): void {
    const message = readMessage(event);
    assert.ok(message !== null);
    this.#answer(message);
    this.retry();
  }

  /** Tries what is kept again. */
  retry(): void {
    for (const { message } of [...this.#owed.values()]) this.#answer(message);
  }

  isKept(objectIds: readonly string[]): boolean {
    return [...this.#owed.values()].some(({ objectId }) => objectIds.includes(objectId));
  }

  /** What users have left of some grants and of what came back of them, and what they have used of it. */
  standing(refs: readonly string[]): { readonly left: number; readonly used: number } {
    let [left, used] = [0n, 0n];
    const isOf = (ref: string) => refs.some((each) => ref === each || ref.startsWith(`${each}:`));
    for (const { state } of this.#users.values()) {
      for (const { externalRef, initial, remaining, revokedAmount } of state.balances.values()) {
        if (externalRef === null || !isOf(externalRef)) continue;
        left += remaining;
        used += initial - remaining - revokedAmount;
      }
    }
    return { left: numberOf(left), used: numberOf(used) };
  }

  /** A user uses credits. */
  use(userId: string, count: number): void {
    this.#users.get(userId)?.track(count, { event: "x" });
  }

  #answer(message: StripeMessage): void {
    const { learned, acts, left, settled, paid } = answerMessage(message, this, this.catalog);
    this.keep(learned);
    for (const act of [...left?.acts ?? [], ...acts]) this.#run(act);
    this.settle(settled);
    const { eventId } = message.head;
    if (paid === null || paid.reason === null) this.#owed.delete(eventId);
    else this.#owed.set(eventId, { message, objectId: paid.objectId });
  }

  #run({ kind, userId, input }: StripeAct): void {
    let user = this.#users.get(userId);
    if (user === undefined) {
      user = new Scene(PLANS, undefined, PACKS, { id: userId, key: this.#users.size + 1, isAudited: false });
      this.#users.set(userId, user);
    }
    assert.ok(user.do(kind === "topUp" ? "topUpWork" : kind, input as never).result.ok);
  }
}

/** Returns what is given beyond what was paid for; null for nothing, and for a sale that no message connects yet. */
function excessOf(receiver: Receiver, { isHidden }: Sale, { refs, units }: SoldLine): string | null {
  const { left, used } = receiver.standing(refs);
  return left + used <= units || isHidden
    ? null
    : `${refs} has ${left} and ${used} used of ${units} paid for`;
}

/** Returns the fault of a line once all messages have arrived; null for none. */
function faultOf(receiver: Receiver, sale: Sale, line: SoldLine): string | null {
  const { refs, units } = line;
  const { left, used } = receiver.standing(refs);
  if (isReversed(sale)) return left === 0 ? null : `${refs} has ${left}, and its money went back`;
  const isWhole = sale.isHidden ? left <= units && left + used >= units : left + used === units;
  if (isWhole || left + used === 0 && receiver.isKept(sale.objectIds)) return excessOf(receiver, sale, line);
  return `${refs} has ${left} and ${used} used of ${units} paid for, and is not kept`;
}

for (const [name, from] of [["many lives", 1], ["other lives", 10_001]] as const) {
  Deno.test(`${name}: nothing is given that was not paid for, and nothing that was is forgotten`, () => {
    const met = { granted: 0, kept: 0, reversed: 0 };
    for (let seed = from; seed < from + SEEDS / 2; seed++) {
      const random = new Random(seed);
      const world = new StripeWorld(random);
      for (const userId of USERS) world.live(userId);
      const receiver = new Receiver();
      const events = arrivals(random, world.events);
      const changedAt = random.whole(0, events.length * 2);
      for (const [place, event] of events.entries()) {
        if (place === changedAt) receiver.catalog = compileCatalog({ plans: PLANS, packs: PACKS }, 2);
        receiver.take(event);
        if (random.chance(0.2)) receiver.use(random.pick(USERS), random.whole(1, 15));
        for (const sale of world.sales) {
          for (const line of sale.lines) assert.equal(excessOf(receiver, sale, line), null, `seed ${seed}`);
        }
      }
      receiver.retry();
      for (const sale of world.sales) {
        for (const line of sale.lines) {
          const fault = faultOf(receiver, sale, line);
          assert.equal(fault, null, `seed ${seed}`);
          if (isReversed(sale)) met.reversed += 1;
          else if (receiver.isKept(sale.objectIds)) met.kept += 1;
          else met.granted += 1;
        }
      }
    }
    for (const [what, times] of Object.entries(met)) assert.ok(times > 100, `${what} ${times} times`);
  });
}
