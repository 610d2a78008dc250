// Refused calls over HTTP: which calls are rows, their users and hours, pages, and what a merge, an erasure, a
// restart and the time do to them.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import { stopQueued } from "./privacy_support.ts";
import { appWithUser, assertRefused, CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

interface Row {
  readonly userId: string;
  readonly event: string;
  readonly reasons: readonly string[];
  readonly groupIds: readonly string[];
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

async function refusalsOf(app: TestApp, query = "", key = app.secretLive): Promise<Row[]> {
  return (await dataOf(app.call("GET", `/refusals?limit=100${query}`, undefined, { key }))).refusals;
}

/** Rows as "user event reasons groups count", in the order in which they came. */
async function shownOf(app: TestApp, query = "", key = app.secretLive): Promise<string[]> {
  return (await refusalsOf(app, query, key)).map(shown);
}

function shown({ userId, event, reasons, groupIds, count }: Row): string {
  return [userId, event, ...reasons, ...groupIds, count].join(" ");
}

function ask(app: TestApp, path: string, event: string, count: number, userId = "u", key = app.secretLive) {
  return app.call("POST", path, { userId, event, count }, { key });
}

/** A reserve that its plan refuses. */
async function refuse(app: TestApp, event = "image.x", userId = "u", key = app.secretLive): Promise<void> {
  assert.equal((await dataOf(ask(app, "/reserve", event, 1000, userId, key))).allowed, false);
}

/** Moves the clock to the begin of the next hour. */
function nextHour(): number {
  const { clock } = service;
  clock.set(clock.now() - clock.now() % HOUR + HOUR);
  return clock.now();
}

/** The rows of an app as the table has them. */
function stored(app: TestApp) {
  const realm = service.serving().registry.apps.get(app.appId)?.realms.live.realm as number;
  return service.store.database.query("select * from refusals where realm = $1::int", [realm]);
}

Deno.test("refused reserves and tracks are rows at once, newest first; questions and faults are none", async () => {
  const app = await appWithUser(service);
  const start = nextHour();
  await refuse(app);
  service.clock.advance(1000);
  assertRefused(await ask(app, "/track", "image.x", 1000), 429, "limit_reached");
  service.clock.advance(1000);
  await refuse(app, "other");
  await dataOf(ask(app, "/track", "other", 1000));
  await dataOf(ask(app, "/can-use", "image.x", 1000));
  await dataOf(ask(app, "/explain", "image.x", 1000));
  assertRefused(await ask(app, "/reserve", "image.x", -1), 400, "invalid_request");
  const at = (ms: number) => new Date(start + ms).toISOString();
  const image = { userId: "u", event: "image.x", reasons: ["limit_reached"], groupIds: ["lg_images"] };
  const other = { userId: "u", event: "other", reasons: ["unmatched_event"], groupIds: [] };
  assert.deepEqual(await dataOf(app.call("GET", "/refusals")), {
    refusals: [
      { ...other, count: 1, firstAt: at(2000), lastAt: at(2000) },
      { ...image, count: 2, firstAt: at(0), lastAt: at(1000) },
    ],
    limit: 20,
    offset: 0,
  });
});

Deno.test("each cap is a row of its own, and so is a call without a price", async () => {
  const settings = { ...CATALOG.settings, unpricedModels: "refuse" };
  const app = await service.newApp({ ...CATALOG, settings }, { operationCap: 1, testOperationCap: 0 });
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  assertRefused(await ask(app, "/track", "video.x", 1), 429, "limit_reached");
  await dataOf(ask(app, "/track", "image.x", 1));
  assertRefused(await ask(app, "/track", "video.x", 1), 429, "workspace_limit_reached");
  assertRefused(await ask(app, "/reserve", "video.x", 1), 429, "workspace_limit_reached");
  assertRefused(await ask(app, "/reserve", "video.x", 1, "u", app.secretTest), 429, "test_quota_exceeded");
  assert.deepEqual((await shownOf(app)).sort(), [
    "u video.x unpriced_model 1",
    "u video.x workspace_limit_reached 2",
  ]);
  assert.deepEqual(await shownOf(app, "", app.secretTest), ["u video.x test_quota_exceeded 1"]);
});

Deno.test("an hour of the app's clock is a row: in test mode that of the test clock", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  const key = app.secretTest;
  service.clock.set(nextHour() + 50 * 60_000);
  await refuse(app, "image.x", "u", key);
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 599 }, { key }));
  await refuse(app, "image.x", "u", key);
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 1 }, { key }));
  await refuse(app, "image.x", "u", key);
  assert.deepEqual(await shownOf(app, "", key), [
    "u image.x limit_reached lg_images 1",
    "u image.x limit_reached lg_images 2",
  ]);
  assert.deepEqual(await refusalsOf(app), []);
});

