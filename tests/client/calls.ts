// Every call against the running service, with every member that it can send. The service must know each member, and
// each answer must be as the API reference describes it. The client's types are generated from that reference.

import assert from "node:assert/strict";
import {
  type ConsentScope,
  type GrantInput,
  type HoldfastClient,
  HoldfastError,
  type LimitReachedDetails,
  signEndUserToken,
} from "../../src/client/client.ts";
import type { TestApp } from "../support/test_service.ts";
import { FEATURED, KEYS, service } from "./service.ts";
import { clientOf } from "./support.ts";
import { Watch } from "./watch.ts";

interface Scene {
  readonly app: TestApp;
  readonly client: HoldfastClient;
  readonly fetch: Watch["fetch"];
}

const SOURCES: Record<NonNullable<GrantInput["source"]>, true> = {
  purchase: true,
  grant: true,
  refund: true,
  manual: true,
};
const SCOPES: Record<ConsentScope, true> = {
  analytics: true,
  ai_personalization: true,
  prompt_logging: true,
};

const PARTS: readonly [name: string, part: (scene: Scene) => Promise<void>][] = [
  ["subscriptions, users and plans", subscribe],
  ["reserve, commit, release, track, can-use, explain and usage", meter],
  ["credits and their ledger", credit],
  ["aliases", merge],
  ["accounts", climb],
  ["the feed", readFeed],
  ["compose", generate],
  ["runs", runAgent],
  ["people", knowPeople],
  ["consent, export and erasure", keepPrivacy],
  ["the test clock, and a public key with a token", otherKeys],
];

Deno.test("every call sends what the service reads and answers what the reference says", async (test) => {
  const watch = new Watch(service);
  const app = await service.newApp(FEATURED);
  const client = clientOf(service, app, { fetch: watch.fetch });
  for (const [name, part] of PARTS) {
    await test.step(name, () => part({ app, client, fetch: watch.fetch }));
  }
  await test.step("no endpoint and no member is left out", () => assert.deepEqual(watch.unsent(), []));
});

async function subscribe({ app, client, fetch }: Scene): Promise<void> {
  const ids = { userId: "u", provider: "stripe", externalId: "sub_1" };
  const at = (ms: number) => new Date(service.clock.now() + ms);
  const row = await client.subscriptions.upsert({
    ...ids,
    planId: "Pro",
    customLimits: { lg_pro_images: { quota: 30 } },
    customFeatures: { seats: 7 },
    startsAt: at(-1000),
    endsAt: at(1e9),
    cycleStart: "2026-01-10T00:00:00Z",
  });
  assert.equal(row.cycleAnchorAt, "2026-01-10T00:00:00.000Z");
  const cap = await client.usage.setSpendCap({ userId: "u", groupId: "lg_renders", max: 9 });
  assert.deepEqual(cap, { userId: "u", groupId: "lg_renders", max: 9 });
  const span = { from: at(-3_600_000), to: at(3_600_000) };
  assert.deepEqual(await client.usage.overage({ userId: "u", ...span }), { overage: [] });
  assert.deepEqual((await client.features.get("u")).features["seats"]?.value, 7);
  assert.equal(await client.features.isOn("u", "sso"), true);
  await client.subscriptions.upsert({ userId: "u", planId: "plan_free", quantity: 2, trial: false });
  const ahead = await client.subscriptions.upsert({ ...ids, planId: "plan_free", at: at(1e8) });
  assert.equal(ahead.scheduled?.planId, "plan_free");
  assert.equal((await client.subscriptions.unschedule(ids)).scheduled, null);
  const ended = await client.subscriptions.cancel({ ...ids, endsAt: at(2e9), reason: "moves on" });
  assert.equal(ended.subscriptionId, row.subscriptionId);
  const user = await client.users.get("u");
  assert.equal(user.duplicateActiveSubscriptions?.primary.provider, "stripe");
  assert.deepEqual(user.history.map(({ type }) => type), ["canceled", "created", "created"]);
  assert.deepEqual((await client.users.get("unknown")).subscription, null);
  assert.equal((await client.plans.list()).length, 5);
  assert.deepEqual(await client.plans.rates(), []);
  const { userKeyId, key } = await client.userKeys.create("u", { name: "CI", expiresAt: at(1e9) });
  const own = clientOf(service, { ...app, secretLive: key }, { fetch });
  assert.equal((await own.usage("u")).userId, "u");
  const [listed] = await client.userKeys.list("u");
  assert.deepEqual([listed?.userKeyId, listed?.prefix], [userKeyId, key.slice(0, 12)]);
  assert.equal(await client.userKeys.revoke("u", userKeyId), undefined);
  assert.deepEqual(await client.userKeys.list("u"), []);
  KEYS.byMode.live.set(app.appId, "sk_live_test");
  const card = { stripeCustomerId: "cus_1", stripePaymentMethodId: "pm_1" };
  const wanted = { packId: "cpk_image_topup", below: 1, maxPerMonth: 500, quantity: 2, enabled: false };
  const set = await client.topUps.set("u", { ...wanted, ...card });
  assert.deepEqual(await client.topUps.get("u"), set);
  assert.deepEqual(await client.topUps.list("u", { limit: 1, cursor: `tup_1_${"0".repeat(20)}` }), {
    topUps: [],
    cursor: null,
  });
  assert.deepEqual(await client.topUps.remove("u"), { userId: "u", underWay: false });
}

