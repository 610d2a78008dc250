// Hand-computed scenes for aliases and merges, taken from the specification: which pairs are refused, what a report
// says, and what becomes of subscriptions, usage and holds. Credits, caps and batches are in
// model_merge_credits_test.ts. "u" is the user that stays, "v" the one that becomes its alias.

import assert from "node:assert/strict";
import type { Input, Plan } from "./document.ts";
import { catalogOf, limit, Scene } from "./support.ts";

const X = { event: "x.make" };
const V = { userId: "v" };
const PAID = { provider: "stripe", externalId: "one" };
const OTHER_PAID = { provider: "apple", externalId: "two" };

const MONTHLY: Plan["period"] = { type: "monthly", anchor: "subscription_start" };

/** Three plans by rank: `low` and `high` pair by rules, except `low`'s group of y. */
const PLANS = catalogOf(
  { id: "low", limits: [limit("l", 10), limit("ly", 10, { matches: [{ event: "y" }] })] },
  { id: "high", onPlanChange: "reset", limits: [limit("h", 20)] },
  { id: "cycle", period: MONTHLY, limits: [limit("c", 30)] },
);

function scene(plans: { u?: string | null; v?: string | null } = {}): Scene {
  const at = new Scene(PLANS);
  for (const [userId, planId] of Object.entries(plans)) {
    if (planId) at.data("subscribe", { userId, planId });
    at.wait(1);
  }
  return at;
}

/** Merges "v" into "u". */
// deno-lint-ignore no-explicit-any
function merge(at: Scene, more: Input = {}): any {
  return at.data("alias", { from: "v", to: "u", ...more });
}

function codeOf(at: Scene, from: string, to: string): string | undefined {
  return at.ask("alias", { from, to }).code;
}

Deno.test("two unknown ids: nothing moves, nothing is billed, and both are one user from then on", () => {
  const at = scene();
  const { mergeId, ...report } = merge(at);
  assert.match(mergeId, /^«mrg_/);
  assert.deepEqual(report, {
    from: "v",
    to: "u",
    mode: "live",
    dryRun: false,
    alreadyMerged: false,
    historyPending: false,
    billableOperations: 0,
    moved: {
      events: 0,
      eventLogs: 0,
      counters: 0,
      reservations: 0,
      subscriptions: 0,
      subscriptionEvents: 0,
      creditBalances: 0,
      creditLedger: 0,
      mediaAssets: 0,
      composeGenerations: 0,
      aliasesRepointed: 0,
    },
    conflicts: {
      counters: { summed: 0, carried: [], unpaired: [] },
      subscriptions: null,
      endedSubscriptions: [],
      credits: [],
    },
    analytics: "linked",
  });
  const customer = { canonicalId: "u", aliases: ["v"], duplicateActiveSubscriptions: null };
  for (const userId of ["u", "v"]) assert.deepEqual(at.data("customer", { userId }), customer);
  assert.deepEqual(at.data("users", V).aliases, ["v"]);
  assert.deepEqual(at.data("customer", { userId: "w" }).canonicalId, "w");
});

Deno.test("every call by the alias is one of the canonical user", () => {
  const at = scene();
  merge(at);
  assert.equal(at.data("subscribe", { ...V, planId: "low" }).userId, "u");
  const reservationId = at.hold({ ...V, ...X, count: 2 });
  at.data("commit", { reservationId });
  at.data("track", { ...V, ...X });
  assert.deepEqual(at.counts(), { l: 3, ly: 0 });
  assert.equal(at.data("usage", V).userId, "u");
  for (const userId of ["u", "v"]) {
    const { events } = at.data("events", { userId });
    assert.deepEqual(events.map((row: Input) => row["endUserId"]), ["u", "u"]);
  }
  assert.equal(at.data("cancel", V).userId, "u");
});

Deno.test("an alias of an alias resolves, and aliases of a merged user are pointed anew", () => {
  const at = scene();
  at.data("alias", { from: "a", to: "b" });
  assert.equal(at.data("alias", { from: "c", to: "a" }).moved.aliasesRepointed, 0);
  assert.deepEqual(at.data("customer", { userId: "b" }).aliases, ["a", "c"]);
  assert.equal(at.data("alias", { from: "b", to: "d" }).moved.aliasesRepointed, 2);
  for (const userId of ["a", "b", "c", "d"]) {
    assert.deepEqual(at.data("customer", { userId }).canonicalId, "d");
  }
  assert.deepEqual(at.data("customer", { userId: "a" }).aliases.toSorted(), ["a", "b", "c"]);
});

