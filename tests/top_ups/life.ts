// One user who buys automatically, at a Stripe where everything goes wrong that may: calls and answers are lost, processes die
// between any two steps, two of them work at a time, messages come early, late, twice or never. All of it is made from a
// seed. What was decided is written as the journal writes it, and read back after a crash.

import assert from "node:assert/strict";
import { Stripe } from "stripe";
import { compileCatalog } from "../../src/domain/catalog/catalog.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import { decide } from "../../src/domain/decide.ts";
import { SharedValues } from "../../src/domain/state/shared_values.ts";
import { isUnderWay, monthOf, type TopUpIntent } from "../../src/domain/state/top_up.ts";
import { newUser, UserState } from "../../src/domain/state/user.ts";
import { answerMessage } from "../../src/domain/stripe/answer_message.ts";
import { readMessage, readPaymentIntent, type StripeMessage } from "../../src/domain/stripe/message.ts";
import type { TopUpStep, TopUpWorkAnswer } from "../../src/domain/credits/top_up_work.ts";
import { amountOf } from "../../src/domain/values/amount.ts";
import type { StripeApi } from "../../src/integrations/stripe/stripe_client.ts";
import { payTopUp } from "../../src/integrations/stripe/top_up_payment.ts";
import { encodeChanges } from "../../src/storage/rows/tables.ts";
import { countedIds } from "../domain/decide_system.ts";
import { callOf } from "../domain/scene_input.ts";
import { KeptFacts } from "../domain/stripe/kept_facts.ts";
import type { Random } from "../model/random.ts";
import { type FakeIntent, FakeStripe } from "../support/fake_stripe.ts";
import { MemoryTables } from "../support/memory_store.ts";

const KEY = 7;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const pack = (currency: string) => ({
  id: "cpk",
  name: "Images",
  kind: "per_type" as const,
  price: { amount: 500, currency },
  items: [{
    id: "cpi",
    label: "Images",
    unit: "count" as const,
    amount: 10,
    matches: [{ event: "image.*" }],
  }],
});
const CATALOGS = ["eur", "usd"].map((currency, version) =>
  compileCatalog({ packs: [pack(currency)] }, version)
);

/** A process that died. */
class Crash extends Error {}

/** An event of Stripe in flight. */
interface Sent {
  readonly type: string;
  readonly object: object;
}

export class Life {
  readonly stripe = new FakeStripe();
  readonly tables = new MemoryTables();
  readonly met: Record<string, number> = {};
  now = Date.UTC(2026, 0, 20);
  #catalog = CATALOGS[0] as (typeof CATALOGS)[number];
  #state: UserState;
  readonly #random: Random;
  readonly #facts = new KeptFacts();
  readonly #ids = countedIds(KEY);
  readonly #api: StripeApi;
  /** Messages in flight; each may arrive more than once. */
  readonly #sent: Sent[] = [];
  readonly #refunded = new Set<string>();
  /** Whether anything may still go wrong. */
  #isCalm = false;

