// Overage: what a group sells past its quota, after plan and credits, and what is reported of it. A row a call.

import assert from "node:assert/strict";
import type { PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import { chargedAmounts } from "../../../src/domain/state/event.ts";
import { numberOf } from "../../../src/domain/values/amount.ts";
import { type Final, groupOf, PACKS, planOf, Scene } from "../scene.ts";

const START = "2026-03-10T12:00:00.000Z";
const LISTENS = ["usage.overage", "usage.overage_started", "usage.cap_reached"];

/** A group of 10 that sells up to a number, in short. */
function selling(id: string, max: number | null, quota = 10, event = "x.*") {
  return { ...groupOf(id, quota, "count", event), overage: { max } };
}

function planWith(limits: PlanDocument["limits"], id = "p", more: Partial<PlanDocument> = {}): PlanDocument {
  return { ...planOf(id, {}), limits, ...more };
}

function sceneOf(...plans: PlanDocument[]): Scene {
  const scene = new Scene(plans, START, PACKS, { isCompared: false, listensTo: LISTENS });
  scene.subscribe((plans[0] as PlanDocument).id);
  return scene;
}

/** Count and overage of the running counters. */
function counts(scene: Scene): Record<string, readonly [count: number, overage: number]> {
  const { counters } = scene.ask("usage", { event: null });
  return Object.fromEntries(
    counters.map((
      { group, counter: { count, overage = 0n } },
    ) => [group.id, [numberOf(count), numberOf(overage)]]),
  );
}

/** What messages said, oldest first: the type's last word, and its amounts. */
function told(scene: Scene): string[] {
  return scene.messages.map(({ type, body }) => {
    const { data } = JSON.parse(body);
    const amounts = type === "usage.overage"
      ? `${data.amount} of ${data.total} at ${data.hour.slice(11, 16)}`
      : `${data.overage} of ${data.max}`;
    return `${type.slice("usage.".length)} ${data.groupId} ${amounts}`;
  });
}

interface Row {
  readonly name: string;
  readonly limits: PlanDocument["limits"];
  readonly credits?: number;
  /** Tracked before. */
  readonly used?: number;
  readonly size: number;
  /** What happens between hold and commit. */
  readonly then?: (scene: Scene) => void;
  /** Absent for a call that stays open. */
  readonly final?: Final;
  /** Count and overage by group; a text for a refusal's reason. */
  readonly want: Record<string, readonly [count: number, overage: number]> | string;
  readonly overflow?: readonly string[];
  readonly left?: number;
}

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  { name: "within the quota nothing is sold", limits: [selling("g", 5)], size: 10, want: { g: [10, 0] } },
  { name: "past the quota the rest is sold", limits: [selling("g", 5)], used: 8, size: 5, want: { g: [13, 3] } },
  { name: "up to the max", limits: [selling("g", 5)], size: 15, want: { g: [15, 5] } },
  { name: "and not past it", limits: [selling("g", 5)], size: 15.000001, want: "limit_reached" },
  { name: "a max of 0 sells nothing", limits: [selling("g", 0)], size: 11, want: "limit_reached" },
  { name: "null is no limit", limits: [selling("g", null)], size: 1_000_000, want: { g: [1_000_000, 999_990] } },
  { name: "credits pay before anything is sold", limits: [selling("g", 5)], credits: 3, size: 12, want: { g: [10, 0] }, left: 1 },
  { name: "what credits leave is sold", limits: [selling("g", 5)], credits: 3, size: 15, want: { g: [12, 2] }, left: 0 },
  { name: "all or nothing: credits stay where too little can be sold", limits: [selling("g", 5)], credits: 3, size: 18.5, want: "limit_reached", left: 3 },
  { name: "every group has to have room: one without overage refuses", limits: [selling("g", 5), groupOf("h", 10)], size: 12, want: "limit_reached" },
  { name: "room in the plan of one group, overage of the other", limits: [selling("g", 5), groupOf("h", 20)], size: 12, want: { g: [12, 2], h: [12, 0] } },
  { name: "a part of the rest is room of the plan", limits: [selling("g", 5), selling("h", 5, 11)], size: 14, want: { g: [14, 4], h: [14, 3] } },
  { name: "other units are other matters", limits: [selling("g", 5), groupOf("t", 5, "tokens")], size: 12, want: { g: [12, 2], t: [0, 0] } },
  { name: "a need of 0 passes while something can be sold", limits: [selling("g", 5)], used: 12, size: 0, want: { g: [12, 2] } },
  { name: "a need of 0 is refused once all is sold", limits: [selling("g", 5)], used: 15, size: 0, want: "limit_reached" },

  { name: "less than held: overage first", limits: [selling("g", 5)], size: 14, final: { actual: { count: 11 } }, want: { g: [11, 1] } },
  { name: "then credits", limits: [selling("g", 5)], credits: 2, size: 15, final: { actual: { count: 11 } }, want: { g: [10, 0] }, left: 1 },
  { name: "then the plan", limits: [selling("g", 5)], credits: 2, size: 15, final: { actual: { count: 4 } }, want: { g: [4, 0] }, left: 2 },
  { name: "each group gives back what it took last", limits: [selling("g", 5), selling("h", 5, 11)], size: 14, final: { actual: { count: 12 } }, want: { g: [12, 2], h: [12, 1] } },
  { name: "and a group that sold less gives back its plan", limits: [selling("g", 5), selling("h", 5, 12)], size: 14, final: { actual: { count: 11 } }, want: { g: [11, 1], h: [11, 0] } },
  { name: "more than held is sold up to the max", limits: [selling("g", 5)], size: 12, final: { actual: { count: 15 } }, want: { g: [15, 5] } },
  { name: "what is beyond is overflow, and never sold", limits: [selling("g", 5)], size: 12, final: { actual: { count: 18 } }, want: { g: [18, 5] }, overflow: ["g"] },
  { name: "more takes credits before it is sold", limits: [selling("g", 5)], size: 10, then: (scene) => void scene.fund("count", 2), final: { actual: { count: 15 } }, want: { g: [13, 3] }, left: 0 },
  { name: "more than a group without overage has is overflow there, and sold here", limits: [selling("g", 5), groupOf("h", 12)], size: 12, final: { actual: { count: 14 } }, want: { g: [14, 4], h: [14, 0] }, overflow: ["h"] },
  { name: "what was sold does not come back into the plan when others give back", limits: [selling("g", 5)], used: 8, size: 4, final: {}, want: { g: [12, 2] } },
  { name: "a lapsed hold is charged again, past plan and credits", limits: [selling("g", 5)], size: 12, then: (scene) => void scene.wait(601).track(9), final: {}, want: { g: [21, 5] }, overflow: ["g"] },
];

