// Settling holds that took credits: corrections at commit, refunds by release and lapse, balances that end while
// they are held, and commits of lapsed holds.

import assert from "node:assert/strict";
import { dataOf, serviceOfFile } from "./support.ts";
import { type Customer, type Entry, newCustomer } from "./credits_support.ts";

const service = serviceOfFile();

/** A customer whose images are all used, with balances of 3, 4 and 5 in consumption order. */
async function spentCustomer(): Promise<{ u: Customer; ids: string[] }> {
  const u = await newCustomer(service);
  await u.post("/track", { event: "image.x", count: 10 });
  return {
    u,
    ids: [await u.fund("cpk_first", 3), await u.fund("cpk_count", 4), await u.fund("cpk_count", 5)],
  };
}

/** What every row of a settlement shows beside its amount. */
function refsOf({ reason, eventId, reservationId, notes }: Entry) {
  return [reason, eventId, reservationId, notes];
}

Deno.test("an exact commit writes a row of 0 for every held balance, in hold order", async () => {
  const { u, ids: [a, b, c] } = await spentCustomer();
  const reservationId = await u.hold("image.x", { count: 5 });
  const { eventId, groups, recharged } = await u.commit(reservationId);
  assert.deepEqual([groups, recharged], [
    [{ groupId: "lg_images", unit: "count", quota: 10, current: 10, overflow: false }],
    false,
  ]);
  assert.deepEqual(await u.remaining(a!, b!, c!), [0, 2, 5]);
  const rows = (await u.ledger()).slice(0, 4).reverse();
  assert.deepEqual(rows.map(({ balanceId, delta }) => [balanceId, delta]), [[a, -3], [b, -2], [a, 0], [
    b,
    0,
  ]]);
  for (const row of rows.slice(0, 2)) {
    assert.deepEqual(refsOf(row), ["reservation_held", null, reservationId, null]);
  }
  for (const row of rows.slice(2)) {
    assert.deepEqual(refsOf(row), ["event_committed", eventId, reservationId, null]);
  }
  assert.equal((await u.event(eventId)).matchStatus, "matched");
  await u.audit();
});

Deno.test("less than held goes back to credits first, last taken first, and then to the plan", async () => {
  const corrections: [members: object, left: number[], current: number, deltas: number[]][] = [
    [{ actual: { count: 11 } }, [0, 3, 5], 7, [0, 1]],
    [{ extra: { count: -3 } }, [1, 4, 5], 7, [1, 2]],
    [{ actual: { count: 8 } }, [2, 4, 5], 7, [2, 2]],
    [{ actual: { count: 7 } }, [3, 4, 5], 7, [3, 2]],
    [{ actual: { count: 5.5 } }, [3, 4, 5], 5.5, [3, 2]],
    [{ actual: { count: 0 } }, [3, 4, 5], 0, [3, 2]],
    [{ extra: { count: -100 } }, [3, 4, 5], 0, [3, 2]],
  ];
  for (const [members, left, current, deltas] of corrections) {
    const u = await newCustomer(service);
    const ids = [await u.fund("cpk_first", 3), await u.fund("cpk_count", 4), await u.fund("cpk_count", 5)];
    const other = await u.hold("image.x", { count: 3 });
    const reservationId = await u.hold("image.x", { count: 12 });
    assert.deepEqual(await u.remaining(...ids), [0, 2, 5]);
    await u.release(other);
    const { groups } = await u.commit(reservationId, members);
    const note = JSON.stringify(members);
    assert.deepEqual([groups[0].current, groups[0].overflow], [current, false], note);
    assert.deepEqual(await u.remaining(...ids), left, note);
    assert.deepEqual((await u.lastRows(2)).map(([, delta]) => delta), deltas, note);
    await u.audit();
  }
});

Deno.test("more than held takes the plan's room, then balances that match, then goes past quota", async () => {
  const u = await newCustomer(service);
  const a = await u.fund("cpk_first", 3);
  const other = await u.hold("image.x", { count: 4 });
  const reservationId = await u.hold("image.x", { count: 7 });
  await u.release(other);
  const b = await u.fund("cpk_count", 4);
  const c = await u.fund("cpk_count", 5);
  assert.deepEqual([...await u.remaining(a, b, c), ...await u.counts("lg_images")], [2, 4, 5, 6]);
  const plain = await u.commit(reservationId, { extra: { count: 4 + 2 + 1 } });
  assert.deepEqual([plain.groups[0].current, plain.groups[0].overflow], [10, false]);
  assert.deepEqual(await u.remaining(a, b, c), [0, 3, 5]);
  const committed = (id: string, delta: number) => [id, delta, "event_committed"];
  assert.deepEqual(await u.lastRows(2), [committed(a, -2), committed(b, -1)]);

  const second = await u.hold("image.x", { count: 1 });
  const past = await u.commit(second, { actual: { count: 12 } });
  assert.deepEqual([past.groups[0].current, past.groups[0].overflow], [14, true]);
  assert.deepEqual(await u.remaining(a, b, c), [0, 0, 0]);
  assert.deepEqual(await u.lastRows(2), [committed(b, -2), committed(c, -5)]);
  assert.deepEqual((await u.event(past.eventId)).uncovered, {});
  await u.audit();
});

