// Top-ups: when an intent is made, what it freezes, what each outcome at Stripe does, and what holds the next one back.

import assert from "node:assert/strict";
import { compileCatalog, type PackDocument } from "../../../src/domain/catalog/catalog.ts";
import type { Commands } from "../../../src/domain/command.ts";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import { isUnderWay, type TopUpIntent } from "../../../src/domain/state/top_up.ts";
import type { TopUpStep } from "../../../src/domain/credits/top_up_work.ts";
import { packOf, planOf, Scene } from "../scene.ts";

const price = (amount: number, currency = "eur") => ({ price: { amount, currency } });
const ITEM = { id: "cpi", label: "Images", unit: "count", amount: 10, matches: [{ event: "x.*" }] } as const;
const images = (more: Partial<PackDocument> = {}) =>
  packOf("images", { unit: undefined, matches: undefined, items: [ITEM], ...price(500), ...more });
const PACKS = [
  images(),
  packOf("units", { ...price(2), defaultExpiryDays: 30 }),
  packOf("other", { ...price(300, "usd") }),
  packOf("free"),
  packOf("two", { ...price(1), items: [{ ...ITEM, id: "a" }, { ...ITEM, id: "b" }] }),
  packOf("else", { matches: [{ event: "y.*" }] }),
];
const HOUR_S = 3_600;

type Setting = Partial<Commands["putTopUp"]["input"]> & { readonly low?: number };

/** A user and what happens to its top-ups. */
class Buyer extends Scene {
  constructor(at = "2026-03-10T12:00:00.000Z", id = "u", key = 7, beside?: Scene) {
    super([planOf("plan", { lg: 0 })], at, PACKS, {
      ...{ id, key, isCompared: false, listensTo: ["topup.*"] },
      ...beside === undefined ? {} : { beside },
    });
  }

  put({ low = 3, ...more }: Setting = {}): string {
    const backend = more.isBackend ?? true;
    return this.code("putTopUp", {
      ...{ pack: "images", below: amountOf(low), quantity: null, maxPerMonth: 5_000, enabled: true },
      ...{ customerId: backend ? "cus_1" : null, paymentMethodId: backend ? "pm_1" : null, isBackend: true },
      ...more,
    });
  }

  /** All intents with their last values, oldest first. */
  get intents(): TopUpIntent[] {
    const rows = this.changes.flatMap((change) => change.table === "top_ups" ? [change.row] : []);
    return [...new Map(rows.map((row) => [row.id, row])).values()];
  }

  get last(): TopUpIntent {
    return this.intents.at(-1) as TopUpIntent;
  }

  /** Runs a step of an intent; the intent after it. */
  step(step: TopUpStep, row = this.last): TopUpIntent {
    if (!isUnderWay(row)) this.state.admit({ counters: [], reservations: [], balances: [], topUps: [row] });
    const { intent } = this.ask("topUpWork", { topUpId: row.id, step });
    if (!isUnderWay(intent)) this.state.forgetTopUp(row.id);
    return intent;
  }

  create(id = "pi_1"): void {
    this.step({ kind: "attempt", realNow: this.now, over: null });
    this.step({ kind: "created", paymentIntentId: id });
    this.step({ kind: "confirming" });
  }

  paid(row = this.last, id = row.paymentIntentId ?? "pi_1"): TopUpIntent {
    return this.step({ kind: "paid", paymentIntentId: id, amount: row.amount, currency: row.currency }, row);
  }

  fails(reason = "Your card was declined."): TopUpIntent {
    this.create();
    return this.step({ kind: "ended", paymentIntentId: "pi_1", reason });
  }

  get setting() {
    const { topUp, enabled } = this.ask("readTopUp", {});
    return {
      failures: topUp.failures,
      enabled,
      waits: topUp.nextTryAt === null ? null : topUp.nextTryAt - this.now,
    };
  }

