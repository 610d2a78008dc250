// The summary of a user for lists: the fullest quota group after each turn, when the user was seen, and that nothing is
// written where no list would show another value.

import assert from "node:assert/strict";
import type { PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import { amountOf } from "../../../src/domain/values/amount.ts";
import { groupOf, planOf, Scene } from "../scene.ts";

const START = Date.parse("2026-03-10T12:00:00.000Z");
const APRIL = Date.parse("2026-04-01T00:00:00.000Z");

/** A group of 100 of event a.*, one of 10 of b.*, and one of 0 of c.*. */
const LIMITS = [
  groupOf("a", 100, "count", "a.*"),
  groupOf("b", 10, "count", "b.*"),
  groupOf("zero", 0, "count", "c.*"),
];

function sceneOf(limits: PlanDocument["limits"] = LIMITS): Scene {
  const scene = new Scene([{ ...planOf("p", {}), limits }], new Date(START).toISOString(), [], {
    isCompared: false,
  });
  scene.subscribe("p");
  return scene;
}

/** The fullest group, its percent, the end of its window, and the minutes from the start to the last call. */
function shown({ state: { summary } }: Scene) {
  if (summary === null) return null;
  const { groupId, percent, until, seenAt } = summary;
  return [
    groupId,
    percent,
    until === APRIL ? "april" : until,
    seenAt === null ? null : (seenAt - START) / 60_000,
  ];
}

const use = (event: string, count: number) => (scene: Scene) => void scene.track(count, { event });

const ROWS: [name: string, calls: ((scene: Scene) => void)[], want: ReturnType<typeof shown>][] = [
  ["a plan without use", [], ["a", 0, null, null]],
  ["the largest share of a quota", [use("a.x", 30), use("b.x", 4)], ["b", 40, "april", 0]],
  ["of equal ones the first", [use("b.x", 5), use("a.x", 50)], ["a", 50, "april", 0]],
  ["percents are rounded down", [use("a.x", 79.999)], ["a", 79, "april", 0]],
  ["holds count", [(scene) => void scene.hold(9, { event: "b.x" })], ["b", 90, "april", 0]],
  ["a released hold counts no more", [
    (scene) => void scene.release(scene.hold(9, { event: "b.x" })),
  ], ["a", 0, null, 0]],
  ["a quota of 0 without a refusal", [use("a.x", 1)], ["a", 1, "april", 0]],
  ["a quota of 0 is full after a refusal", [
    use("a.x", 1),
    (scene) => assert.equal(scene.reserve(1, { event: "c.x" }), null),
    use("a.x", 1),
  ], ["zero", 100, "april", 0]],
  ["and empty in the next window", [
    (scene) => assert.equal(scene.reserve(1, { event: "c.x" }), null),
    (scene) => void scene.at("2026-04-02T00:00:00.000Z"),
    use("a.x", 7),
  ], ["a", 7, Date.parse("2026-05-01T00:00:00.000Z"), 22 * 24 * 60 + 12 * 60]],
  ["a custom limit is the quota in force", [
    (scene) => void scene.subscribe("p", { customLimits: { a: amountOf(5) } }),
    use("a.x", 4),
  ], ["a", 80, "april", 0]],
  ["a canceled plan has no limit", [use("a.x", 4), (scene) => void scene.cancel()], [null, 0, null, 0]],
  ["the minute of a call", [(scene) => void scene.wait(90), use("a.x", 4)], ["a", 4, "april", 1]],
  ["no call of the user", [
    use("a.x", 4),
    (scene) => void scene.wait(90),
    (scene) => void scene.subscribe("p"),
  ], [
    "a",
    4,
    "april",
    0,
  ]],
];

for (const [name, calls, want] of ROWS) {
  Deno.test(`summary: ${name}`, () => {
    const scene = sceneOf();
    for (const call of calls) call(scene);
    assert.deepEqual(shown(scene), want);
  });
}

Deno.test("a turn writes the summary only where a list shows another value", () => {
  const scene = sceneOf([groupOf("a", 1000, "count", "a.*")]);
  const written = (call: () => unknown) => {
    const from = scene.changes.length;
    call();
    return scene.changes.slice(from).filter(({ table }) => table === "user_summaries").length;
  };
  assert.equal(written(() => scene.track(9, { event: "a.x" })), 1);
  assert.equal(written(() => scene.track(0.5, { event: "a.x" })), 0);
  assert.equal(written(() => scene.track(0.5, { event: "a.x" })), 1);
  assert.equal(written(() => scene.counts()), 0);
  scene.wait(60);
  assert.equal(written(() => scene.reserve(5000, { event: "a.x" })), 0);
  scene.wait(3600);
  assert.equal(written(() => scene.reserve(5000, { event: "a.x" })), 1);
  assert.deepEqual(shown(scene), ["a", 1, "april", 61]);
});

Deno.test("after a merge the canonical user has both users' use, and the alias none", () => {
  const from = sceneOf();
  from.track(30, { event: "a.x" });
  from.wait(120);
  const into = new Scene([], undefined, [], { key: 8, id: "into", beside: from });
  into.subscribe("p");
  into.track(20, { event: "a.x" });
  from.mergeInto(into);
  assert.deepEqual(shown(into), ["a", 50, "april", 2]);
  const [ofAlias] = into.changes.filter((change) =>
    change.table === "user_summaries" && change.row.userKey === 7
  );
  assert.deepEqual(ofAlias?.row, {
    userKey: 7,
    realm: 1,
    groupId: null,
    percent: 0,
    until: null,
    seenAt: null,
  });
});
