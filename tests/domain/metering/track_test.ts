// Track: the same decision as reserve with the quota in place of the gate, recorded whatever the answer. A row a call.

import assert from "node:assert/strict";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import { chargedAmounts, matchedGroupIds } from "../../../src/domain/state/event.ts";
import type { LimitGroupDocument } from "../../../src/domain/catalog/catalog.ts";
import { eventsIn, groupOf, PACKS, planOf, type Reported, Scene, type Size, sizeOf } from "../scene.ts";

interface Row {
  readonly name: string;
  readonly groups?: readonly LimitGroupDocument[] | null;
  readonly event?: string;
  readonly size: Size | number;
  readonly costCents?: number;
  readonly usage?: Reported;
  readonly status: string;
  readonly counts: Record<string, number>;
  readonly costs?: Record<string, number>;
  readonly left?: number;
  /** Quantity and cost of the event. */
  readonly recorded?: readonly [quantity: number, costCents: number];
}

const MODELS = [
  { id: "veo", modality: "video", amountMode: "per_unit", centsPerSecond: 40 },
  { id: "paint", modality: "image", amountMode: "per_call", centsPerImage: 4 },
  {
    id: "think",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 100_000,
    outputCentsPerMillionTokens: 200_000,
    reasoningCentsPerMillionTokens: 400_000,
  },
] as const;
const VIDEO = [groupOf("s", 60, "seconds", "v.*"), groupOf("c", 2000, "cents", "v.*")];
const CHAT = [groupOf("t", 100, "tokens", "chat.*"), groupOf("c", 50, "cents", "chat.*")];

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  { name: "counts one by default", size: {}, status: "matched", counts: { g: 1 }, recorded: [1, 0] },
  { name: "counts quantity where no count is sent", size: { quantity: 4 }, status: "matched", counts: { g: 4 }, recorded: [4, 0] },
  { name: "counts count before quantity", size: { quantity: 4, count: 2 }, status: "matched", counts: { g: 2 }, recorded: [4, 0] },
  { name: "the gate does not hold it", size: 9, status: "matched", counts: { g: 9 } },
  { name: "credits pay the rest", size: 12, status: "matched", counts: { g: 10 }, left: 3 },
  { name: "blocked, nothing is taken", size: 16, status: "blocked", counts: { g: 0 }, left: 5 },
  { name: "no group matches", event: "y", size: 1, status: "unmatched", counts: { g: 0 }, left: 5 },
  { name: "no subscription", groups: null, size: 6, status: "no_subscription", counts: {}, left: 5 },
  { name: "credits alone", groups: null, size: 5, status: "matched_credits_only", counts: {}, left: 0 },
  { name: "its cost is on the counters and counts toward no cents", size: 1, costCents: 7, status: "matched", counts: { g: 1 }, costs: { g: 7 }, recorded: [1, 7] },
  { name: "of a per_unit model, cents are derived", groups: VIDEO, event: "v.veo", size: { quantity: 3 }, status: "matched", counts: { s: 3, c: 120 }, costs: { s: 120, c: 120 }, recorded: [3, 120] },
  { name: "of a per_unit model, the real cost counts toward cents", groups: VIDEO, event: "v.veo", size: { quantity: 3 }, costCents: 90, status: "matched", counts: { s: 3, c: 90 }, recorded: [3, 90] },
  { name: "of no model, the real cost counts toward no cents", groups: VIDEO, event: "v.x", size: { quantity: 3 }, costCents: 90, status: "matched", counts: { s: 3, c: 0 }, recorded: [3, 90] },

  { name: "usage: tokens and cents", groups: CHAT, event: "chat.think", size: {}, usage: { inputTokens: 30, outputTokens: 20, reasoningTokens: 5 }, status: "matched", counts: { t: 50, c: 8 }, costs: { t: 8, c: 8 }, recorded: [1, 8] },
  { name: "usage in place of a quantity of tokens", groups: CHAT, event: "chat.think", size: { quantity: 9 }, usage: { outputTokens: 20 }, status: "matched", counts: { t: 20, c: 4 }, recorded: [9, 4] },
  { name: "usage without tokens", groups: CHAT, event: "chat.think", size: { quantity: 9 }, usage: { calls: 2 }, status: "matched", counts: { t: 9, c: 0 }, recorded: [9, 0] },
  { name: "usage: reasoning has its own price", groups: CHAT, event: "chat.think", size: {}, usage: { outputTokens: 90, reasoningTokens: 90 }, costs: { t: 36, c: 36 }, status: "matched", counts: { t: 90, c: 36 } },
  { name: "usage past the quota is blocked, with its cost", groups: CHAT, event: "chat.think", size: {}, usage: { inputTokens: 101 }, status: "blocked", counts: { t: 0, c: 0 }, recorded: [1, 10.1] },
  { name: "usage: seconds", groups: VIDEO, event: "v.veo", size: { quantity: 3 }, usage: { seconds: 2.5 }, status: "matched", counts: { s: 2.5, c: 100 }, recorded: [2.5, 100] },
  { name: "usage: seconds that it does not say are the quantity", groups: VIDEO, event: "v.veo", size: { quantity: 3 }, usage: { outputTokens: 5 }, status: "matched", counts: { s: 3, c: 120 }, recorded: [3, 120] },
  { name: "usage: images", groups: VIDEO, event: "v.paint", size: {}, usage: { calls: 3 }, status: "matched", counts: { s: 1, c: 12 }, recorded: [1, 12] },
  { name: "usage of an unpriced model", groups: CHAT, event: "chat.x", size: {}, usage: { inputTokens: 7 }, status: "matched", counts: { t: 7, c: 0 }, recorded: [1, 0] },
];

