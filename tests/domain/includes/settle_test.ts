// What a plan includes in each window: given once, lost or rolled over at its end, and taken along by changes of plan.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/values/amount.ts";
import type { PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import { packOf, planOf, Scene } from "../scene.ts";

const DAY_S = 86_400;
const MONTHLY = { type: "monthly", anchor: "calendar" } as const;
const DAILY = { type: "daily", anchor: "calendar" } as const;

const PACKS = [packOf("a"), packOf("b"), packOf("other", { matches: [{ event: "y.*" }] })];
const PLANS = [
  planOf("free", { g: 0 }, { rank: 0 }),
  planOf("pro", { g: 0 }, { includes: [{ packId: "a", quantity: 100 }], trial: { days: 40 } }),
  planOf("max", { g: 0 }, { rank: 2, includes: [{ packId: "a", quantity: 300 }], onPlanChange: "reset" }),
  planOf("same", { g: 0 }, { rank: 2, includes: [{ packId: "b", quantity: 200 }] }),
  planOf("else", { g: 0 }, { rank: 2, includes: [{ packId: "other", quantity: 200 }] }),
  planOf("day", { g: 0 }, {
    includes: [{ packId: "a", quantity: 10, period: DAILY, rollover: { max: 15, periods: 2 } }],
  }),
  planOf("roll", { g: 0 }, {
    includes: [{ packId: "a", quantity: 100, rollover: { max: 150, periods: 1 } }],
  }),
  planOf("more", {}, { addon: true, includes: [{ packId: "a", quantity: 50 }] }),
];

const sceneOf = (plans: readonly PlanDocument[] = PLANS) =>
  new Scene(plans, "2026-03-10T12:00:00.000Z", PACKS, { isCompared: false, listensTo: ["*"] });

/** The balances that can be spent: "origin remaining/initial until". */
function shown(scene: Scene): string[] {
  return scene.ask("credits", { event: null }).balances.map(({ row }) =>
    `${row.origin} ${numberOf(row.remaining)}/${numberOf(row.initial)} ${
      row.expiresAt === null ? "-" : new Date(row.expiresAt).toISOString().slice(5, 10)
    }`
  );
}

const told = (scene: Scene) =>
  scene.messages.filter(({ type }) => type.startsWith("credits.")).map(({ type }) => type);

Deno.test("a window has its pack as one balance that ends with it, whatever is repeated", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  assert.deepEqual(shown(scene), ["plan 100/100 04-01"]);
  scene.track(30);
  scene.subscribe("pro");
  assert.deepEqual(shown(scene), ["plan 70/100 04-01"]);
  scene.at("2026-06-05T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["plan 100/100 07-01"]);
  assert.deepEqual(shown(scene), ["plan 100/100 07-01"]);
  assert.equal(scene.ledger().filter(([, , reason]) => reason === "grant").length, 2);
  assert.deepEqual(told(scene), ["credits.granted", "credits.expired", "credits.granted"]);
  assert.equal(scene.reserve(101), null);
  assert.notEqual(scene.reserve(100), null);
});

Deno.test("what is left rolls over for its windows, up to the maximum, and is used first at one expiry", () => {
  const scene = sceneOf();
  scene.subscribe("day");
  scene.track(4);
  scene.wait(DAY_S);
  assert.deepEqual(shown(scene), ["plan 10/10 03-12", "rollover 6/6 03-13"]);
  scene.wait(DAY_S);
  // 6 live, so 9 of 10 go on.
  assert.deepEqual(shown(scene), ["rollover 6/6 03-13", "plan 10/10 03-13", "rollover 9/9 03-14"]);
  scene.track(20);
  assert.deepEqual(shown(scene), ["rollover 0/6 03-13", "plan 0/10 03-13", "rollover 5/9 03-14"]);
  scene.wait(5 * DAY_S);
  assert.deepEqual(shown(scene), ["rollover 10/10 03-18", "plan 10/10 03-18", "rollover 5/5 03-19"]);
});

Deno.test("a change of plan takes use along, whatever the plan does with counters, and so does a change back", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  scene.track(80);
  scene.subscribe("max");
  assert.deepEqual(shown(scene), ["plan 220/300 04-01"]);
  scene.track(100);
  scene.subscribe("pro");
  assert.deepEqual(shown(scene), ["plan 0/100 04-01"]);
  scene.subscribe("same");
  assert.deepEqual(shown(scene), ["plan 20/200 04-01"]);
  scene.subscribe("else");
  assert.deepEqual(shown(scene), ["plan 200/200 04-01"]);
  scene.subscribe("max");
  assert.deepEqual(shown(scene), ["plan 120/300 04-01"]);
  scene.subscribe("free");
  assert.deepEqual(shown(scene), []);
  scene.subscribe("same");
  assert.deepEqual(shown(scene), ["plan 20/200 04-01"]);
});

