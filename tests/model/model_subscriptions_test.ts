// Hand-computed scenes for periods and subscriptions: windows, upsert, cancel, several at once,
// promotion, and what entering a plan does to its counters.

import assert from "node:assert/strict";
import { catalogOf, limit, Scene } from "./support.ts";
import { pairGroups } from "./rules.ts";
import { ladder } from "./catalogs.ts";
import { windowAt } from "./windows.ts";
import type { Period } from "./document.ts";

const X = { event: "x.make" };
const PAID = { provider: "stripe", externalId: "one" };
const OTHER_PAID = { provider: "apple", externalId: "two" };

function span(type: Period["type"], anchor: Period["anchor"], from: string, at: string, cycle?: string) {
  const anchors = { startedAt: Date.parse(from), cycleAnchorAt: cycle ? Date.parse(cycle) : null };
  const { start, end } = windowAt({ type, anchor }, anchors, Date.parse(at));
  const text = (time: number) => new Date(time).toISOString().replace(":00.000Z", "Z");
  return [text(start), end === null ? null : text(end)];
}

Deno.test("monthly windows from 31 January clamp to 28 February and come back to 31 March", () => {
  const from = "2026-01-31T10:30Z";
  const monthly = (at: string) => span("monthly", "subscription_start", from, at);
  assert.deepEqual(monthly("2026-02-28T10:29Z"), ["2026-01-31T10:30Z", "2026-02-28T10:30Z"]);
  assert.deepEqual(monthly("2026-02-28T10:30Z"), ["2026-02-28T10:30Z", "2026-03-31T10:30Z"]);
  assert.deepEqual(monthly("2026-04-30T10:30Z"), ["2026-04-30T10:30Z", "2026-05-31T10:30Z"]);
  assert.deepEqual(monthly("2028-02-29T12:00Z"), ["2028-02-29T10:30Z", "2028-03-31T10:30Z"]);
});

Deno.test("windows step from the anchor in both directions", () => {
  const before = span(
    "monthly",
    "subscription_start",
    "2026-01-01T00:00Z",
    "2026-01-05T00:00Z",
    "2026-03-31T01:00Z",
  );
  assert.deepEqual(before, ["2025-12-31T01:00Z", "2026-01-31T01:00Z"]);
  const week = span("weekly", "subscription_start", "2026-01-08T06:00Z", "2026-01-08T05:59Z");
  assert.deepEqual(week, ["2026-01-01T06:00Z", "2026-01-08T06:00Z"]);
});

Deno.test("calendar windows begin at midnight, on Monday, and on the first", () => {
  const from = "2026-01-31T10:30Z";
  const calendar = (type: Period["type"]) =>
    span(type, "calendar", from, "2026-03-11T12:00Z", "2026-01-07T00:00Z");
  assert.deepEqual(calendar("daily"), ["2026-03-11T00:00Z", "2026-03-12T00:00Z"]);
  assert.deepEqual(calendar("weekly"), ["2026-03-09T00:00Z", "2026-03-16T00:00Z"]);
  assert.deepEqual(calendar("monthly"), ["2026-03-01T00:00Z", "2026-04-01T00:00Z"]);
  assert.deepEqual(calendar("lifetime"), [from, null]);
});

/** Three plans by rank; the policy is that of the plan that is entered. */
const POLICIES = catalogOf(
  { id: "plan_block", onPlanChange: "block", limits: [limit("b", 5)] },
  { id: "plan_carry", limits: [limit("c", 20), limit("alone", 3, { matches: [{ event: "y" }] })] },
  { id: "plan_reset", onPlanChange: "reset", limits: [limit("r", 7)] },
);

Deno.test("a first subscription starts at 0 whatever the policy", () => {
  for (const planId of ["plan_block", "plan_carry", "plan_reset"]) {
    const scene = new Scene(POLICIES);
    scene.data("subscribe", { planId });
    assert.ok(Object.values(scene.counts()).every((count) => count === 0), planId);
    assert.deepEqual(scene.history(), ["created"]);
  }
});