  constructor(random: Random) {
    this.#random = random;
    this.#state = new UserState(
      { ...NOTHING, user: newUser(KEY, 1, "ada"), recorded: false },
      new SharedValues(),
    );
    const { stripe } = this;
    stripe.now = () => this.now;
    stripe.fate = () =>
      this.#isCalm ? "works" : random.weighted({
        ...{ works: 12, request_lost: 1, answer_lost: 3, fails: 1, fails_late: 1, rate_limited: 1 },
      });
    stripe.bank = () => random.weighted({ pays: 5, declines: 3, processes: 3, asks: 1 });
    stripe.onEvent = (type, object) => {
      if (random.chance(0.6)) this.#sent.push({ type, object: { ...object } });
    };
    const http = Stripe.createFetchHttpClient(async (input, init) => {
      await this.#pause();
      const before = stripe.intents.size;
      try {
        return await stripe.fetch(input as string, init);
      } finally {
        this.#checkCreated(before);
        await this.#pause();
      }
    });
    this.#api = new Stripe("sk_live_x", { maxNetworkRetries: 0, telemetry: false, httpClient: http });
  }

  /** Lives for some steps, then lets everything in flight arrive, and proves the books. */
  async live(steps: number): Promise<void> {
    this.#put();
    for (let step = 0; step < steps; step++) {
      await this.#step();
      this.#check();
    }
    this.#isCalm = true;
    for (let round = 0; round < 60 && (this.#underWay().length > 0 || this.#sent.length > 0); round++) {
      for (const { id, status } of this.stripe.intents.values()) {
        if (status === "processing") this.stripe.finish(id, this.#random.chance(0.6));
      }
      await this.#deliver();
      await this.#work();
      this.now += HOUR_MS;
      if (this.#random.chance(0.3)) this.#do("deleteTopUp", {});
    }
    this.#check();
    this.#checkEnd();
  }

  async #step(): Promise<void> {
    const random = this.#random;
    switch (
      random.weighted({
        ...{
          use: 6,
          work: 6,
          both: 3,
          later: 5,
          deliver: 3,
          finish: 3,
          refund: 3,
          put: 1,
          remove: 1,
          crash: 2,
        },
        ...{ prices: 0.3 },
      })
    ) {
      case "use":
        return void this.#do("track", {
          ...callOf(random.whole(1, 6), { event: "image.a" }),
          costCents: null,
        });
      case "work":
        return await this.#work();
      case "both":
        await Promise.all([this.#work(), this.#work(), this.#deliver(), this.#remove()]);
        return;
      case "later":
        this.now += random.pick([HOUR_MS, 5 * HOUR_MS, 26 * HOUR_MS, 27 * HOUR_MS, 9 * DAY_MS]);
        return;
      case "deliver":
        return await this.#deliver();
      case "finish":
        for (const { id, status } of this.stripe.intents.values()) {
          if (status === "processing" && random.chance(0.5)) this.stripe.finish(id, random.chance(0.6));
        }
        return;
      case "refund": {
        const id = this.stripe.payments.find((each) => !this.#refunded.has(each));
        if (id === undefined) return;
        this.#refunded.add(id);
        this.#sent.push({ type: "charge.refunded", object: this.stripe.refundOf(id) });
        return;
      }
      case "put":
        return this.#put();
      case "remove":
        return void this.#do("deleteTopUp", {});
      case "crash":
        return this.#reload();
      case "prices":
        this.#catalog = random.pick(CATALOGS);
    }
  }

  /** Removes the setting while workers are at it, now and then. */
  async #remove(): Promise<void> {
    if (this.#random.chance(0.8)) return;
    await this.#pause();
    await this.#pause();
    this.#do("deleteTopUp", {});
  }

  #put(): void {
    const random = this.#random;
    const isBackend = this.#state.user.topUp?.setting == null || random.chance(0.6);
    this.#do("putTopUp", {
      pack: "cpk",
      below: amountOf(random.whole(1, 8)),
      quantity: random.whole(1, 2),
      maxPerMonth: random.pick([1000, 3000, 100_000]),
      enabled: random.chance(0.95),
      customerId: isBackend ? "cus_1" : null,
      paymentMethodId: isBackend ? random.pick(["pm_1", "pm_2"]) : null,
      isBackend,
    });
  }

  /** Lets a worker look at all that is under way, unless it dies on the way. */
  async #work(): Promise<void> {
    for (const { id } of this.#underWay()) {
      try {
        await payTopUp({
          stripe: this.#api,
          realNow: () => this.now,
          turn: async (step) => (await this.#turn(id, step)).intent,
          receive: (object) => this.#receive(readPaymentIntent(HEAD, object as never)),
        });
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
        this.#met("crash");
      }
    }
  }

  /** Delivers some of the messages in flight, in any order. */
  async #deliver(): Promise<void> {
    const random = this.#random;
    for (let left = random.whole(1, 3); left > 0 && this.#sent.length > 0; left--) {
      const place = random.whole(0, this.#sent.length - 1);
      const { type, object } = this.#sent[place] as Sent;
      const message = readMessage({ id: "evt", type, created: 1, livemode: true, data: { object } });
      try {
        await this.#receive(message as StripeMessage);
        // It may be sent once more.
        if (random.chance(0.7) || this.#isCalm) {
          this.#sent.splice(this.#sent.findIndex((each) => each.object === object), 1);
        }
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
      }
    }
  }

  /** Handles a message as the service does: its facts are kept first. */
  async #receive(received: StripeMessage): Promise<void> {
    let message = received;
    if (message.kind === "topUp" && message.paid !== null) {
      const { topUpId, paymentIntentId, paid } = message;
      const answer = await this.#turn(topUpId, { kind: "match", paymentIntentId, ...paid });
      const { intent: { packId, quantity }, userId, mismatch } = answer;
      message = { ...message, sold: { userId, packId, quantity, mismatch } };
    }
    const outcome = answerMessage(message, this.#facts, this.#catalog);
    this.#facts.keep(outcome.learned);
    for (const act of outcome.acts) {
      if (act.kind === "topUp") await this.#turn(act.input.topUpId, act.input.step);
      else if (act.kind === "refund") {
        await this.#turn(act.input.externalRef, { kind: "read" });
        this.#state.admit({ ...NOTHING, balances: this.tables.balances(KEY) });
        this.#do("refund", act.input);
      }
    }
  }

  /** A turn of an intent: the process may die before it, or after it and before the answer. */
  async #turn(topUpId: string, step: TopUpStep): Promise<TopUpWorkAnswer> {
    await this.#pause();
    if (this.#dies()) throw new Crash();
    const isLoaded = !this.#state.topUps.has(topUpId);
    if (isLoaded) {
      this.#state.admit({
        ...NOTHING,
        topUps: this.tables.topUps(KEY).filter(({ id }) => id === topUpId),
      });
    }
    const answer = this.#do("topUpWork", { topUpId, step });
    const now = this.#state.topUps.get(topUpId);
    if (now !== undefined && !isUnderWay(now)) this.#state.forgetTopUp(topUpId);
    await this.#pause();
    if (this.#dies()) throw new Crash();
    return answer;
  }

  #dies(): boolean {
    return !this.#isCalm && this.#random.chance(0.06);
  }

  #do<Name extends CommandName>(name: Name, input: Commands[Name]["input"]): Commands[Name]["answer"] {
    const context = {
      now: this.now,
      realNow: () => this.now,
      catalog: this.#catalog,
      ids: this.#ids,
      balancesLeft: 0,
      outbox: null,
    };
    const { result, changes } = decide(this.#state, name, input, context);
    if (changes.length > 0) this.tables.write(encodeChanges(changes));
    this.#state.apply(changes);
    if (!result.ok) {
      assert.ok(["track", "putTopUp"].includes(name), `${name}: ${result.refusal.message}`);
      return undefined as never;
    }
    return result.answer;
  }

  /** Starts again from what is durable. */
  #reload(): void {
    const loaded = this.tables.load({ realm: 1, key: KEY }, this.now);
    if (loaded !== null) this.#state = new UserState({ ...loaded, recorded: true }, new SharedValues());
  }

  async #pause(): Promise<void> {
    for (let left = this.#random.whole(0, 3); left > 0; left--) await Promise.resolve();
  }

  #intents(): TopUpIntent[] {
    return this.tables.topUps(KEY);
  }

  #underWay(): TopUpIntent[] {
    return this.#intents().filter(isUnderWay);
  }

  #met(what: string): void {
    this.met[what] = (this.met[what] ?? 0) + 1;
  }

  /** Nothing is created for a top-up that has an object already. */
  #checkCreated(before: number): void {
    if (this.stripe.intents.size === before) return;
    const made = [...this.stripe.intents.values()].at(-1) as FakeIntent;
    const row = this.#intents().find(({ id }) => id === made.metadata.holdfast_intent);
    assert.equal(row?.paymentIntentId, null, "an object was created after the id of another one was stored");
  }

  /** What holds at any time. */
  #check(): void {
    const intents = this.#intents();
    assert.ok(intents.filter(isUnderWay).length <= 1, "two top-ups are under way");
    for (const { id, paymentIntentId, status, terms, isCalledOff } of intents) {
      const objects = [...this.stripe.intents.values()].filter(({ metadata }) =>
        metadata.holdfast_intent === id
      );
      const taken = this.stripe.payments.filter((payment) => objects.some((each) => each.id === payment));
      assert.ok(taken.length <= 1, `${id} was paid twice`);
      const grants = this.tables.balances(KEY).filter(({ ownRef }) => ownRef === id);
      assert.equal(
        grants.length,
        status === "paid" ? 1 : 0,
        `${id} is ${status} with ${grants.length} grants`,
      );
      if (status !== "paid") continue;
      assert.ok(!isCalledOff, `${id} was called off, and then paid`);
      assert.deepEqual(taken, [paymentIntentId], `${id} was granted without a payment`);
      assert.equal(grants[0]?.initial, terms.units);
      assert.equal(grants[0]?.origin, "topup");
    }
    const { topUp } = this.#state.user;
    if (topUp === null) return;
    const spent: Record<string, number> = {};
    for (const { month, status, currency, amount } of intents) {
      if (month !== topUp.month || !["open", "processing", "paid"].includes(status)) continue;
      spent[currency] = (spent[currency] ?? 0) + amount;
    }
    const known = Object.fromEntries(Object.entries(topUp.spent).filter(([, amount]) => amount > 0));
    assert.deepEqual(known, spent, `spent in ${topUp.month}, now ${monthOf(this.now)}`);
  }

  /** What holds once everything has arrived. */
  #checkEnd(): void {
    const intents = this.#intents();
    assert.deepEqual(intents.filter(isUnderWay), [], "a top-up is under way for ever");
    for (const payment of this.stripe.payments) {
      const row = intents.find(({ paymentIntentId }) => paymentIntentId === payment);
      assert.equal(row?.status, "paid", `${payment} took money and granted nothing`);
      const [grant] = this.tables.balances(KEY).filter(({ ownRef }) => ownRef === row?.id);
      assert.equal(grant?.revokedAt === null, !this.#refunded.has(payment), `${payment} and its refund`);
      this.#met(this.#refunded.has(payment) ? "refunded" : "granted");
    }
    for (const { status, attempt } of intents) {
      this.#met(status);
      if (attempt > 1) this.#met("new key");
    }
    const orphans = this.stripe.intents.size -
      intents.filter(({ paymentIntentId: id }) => id !== null).length;
    if (orphans > 0) this.#met("orphan");
  }
}

const NOTHING = { aliases: [], subscriptions: [], counters: [], reservations: [], balances: [] };
const HEAD = { eventId: "own", type: "top_up.answer", created: 1, isLive: true };
