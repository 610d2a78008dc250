// Commit with its parts (final_parts.ts, settle_lines.ts): how a final amount falls to the plan, to credits, past the
// quota, or nowhere, and what it costs. A row a commit.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/amount.ts";
import { type Call, type Final, groupOf, numbersOf, PACKS, planOf, Scene, type Size } from "../scene.ts";

const MODELS = [{ id: "veo", modality: "video", amountMode: "per_unit", centsPerSecond: 40 }] as const;
const PLAN = {
  ...planOf("p", {}),
  limits: [
    groupOf("g", 10),
    groupOf("t", 100, "tokens", "chat.*"),
    groupOf("c", 50, "cents", "chat.*"),
    groupOf("s", 10, "seconds", "v.*"),
    groupOf("b", 2000, "cents", "v.*"),
  ],
};

interface Row extends Call {
  readonly name: string;
  /** Without a subscription. */
  readonly isAlone?: boolean;
  /** Balances by pack, granted before the hold. */
  readonly credits?: readonly (readonly [pack: string, quantity: number])[];
  readonly size: Size | number;
  /** What happens between hold and commit; balances granted there come last in `left`. */
  readonly then?: (scene: Scene) => string | void;
  readonly final?: Final;
  readonly groups: Record<string, number>;
  readonly overflow?: readonly string[];
  readonly recharged?: boolean;
  readonly left?: readonly number[];
  /** Deltas of the ledger rows that the commit writes. */
  readonly deltas?: readonly number[];
  readonly uncovered?: Record<string, number>;
  /** Quantity and cost of the event. */
  readonly recorded?: readonly [quantity: number, costCents: number];
}

