// Merges as a whole: the two users, consent, aliases and what is due. Merging twice leaves one user.

import assert from "node:assert/strict";
import { PACKS, planOf, Scene } from "../scene.ts";

function twoUsers(): [alias: Scene, into: Scene] {
  const into = new Scene([planOf("p", { g: 10 })], undefined, PACKS);
  return [new Scene([], undefined, [], { beside: into, key: 8, id: "from" }), into];
}

Deno.test("unknown ids merge without cost; the report is empty and stored", () => {
  const [alias, into] = twoUsers();
  const report = alias.mergeInto(into);
  assert.deepEqual([report.billableOperations, report.conflicts], [0, {
    counters: { summed: 0, carried: [], unpaired: [] },
    subscriptions: null,
    endedSubscriptions: [],
    credits: [],
  }]);
  assert.deepEqual(Object.values(report.moved).filter((count) => count !== 0), []);
  assert.deepEqual(into.state.aliases, [{ key: 8, id: "from" }]);
  const [row] = into.changes.flatMap((each) => each.table === "merges" ? [each.row] : []);
  assert.deepEqual([row?.fromKey, row?.toKey, row?.id, JSON.parse(row?.report ?? "")], [
    8,
    7,
    report.mergeId,
    report,
  ]);
});

Deno.test("an opt-out of either side is kept, and an erasure of either side goes on", () => {
  for (const [from, to] of [[1, 2], [5, 0], [0, 6], [0, 0]] as const) {
    const [alias, into] = twoUsers();
    alias.do("consent", { add: from, remove: 0, entry: null, isErasing: from === 5 });
    into.do("consent", { add: to, remove: 0, entry: null, isErasing: to === 6 });
    alias.mergeInto(into);
    assert.deepEqual([into.state.user.optedOut, into.state.user.isErasing], [
      from | to,
      from + to === 5 || to === 6,
    ]);
    const rows = into.changes.flatMap((each) =>
      each.table === "users" && each.row.key === 8 ? [each.row] : []
    );
    assert.deepEqual([rows.at(-1)?.mergedInto, rows.at(-1)?.optedOut], [7, from | to]);
  }
});

Deno.test("what is due is settled first, and its operations are no part of the merge's", () => {
  const [alias, into] = twoUsers();
  alias.pay("p", "x", { endsAt: alias.now + 5_000 });
  alias.wait(1).pay("p", "y", { startsAt: alias.now - 90_000 });
  alias.fund("count", 5);
  for (const scene of [alias, into]) scene.wait(700);
  const report = alias.mergeInto(into);
  assert.deepEqual(into.history().filter((type) => type === "promoted"), ["promoted"]);
  assert.equal(report.billableOperations, 1 + 1, "merged, and one balance");
  assert.equal(into.operations, 1 + 1 + 1, "and the promotion");
});

Deno.test("aliases of an alias are re-pointed, one hop", () => {
  const [alias, into] = twoUsers();
  const first = new Scene([], undefined, [], { beside: into, key: 9, id: "first" });
  first.subscribe("p");
  first.mergeInto(alias);
  const report = alias.mergeInto(into);
  assert.equal(report.moved.aliasesRepointed, 1);
  assert.deepEqual(into.state.aliases.map(({ id }) => id).sort(), ["first", "from"]);
  const rows = into.changes.flatMap((each) => each.table === "users" && each.row.key === 9 ? [each.row] : []);
  assert.deepEqual(rows.map(({ mergedInto }) => mergedInto), [7]);
});

Deno.test("where neither side has a plan, a later one continues the plan that ended last", () => {
  for (const [first, second] of [["from", "to"], ["to", "from"]]) {
    const [alias, into] = twoUsers();
    for (const side of [first, second]) {
      const scene = side === "from" ? alias : into;
      scene.subscribe("p");
      scene.track(side === "from" ? 3 : 4);
      scene.cancel();
      for (const each of [alias, into]) each.wait(10);
    }
    alias.mergeInto(into);
    into.subscribe("p");
    assert.deepEqual(into.counts(), { g: 7 }, `${second} ended last`);
  }
});
