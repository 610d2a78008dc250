// Aliases and subscriptions: which rows a merge ends and keeps, where usage goes, and duplicates and their promotion.

import assert from "node:assert/strict";
import { assertRefused, dataOf, endUserToken, serviceOfFile } from "./support.ts";
import { movedOf, Town } from "./alias_support.ts";

const service = serviceOfFile();

// deno-lint-ignore no-explicit-any -- tests look at whatever came back
type Data = any;

/** A row before a merge: plan, external id of a paid one, and days since it started. */
type Row = readonly [planId: string, externalId: string | null, daysAgo: number];

interface Case {
  readonly name: string;
  readonly from: readonly Row[];
  readonly to: readonly Row[];
  /** Names of rows: side and place. */
  readonly ended: readonly string[];
  readonly primary: string | null;
  readonly duplicates: readonly string[];
}

const FREE: Row = ["plan_free", null, 3];
const PRO: Row = ["plan_pro", null, 3];
const TEAM: Row = ["plan_team", null, 3];

const CASES: readonly Case[] = [
  {
    name: "of two defaults the better ranked stays",
    from: [PRO],
    to: [FREE],
    ended: ["to0"],
    primary: "from0",
    duplicates: [],
  },
  {
    name: "of two defaults of the canonical's better rank, the alias's ends",
    from: [FREE],
    to: [PRO],
    ended: ["from0"],
    primary: "to0",
    duplicates: [],
  },
  {
    name: "of two defaults of one rank the later one stays",
    from: [["plan_pro", null, 1]],
    to: [PRO],
    ended: ["to0"],
    primary: "from0",
    duplicates: [],
  },
  {
    name: "a default of another plan of the same rank ends",
    from: [["plan_daily", null, 5]],
    to: [PRO],
    ended: ["from0"],
    primary: "to0",
    duplicates: [],
  },
  {
    name: "a paid row ends a default ranked below it",
    from: [FREE],
    to: [["plan_pro", "x", 3]],
    ended: ["from0"],
    primary: "to0",
    duplicates: [],
  },
  {
    name: "a paid row ends a default of its own rank, also one that started later",
    from: [["plan_pro", "x", 3]],
    to: [["plan_daily", null, 1]],
    ended: ["to0"],
    primary: "from0",
    duplicates: [],
  },
  {
    name: "a default above every paid row stays and is primary",
    from: [TEAM],
    to: [["plan_pro", "x", 3]],
    ended: [],
    primary: "from0",
    duplicates: ["to0"],
  },
  {
    name: "two defaults above every paid row both stay",
    from: [TEAM],
    to: [["plan_free", "x", 3], ["plan_pro", null, 2]],
    ended: [],
    primary: "from0",
    duplicates: ["to1", "to0"],
  },
  {
    name: "paid rows of both sides stay, the better ranked first",
    from: [["plan_pro", "x", 1]],
    to: [["plan_team", "y", 3]],
    ended: [],
    primary: "to0",
    duplicates: ["from0"],
  },
  {
    name: "paid rows of one rank stay, the latest first",
    from: [["plan_pro", "x", 1]],
    to: [["plan_pro", "y", 2], ["plan_daily", "z", 3]],
    ended: [],
    primary: "from0",
    duplicates: ["to0", "to1"],
  },
  {
    name: "paid rows with the same ids on both sides are two rows",
    from: [["plan_pro", "x", 2]],
    to: [["plan_pro", "x", 1]],
    ended: [],
    primary: "to0",
    duplicates: ["from0"],
  },
  {
    name: "the best paid row decides which defaults end, of either side",
    from: [FREE, ["plan_pro", "x", 3]],
    to: [["plan_daily", null, 1], ["plan_free", "y", 1]],
    ended: ["to0", "from0"],
    primary: "from1",
    duplicates: ["to1"],
  },
  {
    name: "a user without any takes over what the other has",
    from: [PRO, ["plan_free", "x", 1]],
    to: [],
    ended: [],
    primary: "from0",
    duplicates: ["from1"],
  },
];

