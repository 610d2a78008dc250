// Spending credits: the plan first and then balances in their order, unit by unit and all or nothing, and credits
// alone where no plan covers the event.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { Customer, newCustomer } from "./credits_support.ts";

const service = serviceOfFile();

/** A refused reserve; answers its reason. */
async function refusalOf(u: Customer, event: string, members: object = {}): Promise<string> {
  const { allowed, reservationId, reasons } = await u.post("/reserve", { event, ...members });
  assert.deepEqual([allowed, reservationId, reasons.length], [false, undefined, 1]);
  return reasons[0];
}

Deno.test("the plan pays first, credits pay the rest, and past both a reserve is refused", async () => {
  const u = await newCustomer(service);
  const id = (await u.grant("cpk_topup")).balanceId;
  const reserve = (count: number) => u.post("/reserve", { event: "image.x", count });
  const group = (current: number) => [{ groupId: "lg_images", unit: "count", quota: 10, current }];
  const steps: [count: number, current: number, left: number][] = [[8, 8, 50], [5, 10, 47], [46, 10, 1]];
  for (const [count, current, left] of steps) {
    const data = await reserve(count);
    assert.deepEqual([data.allowed, data.matched, data.reasons, data.groups], [
      true,
      true,
      undefined,
      group(current),
    ]);
    assert.deepEqual(await u.remaining(id), [left]);
  }
  const refused = { allowed: false, matched: true, reasons: ["limit_reached"], groups: group(10) };
  assert.deepEqual(await reserve(2), refused);
  assert.deepEqual(await u.remaining(id), [1]);
  assert.equal((await reserve(1)).allowed, true);
  assert.equal(await u.statusOf(id), "depleted");
  assert.deepEqual(await reserve(1), refused);
  assert.deepEqual(await u.counts("lg_images"), [10]);
  await u.audit();
});

Deno.test("balances are drained by priority, then expiry, then grant time, then id, several for one need", async () => {
  const u = await newCustomer(service);
  await u.post("/track", { event: "image.x", count: 10 });
  const inHours = (hours: number) => new Date(service.clock.now() + hours * 3_600_000).toISOString();
  const wallet = await u.fund("cpk_wallet", 5, { expiresAt: inHours(1) });
  const evergreen = await u.fund("cpk_count", 4);
  const later = await u.fund("cpk_count", 3, { expiresAt: inHours(48) });
  const twin = await u.fund("cpk_count", 2);
  const first = await u.fund("cpk_first", 2);
  const soon = await u.fund("cpk_count", 3, { expiresAt: inHours(24) });
  service.clock.advance(1);
  const young = await u.fund("cpk_count", 1);
  const order = [first, soon, later, evergreen, twin, young, wallet];
  assert.deepEqual((await u.credits()).map(({ balanceId }) => balanceId), order);
  await service.restart();
  assert.deepEqual((await u.credits()).map(({ balanceId }) => balanceId), order);
  const left = [2, 3, 3, 4, 2, 1, 5];
  for (const count of [1, 3.5, 1.5, 0.25, 6.75, 7]) {
    const rows: [string, number, string][] = [];
    let need = count;
    order.forEach((id, index) => {
      const taken = Math.min(need, left[index] as number);
      if (taken > 0) rows.push([id, -taken, "reservation_held"]);
      left[index] = (left[index] as number) - taken;
      need -= taken;
    });
    await u.hold("image.x", { count });
    assert.deepEqual(await u.remaining(...order), left, `after ${count}`);
    assert.deepEqual(await u.lastRows(rows.length), rows);
  }
  assert.deepEqual(left, [0, 0, 0, 0, 0, 0, 0]);
  assert.equal(await refusalOf(u, "image.x"), "limit_reached");
  await u.audit();
});