for (const row of ROWS) {
  Deno.test(`overage: ${row.name}`, () => {
    const scene = sceneOf(planWith(row.limits));
    const balances = row.credits === undefined ? [] : [scene.fund("count", row.credits)];
    if (row.used !== undefined) assert.equal(scene.track(row.used), "matched");
    if (typeof row.want === "string") {
      assert.equal(scene.reason(row.size), row.want);
      assert.equal(scene.reserve(row.size), null);
      assert.equal(scene.track(row.size), "blocked");
    } else {
      assert.equal(scene.reason(row.size), "ok");
      const id = scene.hold(row.size);
      row.then?.(scene);
      if (row.final !== undefined) {
        assert.deepEqual(scene.commit(id, row.final).overflow, row.overflow ?? []);
      }
      assert.deepEqual(counts(scene), row.want);
    }
    const kept = balances.length > 0 ? balances : [...scene.state.balances.keys()];
    if (row.left !== undefined) assert.deepEqual(scene.left(...kept), [row.left]);
  });
}

Deno.test("track and reserve take the same, and a release gives all of it back", () => {
  const scene = sceneOf(planWith([selling("g", 5)]));
  assert.equal(scene.track(12), "matched");
  assert.deepEqual(counts(scene), { g: [12, 2] });
  assert.equal(scene.event().lines[0]?.overage, 2_000_000n);
  const held = scene.hold(3);
  assert.deepEqual(counts(scene), { g: [15, 5] });
  assert.equal(scene.release(held), "ok");
  assert.deepEqual(counts(scene), { g: [12, 2] });
  scene.hold(2);
  scene.wait(601);
  assert.deepEqual(counts(scene), { g: [12, 2] });
});

Deno.test("what was sold uses up no room of the plan, and no later quota alters it", () => {
  const scene = sceneOf(planWith([selling("g", 5)]));
  const first = scene.hold(10);
  scene.track(3);
  assert.equal(scene.release(first), "ok");
  assert.deepEqual(counts(scene), { g: [3, 3] });
  assert.equal(scene.reason(12), "ok");
  assert.equal(scene.reason(13), "limit_reached");
  scene.subscribe("p", { customLimits: { g: 100_000_000n } });
  assert.deepEqual(counts(scene), { g: [3, 3] });
  assert.equal(scene.track(100), "matched");
  assert.deepEqual(counts(scene), { g: [103, 3] });
});