for (const { name, groups = [groupOf("g", 10)], event, size, costCents, usage, ...row } of ROWS) {
  Deno.test(`track: ${name}`, () => {
    const plan = {
      ...planOf("p", {}),
      limits: groups ?? [],
      headroom: { mode: "percent", value: 50 },
    } as const;
    const scene = new Scene([plan], undefined, PACKS, { models: MODELS });
    if (groups !== null) scene.subscribe("p");
    const id = scene.fund("count", 5);
    const rows = scene.ledger().length;
    assert.equal(
      scene.track(size, { event, usage, ...(costCents === undefined ? {} : { costCents }) }),
      row.status,
    );
    assert.deepEqual(scene.counts(), row.counts);
    if (row.costs !== undefined) assert.deepEqual(scene.costs(), row.costs);
    if (row.left !== undefined) assert.deepEqual(scene.left(id), [row.left]);
    const recorded = scene.event();
    assert.equal(recorded.type, event ?? "x.make");
    if (row.recorded !== undefined) {
      assert.deepEqual([numberOf(recorded.quantity), numberOf(recorded.costCents)], row.recorded);
    }
    const isMatched = row.status === "matched";
    const matched = scene.ask("usage", { event: event ?? "x.make" }).counters.map(({ group }) => group.id);
    assert.deepEqual(matchedGroupIds(recorded), isMatched ? matched : []);
    assert.equal(
      scene.operations,
      row.status.startsWith("matched") ? 1 : 0,
      "only a counted event is an operation",
    );
    const spent = 5 - (scene.left(id)[0] as number);
    const written = scene.changes.flatMap((each) => each.table === "credit_ledger" ? [each.row] : []).slice(
      rows,
    );
    assert.deepEqual(
      written.map((
        { delta, reason, eventId, reservationId },
      ) => [numberOf(delta), reason, eventId, reservationId]),
      spent === 0 ? [] : [[-spent, "event_committed", recorded.id, null]],
    );
  });
}

Deno.test("track: 0.1 ten times is 1", () => {
  const scene = new Scene([planOf("p", { g: 10 })]);
  scene.subscribe("p");
  for (let times = 0; times < 10; times++) scene.track(0.1);
  assert.deepEqual(scene.counts(), { g: 1 });
});

Deno.test("track: a blocked event is the refusal's detail, and its groups are those that matched", () => {
  const scene = new Scene([planOf("p", { g: 1 })]);
  scene.subscribe("p");
  const input = { event: "x.a", metadata: null, size: sizeOf({ count: 2 }), costCents: null };
  const { result, changes, operations } = scene.do("track", input);
  assert.ok(!result.ok);
  assert.equal(result.refusal.code, "limit_reached");
  assert.equal((result.refusal.details as { eventId: string }).eventId, eventsIn(changes)[0]?.id);
  assert.deepEqual([eventsIn(changes)[0]?.lines, operations], [[], 0]);
});