Deno.test("a balance pays only for events and metadata that a rule of its item covers", async () => {
  const u = await newCustomer(service);
  const [images, video] = (await u.grant("cpk_bundle")).balances;
  await u.post("/track", { event: "image.x", count: 10 });
  await u.post("/track", { event: "video.x", quantity: 10 });
  const others = [{}, { metadata: { model: "veo" } }, { metadata: { model: ["flux"] } }];
  for (const members of others) assert.equal(await refusalOf(u, "image.render", members), "limit_reached");
  assert.equal(await refusalOf(u, "image.x", { metadata: { model: "flux" } }), "limit_reached");
  assert.equal(await refusalOf(u, "video.x", { quantity: 2 }), "limit_reached");
  await u.hold("image.render", { count: 4, metadata: { model: "flux", size: 1 } });
  await u.hold("video.veo", { quantity: 2 });
  assert.deepEqual(await u.remaining(images.balanceId, video.balanceId), [6, 3]);
});

Deno.test("every group of a unit takes the same part, so that credits begin where the fullest group ends", async () => {
  const u = await newCustomer(service);
  const id = await u.fund("cpk_count", 5);
  await u.hold("image.premium", { count: 5 });
  assert.deepEqual(await u.counts("lg_images", "lg_premium"), [3, 3]);
  assert.deepEqual(await u.remaining(id), [3]);
  assert.equal(await refusalOf(u, "image.premium", { count: 4 }), "limit_reached");
  await u.hold("image.premium", { count: 3 });
  assert.deepEqual(await u.counts("lg_images", "lg_premium"), [3, 3]);
  await u.hold("image.x", { count: 7 });
  await u.audit();
});

Deno.test("each unit of an event is covered by its own balances, and one that falls short refuses the whole", async () => {
  const u = await newCustomer(service);
  const tokens = await u.fund("cpk_tokens", 30);
  const cents = await u.fund("cpk_cents", 5);
  await u.fund("cpk_wallet", 1000);
  const before = await u.picture();
  const call = (inputTokens: number, inputCostCents: number) => ({ inputTokens, inputCostCents });
  for (const members of [call(120, 56), call(131, 53), call(131, 56), call(131, 0), call(0, 55.000001)]) {
    assert.equal(await refusalOf(u, "chat.x", members), "limit_reached");
    assertRefused(
      await u.ask("POST", "/track", { event: "chat.x", ...members }),
      429,
      "limit_reached",
    );
  }
  assert.deepEqual(await u.picture(), before);
  await u.hold("chat.x", call(120, 53));
  assert.deepEqual(await u.counts("lg_chat", "lg_budget"), [100, 50]);
  assert.deepEqual(await u.remaining(tokens, cents), [10, 2]);
  const held = (id: string, delta: number) => [id, delta, "reservation_held"];
  assert.deepEqual((await u.lastRows(2)).sort(), [held(tokens, -20), held(cents, -3)].sort());
  await u.hold("chat.x", call(10, 0));
  assert.deepEqual(await u.remaining(tokens, cents), [0, 2]);
  assert.equal(await refusalOf(u, "chat.x", call(0.000001, 1)), "limit_reached");
});

Deno.test("credits pay without a plan, and the event is matched by credits alone", async () => {
  const u = await newCustomer(service, { planId: null });
  const id = (await u.grant("cpk_topup")).balanceId;
  const reserved = await u.post("/reserve", { event: "image.x", count: 3 });
  assert.deepEqual(Object.keys(reserved), ["allowed", "matched", "reservationId", "expiresAt"]);
  assert.deepEqual([reserved.allowed, reserved.matched], [true, true]);
  assert.deepEqual(await u.remaining(id), [47]);
  const done = await u.commit(reserved.reservationId);
  assert.deepEqual([done.groups, done.recharged], [[], false]);
  const tracked = await u.post("/track", { event: "image.y", count: 7 });
  assert.deepEqual(tracked, {
    eventId: tracked.eventId,
    matchStatus: "matched_credits_only",
    matchedGroupIds: [],
    counters: [],
  });
  for (const eventId of [done.eventId, tracked.eventId]) {
    const { matchStatus, matchedGroupIds, uncovered } = await u.event(eventId);
    assert.deepEqual([matchStatus, matchedGroupIds, uncovered], ["matched_credits_only", [], {}]);
  }
  const { events } = await u.get("/events");
  assert.deepEqual(events.map((row: { matchStatus: string }) => row.matchStatus), [
    "matched_credits_only",
    "matched_credits_only",
  ]);
  assert.deepEqual(await u.remaining(id), [40]);
  const { body } = await service.admin("GET", "/workspaces");
  const row = body.data.find((each: { workspaceId: string }) => each.workspaceId === u.app.workspaceId);
  assert.equal(row.operationsUsed, 2, "both events count as operations");
  assert.equal(await refusalOf(u, "image.x", { count: 41 }), "no_subscription");
  const beyond = await u.post("/track", { event: "image.x", count: 41 });
  assert.deepEqual([beyond.matchStatus, beyond.counters], ["no_subscription", []]);
  assert.deepEqual(await u.remaining(id), [40]);
});

