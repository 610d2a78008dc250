// Subscribe and cancel: which row a call means, what it writes, and what is refused. A row a call.

import assert from "node:assert/strict";
import type { Commands } from "../../../src/domain/command.ts";
import { planOf, Scene, subscription } from "../scene.ts";

const PLANS = [
  planOf("low", { g: 10 }, { name: "Low" }),
  planOf("mid", { g: 20 }, { rank: 2 }),
  planOf("top", { g: 30 }, { rank: 3 }),
  planOf("old", { g: 5 }, { archived: true }),
];
const NOW = Date.parse("2026-03-10T12:00:00.000Z");

interface Row {
  readonly name: string;
  readonly given?: (scene: Scene) => void;
  readonly plan: string;
  readonly more?: Partial<Commands["subscribe"]["input"]>;
  /** The history rows that it writes, or the code of the refusal. */
  readonly writes: readonly string[] | string;
  /** How many rows there are afterwards. */
  readonly rows?: number;
}

const stripe = (externalId: string) => ({ provider: "stripe", externalId });
const low = (scene: Scene) => void scene.subscribe("low");
const canceled = (scene: Scene) => {
  low(scene);
  scene.cancel();
};
const scheduled = (scene: Scene) => {
  low(scene);
  scene.cancel({ endsAt: NOW + 60_000 });
};

/** The quota in force of the plan's group. */
const quotaIn = (scene: Scene) => Number(scene.explain(1).groups[0]?.quota) / 1e6;

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  { name: "a first one, by name in any case", plan: "LOW", writes: ["created"], rows: 1 },
  { name: "the same plan again writes nothing", given: low, plan: "low", writes: [], rows: 1 },
  { name: "another plan on the same row", given: low, plan: "top", writes: ["plan_changed"], rows: 1 },
  { name: "a row of a provider beside the default one", given: low, plan: "mid", more: stripe("a"), writes: ["created"], rows: 2 },
  { name: "a row of another external id", given: (scene) => void scene.pay("low", "a"), plan: "mid", more: stripe("b"), writes: ["created"], rows: 2 },
  { name: "the row of the same ids", given: (scene) => void scene.pay("low", "a"), plan: "mid", more: stripe("a"), writes: ["plan_changed"], rows: 1 },
  { name: "a canceled subscription comes back", given: canceled, plan: "low", writes: ["reactivated"], rows: 1 },
  { name: "and to another plan", given: canceled, plan: "mid", writes: ["reactivated", "plan_changed"], rows: 1 },
  { name: "a subscription that would end stays", given: scheduled, plan: "low", writes: ["reactivated"], rows: 1 },
  { name: "a future end that is moved", given: scheduled, plan: "low", more: { endsAt: NOW + 90_000 }, writes: [], rows: 1 },
  { name: "an end to come", plan: "low", more: { endsAt: NOW + 1 }, writes: ["created"], rows: 1 },
  { name: "an end at this moment", plan: "low", more: { endsAt: NOW }, writes: "invalid_request" },
  { name: "a start at this moment", plan: "low", more: { startsAt: NOW }, writes: ["created"] },
  { name: "a start to come", plan: "low", more: { startsAt: NOW + 1 }, writes: "invalid_request" },
  { name: "a start before 1970", plan: "low", more: { startsAt: -1 }, writes: "invalid_request" },
  { name: "a cycle that starts before 1970", plan: "low", more: { cycleStart: -62_135_596_800_000 }, writes: "invalid_request" },
  { name: "both at its first moment", plan: "low", more: { startsAt: 0, cycleStart: 0 }, writes: ["created"] },
  { name: "an unknown plan", plan: "none", writes: "not_found" },
  { name: "an archived plan", plan: "old", writes: "not_found" },
  { name: "custom limits of the plan's groups", plan: "low", more: { customLimits: { g: 1n } }, writes: ["created"] },
  { name: "custom limits of an unknown group", plan: "low", more: { customLimits: { h: 1n } }, writes: "invalid_request" },
  { name: "custom limits named as every object's members", plan: "low", more: { customLimits: { constructor: 1n } }, writes: "invalid_request" },
];

for (const { name, given, plan, more, writes, rows } of ROWS) {
  Deno.test(`subscribe: ${name}`, () => {
    const scene = new Scene(PLANS);
    given?.(scene);
    const from = scene.history().length;
    const code = scene.code("subscribe", subscription(plan, more));
    assert.deepEqual(code === "ok" ? scene.history(from) : code, writes);
    if (rows !== undefined) assert.equal(scene.state.subscriptions.size, rows);
  });
}

Deno.test("subscribe: seats multiply the plan's quotas, and stay where a call names none, also under another plan", () => {
  const scene = new Scene(PLANS);
  const seats = () => [[...scene.state.subscriptions.values()][0]?.quantity, quotaIn(scene)];
  scene.subscribe("low");
  assert.deepEqual(seats(), [1, 10]);
  scene.subscribe("low", { quantity: 3 });
  assert.deepEqual(seats(), [3, 30]);
  scene.subscribe("top");
  assert.deepEqual(seats(), [3, 90]);
  scene.subscribe("top", { customLimits: { g: 5_000_000n } });
  assert.deepEqual(seats(), [3, 5], "a custom limit replaces the product");
  scene.subscribe("low", { quantity: 1 });
  assert.deepEqual(seats(), [1, 10]);
});

