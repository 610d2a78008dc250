// Track: the same decision as reserve with the quota in place of the gate, recorded whatever the answer. A row a call.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/amount.ts";
import { chargedAmounts, matchedGroupIds } from "../../../src/domain/metering/event.ts";
import type { LimitGroupDocument } from "../../../src/domain/plans/catalog.ts";
import { eventsIn, groupOf, PACKS, planOf, Scene, type Size, sizeOf } from "../scene.ts";

interface Row {
  readonly name: string;
  readonly groups?: readonly LimitGroupDocument[] | null;
  readonly event?: string;
  readonly size: Size | number;
  readonly costCents?: number;
  readonly status: string;
  readonly counts: Record<string, number>;
  readonly costs?: Record<string, number>;
  readonly left?: number;
  /** Quantity and cost of the event. */
  readonly recorded?: readonly [quantity: number, costCents: number];
}

const MODELS = [{ id: "veo", modality: "video", amountMode: "per_unit", centsPerSecond: 40 }] as const;
const VIDEO = [groupOf("s", 60, "seconds", "v.*"), groupOf("c", 2000, "cents", "v.*")];

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
];

for (const { name, groups = [groupOf("g", 10)], event, size, costCents, ...row } of ROWS) {
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
    assert.equal(scene.track(size, { event, ...(costCents === undefined ? {} : { costCents }) }), row.status);
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