async function subscribeAll(town: Town, userId: string, rows: readonly Row[], names: Map<string, string>) {
  for (const [place, [planId, externalId, daysAgo]] of rows.entries()) {
    const startsAt = new Date(service.clock.now() - daysAgo * 86_400_000).toISOString();
    const ids = externalId === null ? {} : { provider: "stripe", externalId };
    const { subscriptionId } = await town.subscribe(userId, planId, { startsAt, ...ids });
    names.set(subscriptionId, `${userId}${place}`);
  }
}

for (const { name, from, to, ended, primary, duplicates } of CASES) {
  Deno.test(`in a merge ${name}`, async () => {
    const town = await Town.open(service);
    const names = new Map<string, string>();
    await subscribeAll(town, "from", from, names);
    await subscribeAll(town, "to", to, names);
    await town.track("from", "image.x", { count: 3 });
    await town.track("to", "image.x", { count: 5 });
    const isCounted = (rows: readonly Row[]) => rows.length > 0;
    const before = (await town.get("/users/from")).subscription;
    const report = await town.merge("from", "to");
    const nameOf = (row: Data) => names.get(row.subscriptionId);
    const user = await town.get("/users/from");

    assert.deepEqual(report.conflicts.endedSubscriptions.map(nameOf), ended);
    for (const row of report.conflicts.endedSubscriptions) {
      assert.equal(row.endsAt, new Date(service.clock.now()).toISOString());
      assert.equal(row.provider, null);
    }
    assert.equal(user.subscription === null ? null : nameOf(user.subscription), primary);
    assert.deepEqual((report.conflicts.subscriptions?.duplicates ?? []).map(nameOf), duplicates);
    if (duplicates.length > 0) assert.equal(nameOf(report.conflicts.subscriptions.primary), primary);
    assert.equal(report.moved.subscriptions, from.length);

    // Written rows, newest first: what ended in reverse order of its listing, then `merged`.
    const written = user.history.slice(0, ended.length + 1).map((row: Data) => [row.type, nameOf(row)]);
    assert.deepEqual(written, [
      ...[...ended].reverse().map((row) => ["ended", row]),
      ["merged", names.get(before.subscriptionId)],
    ]);
    assert.equal(user.history.length, from.length + to.length + ended.length + 1);
    assert.equal(report.billableOperations, 1);
    // Usage of whoever had a plan is carried to the primary.
    const used = (isCounted(from) ? 3 : 0) + (isCounted(to) ? 5 : 0);
    const counts = await town.counts("to");
    assert.equal(counts.lg_images ?? counts.lg_pictures, used);
  });
}

Deno.test("a side without an active row writes no merged row and costs nothing", async () => {
  const town = await Town.open(service);
  await town.pay("a", "plan_pro", "x");
  await dataOf(town.ask("DELETE", "/subscriptions?userId=a"));
  await town.subscribe("b", "plan_free");
  const report = await town.merge("a", "b");
  assert.equal(report.billableOperations, 0);
  assert.deepEqual(movedOf(report), { subscriptions: 1, subscriptionEvents: 2 });
  const { history } = await town.get("/users/b");
  assert.deepEqual(history.map(({ type }: Data) => type), ["created", "canceled", "created"]);
});