Deno.test("each unit is corrected by itself, in its own balances", async () => {
  const u = await newCustomer(service);
  const tokens = await u.fund("cpk_tokens", 30);
  const cents = await u.fund("cpk_cents", 10);
  const wallet = await u.fund("cpk_wallet", 10);
  const reservationId = await u.hold("chat.x", { inputTokens: 110, inputCostCents: 55 });
  const { groups } = await u.commit(reservationId, {
    extra: { tokens: 15, cents: -3, count: 7 },
    actual: { seconds: 9 },
  });
  assert.deepEqual(groups.map((row: { current: number }) => row.current), [100, 50]);
  assert.deepEqual(await u.remaining(tokens, cents, wallet), [5, 8, 10]);
  await u.audit();
});

Deno.test("without a group what credits leave is on the event as uncovered, and other units are ignored", async () => {
  const u = await newCustomer(service, { planId: null });
  const first = await u.fund("cpk_first", 4);
  const second = await u.fund("cpk_count", 2);
  const tokens = await u.fund("cpk_tokens", 100);
  const reservationId = await u.hold("image.x", { count: 3 });
  const members = { extra: { count: 5, tokens: 50, seconds: 7, cents: 9 } };
  const { eventId, groups } = await u.commit(reservationId, members);
  assert.deepEqual(groups, []);
  assert.deepEqual((await u.event(eventId)).uncovered, { count: 2 });
  assert.deepEqual(await u.remaining(first, second, tokens), [0, 0, 100]);
  assert.deepEqual(await u.lastRows(2), [
    [first, -1, "event_committed"],
    [second, -2, "event_committed"],
  ]);
  await u.audit();
});

Deno.test("once the plan is no longer held, more than held is paid by credits before it goes past quota", async () => {
  const u = await newCustomer(service);
  const reservationId = await u.hold("image.x", { count: 2 });
  const id = await u.fund("cpk_count", 3);
  await dataOf(u.ask("DELETE", "/subscriptions"));
  const { groups } = await u.commit(reservationId, { extra: { count: 4 } });
  assert.deepEqual([groups[0].current, groups[0].overflow], [3, false]);
  assert.deepEqual(await u.remaining(id), [0]);
});

Deno.test("a release gives every balance back what the hold took, in hold order", async () => {
  const { u, ids } = await spentCustomer();
  const reservationId = await u.hold("image.x", { count: 9 });
  assert.deepEqual(await u.remaining(...ids), [0, 0, 3]);
  assert.equal(await u.statusOf(ids[0]!), "depleted");
  await u.release(reservationId);
  assert.deepEqual(await u.remaining(...ids), [3, 4, 5]);
  assert.equal(await u.statusOf(ids[0]!), "active");
  const rows = (await u.ledger()).slice(0, 3).reverse();
  assert.deepEqual(rows.map(({ balanceId, delta }) => [balanceId, delta]), [
    [ids[0], 3],
    [ids[1], 4],
    [ids[2], 2],
  ]);
  for (const row of rows) {
    assert.deepEqual(refsOf(row), ["reservation_released", null, reservationId, null]);
  }
  await u.hold("image.x", { count: 12 });
  await u.audit();
});

Deno.test("a lapse gives credits back at the moment when the hold ended", async () => {
  const u = await newCustomer(service, { mode: "test" });
  await u.post("/track", { event: "image.x", count: 10 });
  const ids = [await u.fund("cpk_first", 3), await u.fund("cpk_count", 4)];
  const hold = await u.post("/reserve", { event: "image.x", count: 5, ttlSeconds: 60 });
  await u.pass(59.999);
  assert.deepEqual(await u.remaining(...ids), [0, 2]);
  await u.pass(3600);
  assert.deepEqual(await u.remaining(...ids), [3, 4]);
  const rows = (await u.ledger()).slice(0, 2).reverse();
  assert.deepEqual(rows.map(({ balanceId, delta }) => [balanceId, delta]), [[ids[0], 3], [ids[1], 2]]);
  for (const row of rows) {
    assert.deepEqual(refsOf(row), ["reservation_expired", null, hold.reservationId, null]);
    assert.equal(row.occurredAt, hold.expiresAt);
  }
  await u.audit();
});