async function climb({ client }: Scene): Promise<void> {
  await client.subscriptions.upsert({ userId: "acme", planId: "plan_free" });
  const memberLimits = { lg_free_images: { quota: 3 } };
  const set = await client.accounts.setParent("member", "acme", { memberLimits });
  assert.deepEqual(set, { userId: "member", parentId: "acme", path: ["member", "acme"], memberLimits });
  await client.accounts.setParent("another", "acme");
  const first = await client.accounts.children("acme", { limit: 1 });
  const rest = await client.accounts.children("acme", { limit: 1, cursor: first.cursor ?? undefined });
  const all: string[] = [];
  for await (const { userId } of client.accounts.childrenAll("acme", { limit: 1 })) all.push(userId);
  assert.deepEqual([...first.children, ...rest.children].map(({ userId }) => userId), all);
  assert.deepEqual(all, ["another", "member"]);
  await client.track("another", "image.x", 1, {}, { count: 2 });
  await client.track("member", "image.x");
  const groupId = "lg_free_images";
  const most = await client.accounts.members("acme", { groupId, limit: 1 });
  const others = await client.accounts.members("acme", {
    groupId,
    limit: 1,
    cursor: most.cursor ?? undefined,
  });
  const used = [...most.members, ...others.members].map(({ userId, count, quota }) => [userId, count, quota]);
  assert.deepEqual(used, [["another", 2, null], ["member", 1, 3]]);
  const { levels } = await client.usage("member", "image.x", { levels: true });
  assert.equal(levels?.[0]?.counters[0]?.count, 3);
  const refused = await client.reserve("another", "image.x", 1, {}, { count: 1000 });
  assert.deepEqual([refused.refusedBy, refused.levels?.[0]?.userId], [["acme"], "acme"]);
  const found = await client.refusals.list({ refusedBy: "acme" });
  assert.deepEqual(found.refusals.map(({ userId, refusedBy }) => [userId, refusedBy]), [["another", [
    "acme",
  ]]]);
  assert.deepEqual((await client.accounts.setParent("member", null)).path, ["member"]);
}