Deno.test("pages by user, by event and by both hold every row once, in one order", async () => {
  const app = await service.newApp(CATALOG);
  nextHour();
  for (let place = 0; place < 12; place++) {
    await refuse(app, `e.${place % 3}`, `u${place % 4}`);
    if (place % 5 === 0) service.clock.advance(1);
  }
  const all = await shownOf(app);
  assert.equal(new Set(all).size, 12);
  const paged: string[] = [];
  for (let offset = 0; offset < 15; offset += 5) {
    const { refusals } = await dataOf(app.call("GET", `/refusals?limit=5&offset=${offset}`));
    paged.push(...refusals.map(shown));
  }
  assert.deepEqual(paged, all);
  const of = (...words: string[]) =>
    all.filter((row) => words.every((word) => row.split(" ").includes(word)));
  assert.deepEqual(await shownOf(app, "&userId=u1"), of("u1"));
  assert.deepEqual(await shownOf(app, "&event=e.2"), of("e.2"));
  assert.deepEqual(await shownOf(app, "&event=e.2&userId=u1"), of("e.2", "u1"));
  assert.deepEqual(await shownOf(app, "&event=e.9"), []);
  assert.deepEqual(await shownOf(app, "&userId=U1"), []);
});

Deno.test("a merge adds alike rows of an hour up, of users known and unknown, written or not", async () => {
  const app = await appWithUser(service);
  const start = nextHour();
  await refuse(app);
  await refuse(app, "old.a", "old");
  await service.serving().term.refusedCalls.write();
  service.clock.advance(1000);
  await dataOf(app.call("POST", "/subscriptions", { userId: "old", planId: "plan_pro" }));
  await refuse(app, "image.x", "old");
  await refuse(app, "old.a", "unknown");
  await refuse(app, "old.a", "unknown");
  const alias = (from: string, to: string) => dataOf(app.call("POST", "/customers/alias", { from, to }));
  await alias("unknown", "old");
  assert.deepEqual((await shownOf(app, "&userId=unknown")).sort(), [
    "old image.x limit_reached lg_images 1",
    "old old.a no_subscription 3",
  ]);
  const { historyPending } = await alias("old", "u");
  assert.equal(historyPending, false);
  await refuse(app, "old.a", "unknown");
  const rows = [
    "u image.x limit_reached lg_images 2",
    "u old.a no_subscription 3",
    "u old.a unmatched_event 1",
  ];
  for (const query of ["", "&userId=unknown", "&userId=old", "&userId=u"]) {
    assert.deepEqual((await shownOf(app, query)).sort(), rows, query);
  }
  assert.deepEqual((await refusalsOf(app)).find(({ reasons }) => reasons[0] === "no_subscription"), {
    userId: "u",
    event: "old.a",
    reasons: ["no_subscription"],
    groupIds: [],
    count: 3,
    firstAt: new Date(start).toISOString(),
    lastAt: new Date(start + 1000).toISOString(),
  });
  assert.equal((await stored(app)).length, 3);
  assert.equal((await alias("old", "u")).historyPending, false);
});

