// A first answer is durable together with its effect: a call whose first answer could not be kept afterwards is not
// carried out again by its retry. And keys of public and secret API keys are apart.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { Term } from "../../actors/term.ts";
import type { Answer, TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

interface Keyed {
  readonly path: string;
  readonly body: unknown;
  readonly id?: string;
  readonly key?: string;
}

function callKeyed(app: TestApp, { path, body, id = "k", key = app.secretLive }: Keyed): Promise<Answer> {
  return app.call("POST", path, body, { key, headers: { "idempotency-key": id } });
}

/** Makes a call as before a fault: its effect becomes durable, an answer kept after it does not. Then sends it again. */
async function retried(app: TestApp, call: Keyed): Promise<Answer> {
  const { keepAnswer } = Term.prototype;
  Term.prototype.keepAnswer = () => Promise.reject(new Unavailable("A test kept no answer"));
  try {
    await callKeyed(app, call);
  } finally {
    Term.prototype.keepAnswer = keepAnswer;
  }
  await service.restart();
  return await callKeyed(app, call);
}

Deno.test("a retried batch tracks no event twice, with and without keys of their own", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/subscriptions", { userId: "v", planId: "plan_pro" }));
  const event = (userId: string, more = {}) => ({ userId, event: "image.x", ...more });
  const events = [event("u"), event("v"), event("u", { idempotencyKey: "own" }), event("u"), {}];
  const again = await retried(app, { path: "/track/batch", body: { events } });
  const { results } = await dataOf(Promise.resolve(again));
  assert.deepEqual(results.map((one: { ok: boolean }) => one.ok), [true, true, true, true, false]);
  assert.equal(await countOf(app, "u"), 3);
  assert.equal(await countOf(app, "v"), 1);
  const feed = await dataOf(app.call("GET", "/events?limit=100"));
  assert.equal(feed.events.length, 4);
  assertReplay(again, await callKeyed(app, { path: "/track/batch", body: { events } }));
});

Deno.test("another batch under the key of one that failed is a conflict, event by event", async () => {
  const app = await appWithUser(service);
  const call = { path: "/track/batch", body: { events: [{ userId: "u", event: "image.x" }] } };
  const { keepAnswer } = Term.prototype;
  Term.prototype.keepAnswer = () => Promise.reject(new Unavailable("A test kept no answer"));
  await callKeyed(app, call).finally(() => Term.prototype.keepAnswer = keepAnswer);
  const other = { ...call, body: { events: [{ userId: "u", event: "image.y" }] } };
  const { results: [result] } = await dataOf(callKeyed(app, other));
  assert.equal(result.error.code, "idempotency_conflict");
  assert.equal(await countOf(app, "u"), 1);
});

Deno.test("no key that a caller sends is that of an event of a batch", async () => {
  const app = await appWithUser(service);
  const body = { events: [{ userId: "u", event: "image.x" }] };
  await dataOf(callKeyed(app, { path: "/track/batch", body }));
  const [{ key }] = await service.store.database.query<{ key: string }>(
    "select key from idempotency where position('part' in key) > 0 order by at_ms desc limit 1",
  ).then((rows) => rows as [{ key: string }]);
  const events = [{ userId: "u", event: "image.other", idempotencyKey: key }];
  const { results: [result] } = await dataOf(app.call("POST", "/track/batch", { events }));
  assert.equal(result.ok, true);
  assert.equal(await countOf(app, "u"), 2);
});

Deno.test("a retried capture records one event", async () => {
  const app = await appWithUser(service);
  const call = { path: "/capture", body: { distinctId: "u", event: "page" }, key: app.publicLive };
  const again = await retried(app, call);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  const rows = await service.store.database.query(
    "select 1 from analytics_events e join realms r on r.realm = e.realm where r.app_id = $1",
    [app.appId],
  );
  assert.equal(rows.length, 1);
});

Deno.test("a retried move of the test clock moves it once", async () => {
  const app = await appWithUser(service);
  const call = { path: "/test-clock", body: { advanceSeconds: 3600 }, key: app.secretTest };
  const start = service.clock.now();
  await retried(app, call);
  const { now } = await dataOf(app.call("GET", "/test-clock", undefined, { key: app.secretTest }));
  assert.equal(Date.parse(now), start + 3_600_000);
});

Deno.test("a retried batch of merges reports the same operations", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/subscriptions", { userId: "w", planId: "plan_pro" }));
  const body = { pairs: [{ from: "w", to: "u" }, { from: "x", to: "u" }, 1] };
  const again = await retried(app, { path: "/customers/alias/batch", body });
  const { results, billableOperations } = await dataOf(Promise.resolve(again));
  assert.ok(billableOperations > 0);
  assert.deepEqual(results.map((one: { report?: { alreadyMerged: boolean } }) => one.report?.alreadyMerged), [
    false,
    false,
    undefined,
  ]);
});

Deno.test("a retried deletion is one job, also where the job has ended", async () => {
  const app = await appWithUser(service);
  const call = { path: "/delete-person", body: { distinctId: "u" } };
  const again = await retried(app, call);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  const jobs = await service.store.database.query(
    "select 1 from erasure_jobs j join realms r on r.realm = j.realm where r.app_id = $1",
    [app.appId],
  );
  assert.equal(jobs.length, 1);
});

Deno.test("a public key takes no idempotency key of a secret one, and replays its own", async () => {
  const app = await appWithUser(service);
  const capture = { path: "/capture", body: { event: "page" }, id: "grant-1", key: app.publicLive };
  await dataOf(callKeyed(app, capture));
  const grant = { path: "/track", body: { userId: "u", event: "image.x" }, id: "grant-1" };
  const first = await callKeyed(app, grant);
  assert.equal(first.status, 200, JSON.stringify(first.body));
  assertReplay(first, await callKeyed(app, grant));
  assertReplay(
    await callKeyed(app, { ...capture, id: "c2" }),
    await callKeyed(app, { ...capture, id: "c2" }),
  );
  assertRefused(await callKeyed(app, { ...capture, body: { event: "other" } }), 409, "idempotency_conflict");
});

Deno.test("a first answer that an earlier version kept replays for a secret key", async () => {
  const app = await appWithUser(service);
  const call = { path: "/track", body: { userId: "u", event: "image.x" }, id: "plain key" };
  await dataOf(callKeyed(app, call));
  await service.serving().term.flush();
  const rows = await service.store.database.query("select 1 from idempotency where key = 'plain key'");
  assert.equal(rows.length, 1);
});

/** How often a user was charged. */
async function countOf(app: TestApp, userId: string): Promise<number> {
  const { counters } = await dataOf(app.call("GET", `/usage?userId=${userId}`));
  return counters.find((row: { groupId: string }) => row.groupId === "lg_images").count;
}

function assertReplay(first: Answer, again: Answer): void {
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.deepEqual(again.body, first.body);
}