Deno.test("usage of the losing plan is carried by rules and ids, and a group without a partner is listed", async () => {
  for (const [from, to] of [["pro", "team"], ["team", "pro"]] as const) {
    const town = await Town.open(service);
    await town.subscribe("pro", "plan_pro");
    await town.subscribe("team", "plan_team");
    await town.track("pro", "image.x", { count: 7 });
    await town.track("pro", "chat.x", { inputTokens: 30 });
    await town.track("pro", "only.x", { count: 2 });
    await town.track("team", "image.x", { count: 11 });
    const held = await town.hold("pro", "image.x", { count: 4 });
    const unpaired = await town.hold("pro", "only.x", { count: 5 });
    const report = await town.merge(from, to);
    const { carried } = report.conflicts.counters;
    const byGroup = (a: Data, b: Data) => a.fromGroupId < b.fromGroupId ? -1 : 1;
    assert.deepEqual([...carried].sort(byGroup), [
      { fromGroupId: "lg_chat", toGroupId: "lg_chat" },
      { fromGroupId: "lg_images", toGroupId: "lg_pictures" },
    ]);
    assert.deepEqual(report.conflicts.counters.unpaired, ["lg_only"]);
    assert.equal(report.moved.counters, from === "pro" ? 3 : 1);
    // A merge carries, although the plan's own policy is to reset.
    assert.deepEqual(await town.counts("pro"), { lg_pictures: 22, lg_chat: 30 });
    const { groups } = await town.post("/commit", { reservationId: held, actual: { count: 1 } });
    assert.deepEqual([groups[0].groupId, groups[0].current], ["lg_pictures", 19]);
    assert.equal((await town.counts("team")).lg_pictures, 19);
    await town.post("/release", { reservationId: unpaired });
    assert.deepEqual(await town.counts("team"), { lg_pictures: 19, lg_chat: 30 });
  }
});

Deno.test("usage of one group meets in the primary's window, also where the windows differ", async () => {
  const town = await Town.open(service);
  const startsAt = new Date(service.clock.now() - 7 * 3_600_000).toISOString();
  await town.subscribe("a", "plan_daily", { startsAt });
  await town.subscribe("b", "plan_daily");
  await town.track("a", "image.x", { count: 4 });
  await town.track("b", "image.x", { count: 5 });
  const held = await town.hold("a", "image.x", { count: 3 });
  const report = await town.merge("a", "b");
  assert.equal(report.conflicts.counters.summed, 1);
  assert.deepEqual(report.conflicts.counters.carried, []);
  assert.deepEqual(await town.counts("a"), { lg_images: 12 });
  const { groups } = await town.post("/commit", { reservationId: held, actual: { count: 0 } });
  assert.equal(groups[0].current, 9);
  await town.pass(86_400);
  assert.deepEqual(await town.counts("b"), { lg_images: 0 });
});

Deno.test("usage of a plan that ended in its running window is carried too, and without any plan it waits", async () => {
  const town = await Town.open(service);
  await town.subscribe("a", "plan_pro");
  await town.track("a", "image.x", { count: 6 });
  await dataOf(town.ask("DELETE", "/subscriptions?userId=a"));
  await town.merge("a", "b");
  assert.deepEqual(await town.counts("b"), {});
  await town.subscribe("b", "plan_free");
  assert.equal((await town.counts("b")).lg_images, 6, "no fresh quota after a merge without a plan");

  await town.subscribe("c", "plan_pro");
  await town.track("c", "image.x", { count: 5 });
  await dataOf(town.ask("DELETE", "/subscriptions?userId=c"));
  await town.subscribe("d", "plan_team");
  const report = await town.merge("c", "d");
  assert.deepEqual(report.conflicts.counters.carried, [{
    fromGroupId: "lg_images",
    toGroupId: "lg_pictures",
  }]);
  assert.equal((await town.counts("c")).lg_pictures, 5);
});