Deno.test("the same id twice, a way back, and another canonical user are refused", () => {
  const at = scene();
  assert.equal(codeOf(at, "u", "u"), "alias_cycle");
  at.data("alias", { from: "a", to: "b" });
  assert.equal(codeOf(at, "a", "a"), "alias_cycle");
  assert.equal(codeOf(at, "b", "a"), "alias_cycle");
  assert.equal(codeOf(at, "a", "c"), "alias_conflict");
  assert.deepEqual(at.ask("alias", { from: "a", to: "c", dryRun: true }), {
    status: 409,
    code: "alias_conflict",
  });
  at.data("alias", { from: "b", to: "c" });
  assert.equal(codeOf(at, "c", "a"), "alias_cycle");
  assert.equal(codeOf(at, "c", "b"), "alias_cycle");
  assert.equal(codeOf(at, "b", "d"), "alias_conflict");
  for (const input of [{ from: "", to: "u" }, { from: "u" }, { from: "u", to: "x".repeat(201) }]) {
    assert.equal(at.ask("alias", input).code, "invalid_request");
  }
});

Deno.test("a repeated call gives the stored report of the merge in which the id became an alias", () => {
  const at = scene({ u: "low", v: "low" });
  const first = merge(at);
  const again = { ...first, alreadyMerged: true, billableOperations: 0, analytics: "already_linked" };
  assert.deepEqual(merge(at), again);
  const dry = { ...again, dryRun: true, mergeId: null };
  assert.deepEqual(merge(at, { dryRun: true }), dry);
  // Also when the canonical user has become an alias itself, whichever of its ids is named.
  at.data("alias", { from: "u", to: "w" });
  for (const to of ["u", "w"]) {
    assert.deepEqual(merge(at, { to }), { ...again, to });
  }
  assert.equal(at.model.operationsUsed(at.now), 2);
});

Deno.test("a dry run reports what the merge would do, and does nothing", () => {
  const at = scene({ u: "low", v: "high" });
  at.data("track", { ...V, ...X });
  at.hold({ ...X, count: 2 });
  const dry = merge(at, { dryRun: true });
  assert.deepEqual([dry.mergeId, dry.dryRun, dry.billableOperations], [null, true, 1]);
  assert.deepEqual(at.counts(), { l: 2, ly: 0 });
  assert.deepEqual(at.data("customer", V).canonicalId, "v");
  assert.equal(at.model.operationsUsed(at.now), 1);
  const real = merge(at);
  assert.deepEqual({ ...real, mergeId: null, dryRun: true }, dry);
  assert.equal(at.model.operationsUsed(at.now), 2);
});

Deno.test("one plan and one window: usage is summed, also past the quota, and past windows where they are the same", () => {
  const at = scene({ u: "low", v: "low" });
  at.data("track", { ...X, count: 3, costCents: 1 });
  at.data("track", { ...V, ...X, count: 4, costCents: 2 });
  at.at("2026-04-02T00:00:00.000Z");
  at.data("track", { ...X, count: 6, costCents: 4 });
  at.data("track", { ...V, ...X, count: 5, costCents: 8 });
  at.data("track", { ...V, event: "y", costCents: 16 });
  const { conflicts, moved } = merge(at);
  // Two windows of l; of ly the canonical user had no usage.
  assert.deepEqual(conflicts.counters, { summed: 2, carried: [], unpaired: [] });
  assert.deepEqual([moved.counters, moved.events], [3, 3]);
  assert.deepEqual(at.counts(), { l: 11, ly: 1 });
  const costs = at.data("usage").counters.map((each: { costCents: number }) => each.costCents);
  assert.deepEqual(costs, [12, 16]);
  assert.deepEqual(at.data("reserve", X).reasons, ["limit_reached"]);
});

Deno.test("one plan and two windows: both are summed in the primary's, with the holds in them", () => {
  const at = new Scene(PLANS);
  at.data("subscribe", { ...V, planId: "cycle", startsAt: "2026-03-01T00:00:00.000Z" });
  at.data("subscribe", { planId: "cycle", startsAt: "2026-03-05T00:00:00.000Z" });
  const reservationId = at.hold({ ...V, ...X, count: 5 });
  at.data("track", { ...X, count: 7 });
  const { conflicts } = merge(at);
  assert.deepEqual(conflicts.counters, { summed: 1, carried: [], unpaired: [] });
  assert.equal(conflicts.endedSubscriptions[0].startedAt, "2026-03-01T00:00:00.000Z");
  assert.equal(at.data("usage").period.start, "2026-03-05T00:00:00.000Z");
  assert.deepEqual(at.counts(), { c: 12 });
  at.data("release", { reservationId });
  assert.deepEqual(at.counts(), { c: 7 });
});

