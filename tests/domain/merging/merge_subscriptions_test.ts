// Subscriptions in a merge: which rows end, which is primary, and what is written. A row a merge.

import assert from "node:assert/strict";
import { planOf, Scene } from "../scene.ts";

/** A row before a merge: plan, external id of a paid one, and days since it started. */
type Row = readonly [plan: string, externalId: string | null, daysAgo: number];

const PLANS = [
  planOf("free", { g: 10 }),
  planOf("pro", { g: 100 }, { rank: 10 }),
  planOf("team", { g: 200 }, { rank: 20, onPlanChange: "reset" }),
  planOf("daily", { g: 20 }, {
    rank: 10,
    onPlanChange: "block",
    period: { type: "daily", anchor: "subscription_start" },
  }),
];
const FREE: Row = ["free", null, 3];
const PRO: Row = ["pro", null, 3];
const TEAM: Row = ["team", null, 3];

interface Case {
  readonly name: string;
  readonly from: readonly Row[];
  readonly to: readonly Row[];
  /** Side and place of the rows that end, and of the active ones, best first. */
  readonly ended: string;
  readonly active: string;
}

// deno-fmt-ignore: a row a case
const CASES: readonly Case[] = [
  { name: "of two defaults the better ranked stays", from: [PRO], to: [FREE], ended: "to0", active: "from0" },
  { name: "of two defaults of the canonical's better rank, the alias's ends", from: [FREE], to: [PRO], ended: "from0", active: "to0" },
  { name: "of two defaults of one rank the later one stays", from: [["pro", null, 1]], to: [PRO], ended: "to0", active: "from0" },
  { name: "a default of another plan of the same rank ends", from: [["daily", null, 5]], to: [PRO], ended: "from0", active: "to0" },
  { name: "a paid row ends a default ranked below it", from: [FREE], to: [["pro", "x", 3]], ended: "from0", active: "to0" },
  { name: "a paid row ends a default of its own rank, also a later one", from: [["pro", "x", 3]], to: [["daily", null, 1]], ended: "to0", active: "from0" },
  { name: "a default above every paid row stays and is primary", from: [TEAM], to: [["pro", "x", 3]], ended: "", active: "from0 to0" },
  { name: "two defaults above every paid row both stay", from: [TEAM], to: [["free", "x", 3], ["pro", null, 2]], ended: "", active: "from0 to1 to0" },
  { name: "paid rows of both sides stay, the better ranked first", from: [["pro", "x", 1]], to: [["team", "y", 3]], ended: "", active: "to0 from0" },
  { name: "paid rows of one rank stay, the latest first", from: [["pro", "x", 1]], to: [["pro", "y", 2], ["daily", "z", 3]], ended: "", active: "from0 to0 to1" },
  { name: "paid rows with the same ids on both sides are two rows", from: [["pro", "x", 2]], to: [["pro", "x", 1]], ended: "", active: "to0 from0" },
  { name: "the best paid row decides which defaults end, of either side", from: [FREE, ["pro", "x", 3]], to: [["daily", null, 1], ["free", "y", 1]], ended: "to0 from0", active: "from1 to1" },
  { name: "a user without any takes over what the other has", from: [PRO, ["free", "x", 1]], to: [], ended: "", active: "from0 from1" },
];