Deno.test("duplicates show in customers.get, usage with a secret key and users, and nowhere else", async () => {
  const town = await Town.open(service);
  const { app } = town;
  await town.grant("a", 5);
  const first = await town.pay("a", "plan_pro", "x", { endsAt: "2031-01-01T00:00:00Z" });
  const second = await town.pay("b", "plan_team", "y");
  const report = await town.merge("a", "b");
  const ref = (subscriptionId: string, name: string, externalId: string, endsAt: string | null) => {
    const startedAt = new Date(service.clock.now()).toISOString();
    return {
      subscriptionId,
      planId: name,
      planName: name,
      provider: "stripe",
      externalId,
      startedAt,
      endsAt,
    };
  };
  const expected = {
    primary: ref(second, "plan_team", "y", null),
    duplicates: [ref(first, "plan_pro", "x", "2031-01-01T00:00:00.000Z")],
  };
  assert.deepEqual(report.conflicts.subscriptions, expected);
  const exp = Math.floor(service.clock.now() / 1000) + 60;
  for (const id of ["a", "b"]) {
    for (const path of [`/customers/${id}`, `/usage?userId=${id}`, `/users/${id}`]) {
      assert.deepEqual((await town.get(path)).duplicateActiveSubscriptions, expected, path);
    }
    const token = { "x-end-user-token": endUserToken(app.identitySecret, { userId: id, exp }) };
    const shown = [
      ...await Promise.all(
        ["/usage", `/usage?userId=${id}`, "/usage/me", `/credits?userId=${id}`].map((path) =>
          dataOf(app.call("GET", path, undefined, { key: app.publicLive, headers: token }))
        ),
      ),
      await dataOf(app.call("GET", "/usage/me", undefined, { headers: token })),
      await town.get(`/credits?userId=${id}`),
      await town.get(`/credits/history?userId=${id}`),
      await town.get(`/events?userId=${id}`),
      await town.post("/can-use", { userId: id, event: "image.x" }),
      await town.track(id, "image.x"),
    ];
    for (const data of shown) {
      assert.ok(!/duplicate/i.test(JSON.stringify(data)), JSON.stringify(data));
    }
  }
});

for (const cause of ["a cancel", "a read after its end", "a sweep after its end", "a start after its end"]) {
  Deno.test(`a duplicate is promoted by ${cause}, written and billed once`, async () => {
    const town = await Town.open(service);
    const isScheduled = cause !== "a cancel";
    const endsAt = isScheduled ? new Date(service.clock.now() + 60_000).toISOString() : null;
    await town.pay("a", "plan_team", "x", { endsAt });
    const second = await town.pay("b", "plan_pro", "y");
    await town.track("a", "image.x", { count: 3 });
    await town.merge("a", "b");
    const before = await town.operations();
    if (isScheduled) await town.pass(61);
    else await dataOf(town.ask("DELETE", "/subscriptions?userId=a&provider=stripe&externalId=x"));
    if (cause.startsWith("a sweep")) await service.admin("POST", "/sweep");
    if (cause.startsWith("a start")) await service.restart();
    await Promise.all(["a", "b", "a", "b"].map((id) => town.counts(id)));
    assert.equal((await service.admin("POST", "/sweep")).status, 200);
    await service.restart();
    const user = await town.get("/users/a");
    const promoted = user.history.filter(({ type }: Data) => type === "promoted");
    assert.deepEqual(promoted.map(({ subscriptionId }: Data) => subscriptionId), [second]);
    assert.equal(await town.operations() - before, 1);
    assert.deepEqual([user.subscription.subscriptionId, user.duplicateActiveSubscriptions], [second, null]);
    assert.equal(user.counters[0].count, 3, "the usage goes with the promotion");
  });
}

Deno.test("rows that moved are changed and canceled by either id", async () => {
  const town = await Town.open(service);
  const ofA = await town.pay("a", "plan_pro", "x");
  const ofB = await town.pay("b", "plan_pro", "y");
  await town.merge("a", "b");
  const changed = await town.subscribe("b", "plan_team", { provider: "stripe", externalId: "x" });
  assert.deepEqual([changed.subscriptionId, changed.userId], [ofA, "b"]);
  assertRefused(await town.ask("DELETE", "/subscriptions?userId=a"), 400, "invalid_request");
  const path = "/subscriptions?userId=a&provider=stripe&externalId=y";
  const canceled = await dataOf(town.ask("DELETE", path));
  assert.deepEqual([canceled.subscriptionId, canceled.userId], [ofB, "b"]);
  assertRefused(await town.ask("DELETE", path), 409, "already_canceled");
  assert.equal((await town.customer("a")).duplicateActiveSubscriptions, null);
});