Deno.test("the same where the alias side's primary survives: counted once, in its window", () => {
  const at = new Scene(PLANS);
  at.data("subscribe", { planId: "cycle", startsAt: "2026-03-01T00:00:00.000Z" });
  at.data("subscribe", { ...V, planId: "cycle", startsAt: "2026-03-05T00:00:00.000Z" });
  at.data("track", { ...V, ...X, count: 5 });
  at.data("track", { ...X, count: 7 });
  assert.equal(merge(at).conflicts.counters.summed, 1);
  assert.equal(at.data("usage").period.start, "2026-03-05T00:00:00.000Z");
  assert.deepEqual(at.counts(), { c: 12 });
});

Deno.test("usage of the losing plan is carried to paired groups whatever the policy, the rest is unpaired", () => {
  const at = scene({ u: "high", v: "low" });
  at.data("track", { ...V, ...X, count: 3, costCents: 2 });
  at.data("track", { ...V, event: "y" });
  at.data("track", { ...X, count: 4, costCents: 1 });
  const reservationId = at.hold({ ...V, ...X, count: 5 });
  const { conflicts, moved } = merge(at);
  assert.deepEqual(conflicts.counters, {
    summed: 0,
    carried: [{ fromGroupId: "l", toGroupId: "h" }],
    unpaired: ["ly"],
  });
  assert.deepEqual([moved.counters, moved.reservations], [2, 1]);
  assert.deepEqual(at.counts(), { h: 12 });
  assert.equal(at.data("usage").counters[0].costCents, 3);
  const { groups } = at.data("commit", { reservationId, actual: { count: 1 } });
  assert.deepEqual([groups[0].groupId, groups[0].current], ["h", 8]);
});

Deno.test("usage of the canonical user's plan is carried too when the alias side has the better one", () => {
  const at = scene({ u: "low", v: "high" });
  at.data("track", { ...X, count: 3 });
  at.data("track", { ...V, ...X, count: 4 });
  assert.deepEqual(merge(at).conflicts.counters, {
    summed: 0,
    carried: [{ fromGroupId: "l", toGroupId: "h" }],
    unpaired: [],
  });
  assert.deepEqual(at.counts(), { h: 7 });
});

Deno.test("usage of a plan that has ended is carried while its window runs, and not later", () => {
  for (const [month, count] of [["03", 7], ["04", 4]] as const) {
    const at = scene({ u: "high", v: "low" });
    at.data("track", { ...V, ...X, count: 3 });
    at.data("cancel", V);
    at.at(`2026-${month}-20T00:00:00.000Z`);
    at.data("track", { ...X, count: 4 });
    const { conflicts, billableOperations } = merge(at);
    assert.deepEqual([conflicts.counters.carried.length, billableOperations], [month === "03" ? 1 : 0, 0]);
    assert.deepEqual(at.counts(), { h: count });
  }
});

Deno.test("a hold that lapsed before the merge is charged again where it was taken", () => {
  const at = scene({ u: "high", v: "low" });
  const reservationId = at.hold({ ...V, ...X, count: 3, ttlSeconds: 10 });
  const other = at.hold({ ...V, ...X, count: 1, ttlSeconds: 10 });
  at.wait(10);
  assert.equal(merge(at).moved.reservations, 2);
  const answer = at.data("commit", { reservationId });
  assert.deepEqual([answer.recharged, answer.groups[0].groupId, answer.groups[0].current], [true, "l", 3]);
  assert.deepEqual(at.counts(), { h: 0 });
  assert.equal(at.ask("release", { reservationId: other }).code, "reservation_not_pending");
});

Deno.test("without a plan usage is only added up, and a later plan goes on from the one that ended last", () => {
  const at = scene({ u: "high", v: "low" });
  at.data("track", { ...X, count: 4 });
  at.data("track", { ...V, ...X, count: 3 });
  at.data("cancel", {});
  at.wait(1).data("cancel", V);
  assert.deepEqual(merge(at).conflicts.counters, { summed: 0, carried: [], unpaired: [] });
  // `cycle` carries from `low`, whose end was the last; what `high` had stays.
  at.wait(1).data("subscribe", { planId: "cycle", ...PAID });
  assert.deepEqual(at.counts(), { c: 3 });
});

