// Commit with its parts (final_parts.ts, settle_lines.ts): how a final amount falls to the plan, to credits, past the
// quota, or nowhere, and what it costs. A row a commit.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/values/amount.ts";
import { type Call, type Final, groupOf, numbersOf, PACKS, planOf, Scene, type Size } from "../scene.ts";

const MODELS = [
  { id: "veo", modality: "video", amountMode: "per_unit", centsPerSecond: 40 },
  { id: "paint", modality: "image", amountMode: "per_call", centsPerImage: 4 },
  {
    id: "think",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 100_000,
    cachedInputCentsPerMillionTokens: 10_000,
    outputCentsPerMillionTokens: 200_000,
    tiers: [{ aboveInputTokens: 50, inputCentsPerMillionTokens: 300_000 }],
  },
] as const;
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
  /** Cost and price row of the answer. */
  readonly cost?: readonly [cents: number, model: string | null];
  /** Whether the answer warns that nothing priced the event. */
  readonly warns?: boolean;
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
  { name: "an exact amount beyond a quota that others filled is no overflow", size: 4, then: (scene) => void scene.track(6), groups: { g: 10 } },
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
  { name: "a real cost counts toward no cents of a per_call model", event: "v.paint", size: { quantity: 3 }, final: { costCents: 90, actual: { seconds: 50 } }, groups: { s: 3, b: 4 }, recorded: [3, 90] },
  { name: "cents set in place of those carried are the cost", event: "chat.x", size: chat(1, 5), final: { actual: { cents: 7 } }, groups: { t: 1, c: 7 }, recorded: [1, 7] },
  { name: "cents are carried without a cents group", size: { count: 1, inputCostCents: 4 }, final: { extra: { cents: 0.5 } }, groups: { g: 1 }, recorded: [1, 4.5] },

  { name: "usage: tokens and cents are final, and less than the longest answer goes back", event: "chat.think", size: { inputTokens: 30, maxOutputTokens: 60 }, final: { usage: { inputTokens: 30, outputTokens: 20 } }, groups: { t: 50, c: 7 }, recorded: [1, 7], cost: [7, "think"] },
  { name: "usage: cached parts at their price", event: "chat.think", size: { inputTokens: 30 }, final: { usage: { inputTokens: 40, cachedInputTokens: 20, outputTokens: 10 } }, groups: { t: 50, c: 4.2 }, cost: [4.2, "think"] },
  { name: "usage: the tier goes by the whole input of the report", event: "chat.think", size: { inputTokens: 30 }, final: { usage: { inputTokens: 51, cachedInputTokens: 50 } }, groups: { t: 51, c: 0.8 }, cost: [0.8, "think"] },
  { name: "usage: past the quota", event: "chat.think", size: { inputTokens: 30 }, final: { usage: { inputTokens: 99, outputTokens: 2 } }, groups: { t: 101, c: 30.1 }, overflow: ["t"], cost: [30.1, "think"] },
  { name: "usage: over named cents of the input", event: "chat.think", size: chat(30, 9), final: { usage: { outputTokens: 10 } }, groups: { t: 10, c: 2 }, cost: [2, "think"] },
  { name: "usage without tokens leaves tokens and cents", event: "chat.think", size: { inputTokens: 30, maxOutputTokens: 10 }, final: { usage: { calls: 3 } }, groups: { t: 40, c: 5 }, cost: [5, "think"] },
  { name: "no usage: what was held is the cost", event: "chat.think", size: { inputTokens: 30, maxOutputTokens: 10 }, groups: { t: 40, c: 5 }, cost: [5, "think"] },
  { name: "usage: counts stay correctable", size: 4, final: { extra: { count: 2 }, usage: { inputTokens: 5 } }, groups: { g: 6 }, recorded: [4, 0], cost: [0, null] },
  { name: "usage: credits get theirs back", event: "chat.think", credits: [["tokens", 30], ["cents", 10]], size: { inputTokens: 50, maxOutputTokens: 60 }, final: { usage: { inputTokens: 50, outputTokens: 55 } }, groups: { t: 100, c: 16 }, left: [25, 10], cost: [16, "think"] },
  { name: "usage: seconds of a per_unit model", event: "v.veo", size: { quantity: 2 }, final: { usage: { seconds: 3.5 } }, groups: { s: 3.5, b: 140 }, recorded: [3.5, 140], cost: [140, "veo"] },
  { name: "usage: seconds that it does not say are those held", event: "v.veo", size: { quantity: 2 }, final: { usage: { outputTokens: 9 } }, groups: { s: 2, b: 80 }, recorded: [2, 80], cost: [80, "veo"] },
  { name: "usage: seconds of any other model change nothing", event: "v.think", size: { quantity: 2 }, final: { usage: { seconds: 9 } }, groups: { s: 2, b: 0 }, recorded: [2, 0], cost: [0, "think"] },
  { name: "usage: images", event: "v.paint", size: {}, final: { usage: { calls: 3 } }, groups: { s: 1, b: 12 }, cost: [12, "paint"] },
  { name: "usage: one image where it says none", event: "v.paint", size: { inputCostCents: 9 }, final: { usage: { outputTokens: 900 } }, groups: { s: 1, b: 4 }, cost: [4, "paint"] },
  { name: "unpriced: tokens are final, and the answer warns", event: "chat.x", size: { inputTokens: 1 }, final: { usage: { inputTokens: 5, outputTokens: 6 } }, groups: { t: 11, c: 0 }, cost: [0, null], warns: true },
  { name: "unpriced, also without usage", event: "chat.x", size: { inputTokens: 1 }, groups: { t: 1, c: 0 }, cost: [0, null], warns: true },
  { name: "unpriced: cents stay as the reserve named them", event: "chat.x", size: chat(1, 5), final: { usage: { outputTokens: 6 } }, groups: { t: 6, c: 5 }, cost: [5, null] },
  { name: "unpriced: the commit names the cents", event: "chat.x", size: { inputTokens: 1 }, final: { costCents: 3 }, groups: { t: 1, c: 0 }, cost: [3, null] },
  { name: "unpriced: the commit adds cents", event: "chat.x", size: { inputTokens: 1 }, final: { extra: { cents: 3 } }, groups: { t: 1, c: 3 }, cost: [3, null] },
  { name: "unpriced without a cents group is no matter", size: 1, groups: { g: 1 }, cost: [0, null] },

  { name: "a lapsed hold is charged again", size: 4, then: lapse, groups: { g: 4 }, recharged: true },
  { name: "in the window of the hold, whatever runs now", size: 4, then: (scene) => void scene.at("2026-05-01T00:00:00Z"), final: { extra: { count: 1 } }, groups: { g: 5 }, recharged: true },
  { name: "past what others took meanwhile", size: 4, then: (scene) => void scene.wait(601).track(9), groups: { g: 13 }, overflow: ["g"], recharged: true },
  { name: "with balances that match now, in their order", credits: [["count", 4]], size: 12, then: (scene) => { lapse(scene); scene.track(3); return scene.fund("first", 1); }, final: { extra: { count: -1 } }, groups: { g: 10 }, left: [1, 0], deltas: [-1, -3], recharged: true },
  { name: "past plan and credits", credits: [["count", 1]], size: 11, then: (scene) => { lapse(scene); scene.track(11); }, groups: { g: 21 }, overflow: ["g"], left: [0], recharged: true },
  { name: "alone, what credits leave is uncovered", isAlone: true, credits: [["count", 2]], size: 2, then: (scene) => { lapse(scene); scene.track(1); }, groups: {}, left: [0], deltas: [-1], uncovered: { count: 1 }, recharged: true },
  { name: "alone, with nothing of a balance that has expired", isAlone: true, credits: [["short", 5]], size: 2, then: lapse, groups: {}, left: [5], deltas: [], uncovered: { count: 2 }, recharged: true },
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
    const { groups, overflow, recharged, uncovered, cost, warnings } = scene.commit(id, row.final);
    assert.deepEqual(groups, row.groups);
    assert.deepEqual(overflow, row.overflow ?? []);
    assert.equal(recharged, row.recharged ?? false);
    assert.deepEqual(uncovered, row.uncovered ?? {});
    if (row.left !== undefined) assert.deepEqual(scene.left(...ids), row.left);
    const written = scene.ledger().slice(rows);
    if (row.cost !== undefined) {
      assert.deepEqual([cost, warnings.length === 1], [row.cost, row.warns === true]);
    }
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

