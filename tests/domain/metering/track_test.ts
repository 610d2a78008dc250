// Track: the same decision as reserve with the quota in place of the gate, recorded whatever the answer. A row a call.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/amount.ts";
import { matchedGroupIds } from "../../../src/domain/metering/event.ts";
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