Deno.test("use of a longer window outlasts a shorter one that took it over", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  scene.track(90);
  scene.subscribe("day");
  scene.wait(DAY_S);
  assert.deepEqual(shown(scene), ["plan 10/10 03-12"]);
  scene.subscribe("roll");
  assert.deepEqual(shown(scene), ["plan 10/100 04-01"]);
});

Deno.test("open holds follow, and correct what they left", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  const hold = scene.hold(40);
  scene.subscribe("max");
  assert.deepEqual(shown(scene), ["plan 260/300 04-01"]);
  scene.commit(hold, { actual: { count: 10 } });
  assert.deepEqual(shown(scene), ["plan 290/300 04-01"]);
  scene.subscribe("pro");
  assert.deepEqual(shown(scene), ["plan 90/100 04-01"]);
});

Deno.test("credits end with their row, and a row that comes back has them again", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  scene.track(30);
  const hold = scene.hold(20);
  scene.cancel();
  assert.deepEqual(shown(scene), []);
  scene.release(hold);
  scene.subscribe("pro");
  assert.deepEqual(shown(scene), ["plan 70/100 04-01"]);
  scene.cancel();
  scene.pay("max", "x");
  assert.deepEqual(shown(scene), ["plan 270/300 04-01"]);
});

Deno.test("seats multiply: more give the difference, fewer take nothing", () => {
  const scene = sceneOf();
  scene.subscribe("pro", { quantity: 2 });
  scene.track(150);
  scene.subscribe("pro", { quantity: 3 });
  assert.deepEqual(shown(scene), ["plan 150/300 04-01"]);
  scene.subscribe("pro", { quantity: 1 });
  assert.deepEqual(shown(scene), ["plan 150/300 04-01"]);
  scene.at("2026-04-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["plan 100/100 05-01"]);
  const large = sceneOf([planOf("large", { g: 0 }, { includes: [{ packId: "a", quantity: 5e8 }] })]);
  large.subscribe("large", { quantity: 10_000 });
  assert.deepEqual(shown(large), ["plan 5000000000000/5000000000000 04-01"]);
});

Deno.test("an add-on includes, a duplicate does not", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  scene.pay("more", "x1");
  scene.pay("free", "x2");
  assert.deepEqual(shown(scene), ["plan 100/100 04-01", "plan 50/50 04-01"]);
  scene.track(120);
  scene.cancel({ provider: "stripe", externalId: "x1" });
  assert.deepEqual(shown(scene), ["plan 0/100 04-01"]);
  scene.pay("more", "x3");
  assert.deepEqual(shown(scene), ["plan 0/100 04-01", "plan 30/50 04-01"]);
});

