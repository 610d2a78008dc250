// A call over the users of a path: who takes part, who is silent and who refuses; what it takes from each, and how that is
// settled, whatever the tree is by then.

import assert from "node:assert/strict";
import { callOf } from "../scene_input.ts";
import { eventsIn, groupOf, numbersOf, PACKS, planOf, Scene, type Start } from "../scene.ts";

const IDS = ["u", "team", "org"];
const PLANS = [
  ...[0, 2, 4, 6, 10].map((quota) => planOf(`p${quota}`, { g: quota })),
  planOf("other", {}, { limits: [groupOf("y", 5, "count", "y.*")] }),
  planOf("gated", { g: 6 }, { headroom: { mode: "percent", value: 50 } }),
  planOf("cents", {}, { limits: [groupOf("money", 100, "cents")] }),
  planOf("alerting", {}, { limits: [{ ...groupOf("g", 6), alerts: [50] }] }),
];

/** The users of a path, the lowest first, each with its plan: null for none ever, "ended" for one that is over. */
function pathOf(...plans: (string | null)[]): Scene[] {
  return pathWith({}, ...plans);
}

function pathWith(more: Start, ...plans: (string | null)[]): Scene[] {
  const start = {
    listensTo: ["usage.*", "credits.*", "reservation.*"],
    settings: { unpricedModels: "refuse" },
  } as const;
  const first = new Scene(PLANS, undefined, PACKS, { ...start, ...more, id: "u", key: 1 });
  const above = plans.slice(1).map((_, place) => {
    return new Scene([], undefined, [], {
      ...start,
      beside: first,
      id: IDS[place + 1] as string,
      key: place + 2,
    });
  });
  const scenes = [first, ...above];
  for (const [place, plan] of plans.entries()) {
    const scene = scenes[place] as Scene;
    if (plan !== null) scene.subscribe(plan === "ended" ? "p4" : plan);
    if (plan === "ended") scene.cancel();
  }
  // From the top, as a path grows in use; the model learns each parent.
  for (let place = scenes.length - 2; place >= 0; place--) {
    assert.equal((scenes[place] as Scene).under(scenes[place + 1] as Scene), "ok");
  }
  return scenes;
}

/** What a group counts at each user, with whatever plan it has. */
function countsOf(scenes: readonly Scene[]): (number | undefined)[] {
  return scenes.map((scene) => scene.counts()["g"]);
}

function isTaking(scene: Scene): boolean {
  return Object.values(scene.counts()).some((count) => count > 0);
}

interface Row {
  readonly plans: readonly (string | null)[];
  /** The users at which a call of 3 counts; absent where it is refused. */
  readonly taken?: readonly string[];
  readonly reasons?: readonly string[];
  readonly refusedBy?: readonly string[];
  readonly matched?: boolean;
  /** What a track of the same amount records. */
  readonly tracked: string;
}

const ROWS: readonly Row[] = [
  { plans: ["p4", "p6", "p10"], taken: ["u", "team", "org"], tracked: "matched" },
  // Above the caller: no plan ever, or a plan without a group of the event.
  { plans: ["p4", null, "p10"], taken: ["u", "org"], tracked: "matched" },
  { plans: ["p4", "other", "p10"], taken: ["u", "org"], tracked: "matched" },
  { plans: ["p4", null, null], taken: ["u"], tracked: "matched" },
  // The caller itself, where another level takes part.
  { plans: [null, "p6", "p10"], taken: ["team", "org"], tracked: "matched" },
  { plans: ["ended", null, "p10"], taken: ["org"], tracked: "matched" },
  { plans: ["other", "p6", null], taken: ["team"], tracked: "matched" },
  // Where none does, the caller decides alone.
  {
    plans: [null, null, null],
    reasons: ["no_subscription"],
    refusedBy: ["u"],
    matched: false,
    tracked: "no_subscription",
  },
  {
    plans: ["ended", "other", null],
    reasons: ["no_subscription"],
    refusedBy: ["u"],
    matched: false,
    tracked: "no_subscription",
  },
  {
    plans: ["other", null, "other"],
    reasons: ["unmatched_event"],
    refusedBy: ["u"],
    matched: false,
    tracked: "unmatched",
  },
  // A plan above that has ended.
  {
    plans: ["p4", "ended", "p10"],
    reasons: ["no_subscription"],
    refusedBy: ["team"],
    matched: true,
    tracked: "blocked",
  },
  {
    plans: [null, "p6", "ended"],
    reasons: ["no_subscription"],
    refusedBy: ["org"],
    matched: true,
    tracked: "blocked",
  },
  {
    plans: [null, "ended", null],
    reasons: ["no_subscription"],
    refusedBy: ["u", "team"],
    matched: false,
    tracked: "blocked",
  },
  {
    plans: ["other", "ended", null],
    reasons: ["no_subscription", "unmatched_event"],
    refusedBy: ["u", "team"],
    matched: false,
    tracked: "blocked",
  },
  // Limits, at one level or at several; each reason once, in one order.
  {
    plans: ["p4", "p2", "p10"],
    reasons: ["limit_reached"],
    refusedBy: ["team"],
    matched: true,
    tracked: "blocked",
  },
  {
    plans: ["p2", "p2", "p0"],
    reasons: ["limit_reached"],
    refusedBy: IDS,
    matched: true,
    tracked: "blocked",
  },
  {
    plans: [null, null, "p0"],
    reasons: ["limit_reached"],
    refusedBy: ["org"],
    matched: true,
    tracked: "blocked",
  },
  {
    plans: ["p0", "p4", "ended"],
    reasons: ["no_subscription", "limit_reached"],
    refusedBy: ["u", "org"],
    matched: true,
    tracked: "blocked",
  },
  {
    plans: ["p2", "ended", "cents"],
    reasons: ["no_subscription", "unpriced_model", "limit_reached"],
    refusedBy: IDS,
    matched: true,
    tracked: "blocked",
  },
];