  get told(): string[] {
    return this.messages.map(({ type, body }) => {
      const { reason } = JSON.parse(body).data;
      return reason === null ? type : `${type} ${reason}`;
    });
  }

  get balances(): [number, string | null][] {
    return [...this.state.balances.values()].map(({ remaining, origin }) => [numberOf(remaining), origin]);
  }
}

Deno.test("an intent is made once too little is left: by a PUT, a use, a hold, an expiry, and not beside another one", () => {
  const buyer = new Buyer();
  buyer.grant("images");
  buyer.put();
  assert.equal(buyer.intents.length, 0);
  buyer.track(7);
  assert.equal(buyer.intents.length, 0, "as much as the threshold is enough");
  buyer.hold(1);
  assert.equal(buyer.intents.length, 1, "what a hold has taken is not left");
  buyer.track(1);
  assert.equal(buyer.intents.length, 1);

  const other = new Buyer();
  other.grant("units", 50);
  other.grant("else", 50);
  other.put({ pack: "units", quantity: 20 });
  assert.equal(other.intents.length, 0);
  other.wait(31 * 24 * HOUR_S).ask("settle", {});
  assert.equal(other.last.amount, 40, "credits of other rules do not count");
});

Deno.test("a refused call is a turn too, and starts a top-up", () => {
  const buyer = new Buyer();
  buyer.subscribe("plan");
  buyer.grant("images");
  buyer.put({ low: 1 });
  buyer.track(10);
  assert.equal(buyer.intents.length, 1);
  const later = new Buyer();
  later.subscribe("plan");
  later.put({ enabled: false });
  assert.equal(later.reserve(5), null);
  assert.equal(later.intents.length, 0);
  later.put();
  assert.equal(later.intents.length, 1);
});

Deno.test("a setting is refused for what cannot be bought", () => {
  const buyer = new Buyer();
  const codes = [
    buyer.put({ pack: "nothing" }),
    buyer.put({ pack: "free", quantity: 1 }),
    buyer.put({ pack: "two" }),
    buyer.put({ pack: "units" }),
    buyer.put({ quantity: 1_000_000 }),
    buyer.put({ isBackend: false }),
    buyer.code("readTopUp", {}),
  ];
  assert.deepEqual(codes, [
    "credit_pack_not_found",
    "invalid_request",
    "invalid_request",
    "invalid_quantity",
    "invalid_quantity",
    "invalid_request",
    "not_found",
  ]);
});

Deno.test("a payment grants what its intent froze, once, past caps, from an archived pack too", () => {
  const buyer = new Buyer();
  buyer.put({ pack: "units", quantity: 20 });
  buyer.create();
  buyer.catalog = compileCatalog(
    { packs: [packOf("units", { ...price(9), unit: "cents", archived: true })] },
    2,
  );
  const row = buyer.last;
  const payment = { paymentIntentId: "pi_1", amount: row.amount, currency: row.currency };
  const input = { topUpId: row.id, step: { kind: "paid", ...payment } } as const;
  assert.ok(buyer.do("topUpWork", input, 0).result.ok);
  assert.equal(buyer.paid().status, "paid");
  assert.deepEqual(buyer.balances, [[20, "topup"]]);
  const [balance] = [...buyer.state.balances.values()];
  assert.deepEqual([balance?.unit, balance?.ownRef, balance?.externalRef], ["count", row.id, null]);
  assert.equal(balance?.expiresAt, buyer.now + 30 * 24 * HOUR_S * 1000);
  assert.deepEqual(buyer.told, ["topup.paid"]);
});