for (const { name, from, to, ended, active } of CASES) {
  Deno.test(`in a merge ${name}`, () => {
    const into = new Scene(PLANS);
    const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
    const names = new Map<string, string>();
    for (const [scene, rows, side] of [[alias, from, "from"], [into, to, "to"]] as const) {
      for (const [place, [plan, externalId, daysAgo]] of rows.entries()) {
        const startsAt = scene.now - daysAgo * 86_400_000;
        const id = externalId === null
          ? scene.subscribe(plan, { startsAt })
          : scene.pay(plan, externalId, { startsAt });
        names.set(id, `${side}${place}`);
      }
    }
    alias.track(3);
    into.track(5);
    const written = into.history().length;
    const merged = names.get(alias.state.user.entitlement?.subscriptionId ?? "");
    const report = alias.mergeInto(into);
    const nameOf = ({ row }: { row: { id: string } }) => names.get(row.id);

    assert.deepEqual(report.conflicts.endedSubscriptions.map(nameOf).join(" "), ended);
    for (const { row } of report.conflicts.endedSubscriptions) assert.equal(row.endsAt, into.now);
    const { primary, duplicates = [] } = report.conflicts.subscriptions ?? {};
    const best = primary ?? { row: { id: into.state.user.entitlement?.subscriptionId ?? "" } };
    assert.equal([best, ...duplicates].map(nameOf).join(" "), active);
    assert.equal(into.state.user.entitlement?.subscriptionId, best.row.id);
    assert.deepEqual([report.moved.subscriptions, report.billableOperations], [from.length, 1]);
    const rows = into.changes.flatMap((each) => each.table === "subscription_events" ? [each.row] : []).slice(
      written,
    );
    assert.deepEqual(rows.map(({ type, subscriptionId }) => `${type} ${names.get(subscriptionId)}`), [
      `merged ${merged}`,
      ...ended.split(" ").filter(Boolean).map((row) => `ended ${row}`),
    ]);
    // Usage of each side that had a plan counts on the primary.
    assert.deepEqual(into.counts(), { g: (from.length > 0 ? 3 : 0) + (to.length > 0 ? 5 : 0) });
  });
}

Deno.test("a side without an active row writes no merged row and costs nothing", () => {
  const into = new Scene(PLANS);
  const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
  alias.pay("pro", "x");
  alias.cancel();
  into.subscribe("free");
  const report = alias.mergeInto(into);
  assert.deepEqual([report.billableOperations, report.moved.subscriptions, into.history()], [0, 1, [
    "created",
  ]]);
});

Deno.test("of several default rows an upsert takes the best active one, else the last to start", () => {
  const into = new Scene(PLANS);
  const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
  into.pay("free", "x");
  into.subscribe("pro");
  for (const scene of [alias, into]) scene.wait(1);
  const later = alias.subscribe("pro");
  assert.deepEqual(alias.mergeInto(into).conflicts.endedSubscriptions, []);
  assert.equal(into.subscribe("pro"), later);

  for (const isCanceledFirst of [true, false]) {
    const other = new Scene(PLANS);
    const sides = [other, new Scene([], undefined, [], { beside: other, key: 8, id: "from" })] as const;
    const ids = sides.map((scene) => {
      for (const each of sides) each.wait(1);
      return scene.subscribe("free");
    });
    for (const scene of isCanceledFirst ? sides.toReversed() : sides) {
      scene.cancel();
      for (const each of sides) each.wait(1);
    }
    sides[1].mergeInto(other);
    assert.equal(other.wait(1).subscribe("free"), ids[1]);
  }
});

Deno.test("a duplicate is promoted when its primary ends, written and billed once, and takes the usage", () => {
  for (const isScheduled of [false, true]) {
    const into = new Scene(PLANS);
    const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
    alias.pay("team", "x", isScheduled ? { endsAt: into.now + 60_000 } : {});
    const second = into.pay("pro", "y");
    alias.track(3);
    alias.mergeInto(into);
    const [rows, operations] = [into.history().length, into.operations];
    if (isScheduled) into.wait(61);
    else into.cancel({ provider: "stripe", externalId: "x" });
    for (const _ of [1, 2]) assert.deepEqual(into.counts(), { g: 3 });
    assert.deepEqual(into.history(rows), [isScheduled ? "ended" : "canceled", "promoted"]);
    assert.equal(into.operations - operations, 1);
    assert.equal(into.state.user.entitlement?.subscriptionId, second);
    assert.equal(into.ask("usage", { event: null }).duplicates, null);
  }
});