Deno.test("what comes back to an expired balance is shown and not spendable", async () => {
  const u = await newCustomer(service, { mode: "test", planId: null });
  const { now } = await u.get("/test-clock");
  const expiresAt = new Date(Date.parse(now) + 60_000).toISOString();
  const id = await u.fund("cpk_count", 5, { expiresAt });
  const held = [await u.hold("image.x", { count: 1 }), await u.hold("image.x", { count: 2 })];
  const full = await u.hold("image.x", { count: 2 });
  assert.equal(await u.statusOf(id), "depleted");
  await u.pass(60);
  assert.deepEqual([await u.statusOf(id), await u.credits()], ["expired", []]);
  await u.release(held[0]!);
  assert.deepEqual(await u.remaining(id), [1]);
  await u.commit(held[1]!, { actual: { count: 0.5 } });
  assert.deepEqual([...await u.remaining(id), await u.statusOf(id)], [2.5, "expired"]);
  assert.equal((await u.post("/reserve", { event: "image.x" })).allowed, false);
  const { eventId } = await u.commit(full, { extra: { count: 1 } });
  assert.deepEqual((await u.event(eventId)).uncovered, { count: 1 }, "an expired balance gives no more");
  assert.deepEqual([...await u.remaining(id), ...(await u.lastRows(1))[0]!], [2.5, id, 0, "event_committed"]);
  await u.audit();
});

Deno.test("what comes back to a revoked balance is taken again by a row of its own", async () => {
  const { u, ids: [a, b] } = await spentCustomer();
  const held = [await u.hold("image.x", { count: 2 }), await u.hold("image.x", { count: 3 })];
  await u.post("/credits/revoke", { balanceId: a, reason: "refunded" });
  await u.release(held[0]!);
  const committed = await u.commit(held[1]!, { actual: { count: 0.5 } });
  const rows = (await u.ledger()).slice(0, 6).reverse();
  assert.deepEqual(rows.map(({ balanceId, delta, ...row }) => [balanceId, delta, ...refsOf(row as Entry)]), [
    [a, 0, "admin_adjust", null, null, "refunded"],
    [a, 2, "reservation_released", null, held[0], null],
    [a, -2, "admin_adjust", null, held[0], null],
    [a, 0.5, "event_committed", committed.eventId, held[1], null],
    [a, -0.5, "admin_adjust", committed.eventId, held[1], null],
    [b, 2, "event_committed", committed.eventId, held[1], null],
  ]);
  assert.deepEqual([...await u.remaining(a!, b!), await u.statusOf(a!)], [0, 4, "revoked"]);
  await u.audit();
});

Deno.test("an exact commit of what a revoked balance gave writes no second row", async () => {
  const { u, ids: [a] } = await spentCustomer();
  const reservationId = await u.hold("image.x", { count: 2 });
  await u.post("/credits/revoke", { balanceId: a });
  await u.commit(reservationId);
  assert.deepEqual(await u.lastRows(3), [
    [a, -2, "reservation_held"],
    [a, -1, "admin_adjust"],
    [a, 0, "event_committed"],
  ]);
  await u.audit();
});

Deno.test("a commit of a lapsed hold charges the plan and the balances that match now, once", async () => {
  const u = await newCustomer(service, { mode: "test" });
  const old = await u.fund("cpk_count", 4);
  const reservationId = await u.hold("image.x", { count: 12 });
  await u.pass(601);
  const better = await u.fund("cpk_first", 1);
  await u.post("/track", { event: "image.y", count: 3 });
  assert.deepEqual([...await u.remaining(old, better), ...await u.counts("lg_images")], [4, 1, 3]);
  const data = await u.commit(reservationId, { extra: { count: -1 } });
  assert.deepEqual([data.recharged, data.groups[0].current, data.groups[0].overflow], [true, 10, false]);
  assert.deepEqual(await u.remaining(old, better), [1, 0]);
  const rows = (await u.ledger()).slice(0, 2).reverse();
  assert.deepEqual(rows.map(({ balanceId, delta }) => [balanceId, delta]), [[better, -1], [old, -3]]);
  for (const row of rows) {
    assert.deepEqual(refsOf(row), ["event_committed", data.eventId, reservationId, null]);
  }
  assert.equal((await u.ask("POST", "/commit", { reservationId })).status, 409);
  await u.audit();
});