const THREE = [["first", 3], ["count", 4], ["count", 5]] as const;
const chat = (inputTokens: number, inputCostCents: number): Size => ({ inputTokens, inputCostCents });
const lapse = (scene: Scene) => void scene.wait(601);

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  { name: "exact", size: 4, groups: { g: 4 }, recorded: [4, 0] },
  { name: "more, with room", size: 4, final: { extra: { count: 2 } }, groups: { g: 6 }, recorded: [4, 0] },
  { name: "less", size: 4, final: { extra: { count: -1.5 } }, groups: { g: 2.5 } },
  { name: "less than nothing is nothing", size: 4, final: { extra: { count: -100 } }, groups: { g: 0 } },
  { name: "up to the quota is no overflow", size: 4, final: { actual: { count: 10 } }, groups: { g: 10 } },
  { name: "past the quota is overflow", size: 4, final: { actual: { count: 10.000001 } }, groups: { g: 10.000001 }, overflow: ["g"] },
  { name: "an exact one beyond a quota that others filled is none", size: 4, then: (scene) => void scene.track(6), groups: { g: 10 } },
  { name: "absolute and added amounts of other units are ignored", size: 4, final: { extra: { tokens: 9, cents: 2, seconds: 3 } }, groups: { g: 4 }, recorded: [4, 2] },

  { name: "credits, exact: a row of 0 for each held balance", credits: THREE, size: 15, groups: { g: 10 }, left: [0, 2, 5], deltas: [0, 0] },
  { name: "less goes back to credits first, last taken first", credits: THREE, size: 15, final: { actual: { count: 14 } }, groups: { g: 10 }, left: [0, 3, 5], deltas: [0, 1] },
  { name: "less than two balances gave", credits: THREE, size: 15, final: { extra: { count: -3 } }, groups: { g: 10 }, left: [1, 4, 5], deltas: [1, 2] },
  { name: "all that credits gave", credits: THREE, size: 15, final: { actual: { count: 10 } }, groups: { g: 10 }, left: [3, 4, 5], deltas: [3, 2] },
  { name: "and then to the plan", credits: THREE, size: 15, final: { actual: { count: 5.5 } }, groups: { g: 5.5 }, left: [3, 4, 5], deltas: [3, 2] },
  { name: "nothing in the end", credits: THREE, size: 15, final: { actual: { count: 0 } }, groups: { g: 0 }, left: [3, 4, 5], deltas: [3, 2] },
  { name: "more takes the plan's room before credits", credits: THREE, size: 15, then: (scene) => void scene.ask("commit", { reservationId: scene.hold(1), extra: {}, actual: {}, costCents: null }), final: { extra: { count: 1 } }, groups: { g: 10 }, left: [0, 0, 5], deltas: [0, -1] },
  { name: "more takes credits before it goes past the quota", credits: THREE, size: 15, final: { extra: { count: 6 } }, groups: { g: 10 }, left: [0, 0, 1], deltas: [0, -2, -4] },
  { name: "past the quota once credits are gone", credits: THREE, size: 15, final: { extra: { count: 10 } }, groups: { g: 13 }, overflow: ["g"], left: [0, 0, 0], deltas: [0, -2, -5] },
  { name: "balances granted since pay too, in their order", credits: [["count", 2]], size: 11, then: (scene) => scene.fund("first", 1), final: { extra: { count: 2 } }, groups: { g: 10 }, left: [0, 0], deltas: [-1, -1] },
  { name: "each unit is corrected by itself", event: "chat.x", credits: [["tokens", 30], ["cents", 10], ["wallet", 10]], size: chat(110, 55), final: { extra: { tokens: 15, cents: -3, count: 7 } }, groups: { t: 100, c: 50 }, left: [5, 8, 10], recorded: [1, 52] },
  { name: "alone, more than credits have is uncovered", isAlone: true, credits: [["first", 4], ["count", 2], ["tokens", 100]], size: 3, final: { extra: { count: 5, tokens: 50 } }, groups: {}, left: [0, 0, 100], deltas: [-1, -2], uncovered: { count: 2 } },
  { name: "the plan is left: credits pay, and the plan has no room", credits: [["count", 3]], size: 2, then: (scene) => void scene.cancel(), final: { extra: { count: 4 } }, groups: { g: 3 }, left: [0], deltas: [-3] },
  { name: "an expired balance gives no more", isAlone: true, size: 2, then: (scene) => void scene.wait(60), final: { extra: { count: 1 } }, groups: {}, left: [0], credits: [["short", 2]], deltas: [0], uncovered: { count: 1 } },

  { name: "seconds of a per_unit model", event: "v.veo", credits: [["seconds", 5]], size: { quantity: 12 }, final: { actual: { seconds: 13.5 } }, groups: { s: 10, b: 480 }, left: [1.5], recorded: [13.5, 480] },
  { name: "seconds of any other model change nothing", event: "v.x", credits: [["seconds", 5]], size: { quantity: 11 }, final: { extra: { seconds: 2 } }, groups: { s: 10, b: 0 }, left: [4], recorded: [11, 0] },
  { name: "a real cost counts toward cents of a per_unit model", event: "v.veo", size: { quantity: 2 }, final: { costCents: 90 }, groups: { s: 2, b: 90 }, recorded: [2, 90] },
  { name: "a real cost counts toward no cents of any other", event: "chat.x", size: chat(1, 5), final: { costCents: 90 }, groups: { t: 1, c: 5 }, recorded: [1, 90] },
  { name: "cents set in place of those carried are the cost", event: "chat.x", size: chat(1, 5), final: { actual: { cents: 7 } }, groups: { t: 1, c: 7 }, recorded: [1, 7] },
  { name: "cents are carried without a cents group", size: { count: 1, inputCostCents: 4 }, final: { extra: { cents: 0.5 } }, groups: { g: 1 }, recorded: [1, 4.5] },

  { name: "a lapsed hold is charged again", size: 4, then: lapse, groups: { g: 4 }, recharged: true },
  { name: "in the window of the hold, whatever runs now", size: 4, then: (scene) => void scene.at("2026-05-01T00:00:00Z"), final: { extra: { count: 1 } }, groups: { g: 5 }, recharged: true },
  { name: "past what others took meanwhile", size: 4, then: (scene) => void scene.wait(601).track(9), groups: { g: 13 }, overflow: ["g"], recharged: true },
  { name: "with balances that match now, in their order", credits: [["count", 4]], size: 12, then: (scene) => { lapse(scene); scene.track(3); return scene.fund("first", 1); }, final: { extra: { count: -1 } }, groups: { g: 10 }, left: [1, 0], deltas: [-1, -3], recharged: true },
  { name: "past plan and credits", credits: [["count", 1]], size: 11, then: (scene) => { lapse(scene); scene.track(11); }, groups: { g: 21 }, overflow: ["g"], left: [0], recharged: true },
  { name: "alone, what credits leave is uncovered", isAlone: true, credits: [["count", 2]], size: 2, then: (scene) => { lapse(scene); scene.track(1); }, groups: {}, left: [0], deltas: [-1], uncovered: { count: 1 }, recharged: true },
];