Deno.test("commit: a hold is priced by the row of its reserve, whatever happens before the commit", () => {
  const [, , think] = MODELS;
  const dearer = { ...think, inputCentsPerMillionTokens: 900_000, tiers: [] };
  const size = { inputTokens: 10, maxOutputTokens: 10 };
  const usage = { inputTokens: 10, outputTokens: 5 };
  const meanwhile: Record<string, (scene: Scene) => Scene | void> = {
    "other prices": (scene) => void scene.reprice([PLAN], { models: [dearer] }),
    "no model": (scene) => void scene.reprice([PLAN], { models: [], settings: { unpricedModels: "refuse" } }),
    "another kind of price": (scene) =>
      void scene.reprice([PLAN], { models: [{ ...MODELS[1], id: "think" }] }),
    "a lapse": (scene) => void scene.reprice([PLAN], { models: [dearer] }).wait(601),
    "a merge": (scene) => {
      const into = new Scene([PLAN], undefined, PACKS, { key: 8, id: "v", beside: scene });
      into.reprice([PLAN], { models: [...MODELS, dearer] });
      scene.mergeInto(into);
      return into;
    },
  };
  for (const [name, happens] of Object.entries(meanwhile)) {
    const scene = new Scene([PLAN], undefined, PACKS, { models: MODELS });
    scene.subscribe("p");
    const id = scene.hold(size, { event: "chat.think" });
    const later = happens(scene) ?? scene;
    const { groups, cost, warnings } = later.commit(id, { usage });
    assert.deepEqual([groups, cost, warnings], [{ t: 15, c: 2 }, [2, "think"], []], name);
  }
});