Deno.test("a commit of a lapsed hold goes past quota when neither plan nor credits are left, or is uncovered", async () => {
  const u = await newCustomer(service, { mode: "test" });
  const id = await u.fund("cpk_count", 4);
  const planned = await u.hold("image.x", { count: 12 });
  await dataOf(u.ask("DELETE", "/subscriptions"));
  const alone = await u.hold("image.x", { count: 2 });
  await u.post("/subscriptions", { planId: "plan_pro" });
  await u.pass(601);
  assert.deepEqual([...await u.remaining(id), ...await u.counts("lg_images")], [4, 0]);
  await u.post("/track", { event: "image.x", count: 13 });
  const past = await u.commit(planned);
  assert.deepEqual([past.recharged, past.groups[0].current, past.groups[0].overflow], [true, 21, true]);
  const free = await u.commit(alone);
  assert.deepEqual([free.recharged, free.groups], [true, []]);
  const { matchStatus, uncovered } = await u.event(free.eventId);
  assert.deepEqual([matchStatus, uncovered], ["matched_credits_only", { count: 2 }]);
  assert.deepEqual(await u.remaining(id), [0]);
  await u.audit();
});

Deno.test("after a restart refunds find balances that ended, and corrections those that match", async () => {
  const u = await newCustomer(service, { mode: "test" });
  await u.post("/track", { event: "image.render", count: 10 });
  const { now } = await u.get("/test-clock");
  const expiresAt = new Date(Date.parse(now) + 60_000).toISOString();
  const expired = await u.fund("cpk_first", 3, { expiresAt });
  const [images] = (await u.grant("cpk_bundle")).balances;
  const revoked = await u.fund("cpk_count", 4);
  const metadata = { model: "flux" };
  const holds: string[] = [];
  for (const count of [1, 1, 1, 2, 2, 8, 1, 1]) {
    holds.push(await u.hold("image.render", { count, metadata, ttlSeconds: count === 8 ? 600 : 900 }));
  }
  // 3 of the first, 10 of the second and 4 of the third are held now.
  assert.deepEqual(await u.remaining(expired, images.balanceId, revoked), [0, 0, 0]);
  await u.post("/credits/revoke", { balanceId: revoked });
  await u.pass(60);
  const restart = async () => {
    await service.serving().term.flush();
    await service.restart();
  };
  await restart();
  await u.release(holds[0]!);
  await u.release(holds[6]!);
  await restart();
  await u.commit(holds[1]!, { actual: { count: 0.5 } });
  await u.commit(holds[7]!, { actual: { count: 0.5 } });
  assert.deepEqual(await u.remaining(expired, images.balanceId, revoked), [1.5, 0, 0]);
  assert.deepEqual([await u.statusOf(expired), await u.statusOf(revoked)], ["expired", "revoked"]);
  await u.release(holds[3]!);
  await restart();
  await u.commit(holds[4]!, { extra: { count: 1.5 } });
  assert.deepEqual(await u.remaining(images.balanceId), [0.5], "by the metadata of the hold");
  await restart();
  await u.pass(540);
  assert.deepEqual(await u.remaining(expired, images.balanceId, revoked), [1.5, 6.5, 0]);
  await u.pass(300);
  assert.deepEqual(await u.remaining(expired, images.balanceId, revoked), [2.5, 6.5, 0]);
  await restart();
  const late = await u.commit(holds[2]!);
  assert.equal(late.recharged, true);
  assert.deepEqual(await u.remaining(expired, images.balanceId, revoked), [2.5, 5.5, 0]);
  await u.audit();
});

Deno.test("seconds are corrected in balances of a per_unit model alone", async () => {
  const u = await newCustomer(service);
  const id = await u.fund("cpk_seconds", 5);
  const metered = await u.hold("video.veo", { quantity: 12 });
  const { eventId } = await u.commit(metered, { actual: { seconds: 13.5 } });
  assert.deepEqual([...await u.remaining(id), ...await u.counts("lg_video")], [1.5, 10]);
  assert.equal((await u.event(eventId)).quantity, 13.5);
  const plain = await u.hold("video.x", { quantity: 1 });
  await u.commit(plain, { extra: { seconds: 7 } });
  assert.deepEqual([...await u.remaining(id), ...await u.counts("lg_video")], [0.5, 10]);
  await u.audit();
});

Deno.test("a refund that comes by a lapse is spent by the very call that finds it", async () => {
  const u = await newCustomer(service, { planId: null });
  const id = await u.fund("cpk_count", 2);
  await u.hold("image.x", { count: 2, ttlSeconds: 10 });
  assert.equal((await u.post("/reserve", { event: "image.x", count: 2 })).allowed, false);
  service.clock.advance(10_000);
  await u.hold("image.x", { count: 2 });
  assert.deepEqual((await u.lastRows(3)).map(([, delta]) => delta), [-2, 2, -2]);
  assert.deepEqual(await u.remaining(id), [0]);
});