Deno.test("carry moves usage, cost and open holds to the paired group and leaves 0 behind", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_reset" });
  scene.data("track", { ...X, costCents: 2 });
  const reservationId = scene.hold({ ...X, count: 4 });
  scene.data("subscribe", { planId: "plan_carry" });
  assert.deepEqual(scene.counts(), { c: 5, alone: 0 });
  scene.data("commit", { reservationId, extra: { count: -1 }, costCents: 3 });
  assert.deepEqual(scene.counts(), { c: 4, alone: 0 });
  assert.equal(scene.data("usage").counters[0].costCents, 5);
  const [row] = scene.data("events").events;
  assert.deepEqual(scene.data("event", { eventId: row.id }).matchedGroupIds, ["c"]);
  assert.deepEqual(scene.history(), ["created", "plan_changed"]);
});

Deno.test("carry keeps the larger of the plan's own usage and the moved one", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_carry" });
  scene.data("track", { ...X, quantity: 6 });
  scene.data("subscribe", { planId: "plan_reset" });
  scene.data("track", { ...X, quantity: 2 });
  scene.data("subscribe", { planId: "plan_carry" });
  assert.deepEqual(scene.counts(), { c: 6, alone: 0 });
});

Deno.test("reset starts the entered plan at 0, and a hold of the old plan settles where it was taken", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_carry" });
  const reservationId = scene.hold({ ...X, count: 4 });
  scene.data("subscribe", { planId: "plan_reset" });
  assert.deepEqual(scene.counts(), { r: 0 });
  const [group] = scene.data("commit", { reservationId }).groups;
  assert.deepEqual(group, { groupId: "c", unit: "count", quota: 20, current: 4, overflow: false });
  assert.deepEqual(scene.counts(), { r: 0 });
});

Deno.test("block fills the entered plan for the running window and no longer", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_carry" });
  scene.data("subscribe", { planId: "plan_block" });
  assert.deepEqual(scene.data("reserve", X).reasons, ["limit_reached"]);
  assert.deepEqual(scene.at("2026-04-01T00:00:00.000Z").counts(), { b: 0 });
});

Deno.test("entering another plan after an end is a change while the old window runs, and a start after it", () => {
  for (const [back, count] of [["2026-03-31T23:59:59.999Z", 5], ["2026-04-01T00:00:00.000Z", 0]] as const) {
    const scene = new Scene(POLICIES);
    scene.data("subscribe", { planId: "plan_carry" });
    scene.data("cancel");
    scene.at(back).data("subscribe", { planId: "plan_block", ...PAID });
    assert.deepEqual(scene.counts(), { b: count });
  }
});

Deno.test("an expired hold is not carried: its late commit charges the plan it was taken on", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_reset" });
  const reservationId = scene.hold({ ...X, count: 4 });
  scene.wait(600).data("subscribe", { planId: "plan_carry" });
  const { groups, recharged } = scene.data("commit", { reservationId, actual: { count: 8 } });
  assert.equal(recharged, true);
  assert.deepEqual(groups, [{ groupId: "r", unit: "count", quota: 7, current: 8, overflow: true }]);
  assert.deepEqual(scene.counts(), { c: 0, alone: 0 });
});

Deno.test("groups pair by id, then by rules in any order, then by first pattern, each old one once", () => {
  const [, first, second, , fourth] = ladder.plans;
  const pairs = (a = first!, b = second!) => pairGroups(a, b).map(({ from, to }) => [from.id, to.id]);
  assert.deepEqual(pairs(), [
    ["lg_same", "lg_same"],
    ["lg_first_rules", "lg_second_rules"],
    ["lg_first_pattern", "lg_second_pattern"],
  ]);
  assert.deepEqual(pairs(first!, fourth!), [
    ["lg_same", "lg_fourth_a"],
    ["lg_first_rules", "lg_fourth_b"],
    ["lg_first_alone", "lg_fourth_tokens"],
  ]);
});

Deno.test("a hold taken before the period rolled settles in its own window", () => {
  const scene = new Scene(POLICIES, "2026-03-31T23:59:00.000Z");
  scene.data("subscribe", { planId: "plan_carry" });
  const reservationId = scene.hold({ ...X, count: 4 });
  scene.wait(120);
  assert.deepEqual(scene.counts(), { c: 0, alone: 0 });
  assert.equal(scene.data("commit", { reservationId }).groups[0].current, 4);
  assert.deepEqual(scene.counts(), { c: 0, alone: 0 });
});

