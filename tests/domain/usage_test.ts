// Usage and the user's view: which groups are shown, and what a user without anything shows.

import assert from "node:assert/strict";
import { numberOf } from "../../src/domain/values/amount.ts";
import { shownCount } from "../../src/domain/state/counter.ts";
import { PACKS, planOf, Scene } from "./scene.ts";

const group = (id: string, ...events: string[]) => {
  return { id, label: id, unit: "count", quota: 5, matches: events.map((event) => ({ event })) } as const;
};

Deno.test("a filter narrows to the groups whose rules cover the name or glob, by name alone", () => {
  const render = { ...group("render"), matches: [{ event: "image.render", metadata: { model: "a" } }] };
  const limits = [group("all", "*"), group("images", "image.*"), render, group("two", "chat.x", "image.re*")];
  const scene = new Scene([{ ...planOf("p", {}), limits }]);
  scene.subscribe("p");
  const rows: [event: string | null, groups: string][] = [
    [null, "all images render two"],
    ["image.render", "all images render two"],
    ["image.x", "all images"],
    ["image.*", "all images"],
    ["image.re*", "all images two"],
    ["IMAGE.*", "all"],
    ["*", "all"],
    ["chat.x", "all two"],
    ["chat", "all"],
  ];
  for (const [event, groups] of rows) {
    const shown = scene.ask("usage", { event }).counters.map(({ group }) => group.id).join(" ");
    assert.equal(shown, groups, String(event));
  }
});

Deno.test("every group of the primary plan is shown under the quota of its row, in the running window", () => {
  const scene = new Scene(
    [planOf("low", { g: 5 }), planOf("top", { g: 9, h: 2 }, { rank: 2 })],
    undefined,
    PACKS,
  );
  scene.subscribe("low");
  const top = scene.pay("top", "a", { customLimits: { g: 7_000_000n } });
  scene.track(2, { costCents: 3 });
  scene.fund("count", 1);
  const answer = scene.ask("user", {});
  assert.deepEqual([answer.subscription?.id, answer.duplicates?.primary.row.id], [top, top]);
  const shown = answer.counters.map((
    { group, quota, counter },
  ) => [group.id, numberOf(quota), numberOf(shownCount(counter)), numberOf(counter.costCents)]);
  assert.deepEqual(shown, [["g", 7, 2, 3], ["h", 2, 2, 3]]);
  assert.deepEqual(answer.period, { start: Date.UTC(2026, 2, 1), end: Date.UTC(2026, 3, 1) });
  assert.equal(answer.credits.balances.length, 1);
  scene.at("2026-04-01T00:00:00Z");
  assert.deepEqual([scene.counts(), scene.costs()], [{ g: 0, h: 0 }, { g: 0, h: 0 }]);
});

Deno.test("a stranger shows empty values", () => {
  const { userId, period, counters, credits, duplicates, subscription, aliases } = new Scene([]).ask(
    "user",
    {},
  );
  assert.deepEqual([userId, period, counters, credits.balances, duplicates, subscription, aliases], [
    "u",
    null,
    [],
    [],
    null,
    null,
    [],
  ]);
});

Deno.test("an answer says when time alone changes it: a hold, a balance, an end, a window, or never", () => {
  const changesAt = (scene: Scene) => {
    const { changesAt } = scene.ask("usage", { event: null });
    return changesAt === null ? null : new Date(changesAt).toISOString();
  };
  const scene = new Scene([planOf("p", { g: 5 })], undefined, PACKS);
  assert.equal(changesAt(scene), null);
  scene.subscribe("p", { endsAt: Date.UTC(2026, 2, 25) });
  assert.equal(changesAt(scene), "2026-03-25T00:00:00.000Z");
  scene.fund("count", 1, { expiresAt: Date.UTC(2026, 2, 22) });
  assert.equal(changesAt(scene), "2026-03-22T00:00:00.000Z");
  scene.hold(1, { ttlMs: 60_000 });
  assert.equal(changesAt(scene), new Date(scene.now + 60_000).toISOString());
  scene.at(new Date(scene.now + 60_000).toISOString());
  assert.equal(changesAt(scene), "2026-03-22T00:00:00.000Z");
  scene.at("2026-03-22T00:00:00Z");
  assert.equal(changesAt(scene), "2026-03-25T00:00:00.000Z");
  scene.at("2026-03-25T00:00:00Z");
  assert.equal(changesAt(scene), null);
  scene.subscribe("p");
  assert.equal(changesAt(scene), "2026-04-01T00:00:00.000Z");
});