Deno.test("each user of a path takes part, is silent or refuses; a refused call changes nothing anywhere", () => {
  for (const { plans, taken, reasons = [], refusedBy = [], matched = true, tracked } of ROWS) {
    const scenes = pathOf(...plans);
    const [u] = scenes as [Scene];
    const name = plans.join(" below ");
    const can = u.canUse(3);
    const why = u.explain(3);
    for (const answer of [can, why]) {
      assert.deepEqual([answer.allowed, answer.matched], [reasons.length === 0, matched], name);
      assert.deepEqual([answer.reasons, answer.refusedBy], [reasons, refusedBy], name);
    }
    // A quota of 0 that refuses is full from then on, for lists alone.
    const rows = () =>
      scenes.map(({ changes }) => changes.filter(({ table }) => table !== "user_summaries").length);
    const before = rows();
    const id = u.reserve(3);
    assert.equal(id !== null, taken !== undefined, name);
    if (id === null) assert.deepEqual(rows(), before, name);
    const holding = scenes.filter(isTaking).map(({ state }) => state.user.id);
    assert.deepEqual(holding, taken ?? [], name);
    if (id !== null) u.release(id);
    assert.deepEqual(scenes.filter(isTaking), [], name);
    assert.equal(u.track(3), tracked, name);
    assert.deepEqual(scenes.filter(isTaking).map(({ state }) => state.user.id), taken ?? [], name);
  }
});

Deno.test("headroom above gates a reserve, and no track", () => {
  const scenes = pathOf("p10", "gated");
  const [u] = scenes as [Scene];
  assert.deepEqual([u.reason(4), u.canUse(4).refusedBy], ["reservation_headroom_exceeded", ["team"]]);
  assert.equal(u.track(4), "matched");
  assert.deepEqual(countsOf(scenes), [4, 4]);
});

Deno.test("a blocked track has the first reason as its code, and says who refuses", () => {
  const [u] = pathOf("p2", "ended", "p0") as [Scene];
  const { result } = u.do("track", {
    event: "x.make",
    metadata: null,
    size: {
      quantity: null,
      count: 3_000_000n,
      inputTokens: null,
      inputCostCents: null,
      maxOutputTokens: null,
    },
    costCents: null,
  });
  assert.ok(!result.ok);
  const { code, details } = result.refusal;
  assert.equal(code, "no_subscription");
  const { reasons, refusedBy, levels } = details as Record<string, unknown[]>;
  assert.deepEqual([reasons, refusedBy], [["no_subscription", "limit_reached"], ["u", "team", "org"]]);
  assert.deepEqual(levels?.map((level) => (level as { userId: string }).userId), ["team", "org"]);
});

Deno.test("each level pays for itself: its credits pay behind its own groups, and for no other level", () => {
  // The account lives on credits alone, behind a group of quota 0.
  const scenes = pathOf("p4", "p0");
  const [u, team] = scenes as [Scene, Scene];
  const ofMember = u.fund("count", 50);
  assert.deepEqual([u.reason(3), u.canUse(3).refusedBy], ["limit_reached", ["team"]]);
  const ofTeam = team.fund("count", 5);
  const hold = u.hold(3);
  assert.deepEqual([countsOf(scenes), team.left(ofTeam), u.left(ofMember)], [[3, 0], [2], [50]]);
  assert.deepEqual(team.ledger(1), [[ofTeam, -3, "reservation_held"]]);
  u.commit(hold, { actual: { count: 2 } });
  assert.deepEqual([countsOf(scenes), team.left(ofTeam)], [[2, 0], [3]]);
  // The member's plan has 2 left, its credits pay 1; the account's pay all 3.
  u.hold(3);
  assert.deepEqual([countsOf(scenes), team.left(ofTeam), u.left(ofMember)], [[4, 0], [0], [49]]);
  assert.equal(u.reason(1), "limit_reached");
});