Deno.test("a payment of another amount, and a second payment, is not for the intent", () => {
  const buyer = new Buyer();
  buyer.put();
  buyer.create();
  const row = buyer.last;
  const mismatch = (paymentIntentId: string, amount: number, currency = "eur") =>
    buyer.ask("topUpWork", { topUpId: row.id, step: { kind: "match", paymentIntentId, amount, currency } })
      .mismatch;
  assert.match(mismatch("pi_1", 499) ?? "", /not the amount/);
  assert.match(mismatch("pi_1", 500, "usd") ?? "", /not the amount/);
  assert.equal(mismatch("pi_1", 500), null);
  buyer.paid();
  assert.equal(buyer.paid(buyer.last, "pi_2").paymentIntentId, "pi_1");
  assert.equal(buyer.balances.length, 1);
});

Deno.test("the first failure waits an hour, the second a day, the third disables; only the backend enables", () => {
  const buyer = new Buyer();
  buyer.put();
  buyer.fails();
  assert.deepEqual(buyer.setting, { failures: 1, enabled: true, waits: HOUR_S * 1000 });
  buyer.put();
  assert.deepEqual(
    buyer.setting,
    { failures: 0, enabled: true, waits: HOUR_S * 1000 },
    "a PUT does not shorten it",
  );
  buyer.put({ isBackend: false });
  buyer.wait(HOUR_S - 1).track(1);
  assert.equal(buyer.intents.length, 1);
  buyer.wait(1).track(1);
  assert.equal(buyer.intents.length, 2);

  const other = new Buyer();
  other.put();
  other.fails();
  other.wait(HOUR_S).track(1);
  other.fails();
  assert.deepEqual(other.setting, { failures: 2, enabled: true, waits: 24 * HOUR_S * 1000 });
  other.put({ paymentMethodId: "pm_2", isBackend: true });
  assert.equal(other.intents.length, 3, "another payment method is tried at once");

  const third = new Buyer();
  third.put();
  for (const wait of [HOUR_S, 24 * HOUR_S, 0]) {
    third.fails();
    third.wait(wait).track(1);
  }
  assert.deepEqual(third.setting, { failures: 3, enabled: false, waits: null });
  third.put({ isBackend: false });
  assert.equal(third.setting.enabled, false);
  assert.deepEqual(third.told, Array.from({ length: 3 }, () => "topup.failed Your card was declined."));
  third.put();
  assert.deepEqual([third.setting.enabled, third.setting.failures, third.intents.length], [true, 0, 4]);
});

Deno.test("open and paid top-ups of the real month count towards the cap, and a failed one no longer does", () => {
  const buyer = new Buyer("2026-03-31T23:00:00.000Z");
  buyer.put({ maxPerMonth: 1_000 });
  for (const id of ["pi_1", "pi_2"]) {
    buyer.create(id);
    buyer.paid();
    buyer.track(9);
  }
  assert.equal(buyer.intents.length, 2);
  buyer.track(9);
  buyer.track(9);
  assert.deepEqual(buyer.told, ["topup.paid", "topup.paid", "topup.capped max_per_month"]);
  buyer.wait(2 * HOUR_S).track(1);
  assert.equal(buyer.intents.length, 3, "a month later");
  buyer.fails();
  buyer.wait(HOUR_S).track(1);
  buyer.create("pi_4");
  buyer.paid();
  assert.equal(buyer.state.user.topUp?.spent.eur, 500);
  assert.equal(buyer.last.month, "2026-04");
});

Deno.test("another currency within the month disables the setting, until a PUT of the backend", () => {
  const buyer = new Buyer();
  buyer.put();
  buyer.create();
  buyer.paid();
  buyer.catalog = compileCatalog({ packs: [images(price(600, "usd"))] }, 2);
  buyer.track(9);
  buyer.track(9);
  assert.equal(buyer.setting.enabled, false);
  assert.deepEqual(buyer.told, ["topup.paid", "topup.capped currency_changed"]);
  buyer.put({ isBackend: false });
  assert.equal(buyer.intents.length, 1);
  buyer.put({ maxPerMonth: 600 });
  assert.deepEqual(
    [buyer.last.currency, buyer.intents.length],
    ["usd", 2],
    "the cap counts the new currency alone",
  );
});