Deno.test("more rows than move within the call are the canonical user's at once, and move in the background", async () => {
  const app = await appWithUser(service);
  const at = nextHour();
  const { term } = service.serving();
  const { refusedCalls } = term;
  const realm = service.serving().registry.apps.get(app.appId)?.realms.live;
  assert.ok(realm !== undefined);
  const count = 2_500;
  await refuse(app, "e.0", "many");
  for (let place = 0; place < count; place++) {
    refusedCalls.count(realm, "many", {
      event: `e.${place}`,
      reasons: ["no_subscription"],
      groupIds: [],
      refusedBy: [],
      at,
    });
  }
  await refusedCalls.write();
  await dataOf(app.call("POST", "/customers/alias", { from: "many", to: "u" }));
  await term.flush();
  const usersOf = async () => Map.groupBy(await stored(app), ({ user_id: id }) => id as string);
  assert.equal((await usersOf()).get("many")?.length, 500);
  const offsets = [0, count - 50, count];
  const pages = async () =>
    await Promise.all(
      offsets.map(async (offset) =>
        (await refusalsOf(app, `&userId=many&offset=${offset}`)).map(shown).sort()
      ),
    );
  const before = await pages();
  assert.deepEqual(before.map((page) => page.length), [100, 50, 0]);
  assert.deepEqual((await dataOf(service.admin("POST", "/move-history"))).historyRows, 500);
  assert.equal((await usersOf()).get("u")?.length, count);
  assert.equal((await pages()).flat().length, 150);
});

Deno.test("an erasure removes rows that are written, those in memory and those that come while it is queued", async () => {
  const app = await appWithUser(service);
  nextHour();
  await refuse(app, "image.x", "u");
  await service.serving().term.refusedCalls.write();
  await dataOf(app.call("POST", "/customers/alias", { from: "alias", to: "u" }));
  await refuse(app, "image.y", "alias");
  await refuse(app, "image.x", "other");
  const stop = stopQueued(service);
  const { jobId } = await dataOf(app.call("POST", "/delete-person", { distinctId: "alias" }));
  await stop.reached;
  await refuse(app, "image.z");
  const others = ["other image.x no_subscription 1"];
  assert.deepEqual(await shownOf(app), others, "hidden while the job waits");
  await refuse(app, "image.z");
  stop.go();
  await dataOf(service.admin("POST", "/sweep"));
  const { status } = await dataOf(app.call("GET", `/deletion-status?jobId=${jobId}`));
  assert.equal(status, "completed");
  assert.deepEqual(await shownOf(app), others);
  assert.equal((await stored(app)).length, 1);
  await dataOf(app.call("POST", "/delete-person", { distinctId: "other" }));
  await dataOf(service.admin("POST", "/sweep"));
  assert.equal((await stored(app)).length, 0, "of an unknown user either");
  await refuse(app, "image.x", "alias");
  assert.deepEqual(await shownOf(app, "&userId=alias"), ["alias image.x no_subscription 1"], "a new user");
});

Deno.test("rows of 90 days ago by the app's clock are shown no more, and a sweep removes them", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  const key = app.secretTest;
  await refuse(app, "image.x", "u", key);
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 90 * DAY / 1000 - 1 }, { key }));
  await refuse(app, "image.x", "u", key);
  assert.equal((await dataOf(service.admin("POST", "/sweep"))).refusals, 0);
  assert.equal((await refusalsOf(app, "", key)).length, 2);
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 1 }, { key }));
  assert.equal((await refusalsOf(app, "", key)).length, 1);
  assert.equal((await dataOf(service.admin("POST", "/sweep"))).refusals, 1);
  assert.equal((await refusalsOf(app, "", key)).length, 1);
});

Deno.test("what was read or written outlasts a crash, and counts go on in the same row", async () => {
  const app = await appWithUser(service);
  nextHour();
  await refuse(app);
  assert.deepEqual(await shownOf(app), ["u image.x limit_reached lg_images 1"]);
  await refuse(app);
  await service.serving().term.refusedCalls.writeBeside();
  await service.restart();
  await refuse(app);
  assert.deepEqual(await shownOf(app), ["u image.x limit_reached lg_images 3"]);
});