Deno.test("track: a blocked event names the groups without room, each unit after what credits leave", () => {
  const limits = [
    groupOf("wide", 10, "count", "x.*"),
    groupOf("narrow", 3, "count", "x.*"),
    groupOf("tokens", 100, "tokens", "x.*"),
    groupOf("other", 0, "count", "y.*"),
  ];
  const scene = new Scene([{ ...planOf("p", {}), limits }], undefined, PACKS);
  scene.subscribe("p");
  const blocking = (size: Size) => {
    const call = { event: "x.make", metadata: null, size: sizeOf(size), costCents: null };
    const { result } = scene.do("track", call);
    const { groups, eventId } = (result.ok ? {} : result.refusal.details) as Record<string, unknown>;
    assert.equal(eventId, scene.event().id);
    return groups;
  };
  const narrow = { groupId: "narrow", unit: "count", quota: 3, current: 0 };
  const wide = { groupId: "wide", unit: "count", quota: 10, current: 0 };
  const tokens = { groupId: "tokens", unit: "tokens", quota: 100, current: 0 };
  assert.deepEqual(blocking({ count: 4 }), [narrow]);
  assert.deepEqual(blocking({ count: 11, inputTokens: 101 }), [wide, narrow, tokens]);
  scene.fund("count", 1);
  assert.deepEqual(blocking({ count: 11 }), [narrow]);
});

Deno.test("track: an unpriced event warns or is refused, where the plan counts its cents and no call named any", () => {
  const ask = (
    unpricedModels: "warn" | "refuse",
    members: Size & { costCents?: number },
    event = "chat.x",
  ) => {
    const { costCents, ...size } = members;
    const settings = { unpricedModels };
    const limits = [...CHAT, groupOf("g", 10)];
    const scene = new Scene([{ ...planOf("p", {}), limits }], undefined, PACKS, { models: MODELS, settings });
    scene.subscribe("p");
    const cost = costCents === undefined ? null : amountOf(costCents);
    const call = { event, metadata: null, size: sizeOf(size) };
    const reasons = scene.ask("canUse", call).reasons;
    assert.deepEqual(scene.ask("reserve", { ...call, ttlMs: null }).reasons, reasons, "as reserve");
    const { result } = scene.do("track", { ...call, costCents: cost });
    if (result.ok) return [scene.event().matchStatus, result.answer.warnings, reasons];
    const { code, details } = result.refusal;
    assert.deepEqual(details, { eventId: scene.event().id, groups: [], reasons: ["unpriced_model"] });
    return [scene.event().matchStatus, code, reasons];
  };
  assert.deepEqual(ask("warn", {}), ["matched", ["unpriced_model"], []]);
  assert.deepEqual(ask("refuse", {}), ["blocked", "limit_reached", ["unpriced_model"]]);
  assert.deepEqual(ask("refuse", { inputTokens: 1000 }), ["blocked", "limit_reached", ["unpriced_model"]]);
  assert.deepEqual(ask("refuse", { inputCostCents: 0 }), ["matched", [], []], "told");
  assert.deepEqual(
    ask("refuse", { costCents: 4 }),
    ["matched", [], ["unpriced_model"]],
    "named to track alone",
  );
  assert.deepEqual(ask("refuse", {}, "chat.think"), ["matched", [], []], "priced");
  assert.deepEqual(ask("refuse", {}, "x.y"), ["matched", [], []], "no cents group");
  assert.deepEqual(ask("refuse", {}, "other"), ["unmatched", [], ["unmatched_event"]], "no group");
});

Deno.test("track: an event says what it was charged with, groups first and nothing that is 0", () => {
  const limits = [groupOf("g", 2, "count", "x.*"), groupOf("t", 100, "tokens", "x.*")];
  const scene = new Scene([{ ...planOf("p", {}), limits }], undefined, PACKS);
  const charged = (size: Size) => {
    scene.track(size);
    return chargedAmounts(scene.event()).map((each) => ({ ...each, amount: numberOf(each.amount) }));
  };
  scene.subscribe("p");
  const balanceId = scene.fund("count", 3);
  assert.deepEqual(charged({ count: 1, inputTokens: 7 }), [
    { groupId: "g", unit: "count", amount: 1 },
    { groupId: "t", unit: "tokens", amount: 7 },
  ]);
  assert.deepEqual(charged({ count: 3 }), [
    { groupId: "g", unit: "count", amount: 1 },
    { balanceId, unit: "count", amount: 2 },
  ]);
  assert.deepEqual(charged({ count: 1 }), [{ balanceId, unit: "count", amount: 1 }]);
  assert.deepEqual(charged({ count: 1 }), [], "blocked");
});