Deno.test("commit: a hold without a price row stays unpriced when its model gets one", () => {
  const scene = new Scene([PLAN], undefined, PACKS);
  scene.subscribe("p");
  const id = scene.hold({ inputTokens: 10 }, { event: "chat.think" });
  scene.reprice([PLAN], { models: MODELS });
  const { cost, warnings } = scene.commit(id, { usage: { inputTokens: 10 } });
  assert.deepEqual([cost, warnings], [[0, null], ["unpriced_model"]]);
});

Deno.test("commit: a hold of a version that kept no price row is priced by the catalog in force", () => {
  const scene = new Scene([PLAN], undefined, PACKS, { models: MODELS });
  scene.subscribe("p");
  const id = scene.hold({ inputTokens: 10 }, { event: "chat.think" });
  const row = scene.state.reservations.get(id);
  assert.ok(row !== undefined);
  scene.state.apply([{ verb: "put", table: "reservations", row: { ...row, priceRow: null } }]);
  assert.deepEqual(scene.commit(id, { usage: { outputTokens: 10 } }).cost, [2, "think"]);
});

Deno.test("a commit by estimate is marked in the event's metadata, beside those of the reserve", () => {
  const scene = new Scene([planOf("p", { g: 10 })]);
  scene.subscribe("p");
  for (const metadata of [undefined, { model: "m", estimated: "no" }]) {
    const reservationId = scene.hold(1, { metadata });
    const input = { reservationId, extra: {}, actual: {}, costCents: null };
    scene.ask("commit", { ...input, isEstimate: true });
    assert.deepEqual(JSON.parse(scene.event().metadata ?? ""), { ...metadata, estimated: true });
  }
});
