// Runs over HTTP: tasks of agents with limits of their own, which all of their calls share.

import assert from "node:assert/strict";
import { appWithUser, assertRefused, countOf, dataOf, driftsOf, serviceOfFile } from "./support.ts";
import { exportOf } from "./people_support.ts";
import { sweep } from "./privacy_support.ts";
import type { TestApp } from "../support/test_service.ts";

const service = serviceOfFile();

const TEST = ({ secretTest: key }: TestApp) => ({ key });
const LIVE = ({ secretLive: key }: TestApp) => ({ key });
const image = (count: number, runId?: string) => ({ userId: "u", event: "image.render", count, runId });
const ONE = [{ unit: "count", quota: 5 }];

/** Opens a run of user "u" in an app; returns its id. */
async function opened(app: TestApp, members: object = {}, keyOf = LIVE): Promise<string> {
  const { runId } = await dataOf(
    app.call("POST", "/runs", { userId: "u", limits: ONE, ...members }, keyOf(app)),
  );
  return runId;
}

const limit = (count: number, held: number, quota = 5) => {
  return { limitId: "limit_1", unit: "count", event: "*", quota, count, held };
};

/** The counts and held parts of the limits of a run. */
async function countsOf(app: TestApp, runId: string, keyOf = LIVE): Promise<[number, number][]> {
  const { limits } = await dataOf(app.call("GET", `/runs/${runId}`, undefined, keyOf(app)));
  return limits.map(({ count, held }: { count: number; held: number }) => [count, held]);
}

Deno.test("a run is opened, read, listed and ended", async () => {
  const app = await appWithUser(service);
  const body = {
    userId: "u",
    limits: [{ unit: "cents", quota: 50.5 }, { unit: "count", quota: 3, event: "image.*" }],
    name: "Nightly report",
    ttlSeconds: 60,
    metadata: { job: 7 },
  };
  const run = await dataOf(app.call("POST", "/runs", body));
  const limits = [
    { limitId: "limit_1", unit: "cents", event: "*", quota: 50.5, count: 0, held: 0 },
    { limitId: "limit_2", unit: "count", event: "image.*", quota: 3, count: 0, held: 0 },
  ];
  assert.match(run.runId, /^run_[0-9a-z]+_[0-9a-z]{20}$/);
  assert.deepEqual(run, {
    runId: run.runId,
    userId: "u",
    parentRunId: null,
    name: "Nightly report",
    status: "active",
    createdAt: run.createdAt,
    expiresAt: new Date(Date.parse(run.createdAt) + 60_000).toISOString(),
    endedAt: null,
    reason: null,
    limits,
  });
  const shown = { ...run, metadata: { job: 7 } };
  assert.deepEqual(await dataOf(app.call("GET", `/runs/${run.runId}`)), shown);
  const second = await opened(app);
  const list = async (query: string) => await dataOf(app.call("GET", `/runs?userId=u${query}`));
  const first = await list("&limit=1");
  assert.deepEqual(first.runs.map(({ runId }: { runId: string }) => runId), [second]);
  assert.deepEqual(await list(`&limit=1&cursor=${first.cursor}`), { runs: [shown], cursor: null });
  assertRefused(await app.call("GET", "/runs?userId=u&cursor=x"), 400, "invalid_request");

  const ended = await dataOf(app.call("POST", `/runs/${run.runId}/end`, { reason: "done" }));
  assert.deepEqual([ended.status, ended.reason, typeof ended.endedAt], ["ended", "done", "string"]);
  assertRefused(await app.call("POST", `/runs/${run.runId}/end`, {}), 409, "run_ended");
  assert.deepEqual((await list("&status=ended")).runs, [{ ...ended, metadata: { job: 7 } }]);
  assert.deepEqual((await list("&status=active")).runs.length, 1);
  const key = { headers: { "idempotency-key": "end" } };
  const other = await dataOf(app.call("POST", `/runs/${second}/end`, {}, key));
  assert.deepEqual(await dataOf(app.call("POST", `/runs/${second}/end`, {}, key)), other, "a first answer");
  const conflict = await app.call("POST", `/runs/${run.runId}/end`, {}, key);
  assertRefused(conflict, 409, "idempotency_conflict", "another run is another call");
  for (const path of ["/runs/run_none", `/runs/${run.runId.slice(0, -1)}`]) {
    assertRefused(await app.call("GET", path), 404, "not_found");
    assertRefused(await app.call("POST", `${path}/end`, {}), 404, "not_found");
  }
});