Deno.test("carry copies counts without overage; that of an open hold is settled where it was taken", () => {
  for (
    const [final, q, p] of [[4, [12, 0], [13, 3]], [3.5, [12, 0], [12.5, 2.5]], [1, [11, 0], [10, 1]], [0, [
      10,
      0,
    ], [9, 1]]] as const
  ) {
    const scene = sceneOf(planWith([selling("g", 5)]), planWith([selling("g", 5, 20)], "q", { rank: 2 }));
    scene.track(8);
    const hold = scene.hold(4);
    scene.track(1);
    assert.deepEqual(counts(scene), { g: [13, 3] });
    scene.subscribe("q");
    assert.deepEqual(counts(scene), { g: [10, 0] });
    scene.track(2);
    const answer = scene.commit(hold, { actual: { count: final } });
    assert.deepEqual([counts(scene), answer.groups], [{ g: q }, { g: q[0] }]);
    const charged = chargedAmounts(scene.event()).map(({ amount }) => numberOf(amount));
    assert.deepEqual(charged, final > 0 ? [final] : [], "as one amount of the group");
    scene.subscribe("p");
    const after = [Math.max(q[0], p[0] - p[1]) + p[1], p[1]];
    assert.deepEqual(counts(scene), { g: after }, "what p sold, and the usage of q without overage");
  }
});

Deno.test("a hold that comes back finds its overage, and more than it is sold by the plan in force", () => {
  const scene = sceneOf(planWith([selling("g", 5)]), planWith([selling("g", 3)], "q", { rank: 2 }));
  const hold = scene.hold(12);
  scene.subscribe("q");
  assert.deepEqual(counts(scene), { g: [10, 0] });
  scene.subscribe("p");
  assert.deepEqual(counts(scene), { g: [12, 2] });
  const [line, ...others] = scene.state.reservations.get(hold)?.lines ?? [];
  assert.deepEqual([line?.taken, line?.overage, others], [12_000_000n, 2_000_000n, []]);
  scene.subscribe("q");
  const { overflow } = scene.commit(hold, { actual: { count: 16 } });
  assert.deepEqual([overflow, counts(scene)], [["g"], { g: [14, 3] }], "3 more of q, and 1 past it");
  scene.subscribe("p");
  assert.deepEqual(counts(scene), { g: [13, 2] });
});

Deno.test("a merge of windows of one plan adds up what both sold", () => {
  const plan = planWith([selling("g", 8, 3)], "p", {
    period: { type: "hourly", anchor: "subscription_start" },
  });
  const to = sceneOf(plan);
  const from = new Scene([plan], START, PACKS, {
    beside: to,
    key: 8,
    id: "v",
    isCompared: false,
    listensTo: LISTENS,
  });
  from.wait(1).subscribe("p");
  to.track(3.5);
  from.track(3.5);
  const hold = from.hold(1);
  from.mergeInto(to.wait(1));
  assert.deepEqual(counts(to), { g: [8, 2] });
  to.release(hold);
  assert.deepEqual(counts(to), { g: [7, 1] });
});

Deno.test("what a merge brought into another window began to be sold before, and is not told again", () => {
  const plan = planWith([selling("g", null)], "p", {
    period: { type: "hourly", anchor: "subscription_start" },
  });
  const to = sceneOf(plan);
  const listens = { isCompared: false, listensTo: LISTENS };
  const from = new Scene([plan], START, PACKS, { beside: to, key: 8, id: "v", ...listens });
  from.wait(1).subscribe("p");
  from.track(12);
  from.mergeInto(to.wait(1));
  to.track(1);
  assert.deepEqual(counts(to), { g: [13, 3] });
  assert.deepEqual(told(to), []);
});

