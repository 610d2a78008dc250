// Reserve and can-use: the hold's time, what the answers show, and what credits could add.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/values/amount.ts";
import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { type Call, groupOf, packOf, PACKS, planOf, Scene, type Size, sizeOf } from "../scene.ts";

Deno.test("a hold lasts as long as the call says, else as the catalog does", () => {
  const rows: [settings: object, ttlMs: number | null, seconds: number][] = [
    [{}, null, 600],
    [{ reservationTtlSeconds: 45 }, null, 45],
    [{ reservationTtlSeconds: 10.00051 }, null, 10.001],
    [{ reservationTtlSeconds: 45 }, 10_000, 10],
  ];
  for (const [settings, ttlMs, seconds] of rows) {
    const scene = new Scene([planOf("p", { g: 10 })], undefined, [], { settings });
    scene.subscribe("p");
    const row = scene.state.reservations.get(scene.hold(1, { ttlMs }));
    assert.equal(row?.expiresAt, scene.now + seconds * 1000);
    scene.wait(seconds - 0.001);
    assert.deepEqual(scene.counts(), { g: 1 });
    assert.deepEqual(scene.wait(0.001).counts(), { g: 0 });
  }
});

Deno.test("groups are shown after the hold when allowed, unchanged when refused, and the gate under headroom", () => {
  const half = { mode: "percent", value: 50 } as const;
  const twice = { mode: "multiplier", value: 2 } as const;
  for (const [headroom, gate] of [[null, null], [half, 5], [twice, 10]] as const) {
    const scene = new Scene([planOf("p", { g: 10 }, { headroom })]);
    scene.subscribe("p");
    const ask = (count: number) => {
      const input = { event: "x.a", metadata: null, size: sizeOf({ count }), ttlMs: null };
      const { groups, ...rest } = scene.ask("reserve", input);
      const shown = groups.map((
        { group, quota, counter, gate },
      ) => [group.id, numberOf(quota), numberOf(counter.count), gate && numberOf(gate)]);
      return [rest.allowed, rest.matched, shown];
    };
    assert.deepEqual(ask(4), [true, true, [["g", 10, 4, gate]]]);
    assert.deepEqual(ask(9), [false, true, [["g", 10, 4, gate]]]);
  }
});

Deno.test("a hold keeps what it was asked for: amounts by unit, quantity, count and metadata", () => {
  const scene = new Scene([{ ...planOf("p", {}), limits: [groupOf("g", 10), groupOf("t", 99, "tokens")] }]);
  scene.subscribe("p");
  const size = { quantity: 3, count: 2, inputTokens: 7, inputCostCents: 5 };
  const row = scene.state.reservations.get(scene.hold(size, { metadata: { a: 1 } }));
  assert.deepEqual(row?.amounts, {
    count: 2_000_000n,
    tokens: 7_000_000n,
    seconds: 3_000_000n,
    cents: 5_000_000n,
    credits: 0n,
  });
  assert.deepEqual([row?.quantity, row?.count, row?.metadata], [3_000_000n, 2_000_000n, '{"a":1}']);
  assert.deepEqual(row?.lines.map(({ groupId, taken }) => [groupId, numberOf(taken)]), [["g", 2], ["t", 7]]);
});

Deno.test("cents are derived from the price row that metadata or event name, unless the call names its cents", () => {
  const models = [
    { id: "film", modality: "video", amountMode: "per_unit", centsPerSecond: 40 },
    { id: "chat", modality: "text", amountMode: "per_token", inputCentsPerMillionTokens: 15 },
    { id: "paint", modality: "image", amountMode: "per_call", centsPerCall: 5 },
  ] as const;
  const rows: [size: Size, call: Call, cents: number][] = [
    [{ inputTokens: 1_000_000 }, { event: "talk", metadata: { model: "chat" } }, 15],
    [{ inputTokens: 0.05 }, { event: "talk.chat" }, 0.000001],
    [{ inputTokens: 0.03 }, { event: "talk.chat" }, 0],
    [{ quantity: 3 }, { event: "image.paint" }, 5],
    [{ quantity: 2.5 }, { event: "video.film" }, 100],
    [{ quantity: 2.5, inputCostCents: 1 }, { event: "video.film" }, 1],
    [{ inputTokens: 7 }, { event: "nothing" }, 0],
  ];
  for (const [size, call, cents] of rows) {
    const plan = { ...planOf("p", {}), limits: [groupOf("c", 1000, "cents", "*")] };
    const scene = new Scene([plan], undefined, [], { models });
    scene.subscribe("p");
    scene.hold(size, call);
    assert.deepEqual(scene.counts(), { c: cents }, JSON.stringify([size, call]));
  }
});

Deno.test("the longest answer is held in tokens and in cents, and a budget refuses what could pass it", () => {
  const limits = [groupOf("t", 100_000, "tokens", "chat.*"), groupOf("c", 2000, "cents", "chat.*")];
  const model = {
    id: "m",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 10_000,
    outputCentsPerMillionTokens: 50_000,
  } as const;
  const scene = new Scene([{ ...planOf("p", {}), limits }], undefined, [], { models: [model] });
  scene.subscribe("p");
  const call = { event: "chat.m" };
  assert.equal(scene.reason({ inputTokens: 20_000, maxOutputTokens: 36_001 }, call), "limit_reached");
  const id = scene.hold({ inputTokens: 20_000, maxOutputTokens: 36_000 }, call);
  assert.deepEqual(scene.counts(), { t: 56_000, c: 2000 });
  const row = scene.state.reservations.get(id);
  assert.deepEqual([row?.priceRow, row?.namesCents], [0, false]);
  scene.release(id);
  assert.equal(scene.reason({ maxOutputTokens: 100_001 }, { event: "chat.x" }), "limit_reached");
  const told = scene.state.reservations.get(scene.hold({ inputCostCents: 0 }, { event: "chat.x" }));
  assert.deepEqual([told?.priceRow, told?.namesCents], [-1, true]);
});