Deno.test("the same plan again changes nothing; a canceled row comes back to its usage", () => {
  const scene = new Scene(POLICIES);
  const before = scene.data("subscribe", { planId: "PLAN_CARRY" });
  scene.data("track", { ...X, quantity: 3 });
  assert.deepEqual(scene.wait(60).data("subscribe", { planId: "plan_carry" }), before);
  scene.data("cancel", { reason: "no need" });
  assert.deepEqual(scene.data("reserve", X).reasons, ["no_subscription"]);
  assert.equal(scene.data("usage").period, null);
  assert.deepEqual(scene.data("subscribe", { planId: "plan_carry" }), before);
  assert.deepEqual(scene.counts(), { c: 3, alone: 0 });
  assert.deepEqual(scene.history(), ["created", "canceled", "reactivated"]);
});

Deno.test("a scheduled end writes canceled when asked and ended when it comes", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_carry" });
  assert.equal(
    scene.data("cancel", { endsAt: "2026-03-20T00:00:00.000Z" }).endsAt,
    "2026-03-20T00:00:00.000Z",
  );
  assert.equal(
    scene.at("2026-03-19T23:59:59.999Z").data("users").subscription.endsAt,
    "2026-03-20T00:00:00.000Z",
  );
  const { subscription, history } = scene.at("2026-03-25T00:00:00.000Z").data("users");
  assert.equal(subscription, null);
  assert.equal(history[0].at, "2026-03-20T00:00:00.000Z");
  assert.deepEqual(scene.history(), ["created", "canceled", "ended"]);
});

Deno.test("another plan on an ended row writes reactivated and then plan_changed", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_carry", endsAt: "2026-03-11T00:00:00.000Z" });
  scene.at("2026-03-12T00:00:00.000Z").data("subscribe", { planId: "plan_reset" });
  assert.deepEqual(scene.history(), ["created", "ended", "reactivated", "plan_changed"]);
});

Deno.test("an upsert that takes an end away brings a row back; one that moves the end does not", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_carry" });
  scene.data("cancel", { endsAt: "2026-03-20T00:00:00.000Z" });
  scene.wait(1).data("subscribe", { planId: "plan_carry", endsAt: "2026-03-25T00:00:00.000Z" });
  assert.deepEqual(scene.history(), ["created", "canceled"]);
  scene.wait(1).data("subscribe", { planId: "plan_carry" });
  assert.deepEqual(scene.history(), ["created", "canceled", "reactivated"]);
});

Deno.test("cancel finds the default row, else the only active row, else asks for the ids", () => {
  const scene = new Scene(POLICIES);
  assert.equal(scene.ask("cancel").code, "not_found");
  scene.data("subscribe", { planId: "plan_carry", ...PAID });
  scene.data("subscribe", { planId: "plan_block", ...OTHER_PAID });
  assert.equal(scene.ask("cancel").code, "invalid_request");
  scene.data("cancel", PAID);
  assert.equal(scene.ask("cancel", PAID).code, "already_canceled");
  assert.equal(scene.ask("cancel", { provider: "stripe", externalId: "none" }).code, "not_found");
  assert.equal(scene.data("cancel").planId, "plan_block");
  scene.data("subscribe", { planId: "plan_carry" });
  scene.data("cancel");
  scene.data("subscribe", { planId: "plan_carry", ...PAID });
  assert.equal(scene.ask("cancel").code, "already_canceled");
});

Deno.test("the primary is the best by rank, then the latest started; the others are duplicates", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_block" });
  scene.data("subscribe", { planId: "plan_carry", ...PAID });
  scene.data("subscribe", { planId: "plan_carry", ...OTHER_PAID, startsAt: "2026-03-01T00:00:00.000Z" });
  const { subscription, duplicateActiveSubscriptions } = scene.data("users");
  assert.equal(subscription.externalId, "one");
  assert.equal(duplicateActiveSubscriptions.primary.planName, "plan_carry");
  assert.equal(duplicateActiveSubscriptions.duplicates.length, 2);
  assert.deepEqual(scene.history(), ["created", "created", "created"]);
});