Deno.test("credits pay where no group of the plan matches, and after a cancel", async () => {
  const u = await newCustomer(service);
  const id = await u.fund("cpk_wallet", 5);
  assert.equal((await u.post("/track", { event: "other.thing" })).matchStatus, "matched_credits_only");
  assert.equal(await refusalOf(u, "other.thing", { count: 5 }), "unmatched_event");
  assert.equal((await u.post("/track", { event: "other.x", count: 5 })).matchStatus, "unmatched");
  assert.equal((await u.post("/track", { event: "image.x" })).matchStatus, "matched");
  assert.deepEqual(await u.remaining(id), [4]);
  await dataOf(u.ask("DELETE", "/subscriptions"));
  assert.equal((await u.post("/track", { event: "image.x" })).matchStatus, "matched_credits_only");
  await u.hold("image.x", { count: 3 });
  assert.deepEqual(await u.remaining(id), [0]);
  assert.equal(await refusalOf(u, "image.x"), "no_subscription");
});

Deno.test("without a group the unit is that of the best balance whose unit is needed and covered in full", async () => {
  const u = await newCustomer(service, { planId: null });
  const wallet = await u.fund("cpk_wallet", 2);
  const tokens = await u.fund("cpk_tokens", 10);
  const cents = await u.fund("cpk_cents", 10);
  const after = async (members: object) => {
    await u.hold("chat.x", members);
    return await u.remaining(wallet, tokens, cents);
  };
  assert.deepEqual(await after({ inputTokens: 4, inputCostCents: 4 }), [2, 6, 10]);
  assert.deepEqual(await after({ inputTokens: 7, inputCostCents: 4 }), [2, 6, 6], "too few tokens");
  assert.deepEqual(await after({ inputCostCents: 1 }), [2, 6, 5], "no tokens are needed");
  assert.deepEqual(await after({ inputTokens: 7, inputCostCents: 7 }), [1, 6, 5], "one call");
  assert.deepEqual(await after({}), [0, 6, 5]);
  assert.equal(await refusalOf(u, "chat.x"), "no_subscription", "nothing that is left is needed");
  assert.equal(await refusalOf(u, "chat.x", { inputTokens: 7, inputCostCents: 7 }), "no_subscription");
  assert.deepEqual(await after({ inputTokens: 6, inputCostCents: 7 }), [0, 0, 5]);
});

Deno.test("a need of nothing passes a full group while a matching balance has something left, and takes nothing", async () => {
  const u = await newCustomer(service);
  await u.post("/track", { event: "chat.x", inputTokens: 100 });
  assert.equal(await refusalOf(u, "chat.x"), "limit_reached");
  const other = await u.fund("cpk_cents", 5);
  assert.equal(await refusalOf(u, "chat.x"), "limit_reached", "cents are no tokens");
  const id = await u.fund("cpk_tokens", 1);
  await u.hold("chat.x");
  assert.equal((await u.post("/track", { event: "chat.x" })).matchStatus, "matched");
  assert.deepEqual(await u.remaining(id, other), [1, 5]);
  assert.equal((await u.ledger()).length, 2);
  await u.hold("chat.x", { inputTokens: 1 });
  assert.equal(await refusalOf(u, "chat.x"), "limit_reached");
});