Deno.test("a DELETE calls off what is not confirmed, and nothing else", () => {
  const buyer = new Buyer();
  buyer.put();
  buyer.ask("deleteTopUp", {});
  assert.equal(buyer.last.status, "canceled", "Stripe was never called");

  buyer.put();
  buyer.step({ kind: "attempt", realNow: buyer.now, over: null });
  assert.equal(buyer.ask("deleteTopUp", {}).isUnderWay, true);
  assert.equal(buyer.step({ kind: "created", paymentIntentId: "pi_1" }).paymentIntentId, "pi_1");
  assert.equal(
    buyer.step({ kind: "confirming" }).isConfirmed,
    false,
    "what was called off is never confirmed",
  );
  assert.equal(buyer.step({ kind: "ended", paymentIntentId: "pi_2", reason: "" }).status, "open");
  assert.equal(buyer.step({ kind: "ended", paymentIntentId: "pi_1", reason: "" }).status, "canceled");
  assert.equal(buyer.state.user.topUp?.spent.eur, 0);

  buyer.put();
  buyer.create();
  buyer.ask("deleteTopUp", {});
  assert.equal(buyer.last.isCalledOff, false);
  assert.equal(buyer.paid().status, "paid");
  assert.deepEqual(buyer.told, ["topup.paid"]);
});

Deno.test("a late success is granted after a failure and after a DELETE, and counts in its month", () => {
  const buyer = new Buyer();
  buyer.put();
  const failed = buyer.fails();
  buyer.ask("deleteTopUp", {});
  assert.equal(buyer.state.user.topUp?.spent.eur, 0);
  assert.equal(buyer.paid(failed).status, "paid");
  const { spent, failures, setting } = buyer.state.user.topUp as NonNullable<typeof buyer.state.user.topUp>;
  assert.deepEqual([spent.eur, failures, setting], [500, 0, null]);
  assert.deepEqual(buyer.balances, [[10, "topup"]]);
  buyer.wait(40 * 24 * HOUR_S).put();
  buyer.track(9);
  const old = buyer.paid(failed, "pi_1");
  assert.equal(old.status, "paid");
  assert.equal(buyer.state.user.topUp?.spent.eur, 500, "that of a month before counts there");
});

Deno.test("an attempt keeps its key until it is over, and is not begun twice", () => {
  const buyer = new Buyer();
  buyer.put();
  const attempt = (over: number | null) => buyer.step({ kind: "attempt", realNow: buyer.now, over }).attempt;
  assert.deepEqual([attempt(null), attempt(null), attempt(1), attempt(1), attempt(2)], [1, 1, 2, 2, 3]);
  buyer.step({ kind: "created", paymentIntentId: "pi_1" });
  assert.equal(buyer.step({ kind: "created", paymentIntentId: "pi_2" }).paymentIntentId, "pi_1");
  assert.equal(attempt(3), 3, "an object is there");
});

Deno.test("a merge keeps the setting of the one, adds up what both spent, and lets what is under way go on", () => {
  const to = new Buyer();
  const from = new Buyer(undefined, "from", 8, to);
  for (const [buyer, low] of [[to, 3], [from, 5]] as const) {
    buyer.put({ low });
    buyer.create(`pi_${low}`);
  }
  to.paid();
  from.mergeInto(to);
  assert.equal(numberOf(to.state.user.topUp?.setting?.below ?? 0n), 3);
  assert.equal(to.state.user.topUp?.spent.eur, 1000);
  assert.equal(to.paid(from.last).userKey, 7);
  assert.deepEqual(to.balances, [[10, "topup"], [10, "topup"]]);

  const taker = new Buyer();
  const giver = new Buyer(undefined, "from", 8, taker);
  giver.put({ low: 5, enabled: false });
  giver.mergeInto(taker);
  assert.equal(numberOf(taker.state.user.topUp?.setting?.below ?? 0n), 5);
});