Deno.test("credits of a caller that is silent stay, and pay alone where no level takes part", () => {
  const [u, team] = pathOf(null, "p4") as [Scene, Scene];
  const wallet = u.fund("wallet", 10);
  u.hold(3);
  assert.deepEqual([u.left(wallet), countsOf([team])], [[10], [3]]);
  // The account's plan ends: the caller's credits are what it has alone, and the account refuses.
  team.cancel();
  const { allowed, matched, refusedBy } = u.canUse(3);
  assert.deepEqual([allowed, matched, refusedBy, u.reason(3)], [false, true, ["team"], "no_subscription"]);
  assert.equal(u.track(1), "blocked");
  assert.deepEqual(u.left(wallet), [10]);
  assert.equal(u.under(null), "ok");
  assert.equal(u.track(1), "matched_credits_only");
});

/** The plans of a path, and why a track of 5 is refused. */
const MESSAGES: readonly [plans: (string | null)[], message: string][] = [
  [["p4", null, "p10"], 'Limit "g" reached (0 of 4 used, 5 needed)'],
  [["p10", "p4", "p10"], 'Limit "g" of "team" reached (0 of 4 used, 5 needed)'],
  [
    ["p4", "p2", "p0"],
    'Limit "g" reached (0 of 4 used, 5 needed), limit "g" of "team" reached (0 of 2 used, 5 needed), ' +
    'limit "g" of "org" reached (0 of 0 used, 5 needed)',
  ],
  [["p10", "ended", "p10"], 'The plan of "team" has ended'],
  [
    [null, "p10", "cents"],
    'metadata.model: must name a model with a price, because a limit of "org" counts cents',
  ],
  [["cents"], "metadata.model: must name a model with a price, because a limit of the plan counts cents"],
];

for (const [plans, message] of MESSAGES) {
  Deno.test(`a track over ${plans.join(", ")} that is refused says at whom: ${message}`, () => {
    const [u] = pathOf(...plans) as [Scene];
    const { result } = u.do("track", { ...callOf(5, {}), costCents: null });
    assert.equal(result.ok ? "allowed" : result.refusal.message, message);
  });
}

interface Ending {
  readonly name: string;
  readonly end: (u: Scene, hold: string) => void;
  readonly counts: readonly number[];
}

const ENDINGS: readonly Ending[] = [
  { name: "committed", end: (u, hold) => u.commit(hold), counts: [3, 3, 3] },
  {
    name: "committed with less",
    end: (u, hold) => u.commit(hold, { actual: { count: 1 } }),
    counts: [1, 1, 1],
  },
  {
    name: "committed past every quota",
    end: (u, hold) => u.commit(hold, { extra: { count: 9 } }),
    counts: [12, 12, 12],
  },
  { name: "released", end: (u, hold) => u.release(hold), counts: [0, 0, 0] },
  { name: "lapsed", end: (u) => u.wait(600), counts: [0, 0, 0] },
  { name: "a millisecond before it lapses", end: (u) => u.wait(599.999), counts: [3, 3, 3] },
  {
    name: "charged again",
    end: (u, hold) => u.wait(600).commit(hold, { actual: { count: 2 } }),
    counts: [2, 2, 2],
  },
  {
    name: "charged again after the account saw it lapse",
    end: (u, hold) => (u.wait(9999), u.reason(1), u.commit(hold)),
    counts: [3, 3, 3],
  },
];

Deno.test("a hold ends at every level at which it was taken, whatever the tree is by then", () => {
  for (const { name, end, counts } of ENDINGS) {
    for (const isMoved of [false, true]) {
      const scenes = pathOf("p4", "p6", "p10");
      const [u, team] = scenes as [Scene, Scene];
      const hold = u.hold(3);
      if (isMoved) {
        u.under(null);
        team.under(null);
      }
      end(u, hold);
      for (const scene of scenes) scene.now = u.now;
      assert.deepEqual(countsOf(scenes), counts, `${name}, ${isMoved ? "moved" : "in place"}`);
    }
  }
});

Deno.test("prolonging moves every part in one turn, and none lapses alone", () => {
  // The model knows no call that prolongs.
  const scenes = pathWith({ isCompared: false }, "p4", "p6", "p10");
  const [u] = scenes as [Scene];
  const hold = u.hold(3);
  u.wait(500);
  u.ask("prolong", { reservationId: hold, ttlMs: 600_000 });
  for (const [after, counts] of [[599.999, [3, 3, 3]], [0.001, [0, 0, 0]]] as const) {
    u.wait(after);
    for (const scene of scenes) scene.now = u.now;
    assert.deepEqual(countsOf(scenes), counts);
  }
});