Deno.test("subscribe: an upsert keeps start and anchor, and what the call leaves out of custom limits and cycle", () => {
  const scene = new Scene(PLANS);
  const cycleStart = NOW - 5;
  scene.subscribe("low", { startsAt: NOW - 9, cycleStart, customLimits: { g: 1_000_000n } });
  const row = () => [...scene.state.subscriptions.values()][0];
  scene.wait(60).subscribe("low", { startsAt: NOW - 1 });
  assert.deepEqual([row()?.startedAt, row()?.cycleAnchorAt, row()?.customLimits], [NOW - 9, cycleStart, {
    g: 1_000_000n,
  }]);
  scene.subscribe("low", { cycleStart: null, customLimits: null });
  assert.deepEqual([row()?.startedAt, row()?.cycleAnchorAt, row()?.customLimits], [NOW - 9, null, {}]);
  scene.subscribe("low", { customLimits: { g: 2_000_000n } });
  scene.subscribe("mid");
  assert.deepEqual(row()?.customLimits, {}, "another plan clears them");
});

Deno.test("subscribe: an archived plan stays valid for its holder", () => {
  const scene = new Scene(PLANS);
  scene.subscribe("low");
  scene.catalog = new Scene(PLANS.map((plan) => ({ ...plan, archived: true }))).catalog;
  assert.equal(scene.code("subscribe", subscription("low")), "ok");
  assert.equal(scene.code("subscribe", subscription("mid")), "not_found");
});

Deno.test("cancel: which row a call means, and what is refused", () => {
  const end = { endsAt: NOW + 60_000 };
  type Cancel = [
    name: string,
    given: (scene: Scene) => void,
    input: Parameters<Scene["cancel"]>[0],
    code: string,
    history: string[],
  ];
  // deno-fmt-ignore: a row a call
  const rows: Cancel[] = [
    ["the default row", low, {}, "ok", ["created", "canceled"]],
    ["the only active row", (scene) => void scene.pay("low", "a"), {}, "ok", ["created", "canceled"]],
    ["the default row before others", (scene) => { low(scene); scene.pay("top", "a"); }, {}, "ok", ["created", "created", "canceled"]],
    ["several without a default", (scene) => { scene.pay("low", "a"); scene.pay("low", "b"); }, {}, "invalid_request", ["created", "created"]],
    ["one by its ids", (scene) => { low(scene); scene.pay("low", "a"); }, stripe("a"), "ok", ["created", "created", "canceled"]],
    ["ids that no subscription has", low, stripe("x"), "not_found", ["created"]],
    ["no subscription", () => {}, {}, "not_found", []],
    ["an ended one", canceled, {}, "already_canceled", ["created", "canceled"]],
    ["the only row, which ended", (scene) => { scene.pay("low", "a"); scene.cancel(); }, {}, "already_canceled", ["created", "canceled"]],
    ["one by its ids, which ended", (scene) => { low(scene); scene.pay("low", "a"); scene.cancel(stripe("a")); }, stripe("a"), "already_canceled", ["created", "created", "canceled"]],
    ["the default row, which ended, beside an active one", (scene) => { canceled(scene); scene.pay("low", "a"); }, {}, "already_canceled", ["created", "canceled", "created"]],
    ["a future end", low, end, "ok", ["created", "canceled"]],
    ["a future end that is moved", scheduled, { endsAt: NOW + 5 }, "ok", ["created", "canceled", "canceled"]],
    ["an end in the past", low, { endsAt: NOW - 1 }, "invalid_request", ["created"]],
    ["an end at this moment", low, { endsAt: NOW }, "ok", ["created", "canceled"]],
  ];
  for (const [name, given, input, code, history] of rows) {
    const scene = new Scene(PLANS);
    given(scene);
    assert.equal(scene.cancel(input), code, name);
    assert.deepEqual(scene.history(), history, name);
  }
});

Deno.test("cancel: a scheduled end is written when its time comes, and the plan holds until then", () => {
  const scene = new Scene(PLANS);
  scheduled(scene);
  assert.deepEqual(scene.wait(59.999).counts(), { g: 0 });
  assert.deepEqual(scene.wait(0.001).counts(), {});
  assert.deepEqual(scene.history(), ["created", "canceled", "ended"]);
});

// deno-fmt-ignore: a row a refusal
const FIELDS: readonly (readonly [more: Partial<Commands["subscribe"]["input"]>, path: string, message: string])[] = [
  [{ startsAt: -1 }, "startsAt", "must not be before 1970-01-01"],
  [{ cycleStart: -1 }, "cycleStart", "must not be before 1970-01-01"],
  [{ startsAt: NOW + 1 }, "startsAt", "must not be in the future"],
  [{ endsAt: NOW }, "endsAt", "must be in the future"],
  [{ customLimits: { h: 1n } }, "customLimits.h", "not a limit group of the plan"],
];

Deno.test("subscribe: a refusal names the field, in its message and in its details", () => {
  for (const [more, path, message] of FIELDS) {
    const { result } = new Scene(PLANS).do("subscribe", subscription("low", more));
    assert.deepEqual(result.ok ? null : result.refusal, {
      code: "invalid_request",
      message: `${path}: ${message}`,
      details: [{ path, message }],
    });
  }
});
