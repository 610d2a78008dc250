// Messages: each event is recorded once, in order, for the webhooks that want its type.

import assert from "node:assert/strict";
import { isEventPattern, type MessageType, wants } from "../../../src/domain/state/message.ts";
import { packOf, planOf, Scene } from "../scene.ts";

const PLANS = [planOf("low", { g: 10 }), planOf("top", { g: 20 }, { rank: 2 })];
const PACKS = [packOf("ten", { lowAt: 3 }), packOf("plain")];

function listening(key = 7, id = "u", beside?: Scene): Scene {
  const more = beside === undefined ? {} : { beside };
  return new Scene(PLANS, "2026-03-10T12:00:00.000Z", PACKS, { key, id, listensTo: ["*"], ...more });
}

function typesOf(scene: Scene, since = 0): string[] {
  return scene.messages.slice(since).map(({ type }) => type);
}

function dataOf(scene: Scene, place: number): Record<string, unknown> {
  return JSON.parse(scene.messages.at(place)?.body ?? "").data;
}

// deno-fmt-ignore: a row a case
const CREDITS: readonly [string, (scene: Scene) => void, string[]][] = [
  ["a grant", (scene) => scene.fund("ten", 10), ["granted"]],
  ["a grant at or below lowAt sends no low", (scene) => scene.fund("ten", 3), ["granted"]],
  ["use down to lowAt", (scene) => { scene.fund("ten", 10); scene.track(7); }, ["granted", "low"]],
  ["use down to nothing in one jump", (scene) => { scene.fund("ten", 10); scene.hold(10); }, ["granted", "low", "depleted"]],
  ["a refund arms nothing again", (scene) => { scene.fund("ten", 10); scene.release(scene.hold(10)); scene.hold(10); }, ["granted", "low", "depleted"]],
  ["a grant at lowAt is depleted without having been low", (scene) => { scene.fund("ten", 3); scene.track(3); }, ["granted", "depleted"]],
  ["a pack without lowAt", (scene) => { scene.fund("plain", 10); scene.track(10); }, ["granted", "depleted"]],
  ["a revoke, twice", (scene) => { const id = scene.fund("ten", 10); scene.revoke(id); scene.revoke(id); }, ["granted", "revoked"]],
  ["expiry with something left", (scene) => { scene.fund("ten", 10, { expiresAt: scene.now + 60_000 }); scene.wait(120).ask("settle", {}); scene.wait(120).ask("settle", {}); }, ["granted", "expired"]],
  ["expiry with nothing left", (scene) => { scene.fund("ten", 10, { expiresAt: scene.now + 60_000 }); scene.track(10); scene.wait(120).ask("settle", {}); }, ["granted", "low", "depleted"]],
  ["expiry while a hold has all of it, and its release", (scene) => { scene.fund("ten", 10, { expiresAt: scene.now + 60_000 }); const id = scene.hold(10); scene.wait(120).ask("settle", {}); scene.release(id); scene.ask("settle", {}); }, ["granted", "low", "depleted"]],
];

for (const [what, act, told] of CREDITS) {
  Deno.test(`credits: ${what}`, () => {
    const scene = listening();
    act(scene);
    const types = typesOf(scene).filter((type) => type.startsWith("credits."));
    assert.deepEqual(types, told.map((each) => `credits.${each}`));
  });
}

Deno.test("a message of credits names balance, pack and reference, and what is left", () => {
  const scene = listening();
  const balanceId = scene.fund("ten", 10, { externalRef: "order-1" });
  scene.track(8);
  const ofBalance = { appId: "app_1", mode: "live", userId: "u", balanceId, packId: "ten", packItemId: null };
  assert.deepEqual(dataOf(scene, 0), { ...ofBalance, remaining: 10, externalRef: "order-1" });
  assert.deepEqual(dataOf(scene, -1), { ...ofBalance, remaining: 2, externalRef: "order-1" });
});