Deno.test("an event is one, of the caller, with what it took at each level", () => {
  const scenes = pathOf("p4", "p0", "p10");
  const [u, team, org] = scenes as [Scene, Scene, Scene];
  const wallet = team.fund("wallet", 5);
  u.commit(u.hold(2), { actual: { count: 3 } });
  assert.deepEqual([team, org].map(({ changes }) => eventsIn(changes).length), [0, 0]);
  const { userKey, lines, levels = [] } = u.event();
  const shown = (taken: typeof lines) => taken.map((line) => numbersOf({ [line.groupId]: line.taken }));
  assert.deepEqual([userKey, shown(lines)], [1, [{ g: 3 }]]);
  assert.deepEqual(levels.map((level) => [level.userKey, shown(level.lines)]), [[2, [{ g: 0 }]], [3, [{
    g: 3,
  }]]]);
  assert.deepEqual(levels[0]?.credits.map(({ balanceId, taken }) => [balanceId, taken]), [[
    wallet,
    3_000_000n,
  ]]);
  assert.deepEqual([u.operations, team.operations, org.operations], [1, 0, 0]);
});

Deno.test("alerts and messages of a user above say whose call caused them; a lapse is reported once", () => {
  const [u, team] = pathOf("alerting", "alerting") as [Scene, Scene];
  team.fund("count", 5);
  const hold = u.hold(3);
  u.hold(1, { ttlMs: 10_000 });
  u.wait(10).commit(hold);
  team.now = u.now;
  team.counts();
  const told = (scene: Scene) =>
    scene.messages.map(({ body }) => JSON.parse(body)).filter(({ type }) => type !== "credits.granted")
      .map(({ type, data }) => [type, data.userId, data.causedBy]);
  assert.deepEqual(told(u), [
    ["usage.threshold_reached", "u", undefined],
    ["reservation.expired", "u", undefined],
  ]);
  assert.deepEqual(told(team), [["usage.threshold_reached", "team", "u"]]);
  team.track(1);
  assert.equal(told(team).length, 1);
});

Deno.test("parts that a merge brought onto one counter settle each by itself, and the cost counts once", () => {
  for (const [isLapsed, isLarger] of [[false, false], [false, true], [true, true]]) {
    const [u, team] = pathOf("p10", "p10") as [Scene, Scene];
    const hold = u.hold(3);
    u.under(null);
    u.mergeInto(team);
    assert.deepEqual(team.counts(), { g: 6 });
    if (isLapsed) assert.deepEqual(team.wait(600).counts(), { g: 0 });
    const settled = team.commit(hold, { costCents: 7, actual: { count: isLarger ? 4 : 1 } });
    assert.deepEqual(settled.groups, { g: isLarger ? 8 : 2 });
    assert.deepEqual([team.counts(), team.costs()], [{ g: isLarger ? 8 : 2 }, { g: 7 }]);
    const { lines, levels } = team.event();
    assert.deepEqual([lines.length, levels?.map(({ userKey }) => userKey)], [1, [2]]);
  }
});

Deno.test("two accounts that become one settle both of their parts of a hold, each shown counter once", () => {
  const scenes = pathOf("p10", "p10", "p10");
  const [u, team, org] = scenes as [Scene, Scene, Scene];
  const hold = u.hold(3);
  team.under(null);
  team.mergeInto(org);
  assert.deepEqual(countsOf([u, org]), [3, 6]);
  const { levels } = u.ask("commit", {
    reservationId: hold,
    extra: {},
    actual: { count: 2_000_000n },
    costCents: null,
    response: null,
  });
  assert.deepEqual(
    levels?.map(({ userId, groups }) => [
      userId,
      groups.map((group) =>
        numbersOf(
          { [group.groupId]: group.current },
        )
      ),
    ]),
    [["org", [{ g: 4 }]]],
  );
  assert.deepEqual(countsOf([u, org]), [2, 4]);
});

Deno.test("a hold of a member that was merged away still settles above, and the survivor keeps its own parent", () => {
  const [u, team] = pathOf("p4", "p6") as [Scene, Scene];
  const other = new Scene([], undefined, [], { beside: u, id: "v", key: 9 });
  other.subscribe("p10");
  const hold = u.hold(2);
  u.mergeInto(other);
  assert.equal(other.state.user.parentKey, team.state.user.key);
  other.commit(hold, { actual: { count: 4 } });
  assert.deepEqual(countsOf([other, team]), [4, 4]);
});