async function meter({ client }: Scene): Promise<void> {
  const size = { inputTokens: 1000, inputCostCents: 2, count: 1 };
  const caching = { cacheWriteTokens: 0, cacheWrite1hTokens: 0 };
  const logged = { prompt: "a cat" };
  const hold = await client.reserve("u", "chat.reply", 2, { model: "gpt-4o-mini" }, {
    ...size,
    ...caching,
    ...logged,
    ttlSeconds: 60,
  });
  assert.ok(hold.allowed);
  const extra = { outputTokens: 50 };
  const settled = await client.commit(hold.reservationId, { extra, actual: { cents: 3 }, response: "done" });
  assert.deepEqual(settled.groups.map(({ current }) => current), [1050, 3]);
  await meterUsage(client);
  await Promise.all(Array.from({ length: 3 }, () => client.canUse("u", "chat.reply")));

  const other = await client.reserve("u", "image.render");
  assert.ok(other.allowed);
  assert.equal(
    await client.release(other.reservationId, { reason: "r", errorCode: "e", response: "p" }),
    undefined,
  );
  const again = await client.release(other.reservationId).catch((error) => error);
  assert.ok(
    again instanceof HoldfastError && again.code === "reservation_not_pending" && again.status === 409,
  );

  const fit = { minOutputTokens: 5, models: ["gpt-4o-mini"] };
  const small = await client.reserve("u", "chat.short", 1, {}, { maxOutputTokens: 10, fit });
  assert.deepEqual(small.fitted, { model: "gpt-4o-mini", maxOutputTokens: 10 });
  await client.release(small.reservationId ?? "");

  const third = await client.reserve("u", "image.render");
  assert.ok(third.allowed);
  assert.equal((await client.commit(third.reservationId, { costCents: 4.2 })).recharged, false);

  const tracked = await client.track("u", "image.x", 1, { model: "flux-pro" }, {
    ...size,
    ...logged,
    costCents: 5,
    response: "drawn",
  });
  assert.deepEqual(tracked.matchedGroupIds, ["lg_pro_images"]);
  assert.equal((await client.track("stranger", "image.x")).matchStatus, "no_subscription");
  const full = await client.track("u", "image.x", 1, {}, { count: 1000 }).catch((error) => error);
  assert.ok(full instanceof HoldfastError && full.code === "limit_reached");
  const { eventId, groups } = full.details as LimitReachedDetails;
  assert.match(eventId, /^evt_/);
  assert.deepEqual(groups, [{ groupId: "lg_pro_images", unit: "count", quota: 30, current: 2 }]);

  const can = await client.canUse("u", "image.x", 1, {}, {
    ...size,
    ...caching,
    count: 1000,
    maxOutputTokens: 1,
  });
  assert.deepEqual([can.allowed, can.reasons, can.details.length], [false, ["limit_reached"], 1]);
  const why = await client.explain("u", "image.x", 1, {}, {
    ...size,
    ...caching,
    count: 1000,
    maxOutputTokens: 1,
  });
  assert.deepEqual([why.allowed, why.reasons, why.groups[0]?.fits], [false, ["limit_reached"], false]);
  const refused = await client.reserve("stranger", "image.x");
  assert.deepEqual([refused.allowed, refused.matched, refused.reasons], [false, false, ["no_subscription"]]);
  assert.deepEqual((await client.usage("u", "image.x")).counters.map(({ count }) => count), [2]);
  assert.equal((await client.usage("stranger")).period, null);
  const stop = new AbortController();
  await client.usage.watch("u", ({ counters }) => {
    assert.deepEqual(counters.map(({ count }) => count), [2]);
    stop.abort();
  }, { signal: stop.signal, event: "image.x" });
  client.trackLater("u", "image.x", 1, {}, { count: 2 });
  await client.flush();
}

/** What a model used, in members of ours and as a server's object: it costs the same each time. */
async function meterUsage(client: HoldfastClient): Promise<void> {
  const mini = { model: "gpt-4o-mini" };
  const usage = { inputTokens: 666, cachedInputTokens: 0, outputTokens: 334, reasoningTokens: 4 };
  const providerUsage = { prompt_tokens: 666, completion_tokens: 334, prompt_tokens_details: null };
  const cost = { cents: 0.03003, priced: true, model: "gpt-4o-mini" };
  for (const reported of [{ usage }, { providerUsage }]) {
    const hold = await client.reserve("u", "chat.title", 1, mini, {
      inputTokens: 666,
      maxOutputTokens: 4000,
    });
    assert.ok(hold.allowed);
    assert.deepEqual((await client.commit(hold.reservationId, reported)).cost, cost);
    assert.deepEqual((await client.track("u", "chat.title", 1, mini, reported)).cost, cost);
  }
}

async function credit({ client }: Scene): Promise<void> {
  const pack = { userId: "u", packId: "Image Top-Up", notes: "n", quantity: 1 };
  for (const source of Object.keys(SOURCES) as (keyof typeof SOURCES)[]) {
    await client.credits.grant({ ...pack, source, externalRef: `order_${source}`, expiresAt: null });
  }
  const wallet = await client.credits.grant({
    userId: "u",
    packId: "cpk_wallet",
    quantity: 7.5,
    expiresAt: "2027-01-01T00:00:00Z",
  });
  assert.deepEqual(wallet.balances.map(({ packItemId, remaining }) => [packItemId, remaining]), [[
    null,
    7.5,
  ]]);
  const { balanceId } = wallet;
  const later = "2028-01-01T00:00:00.000Z";
  assert.deepEqual(
    await client.credits.extend({ balanceId, expiresAt: new Date(later), reason: "r" }),
    { balanceId, remaining: 7.5, expiresAt: later },
  );
  assert.deepEqual(await client.credits.revoke({ balanceId, reason: "r" }), { balanceId, remaining: 0 });
  const { credits } = await client.credits.list({ userId: "u", event: "image.*", includeExpired: true });
  assert.deepEqual(credits.map(({ status }) => status).toSorted(), [...Array(4).fill("active"), "revoked"]);
  const first = await client.credits.history({ userId: "u", limit: 1 });
  const next = await client.credits.history({ userId: "u", limit: 1, cursor: first.nextCursor as string });
  assert.notEqual(first.entries[0]?.id, next.entries[0]?.id);
  const ofWallet = await client.credits.history({ userId: "u", balanceId });
  assert.deepEqual(ofWallet.entries.map(({ reason, delta }) => [reason, delta]), [["admin_adjust", -7.5], [
    "admin_adjust",
    0,
  ], ["grant", 7.5]]);
  const all: string[] = [];
  for await (const { id } of client.credits.historyAll({ userId: "u", limit: 2 })) all.push(id);
  assert.deepEqual([all.length, new Set(all).size], [7, 7]);
}