Deno.test("a trial includes credits once for user and plan, and its end in the plan itself gives the next", () => {
  const scene = sceneOf();
  scene.subscribe("pro", { trial: true });
  assert.deepEqual(shown(scene), ["plan 100/100 04-01"]);
  scene.at("2026-04-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), []);
  scene.at("2026-04-03T00:00:00.000Z").subscribe("pro", { trial: false });
  assert.deepEqual(shown(scene), ["plan 100/100 05-01"]);
});

Deno.test("a later window of a trial has nothing, also where the plan was paid for in between", () => {
  const scene = sceneOf();
  scene.subscribe("pro", { trial: true });
  scene.at("2026-04-02T00:00:00.000Z").pay("pro", "x");
  assert.deepEqual(shown(scene), ["plan 100/100 05-01"]);
  scene.do("cancel", { provider: "stripe", externalId: "x", endsAt: scene.now, reason: null });
  assert.deepEqual(shown(scene), []);
});

Deno.test("a trial at the provider counts too, and what comes after it is given at its end", () => {
  const scene = sceneOf();
  const state = { planId: "pro", startsAt: null, endsAt: null, quantity: undefined };
  const mirror = (trialEndsAt: string | null, externalId = "x") =>
    scene.do("mirror", {
      provider: "stripe",
      externalId,
      state: trialEndsAt === null ? state : { ...state, trialEndsAt: Date.parse(trialEndsAt) },
    });
  mirror("2026-04-10T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["plan 100/100 04-01"]);
  scene.at("2026-04-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), []);
  scene.at("2026-04-11T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["plan 100/100 05-01"]);
  assert.equal(scene.ask("credits", { event: null }).balances[0]?.row.grantedAt, Date.parse("2026-04-10"));
});

Deno.test("what comes back after its window goes to its rollover, within the maximum", () => {
  const scene = sceneOf();
  scene.subscribe("roll");
  const hold = scene.hold(100, { ttlMs: 60 * DAY_S * 1000 });
  scene.at("2026-04-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["plan 100/100 05-01"]);
  scene.release(hold);
  assert.deepEqual(shown(scene), ["rollover 100/100 05-01", "plan 100/100 05-01"]);
  const second = scene.hold(170, { ttlMs: 60 * DAY_S * 1000 });
  scene.at("2026-05-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["rollover 30/30 06-01", "plan 100/100 06-01"]);
  scene.release(second);
  // 70 of the 170 were of the window, 100 of a rollover that has ended.
  assert.deepEqual(shown(scene), ["rollover 100/100 06-01", "plan 100/100 06-01"]);
});

Deno.test("credits of a plan cannot be extended past their window", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  const balanceId = scene.ask("credits", { event: null }).balances[0]?.row.id ?? "";
  const expiresAt = scene.now + 400 * DAY_S * 1000;
  assert.equal(scene.code("extend", { balanceId, expiresAt, reason: null }), "invalid_request");
});

Deno.test("a walk through windows of a monthly plan of a subscription keeps its anchor", () => {
  const scene = sceneOf([
    planOf("pro", { g: 0 }, {
      period: { ...MONTHLY, anchor: "subscription_start" },
      includes: [{ packId: "a", quantity: 100, rollover: { max: 250, periods: 12 } }],
    }),
  ]);
  scene.at("2026-01-31T12:00:00.000Z").subscribe("pro");
  scene.at("2026-04-10T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["plan 100/100 04-30", "rollover 100/100 02-28", "rollover 100/100 03-31"]);
});

/** Two users of one realm, on a plan each. */
function twoUsers(alias: string, into: string): [alias: Scene, into: Scene] {
  const scene = sceneOf();
  const other = new Scene([], undefined, [], { beside: scene, key: 8, id: "alias" });
  scene.subscribe(into);
  other.subscribe(alias);
  return [other, scene];
}

Deno.test("a merge adds the use of both, and its holds follow", () => {
  const [alias, into] = twoUsers("pro", "max");
  alias.track(30);
  into.track(100);
  const hold = alias.hold(50);
  alias.mergeInto(into);
  assert.deepEqual(shown(into), ["plan 120/300 04-01"]);
  into.release(hold);
  assert.deepEqual(shown(into), ["plan 170/300 04-01"]);
  into.subscribe("pro");
  assert.deepEqual(shown(into), ["plan 0/100 04-01"]);
});

Deno.test("a merge of two users of one plan leaves one balance of the window", () => {
  const [alias, into] = twoUsers("pro", "pro");
  alias.track(80);
  into.track(70);
  alias.mergeInto(into);
  assert.deepEqual(shown(into), ["plan 0/100 04-01"]);
  into.wait(30 * DAY_S);
  assert.deepEqual(shown(into), ["plan 100/100 05-01"]);
});

Deno.test("where neither plan stays in a merge, a plan that comes back finds the use of both", () => {
  const [alias, into] = twoUsers("pro", "pro");
  alias.track(30);
  into.track(40);
  into.subscribe("else");
  alias.mergeInto(into);
  into.subscribe("pro");
  assert.deepEqual(shown(into), ["plan 30/100 04-01"]);
});

Deno.test("rollovers of both are together at most what the plan allows", () => {
  const [alias, into] = twoUsers("roll", "roll");
  into.track(40);
  for (const scene of [alias, into]) scene.at("2026-04-03T00:00:00.000Z");
  alias.mergeInto(into);
  assert.deepEqual(shown(into), ["rollover 60/60 05-01", "rollover 90/100 05-01", "plan 100/100 05-01"]);
});

Deno.test("an add-on that rolls less over takes no rollovers in a merge", () => {
  const rollover = { max: 20, periods: 1 };
  const addOn = planOf("less", {}, { addon: true, includes: [{ packId: "a", quantity: 50, rollover }] });
  for (const plan of ["roll", "max"]) {
    const scene = sceneOf([...PLANS, addOn]);
    const alias = new Scene([], undefined, [], { beside: scene, key: 8, id: "alias" });
    scene.subscribe("roll");
    scene.pay("less", "x1");
    scene.at("2026-04-03T00:00:00.000Z").subscribe(plan);
    const before = shown(scene);
    assert.equal(before[0], "rollover 100/100 05-01");
    alias.at("2026-04-03T00:00:00.000Z").mergeInto(scene);
    assert.deepEqual(shown(scene), before, plan);
  }
});

Deno.test("at the end of a window it ends first: what is left rolls over, and the next plan begins with nothing used", () => {
  const scene = sceneOf();
  scene.subscribe("roll");
  scene.track(60);
  scene.do("schedule", { provider: null, externalId: null, change: { plan: "max", at: "period_end" } });
  scene.at("2026-04-09T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["rollover 40/40 05-01", "plan 300/300 05-01"]);
  scene.cancel({ endsAt: Date.parse("2026-05-01") });
  scene.at("2026-05-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), []);
});

Deno.test("rollovers outlive plan changes and the end of the row, and do not roll again", () => {
  const scene = sceneOf();
  scene.subscribe("roll");
  scene.at("2026-04-02T00:00:00.000Z").subscribe("max");
  assert.deepEqual(shown(scene), ["rollover 100/100 05-01", "plan 300/300 05-01"]);
  scene.cancel();
  assert.deepEqual(shown(scene), ["rollover 100/100 05-01"]);
  scene.at("2026-05-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), []);
});

Deno.test("what is included never makes a user due, so no sweep looks at it", () => {
  const scene = sceneOf();
  scene.subscribe("day");
  assert.equal(scene.state.user.dueAt, null);
  scene.wait(3 * DAY_S).ask("settle", {});
  assert.equal(scene.state.user.dueAt, null);
});

Deno.test("an amount that rounds to nothing is a millionth: no balance is of 0", () => {
  const tiny = [{ id: "i", label: "I", unit: "count", amount: 1e-9, matches: [{ event: "x.*" }] }] as const;
  const packs = [packOf("a"), packOf("items", { items: tiny })];
  const includes = [{ packId: "a", quantity: 1e-9 }, { packId: "items", quantity: 0.1 }];
  const scene = new Scene([planOf("p", { g: 0 }, { includes })], "2026-03-10T12:00:00.000Z", packs, {
    isCompared: false,
  });
  scene.subscribe("p");
  scene.grant("items");
  assert.deepEqual([...scene.state.balances.values()].map(({ initial }) => initial), [1n, 1n, 1n]);
});

Deno.test("each level of a path has what its own plan includes", () => {
  const scene = sceneOf();
  const member = new Scene([], undefined, [], { beside: scene, key: 8, id: "member" });
  scene.subscribe("pro");
  member.subscribe("max");
  assert.equal(member.under(scene), "ok");
  member.track(30);
  assert.deepEqual([shown(member), shown(scene)], [["plan 270/300 04-01"], ["plan 70/100 04-01"]]);
  for (const each of [member, scene]) each.at("2026-04-02T00:00:00.000Z");
  member.track(30);
  assert.deepEqual([shown(member), shown(scene)], [["plan 270/300 05-01"], ["plan 70/100 05-01"]]);
});

Deno.test("after a merge of two users of one plan each hold of an ended window finds its own rollover", () => {
  const [alias, into] = twoUsers("roll", "roll");
  const ttlMs = 90 * DAY_S * 1000;
  const holds = [alias.hold(20, { ttlMs }), into.hold(30, { ttlMs })];
  for (const scene of [alias, into]) scene.at("2026-04-03T00:00:00.000Z");
  into.track(70);
  alias.track(80);
  alias.mergeInto(into);
  for (const hold of holds) into.release(hold);
  assert.deepEqual(shown(into), ["rollover 30/100 05-01", "rollover 20/100 05-01", "plan 100/100 05-01"]);
  const refs = [...into.state.balances.values()].map(({ ownRef }) => ownRef);
  assert.equal(new Set(refs).size, refs.length);
});

Deno.test("a subscription that a provider reports after its end gives nothing back", () => {
  const scene = sceneOf();
  scene.subscribe("day");
  scene.wait(5 * DAY_S);
  scene.track(9);
  const before = shown(scene);
  const [startsAt, endsAt] = [scene.now - 10 * DAY_S * 1000, scene.now - 3 * DAY_S * 1000];
  const state = { planId: "max", startsAt, endsAt, quantity: undefined };
  scene.do("mirror", { provider: "stripe", externalId: "late", state });
  assert.deepEqual(shown(scene), before);
  assert.deepEqual(shown(scene), before);
});

Deno.test("an add-on includes nothing without a plan", () => {
  const scene = sceneOf();
  scene.pay("more", "x1");
  assert.deepEqual(shown(scene), []);
  scene.subscribe("free");
  assert.deepEqual(shown(scene), ["plan 50/50 04-01"]);
});

Deno.test("what begins at one moment is used in one order, whenever it is looked at", () => {
  for (const at of ["2026-04-01T00:00:00.000Z", "2026-04-01T00:00:00.001Z"]) {
    const scene = sceneOf();
    scene.subscribe("same");
    scene.pay("more", "x1");
    scene.at(at);
    assert.deepEqual(shown(scene), ["plan 200/200 05-01", "plan 50/50 05-01"], at);
  }
});

Deno.test("a merge keeps the amount of the primary, whatever seats the other one had", () => {
  const scene = sceneOf();
  const alias = new Scene([], undefined, [], { beside: scene, key: 8, id: "alias" });
  alias.pay("pro", "x", { quantity: 3 });
  for (const each of [scene, alias]) each.wait(60);
  scene.pay("pro", "y");
  alias.track(30);
  alias.mergeInto(scene);
  assert.deepEqual(shown(scene), ["plan 70/100 04-01"]);
  scene.at("2026-04-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["plan 100/100 05-01"]);
});