Deno.test("a paid duplicate is promoted at the end of the primary, with its plan's policy, and billed", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_carry", ...OTHER_PAID });
  scene.data("subscribe", { planId: "plan_reset", ...PAID, endsAt: "2026-03-20T00:00:00.000Z" });
  scene.data("track", { ...X, quantity: 6 });
  assert.deepEqual(scene.at("2026-03-25T00:00:00.000Z").counts(), { c: 6, alone: 0 });
  const [promoted, ended] = scene.data("users").history;
  assert.deepEqual([promoted.type, ended.type], ["promoted", "ended"]);
  assert.equal(promoted.at, "2026-03-20T00:00:00.000Z");
  assert.equal(scene.model.operationsUsed(scene.now), 2);
});

Deno.test("a default row that takes over writes no promoted row", () => {
  const scene = new Scene(POLICIES);
  scene.data("subscribe", { planId: "plan_block" });
  scene.data("subscribe", { planId: "plan_reset", ...PAID });
  scene.data("cancel", PAID);
  assert.deepEqual(scene.counts(), { b: 5 });
  assert.deepEqual(scene.history(), ["created", "created", "canceled"]);
});

Deno.test("custom limits replace quotas, are kept, cleared by null and by a plan change", () => {
  const scene = new Scene(POLICIES);
  const quota = () => scene.data("usage").counters[0].quota;
  scene.data("subscribe", { planId: "plan_carry", customLimits: { c: { quota: 50 } } });
  scene.data("subscribe", { planId: "plan_carry" });
  assert.equal(quota(), 50);
  scene.data("subscribe", { planId: "plan_carry", customLimits: null });
  assert.equal(quota(), 20);
  scene.data("subscribe", { planId: "plan_carry", customLimits: { c: { quota: 1 } } });
  scene.data("subscribe", { planId: "plan_reset" });
  scene.data("subscribe", { planId: "plan_carry" });
  assert.equal(quota(), 20);
  const unknown = { planId: "plan_carry", customLimits: { r: { quota: 1 } } };
  assert.equal(scene.ask("subscribe", unknown).code, "invalid_request");
});

Deno.test("a cycle anchor moves the windows, null gives them back, omitted keeps it", () => {
  const catalog = catalogOf({
    id: "plan_a",
    period: { type: "monthly", anchor: "subscription_start" },
    limits: [limit("lg", 10)],
  });
  const scene = new Scene(catalog);
  const start = () => scene.data("usage").period.start;
  scene.data("subscribe", { planId: "plan_a" });
  assert.equal(start(), "2026-03-10T12:00:00.000Z");
  scene.data("subscribe", { planId: "plan_a", cycleStart: "2026-05-02T00:00:00.000Z" });
  scene.data("subscribe", { planId: "plan_a" });
  assert.equal(start(), "2026-03-02T00:00:00.000Z");
  scene.data("subscribe", { planId: "plan_a", cycleStart: null });
  assert.equal(start(), "2026-03-10T12:00:00.000Z");
});

Deno.test("an unknown plan is not found and an unknown user is empty", () => {
  const scene = new Scene(POLICIES);
  assert.equal(scene.ask("subscribe", { planId: "plan_none" }).code, "not_found");
  assert.deepEqual(scene.data("users"), {
    userId: "u",
    period: null,
    counters: [],
    credits: [],
    duplicateActiveSubscriptions: null,
    aliases: [],
    subscription: null,
    history: [],
  });
});

Deno.test("a row that ends together with the primary takes no promotion away, whichever was made first", () => {
  const endsAt = "2026-03-11T00:00:00.000Z";
  const rows = [{ planId: "plan_block", endsAt }, { planId: "plan_reset", endsAt, ...PAID }];
  for (const order of [rows, rows.toReversed()]) {
    const scene = new Scene(POLICIES);
    for (const row of order) scene.wait(1).data("subscribe", row);
    scene.wait(1).data("subscribe", { planId: "plan_carry", ...OTHER_PAID });
    scene.at(endsAt);
    const types = scene.history().slice(3);
    assert.deepEqual(types.toSorted(), ["ended", "ended", "promoted"]);
    assert.equal(scene.data("users").subscription.planId, "plan_carry");
  }
});