Deno.test("every entry of a subscription's history is a message, at its own time", () => {
  const scene = listening();
  scene.subscribe("low");
  scene.pay("top", "a", { endsAt: scene.now + 60_000 });
  scene.wait(120).ask("settle", {});
  scene.cancel({ reason: "too dear" });
  assert.deepEqual(typesOf(scene), [
    "subscription.created",
    "subscription.created",
    "subscription.ended",
    "subscription.canceled",
  ]);
  assert.equal(JSON.parse(scene.messages[2]?.body ?? "").timestamp, "2026-03-10T12:01:00.000Z");
  const { subscriptionId: _, ...data } = dataOf(scene, -1);
  const canceled = { planId: "low", previousPlanId: null, reason: "too dear" };
  assert.deepEqual(data, { appId: "app_1", mode: "live", userId: "u", ...canceled });
});

Deno.test("a hold that lapses is reported once, at its expiry", () => {
  const scene = listening();
  scene.subscribe("low");
  const reservationId = scene.hold(1, { ttlMs: 10_000 });
  scene.wait(60).ask("settle", {});
  scene.ask("settle", {});
  assert.deepEqual(typesOf(scene), ["subscription.created", "reservation.expired"]);
  const data = { appId: "app_1", mode: "live", userId: "u", reservationId, event: "x.make" };
  assert.deepEqual(JSON.parse(scene.messages[1]?.body ?? ""), {
    type: "reservation.expired",
    timestamp: "2026-03-10T12:00:10.000Z",
    data,
  });
});

Deno.test("what fell due before a merge is reported under its own id, then the merge, then its effects", () => {
  const from = listening();
  const to = listening(8, "v", from);
  from.subscribe("low");
  from.hold(1, { ttlMs: 10_000 });
  to.subscribe("low");
  from.fund("ten", 10, { externalRef: "twice" });
  to.fund("ten", 10, { externalRef: "twice" });
  const since = to.messages.length;
  from.wait(60);
  to.wait(60);
  from.mergeInto(to);
  const merged = [...to.messages.slice(since)];
  assert.deepEqual(merged.map(({ type }) => type), [
    "reservation.expired",
    "user.merged",
    "subscription.merged",
    "subscription.ended",
  ]);
  assert.deepEqual(merged.map(({ userKey }) => userKey), [7, 8, 8, 8]);
  assert.equal(JSON.parse(merged[0]?.body ?? "").data.userId, "u");
  const { mergeId, ...data } = JSON.parse(merged[1]?.body ?? "").data;
  assert.match(mergeId, /^mrg_/);
  assert.deepEqual(data, { appId: "app_1", mode: "live", from: "u", to: "v" });
  assert.deepEqual(merged.map(({ id }) => id), merged.map(({ id }) => id).sort());
});

Deno.test("of two copies of a grant that became one, low is reported once, and each expiry", () => {
  const from = listening();
  const to = listening(8, "v", from);
  from.fund("ten", 10, { externalRef: "twice", expiresAt: from.now + 60_000 });
  from.hold(8, { ttlMs: 86_400_000 });
  to.fund("ten", 20, { externalRef: "twice", expiresAt: to.now + 3_600_000 });
  from.wait(120);
  to.wait(120);
  from.mergeInto(to);
  to.hold(10);
  to.wait(7200).ask("settle", {});
  const told = [...from.messages, ...to.messages].flatMap(({ userKey, type, body }) =>
    type.startsWith("credits.") ? [`${userKey} ${type} ${JSON.parse(body).data.remaining}`] : []
  );
  assert.deepEqual(told, [
    "7 credits.granted 10",
    "7 credits.low 2",
    "8 credits.granted 20",
    "7 credits.expired 2",
    "8 credits.expired 12",
  ]);
});

Deno.test("a message is recorded for each listener that wants its type, with one body", () => {
  const row = (events: string[], type: MessageType) => wants({ webhookId: "whk_1", events }, type);
  assert.ok(row(["*"], "ping") && row(["credits.*"], "credits.low") && row(["ping"], "ping"));
  assert.ok(
    !row(["credits.*"], "user.merged") && !row(["credits.low"], "credits.depleted") && !row([], "ping"),
  );
  const patterns = ["*", "usage.*", "user.merged", "usage", "credits", "use.*", "", "credits.**", ".*"];
  assert.deepEqual(patterns.filter(isEventPattern), ["*", "usage.*", "user.merged"]);
});