Deno.test("no paid row: the best default stays, the others end, and history says so", () => {
  const at = scene({ u: "high", v: "low" });
  const { subscription } = at.data("users", V);
  const { conflicts, moved, billableOperations } = merge(at);
  assert.deepEqual(conflicts.endedSubscriptions, [{
    subscriptionId: subscription.subscriptionId,
    planId: "low",
    planName: "low",
    provider: null,
    externalId: null,
    startedAt: subscription.startedAt,
    endsAt: new Date(at.now).toISOString(),
  }]);
  assert.equal(conflicts.subscriptions, null);
  assert.deepEqual([moved.subscriptions, moved.subscriptionEvents, billableOperations], [1, 1, 1]);
  const { history } = at.data("users");
  const rows = history.map((row: Input) => `${row["type"]} ${row["planId"]}`).reverse();
  assert.deepEqual(rows, ["created high", "created low", "merged low", "ended low"]);
});

Deno.test("a paid row ends the defaults ranked at or below it, and never one above it", () => {
  const at = scene({ u: "cycle", v: "low" });
  at.data("subscribe", { ...V, planId: "high", ...PAID });
  at.data("subscribe", { userId: "w", planId: "cycle" });
  const ended = merge(at).conflicts.endedSubscriptions;
  assert.deepEqual(ended.map((row: Input) => row["planId"]), ["low"]);
  // Two defaults that outrank every paid row both stay.
  const { conflicts } = at.wait(1).data("alias", { from: "w", to: "v" });
  assert.deepEqual(conflicts.endedSubscriptions, []);
  const { primary, duplicates } = conflicts.subscriptions;
  assert.deepEqual([primary.planId, primary.provider], ["cycle", null]);
  assert.deepEqual(duplicates.map((row: Input) => row["planId"]).sort(), ["cycle", "high"]);
  assert.deepEqual(at.data("customer").duplicateActiveSubscriptions, conflicts.subscriptions);
  // Of the two default rows an upsert takes the best one, which started last.
  assert.equal(at.data("subscribe", { planId: "cycle" }).subscriptionId, primary.subscriptionId);
});

Deno.test("paid rows of both sides stay, and the one that is left over is promoted and billed later", () => {
  const at = scene();
  at.data("subscribe", { planId: "high", ...PAID });
  at.data("subscribe", { ...V, planId: "low", ...OTHER_PAID });
  const { conflicts, billableOperations } = merge(at);
  assert.deepEqual(conflicts.endedSubscriptions, []);
  assert.equal(conflicts.subscriptions.duplicates[0].provider, "apple");
  assert.equal(billableOperations, 1);
  at.wait(1).data("cancel", { ...V, ...PAID });
  assert.deepEqual(at.history(), ["created", "created", "merged", "canceled", "promoted"]);
  assert.equal(at.data("usage").counters[0].groupId, "l");
  assert.equal(at.model.operationsUsed(at.now), 2);
});

Deno.test("several ended rows of one key: an upsert brings back the latest", () => {
  const at = scene({ u: "low", v: "low" });
  const { subscriptionId } = at.data("cancel", V);
  at.wait(1).data("cancel", {});
  merge(at);
  assert.equal(at.wait(1).data("subscribe", { planId: "low" }).subscriptionId, subscriptionId);
});

Deno.test("analytics of an anonymous session are linked only with consent", () => {
  for (const [from, to] of [["anon_1", "u"], ["v", "anon_2"]]) {
    for (const consentGiven of [undefined, null, false, true]) {
      const { analytics } = scene().data("alias", { from, to, consentGiven });
      assert.equal(analytics, consentGiven ? "linked" : "skipped_consent_required");
    }
  }
  assert.equal(scene().data("alias", { from: "an_anon_1", to: "u" }).analytics, "linked");
});

Deno.test("history of more than 500 rows is reported as pending, and reads are complete all the same", () => {
  for (const [events, pending] of [[497, false], [498, true]] as const) {
    const at = scene();
    for (let n = 0; n < events; n++) at.data("track", { ...V, ...X });
    at.data("subscribe", { ...V, planId: "low" });
    at.hold({ ...V, ...X });
    const reservationId = at.hold({ ...V, ...X });
    at.data("release", { reservationId });
    // Beside the tracks: the feed's row of the release, the settled hold, and the row `created`.
    const { historyPending, moved } = merge(at);
    assert.equal(historyPending, pending);
    const counts = [moved.events, moved.subscriptionEvents, moved.reservations, moved.counters];
    assert.deepEqual(counts, pending ? [0, 0, 1, 1] : [events + 1, 1, 2, 1]);
    assert.equal(at.data("events", { userId: "u", limit: 100, offset: 400 }).events.length, events + 1 - 400);
  }
});