async function merge({ client }: Scene): Promise<void> {
  await client.credits.grant({ userId: "old", packId: "Image Top-Up", externalRef: "order_grant" });
  await client.track("old", "image.x", 1, {}, { count: 60 });
  const dry = await client.customers.alias({ from: "old", to: "u", dryRun: true, consentGiven: true });
  const report = await client.customers.alias({ from: "old", to: "u", consentGiven: false });
  assert.deepEqual([dry.mergeId, dry.billableOperations], [null, report.billableOperations]);
  assert.equal(report.conflicts.credits.length, 1);
  assert.equal((await client.customers.alias({ from: "old", to: "u" })).alreadyMerged, true);
  const { results, billableOperations } = await client.customers.aliasMany(
    [{ from: "old", to: "u" }, { from: "", to: "u" }, { from: "u", to: "old" }],
    { dryRun: false, consentGiven: true },
  );
  assert.deepEqual(results.map(({ ok, error }) => error?.code ?? ok), [
    true,
    "invalid_request",
    "alias_cycle",
  ]);
  assert.equal(billableOperations, 0);
  const customer = await client.customers.get("old");
  assert.deepEqual([customer.canonicalId, customer.aliases], ["u", ["old"]]);
}

async function readFeed({ client }: Scene): Promise<void> {
  const page = await client.events.list({ userId: "u", eventType: "chat.reply", limit: 5, offset: 0 });
  assert.deepEqual(page.events.map(({ promptPreview }) => promptPreview), ["a cat"]);
  const met = await client.refusals.list({ userId: "u", event: "image.x", limit: 5, offset: 0 });
  assert.deepEqual(met.refusals.map(({ reasons }) => reasons), [["limit_reached"]]);
  const detail = await client.events.get(page.events[0]?.id as string);
  assert.deepEqual([detail.prompt, detail.response, detail.quantity], ["a cat", "done", 2]);
  const all: string[] = [];
  for await (const { matchStatus } of client.events.all({ userId: "u", limit: 2 })) all.push(matchStatus);
  const times = { from: new Date(0), to: "2100-01-01" };
  const { events } = await client.events.list({ userId: "u", limit: 100, ...times });
  assert.deepEqual(all, events.map(({ matchStatus }) => matchStatus));
  const { events: blocked } = await client.events.list({ userId: "u", status: "blocked" });
  assert.deepEqual(blocked.map(({ matchStatus }) => matchStatus), all.filter((one) => one === "blocked"));
  assert.ok(blocked.length > 0 && all.includes("released"));
}

async function generate({ client }: Scene): Promise<void> {
  const recap = await client.compose("usage-recap", "u", { name: "Ada", language: "English" });
  assert.equal(recap.status, "generated");
  await client.analytics.optOut("quiet", "ai_personalization");
  const none = await client.compose("usage-recap", "quiet", { name: "Ada", language: "English" });
  assert.deepEqual(none, { status: "opted_out", generationId: null, output: null, usage: null });
}