Deno.test("headroom shrinks the plan's part, credits pay past it, and the reason is about what they leave", async () => {
  const u = await newCustomer(service);
  const id = await u.fund("cpk_count", 3);
  await u.hold("agent.x", { count: 9 });
  assert.deepEqual(await u.counts("lg_agent"), [8]);
  assert.deepEqual(await u.remaining(id), [2]);
  assert.equal(await refusalOf(u, "agent.x", { count: 4 }), "reservation_headroom_exceeded");
  assert.equal(await refusalOf(u, "agent.x", { count: 4.5 }), "limit_reached");
  await u.post("/track", { event: "agent.x", count: 3 });
  assert.deepEqual([...await u.counts("lg_agent"), ...await u.remaining(id)], [10, 1], "track has no gate");
  assert.equal(await refusalOf(u, "agent.x", { count: 2 }), "limit_reached");
  await u.hold("twice.x", { count: 6 });
  assert.deepEqual([...await u.counts("lg_twice"), ...await u.remaining(id)], [5, 0]);
  assert.equal(await refusalOf(u, "twice.x", { count: 3 }), "reservation_headroom_exceeded");
  await u.hold("twice.x", { count: 2.5 });
});

Deno.test("track takes credits in one row with the event's id, and takes nothing when it is blocked", async () => {
  const u = await newCustomer(service);
  const first = await u.fund("cpk_first", 1);
  const second = await u.fund("cpk_count", 4);
  const data = await u.post("/track", { event: "image.x", count: 12 });
  assert.deepEqual([data.matchStatus, data.matchedGroupIds, data.counters[0].count], [
    "matched",
    ["lg_images"],
    10,
  ]);
  const [newer, older] = await u.ledger();
  for (const [row, balanceId] of [[older, first], [newer, second]] as const) {
    assert.deepEqual(
      [row?.balanceId, row?.delta, row?.reason, row?.eventId, row?.reservationId],
      [balanceId, -1, "event_committed", data.eventId, null],
    );
  }
  const before = await u.picture();
  const answer = await u.ask("POST", "/track", { event: "image.x", count: 4 });
  const { details } = assertRefused(answer, 429, "limit_reached");
  assert.equal((await u.event(details.eventId)).matchStatus, "blocked");
  assert.deepEqual(await u.picture(), before);
  assert.deepEqual(await u.remaining(first, second), [0, 3]);
});

Deno.test("two hundred parallel reserves spend what there is and not one unit more, also after a restart", async () => {
  const u = await newCustomer(service);
  for (let index = 0; index < 10; index++) await u.fund(index % 2 === 0 ? "cpk_count" : "cpk_first", 10);
  const ask = () => u.ask("POST", "/reserve", { event: "image.x", count: 3 });
  const answers = await Promise.all(Array.from({ length: 200 }, ask));
  const held = answers.filter(({ body }) => body.data.allowed).map(({ body }) => body.data.reservationId);
  assert.equal(held.length, 36, "110 units in threes");
  for (const { body: { data } } of answers) {
    if (!data.allowed) assert.deepEqual(data.reasons, ["limit_reached"]);
  }
  const left = async () => (await u.credits()).reduce((sum, { remaining }) => sum + remaining, 0);
  assert.equal(await left(), 2);
  await u.audit();
  await service.restart();
  assert.equal(await left(), 2);
  assert.equal(await refusalOf(u, "image.x", { count: 3 }), "limit_reached");
  await Promise.all(held.map((id, index) => index % 2 === 0 ? u.commit(id) : u.release(id)));
  assert.equal(await left() + 10 - (await u.counts("lg_images"))[0]!, 110 - 18 * 3);
  await u.audit();
});