Deno.test("under reset what was sold stays sold; a block fills the plan alone", () => {
  for (const [onPlanChange, want] of [["reset", [0, 0]], ["block", [0, 0]]] as const) {
    const other = planWith([selling("g", 5)], "q", { rank: 2, onPlanChange });
    const scene = sceneOf(planWith([selling("g", 5)], "p", { onPlanChange }), other);
    scene.track(12);
    scene.subscribe("q");
    assert.deepEqual(counts(scene), { g: want });
    scene.subscribe("p");
    assert.deepEqual(counts(scene), { g: onPlanChange === "reset" ? [2, 2] : [12, 2] });
    assert.equal(scene.reason(3), "ok", "3 of 5 may still be sold");
    assert.equal(scene.reason(onPlanChange === "reset" ? 14 : 4), "limit_reached");
  }
});

Deno.test("a hold from before a reset gives back what it sold, and nothing else", () => {
  const groups = [selling("g", 5), selling("h", 5, 8)];
  const more = { onPlanChange: "reset" } as const;
  for (
    const [end, want] of [[11, { g: [4, 1], h: [6, 3] }], [9, { g: [3, 0], h: [4, 1] }], [2, {
      g: [3, 0],
      h: [3, 0],
    }], [null, { g: [3, 0], h: [3, 0] }]] as const
  ) {
    const scene = sceneOf(planWith(groups, "p", more), planWith(groups, "q", { ...more, rank: 2 }));
    const hold = scene.hold(12);
    scene.subscribe("q");
    scene.subscribe("p");
    assert.deepEqual(counts(scene), { g: [2, 2], h: [4, 4] });
    scene.track(3);
    if (end === null) scene.release(hold);
    else scene.commit(hold, { actual: { count: end } });
    assert.deepEqual(counts(scene), want, `${end}`);
  }
});

Deno.test("a merge adds up what both sold, and takes the lower cap of each group", () => {
  const plan = planWith([selling("g", 5)]);
  const to = sceneOf(plan);
  const from = new Scene([plan], START, PACKS, {
    beside: to,
    key: 8,
    id: "v",
    isCompared: false,
    listensTo: LISTENS,
  });
  from.subscribe("p");
  to.track(11);
  from.track(12);
  to.ask("spendCap", { groupId: "g", max: 4_000_000n });
  from.ask("spendCap", { groupId: "g", max: 3_000_000n });
  from.mergeInto(to);
  assert.deepEqual(counts(to), { g: [23, 3] });
  assert.equal(to.reason(1), "limit_reached", "the lower cap is 3");
  to.ask("spendCap", { groupId: "g", max: null });
  assert.equal(to.reason(2), "ok");
  to.at("2026-03-10T13:00:00.000Z").ask("settle", {});
  assert.deepEqual(told(to).filter((line) => line.startsWith("overage ")), ["overage g 3 of 3 at 12:00"]);
});

Deno.test("settled overage is reported once for each hour after its end, and at the window's end", () => {
  const daily = planWith([selling("g", 50, 1)], "p", {
    period: { type: "daily", anchor: "subscription_start" },
  });
  const scene = sceneOf(daily);
  scene.at("2026-03-10T12:10:00.000Z").track(3);
  const open = scene.hold(5, { ttlMs: 7_200_000 });
  scene.at("2026-03-10T12:59:00.000Z").track(1);
  assert.deepEqual(told(scene), ["overage_started g 2 of 50"]);
  scene.at("2026-03-10T13:00:00.000Z").ask("settle", {});
  assert.deepEqual(told(scene).slice(1), ["overage g 3 of 3 at 12:00"], "an open hold is not settled");
  scene.at("2026-03-10T13:30:00.000Z").commit(open);
  scene.at("2026-03-11T11:59:59.999Z").track(2);
  scene.at("2026-03-11T12:00:00.000Z").ask("settle", {});
  assert.deepEqual(told(scene).slice(2), ["overage g 5 of 8 at 13:00", "overage g 2 of 10 at 11:00"]);
  scene.at("2026-03-11T18:00:00.000Z").ask("settle", {});
  assert.equal(told(scene).length, 4, "nothing twice");
});