Deno.test("can-use offers what credits of each group's unit could add, pack by pack in consumption order", () => {
  const plan = { ...planOf("p", {}), limits: [groupOf("g", 10), groupOf("c", 50, "cents")] };
  const narrow = packOf("narrow", { priority: 300, matches: [{ event: "x.make", metadata: { size: "5" } }] });
  const scene = new Scene([plan], undefined, [...PACKS, narrow]);
  scene.subscribe("p");
  scene.fund("narrow", 2);
  for (
    const [pack, quantity] of [["count", 3], ["count", 4], ["wallet", 5], ["first", 1], [
      "tokens",
      7,
    ]] as const
  ) {
    scene.fund(pack, quantity);
  }
  const gone = scene.fund("cents", 9);
  scene.revoke(gone);
  const { allowed, groups } = scene.canUse(23);
  assert.equal(allowed, true);
  const offers = groups.map(({ offers }) =>
    offers.map(({ packId, available }) => [packId, numberOf(available)])
  );
  assert.deepEqual(offers, [[["first", 1], ["count", 7], ["wallet", 5]], []]);
  assert.equal(groups[0]?.window.end, Date.parse("2026-04-01T00:00Z"));
  assert.equal(scene.reason(23.000001), "limit_reached");
  assert.equal(scene.canUse(25, { metadata: { size: 5 } }).groups[0]?.offers[0]?.packId, "narrow");
  assert.deepEqual(scene.canUse(5, { event: "other" }).groups, []);
});

Deno.test("a model that the call names for certain decides the price alone, and cents need it", () => {
  const model = (id: string, price: number) => ({
    id,
    modality: "text" as const,
    amountMode: "per_token" as const,
    inputCentsPerMillionTokens: price,
  });
  const plan = {
    ...planOf("p", {}),
    limits: [groupOf("c", 10, "cents", "x.*"), groupOf("t", 9e6, "tokens", "*")],
  };
  const scene = new Scene([plan], undefined, [], { models: [model("dear", 4), model("cheap", 1)] });
  scene.subscribe("p");
  const ask = (event: string, named: string) =>
    scene.do("reserve", {
      event,
      metadata: { text: '{"model":"dear"}', members: { model: "dear" } },
      size: sizeOf({ inputTokens: 1e6 }),
      ttlMs: null,
      model: named,
    });
  const held = () => scene.counts().c;
  assert.ok(ask("x.dear", "cheap").result.ok);
  assert.equal(held(), 1);
  const unpriced = ask("x.dear", "other");
  assert.deepEqual(unpriced.result.ok || [unpriced.result.refusal.code, unpriced.result.refusal.details], [
    "invalid_request",
    [{ path: "model", message: "has no price in the catalog, and the plan counts cents of this event" }],
  ]);
  assert.equal(unpriced.refusedCall, null);
  assert.ok(ask("y.dear", "other").result.ok);
  assert.equal(held(), 1);
});

Deno.test("a quantity above 1 that nothing counts is a warning, and one that counts in seconds or their price is not", () => {
  const models = [
    { id: "v", modality: "video", amountMode: "per_unit", centsPerSecond: 2 },
    { id: "i", modality: "image", amountMode: "per_call", centsPerImage: 2 },
  ] as const;
  type Row = [units: Unit[], size: Size, model: string, pack: Unit | null, warns: boolean];
  const rows: Row[] = [
    [["count"], { quantity: 1.5 }, "none", null, true],
    [["count", "tokens", "cents"], { quantity: 2 }, "none", null, true],
    [["count"], { quantity: 1000 }, "none", null, true],
    [["count"], { quantity: 1 }, "none", null, false],
    [["count"], { quantity: 0.5 }, "none", null, false],
    [["count"], { count: 2 }, "none", null, false],
    [["count", "seconds"], { quantity: 2 }, "none", null, false],
    [["cents"], { quantity: 2 }, "v", null, false],
    [["cents"], { quantity: 2, inputCostCents: 1 }, "v", null, true],
    [["cents"], { quantity: 2 }, "i", null, true],
    [[], { quantity: 2 }, "none", null, false],
    [[], { quantity: 2 }, "none", "count", true],
    [[], { quantity: 2 }, "none", "seconds", false],
  ];
  for (const [units, size, model, pack, warns] of rows) {
    const limits = units.map((unit) => groupOf(unit, 100, unit));
    const packs = pack === null ? [] : [packOf("a", { unit: pack })];
    const scene = new Scene([{ ...planOf("p", {}), limits }], undefined, packs, { models: [...models] });
    scene.subscribe("p");
    if (pack !== null) scene.grant("a", 50);
    const call = { metadata: { model } };
    const expected = warns ? ["quantity_not_counted"] : [];
    const name = JSON.stringify([units, size, model, pack]);
    assert.deepEqual(scene.canUse(size, call).warnings, expected, name);
    const input = { event: "x.a", metadata: null, size: sizeOf(size), ttlMs: null };
    const metadata = { text: JSON.stringify(call.metadata), members: call.metadata };
    assert.deepEqual(scene.ask("reserve", { ...input, metadata }).warnings, expected, name);
  }
});