for (const row of ROWS) {
  Deno.test(`commit: ${row.name}`, () => {
    const short = {
      ...PACKS[1],
      id: "short",
      name: "short",
      defaultExpiryDays: 60 / 86_400,
    } as typeof PACKS[0];
    const scene = new Scene([PLAN], undefined, [...PACKS, short], { models: MODELS });
    if (row.isAlone !== true) scene.subscribe("p");
    const ids = (row.credits ?? []).map(([pack, quantity]) => scene.fund(pack, quantity));
    const id = scene.hold(row.size, { event: row.event, metadata: row.metadata });
    const granted = row.then?.(scene);
    if (typeof granted === "string") ids.push(granted);
    scene.ask("settle", {});
    const [rows, operations] = [scene.ledger().length, scene.operations];
    const { groups, overflow, recharged, uncovered } = scene.commit(id, row.final);
    assert.deepEqual(groups, row.groups);
    assert.deepEqual(overflow, row.overflow ?? []);
    assert.equal(recharged, row.recharged ?? false);
    assert.deepEqual(uncovered, row.uncovered ?? {});
    if (row.left !== undefined) assert.deepEqual(scene.left(...ids), row.left);
    const written = scene.ledger().slice(rows);
    if (row.deltas !== undefined) assert.deepEqual(written.map(([, delta]) => delta), row.deltas);
    for (const [, , reason] of written) assert.equal(reason, "event_committed");
    const event = scene.event();
    assert.deepEqual([event.reservationId, scene.operations - operations], [id, 1]);
    assert.equal(event.matchStatus, row.isAlone === true ? "matched_credits_only" : "matched");
    if (row.recorded !== undefined) {
      assert.deepEqual([numberOf(event.quantity), numberOf(event.costCents)], row.recorded);
    }
    assert.equal(scene.commitCode(id), "reservation_not_pending", "never charged again");
    assert.deepEqual(numbersOf(event.uncovered), row.uncovered ?? {});
  });
}

Deno.test("commit: rows of the ledger name the event and the hold", () => {
  const scene = new Scene([PLAN], undefined, PACKS);
  scene.fund("count", 5);
  const id = scene.hold(3);
  scene.commit(id);
  const rows = scene.changes.flatMap((each) => each.table === "credit_ledger" ? [each.row] : []).slice(1);
  assert.deepEqual(rows.map(({ reason, eventId, reservationId }) => [reason, eventId, reservationId]), [
    ["reservation_held", null, id],
    ["event_committed", scene.event().id, id],
  ]);
});

Deno.test("commit: plan room is that of the present quota", () => {
  const scene = new Scene([PLAN], undefined, PACKS);
  scene.subscribe("p");
  const id = scene.hold(4);
  const balance = scene.fund("count", 5);
  scene.subscribe("p", { customLimits: { g: 5_000_000n } });
  assert.deepEqual(scene.commit(id, { extra: { count: 3 } }).groups, { g: 5 });
  assert.deepEqual(scene.left(balance), [3]);
});

Deno.test("commit: room that came back since the hold is the plan's again", () => {
  const scene = new Scene([PLAN], undefined, PACKS);
  scene.subscribe("p");
  const balance = scene.fund("count", 12);
  const other = scene.hold(3);
  const id = scene.hold(12);
  scene.release(other);
  assert.deepEqual(scene.commit(id, { extra: { count: 4 } }).groups, { g: 10 });
  assert.deepEqual(scene.left(balance), [6]);
});