Deno.test("a window that ends within an hour is reported at its end, and a late commit after the hour of settling", () => {
  const hourly = planWith([selling("g", 50, 1)], "p", {
    period: { type: "hourly", anchor: "subscription_start" },
  });
  const scene = new Scene([hourly], "2026-03-10T12:30:00.000Z", PACKS, {
    isCompared: false,
    listensTo: LISTENS,
  });
  scene.subscribe("p");
  const late = scene.hold(4);
  scene.track(2);
  scene.at("2026-03-10T13:20:00.000Z").track(2);
  scene.at("2026-03-10T13:31:00.000Z").commit(late);
  const started = "overage_started g 3 of 50";
  const first = [started, "overage g 2 of 2 at 12:00", "overage g 1 of 3 at 13:00"];
  assert.deepEqual(told(scene), first);
  const last = scene.messages.at(-1);
  assert.equal(JSON.parse(last?.body ?? "").timestamp, "2026-03-10T13:30:00.000Z");
  scene.at("2026-03-10T14:00:00.000Z").ask("settle", {});
  assert.deepEqual(told(scene).slice(3), ["overage g 4 of 7 at 13:00"]);
  const { period } = JSON.parse(scene.messages.at(-1)?.body ?? "").data;
  assert.deepEqual(period, { start: "2026-03-10T12:30:00.000Z", end: "2026-03-10T13:30:00.000Z" });
});

Deno.test("the first unit sold and the last are reported once a window, by holds too", () => {
  const scene = sceneOf(planWith([selling("g", 5)]));
  const hold = scene.hold(15);
  assert.deepEqual(told(scene), ["overage_started g 5 of 5", "cap_reached g 5 of 5"]);
  scene.release(hold);
  scene.track(15);
  assert.equal(told(scene).length, 2);
  scene.at("2026-04-01T00:00:00.000Z").track(12);
  assert.deepEqual(told(scene).slice(-1), ["overage_started g 2 of 5"]);
  scene.ask("spendCap", { groupId: "g", max: 3_000_000n });
  scene.hold(1);
  assert.deepEqual(told(scene).slice(-1), ["cap_reached g 3 of 3"], "of the user's own cap");
});

Deno.test("windows that begin together and end at different times are reported apart, each with its own sums", () => {
  const period = (type: "daily" | "monthly") => ({ type, anchor: "subscription_start" } as const);
  const plans = [
    planWith([selling("g", 50)], "day", { period: period("daily") }),
    planWith([selling("g", 50, 12)], "month", { period: period("monthly"), rank: 2 }),
  ];
  for (const hours of [0, 1]) {
    const scene = new Scene(plans, START, PACKS, { listensTo: LISTENS });
    const sell = (plan: string, count: number) => {
      scene.subscribe(plan);
      scene.track(count);
      scene.wait(hours * 3_600);
    };
    sell("day", 11);
    sell("month", 3);
    sell("day", 4);
    scene.wait(3_600).ask("settle", {});
    const sums = scene.messages.filter(({ type }) => type === "usage.overage").map(({ body }) => {
      const { amount, total, period: { end } } = JSON.parse(body).data;
      return `${amount} of ${total} until ${end.slice(5, 10)}`;
    });
    const want = hours === 0
      ? ["5 of 5 until 03-11", "1 of 1 until 04-10"]
      : ["1 of 1 until 03-11", "1 of 1 until 04-10", "4 of 5 until 03-11"];
    assert.deepEqual(sums, want);
  }
});

Deno.test("lines of a commit that meet on one counter are reported as one sale", () => {
  const account = sceneOf(planWith([selling("g", 5)]));
  const member = new Scene([], START, [], { beside: account, key: 8, id: "m", isCompared: false });
  member.subscribe("p");
  member.under(account);
  const hold = member.hold(1);
  member.under(null);
  member.mergeInto(account);
  account.commit(hold, { actual: { count: 12 } });
  assert.deepEqual(told(account), ["overage_started g 5 of 5", "cap_reached g 5 of 5"]);
});

Deno.test("each level of a path sells its own groups", () => {
  const plans = [planWith([selling("pool", 5, 10)], "top"), planWith([selling("g", null, 2)], "p")];
  const account = sceneOf(...plans);
  const member = new Scene(plans, START, PACKS, {
    beside: account,
    key: 8,
    id: "m",
    isCompared: false,
    listensTo: LISTENS,
  });
  assert.equal(member.under(account), "ok");
  member.subscribe("p");
  const hold = member.hold(13);
  assert.deepEqual([counts(member), counts(account)], [{ g: [13, 11] }, { pool: [13, 3] }]);
  member.commit(hold, { actual: { count: 12 } });
  assert.deepEqual([counts(member), counts(account)], [{ g: [12, 10] }, { pool: [12, 2] }]);
  assert.equal(member.reason(4), "limit_reached");
  account.at("2026-03-10T13:00:00.000Z").ask("settle", {});
  assert.deepEqual(told(account).filter((line) => line.startsWith("overage ")), [
    "overage pool 2 of 2 at 12:00",
  ]);
});