Deno.test("an open reservation counts in its run until it is settled", async () => {
  const app = await appWithUser(service);
  const runId = await opened(app);
  const held = await dataOf(app.call("POST", "/reserve", image(4, runId)));
  assert.deepEqual(held.runs, [{ runId, limits: [limit(4, 4)] }]);
  const refused = await dataOf(app.call("POST", "/reserve", image(2, runId)));
  assert.deepEqual(
    [refused.allowed, refused.matched, refused.reasons, refused.refusedBy, refused.runs],
    [false, true, ["run_limit_reached"], [runId], [{ runId, limits: [limit(4, 4)] }]],
  );
  assert.equal("levels" in refused, false);
  assert.equal(await countOf(app, "lg_images"), 4);
  await dataOf(app.call("POST", "/commit", { reservationId: held.reservationId, actual: { count: 3 } }));
  assert.deepEqual(await countsOf(app, runId), [[3, 0]]);
  const other = await dataOf(app.call("POST", "/reserve", image(2, runId)));
  await dataOf(app.call("POST", "/release", { reservationId: other.reservationId }));
  assert.deepEqual(await countsOf(app, runId), [[3, 0]]);
  // A call without the run, or of another user, does not count there.
  await dataOf(app.call("POST", "/track", image(1)));
  assertRefused(await app.call("POST", "/reserve", { ...image(1, runId), userId: "v" }), 404, "not_found");
  assert.deepEqual(await countsOf(app, runId), [[3, 0]]);
});

Deno.test("a full run blocks a track, and can-use and explain say so", async () => {
  const app = await appWithUser(service);
  const runId = await opened(app, { name: "Digest" });
  const tracked = await dataOf(app.call("POST", "/track", image(5, runId)));
  assert.deepEqual(tracked.runs, [{ runId, limits: [limit(5, 0)] }]);
  const runs = [{ runId, limits: [limit(5, 0)] }];
  const error = assertRefused(await app.call("POST", "/track", image(1, runId)), 429, "run_limit_reached");
  const { eventId, ...details } = error.details;
  assert.deepEqual(details, { groups: [], reasons: ["run_limit_reached"], refusedBy: [runId], runs });
  assert.equal(error.message, 'Limit of the run "Digest" reached (5 of 5 count used, 1 needed)');
  const event = await dataOf(app.call("GET", `/events/${eventId}`));
  assert.deepEqual([event.matchStatus, event.runId], ["blocked", runId]);
  const check = await dataOf(app.call("POST", "/can-use", image(1, runId)));
  assert.deepEqual(
    [check.allowed, check.reasons, check.refusedBy, check.runs],
    [false, ["run_limit_reached"], [runId], runs],
  );
  const why = await dataOf(app.call("POST", "/explain", image(1, runId)));
  assert.deepEqual([why.reasons, why.refusedBy, why.runs], [["run_limit_reached"], [runId], runs]);
  assert.equal(
    why.text,
    'Refused by the run "Digest": 5 of 5 count are used, and the call needs 1.',
  );
  const feed = await dataOf(app.call("GET", `/events?runId=${runId}`));
  assert.deepEqual(feed.events.map((each: { matchStatus: string }) => each.matchStatus), [
    "blocked",
    "matched",
  ]);
  const ofUser = await dataOf(app.call("GET", `/events?runId=${runId}&userId=u`));
  assert.deepEqual(ofUser.events, feed.events);
  const both = await app.call("POST", "/track", { ...image(101, runId), event: "image.x" });
  assert.deepEqual(assertRefused(both, 429, "limit_reached").details.reasons, [
    "limit_reached",
    "run_limit_reached",
  ]);
  const { results } = await dataOf(app.call("POST", "/track/batch", { events: [image(1, runId), image(1)] }));
  assert.deepEqual(results.map((each: { ok: boolean }) => each.ok), [false, true]);
});

Deno.test("a call counts in its run and in those around it; the outer end ends the inner ones", async () => {
  const app = await appWithUser(service);
  const ids = [await opened(app)];
  for (let depth = 2; depth <= 4; depth++) ids.unshift(await opened(app, { parentRunId: ids[0] }));
  const [inner = "", , , outer = ""] = ids;
  const tooDeep = { userId: "u", limits: ONE, parentRunId: inner };
  assertRefused(await app.call("POST", "/runs", tooDeep), 400, "invalid_request");
  const held = await dataOf(app.call("POST", "/reserve", image(4, inner)));
  assert.deepEqual(held.runs, ids.map((runId) => ({ runId, limits: [limit(4, 4)] })));
  const { refusedBy } = await dataOf(app.call("POST", "/reserve", image(2, inner)));
  assert.deepEqual(refusedBy, ids);
  await dataOf(app.call("POST", `/runs/${outer}/end`, {}));
  for (const runId of ids) {
    assertRefused(await app.call("POST", "/reserve", image(1, runId)), 409, "run_ended");
    assertRefused(await app.call("POST", "/can-use", image(1, runId)), 409, "run_ended");
    assertRefused(await app.call("POST", "/track", image(1, runId)), 409, "run_ended");
  }
  assertRefused(await app.call("POST", "/runs", { ...tooDeep, parentRunId: outer }), 409, "run_ended");
  const { events } = await dataOf(app.call("GET", "/events"));
  assert.deepEqual(events, [], "nothing is recorded of a call with an ended run");
  await dataOf(app.call("POST", "/commit", { reservationId: held.reservationId, actual: { count: 9 } }));
  for (const runId of ids) assert.deepEqual(await countsOf(app, runId), [[9, 0]]);
});