async function runAgent({ client }: Scene): Promise<void> {
  const limits = [{ unit: "count", quota: 5, event: "image.*" }] as const;
  const input = { userId: "u", limits, name: "Digest", ttlSeconds: 600, metadata: { job: 1 } };
  const run = await client.runs.create(input);
  const { runId } = run;
  await client.compose("usage-recap", "u", { name: "Ada", language: "English" }, { runId });
  const seen: string[] = [];
  const failure = new Error("no answer");
  const failed = client.withRun({ ...input, parentRunId: runId }, async ({ runId: inner }) => {
    seen.push(inner);
    const { allowed } = await client.canUse("u", "image.render", 1, {}, { count: 6, runId: inner });
    assert.equal(allowed, false);
    assert.deepEqual(
      (await client.explain("u", "image.render", 1, {}, { count: 6, runId: inner })).refusedBy,
      [inner, runId],
    );
    const hold = await client.reserve("u", "image.render", 1, {}, { runId: inner });
    assert.ok(hold.allowed);
    await client.release(hold.reservationId);
    await client.track("u", "image.render", 1, {}, { runId: inner });
    throw failure;
  });
  await assert.rejects(failed, failure);
  const [inner = ""] = seen;
  assert.deepEqual([(await client.runs.get(inner)).status, (await client.runs.get(runId)).status], [
    "ended",
    "active",
  ]);
  const page = await client.runs.list({ userId: "u", status: "ended", limit: 1 });
  assert.deepEqual(page.runs.map((each) => [each.runId, each.limits[0]?.count]), [[inner, 1]]);
  await client.runs.list({
    userId: "u",
    limit: 1,
    cursor: (await client.runs.list({ userId: "u", limit: 1 })).cursor ?? "",
  });
  const all: string[] = [];
  for await (const each of client.runs.all({ userId: "u", limit: 1 })) all.push(each.runId);
  assert.deepEqual(all.toSorted(), [runId, inner].toSorted());
  assert.equal((await client.runs.end(runId, { reason: "done" })).reason, "done");
  const { events } = await client.events.list({ runId: inner });
  assert.deepEqual(events.map(({ matchStatus }) => matchStatus), ["matched", "released"]);
}

async function knowPeople({ client }: Scene): Promise<void> {
  const { analytics } = client;
  const properties = { tab: "new", count: 1, isNew: true, from: null };
  const timestamp = new Date(service.clock.now());
  await analytics.capture({ distinctId: "anon_1", event: "opened", properties, timestamp });
  await analytics.capture({ event: "opened" });
  const identified = await analytics.identify({
    distinctId: "p",
    properties,
    propertiesOnce: { first: "mail" },
    mergeAnonymousId: "anon_1",
    consentGiven: true,
  });
  assert.equal(identified.merged, true);
  const { personId } = await analytics.alias({ distinctId: "anon_2", alias: "p", consentGiven: true });
  assert.equal(personId, identified.personId);
}

async function keepPrivacy({ client }: Scene): Promise<void> {
  const { analytics } = client;
  for (const scope of Object.keys(SCOPES) as ConsentScope[]) {
    await analytics.optOut("p", scope);
    assert.equal(await analytics.isOptedOut("p", scope), true);
    await analytics.optIn("p", scope);
    assert.equal(await analytics.isOptedOut("p", scope), false);
  }
  await analytics.optOut("p", "all");
  await analytics.optIn("p");
  await client.track("p", "image.x");
  const { downloadUrl } = await analytics.exportPerson("p");
  const document = await analytics.downloadExport(downloadUrl);
  assert.deepEqual(document.person?.distinctIds.toSorted(), ["anon_1", "anon_2", "p"]);
  assert.deepEqual([document.events.analytics.length, document.events.metering.length], [1, 1]);
  assert.equal(document.consentLog.length, 8);
  const bad = await analytics.downloadExport(`${downloadUrl}x`).catch((error) => error);
  assert.ok(bad instanceof HoldfastError && bad.code === "invalid_or_expired_token");
  const { jobId } = await analytics.deletePerson("p");
  assert.notEqual((await analytics.deletionStatus(jobId)).status, "failed");
}

async function otherKeys({ app, fetch }: Scene): Promise<void> {
  // Tokens are signed by the real clock.
  service.clock.set(Date.now());
  const { identitySecret } = app;
  const test = clientOf(service, app, { apiKey: app.secretTest, fetch });
  const { now } = await test.testClock.move({ advanceSeconds: 60 });
  const later = new Date(Date.parse(now) + 1000);
  assert.equal((await test.testClock.move({ now: later })).now, later.toISOString());
  assert.equal((await test.testClock.read()).now, later.toISOString());

  const endUserToken = () => signEndUserToken({ identitySecret, userId: "u" });
  const page = clientOf(service, app, { apiKey: app.publicLive, endUserToken, fetch });
  const me = await page.usageMe("image.*");
  assert.deepEqual([me.userId, "duplicateActiveSubscriptions" in me], ["u", false]);
  assert.equal((await page.usage()).userId, "u");
  assert.equal((await page.credits.list({ userId: "old" })).credits.length, 4);
  const stranger = await page.credits.list({ userId: "stranger" }).catch((error) => error);
  assert.ok(
    stranger instanceof HoldfastError && stranger.code === "forbidden" && stranger.requestId !== null,
  );
  const named = await page.usage("stranger", undefined, { requestId: "req.7" }).catch((error) => error);
  assert.equal(named.requestId, "req.7");
  const ünicode = await signEndUserToken({ identitySecret, userId: "ü😀" });
  assert.equal((await page.usageMe(undefined, { endUserToken: ünicode })).userId, "ü😀");
}