Deno.test("a lapsed reservation leaves its run, and a late commit counts there, though it has ended", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  const key = TEST(app);
  const outer = await opened(app, { ttlSeconds: 60 }, TEST);
  const inner = await dataOf(
    app.call("POST", "/runs", { userId: "u", limits: ONE, parentRunId: outer }, key),
  );
  const { expiresAt } = await dataOf(app.call("GET", `/runs/${outer}`, undefined, key));
  assert.equal(inner.expiresAt, expiresAt, "cut to the end of the run around it");
  const held = await dataOf(app.call("POST", "/reserve", { ...image(2, inner.runId), ttlSeconds: 10 }, key));
  const advance = (seconds: number) => app.call("POST", "/test-clock", { advanceSeconds: seconds }, key);
  await advance(10);
  assert.deepEqual(await countsOf(app, outer, TEST), [[0, 0]]);
  await advance(60);
  assertRefused(await app.call("POST", "/reserve", image(1, inner.runId), key), 409, "run_ended");
  const { runs } = await dataOf(app.call("GET", "/runs?userId=u&status=ended", undefined, key));
  assert.deepEqual(runs.map((run: { endedAt: string }) => run.endedAt), [expiresAt, expiresAt]);
  await opened(app, {}, TEST);
  await dataOf(app.call("POST", "/commit", { reservationId: held.reservationId }, key));
  for (const runId of [inner.runId, outer]) assert.deepEqual(await countsOf(app, runId, TEST), [[2, 0]]);
  await advance(30 * 86_400 - 20);
  assertRefused(await app.call("POST", "/track", image(1, outer), key), 409, "run_ended");
  await advance(60);
  assertRefused(await app.call("POST", "/track", image(1, outer), key), 404, "not_found");
  assertRefused(await app.call("GET", `/runs/${outer}`, undefined, key), 404, "not_found");
});

Deno.test("a merge moves runs", async () => {
  const app = await appWithUser(service);
  const runId = await opened(app);
  const ended = await opened(app);
  const held = await dataOf(app.call("POST", "/reserve", image(2, runId)));
  await dataOf(app.call("POST", `/runs/${ended}/end`, {}));
  await dataOf(app.call("POST", "/customers/alias", { from: "u", to: "person" }));
  const { runs } = await dataOf(app.call("GET", "/runs?userId=person"));
  assert.deepEqual(
    runs.map((run: { runId: string; userId: string }) => [run.runId, run.userId]),
    [[ended, "person"], [runId, "person"]],
  );
  const person = { ...image(1, runId), userId: "person" };
  const more = await dataOf(app.call("POST", "/track", person));
  assert.deepEqual(more.runs, [{ runId, limits: [limit(3, 2)] }]);
  assertRefused(await app.call("POST", "/track", { ...person, runId: ended }), 409, "run_ended");
  await dataOf(app.call("POST", "/commit", { reservationId: held.reservationId }));
  assert.deepEqual(await countsOf(app, runId), [[3, 0]]);
});

Deno.test("an export has a person's runs, and an erasure removes them", async () => {
  const app = await appWithUser(service);
  assert.equal("runs" in await exportOf(service, app, "u"), false);
  const runId = await opened(app, { name: "Digest", metadata: { job: 7 } });
  await dataOf(app.call("POST", "/track", image(2, runId)));
  const { runs } = await exportOf(service, app, "u");
  assert.deepEqual(
    runs?.map((
      { runId: id, name, metadata, limits }: Record<string, unknown>,
    ) => [id, name, metadata, limits]),
    [
      [runId, "Digest", { job: 7 }, [limit(2, 0)]],
    ],
  );
  await dataOf(app.call("POST", "/delete-person", { distinctId: "u" }));
  await sweep(service);
  const left = await service.store.database.query("select from runs where id = $1", [runId]);
  assert.equal(left.length, 0);
  assertRefused(await app.call("GET", `/runs/${runId}`), 404, "not_found");
});

Deno.test("the counts of all these runs add up in the tables", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("GET", "/runs?userId=u"));
  assert.deepEqual(await driftsOf(service), []);
});
