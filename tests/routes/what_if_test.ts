// What if: recorded events decided anew. Under the catalog in force the counters are those that the service has; under another
// one the calls are refused that it would have refused.

import assert from "node:assert/strict";
import { ADMIN_TOKEN } from "../support/test_service.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { countBoth, countersOf, DAILY, group, whatIf } from "./what_if_workload.ts";

const service = serviceOfFile();

Deno.test("under the catalog in force a random workload counts what the service counted", async () => {
  const { blocked, events, users, folded, counted } = await countBoth(service, 1, 120);
  assert.deepEqual(folded, counted);
  assert.equal(users, 5);
  assert.ok(events > 60 && blocked > 2, `${events} ${blocked}`);
});

const IMAGES = { ...group("images", "count", 100), period: DAILY };

function imagesOf(quota: number, more: object = {}) {
  const plan = { id: "p", name: "P", rank: 1, period: DAILY, limits: [{ ...IMAGES, quota }] };
  return {
    plans: [plan, {
      ...plan,
      id: "q",
      name: "Q",
      rank: 2,
      limits: [{ ...IMAGES, id: "more", quota: quota + 2 }],
    }],
    ...more,
  };
}

/** An app whose users made so many calls on each of some days from the next one on. */
async function appWithCalls(calls: Readonly<Record<string, readonly number[]>>) {
  const app = await service.newApp(imagesOf(100));
  service.clock.set(Math.ceil(service.clock.now() / 86_400_000) * 86_400_000);
  const from = service.clock.now();
  for (const userId of Object.keys(calls)) {
    await dataOf(app.call("POST", "/subscriptions", { userId, planId: "p" }));
  }
  const days = Math.max(...Object.values(calls).map((each) => each.length));
  for (let day = 0; day < days; day++) {
    for (const [userId, ofUser] of Object.entries(calls)) {
      for (let call = 0; call < (ofUser[day] ?? 0); call++) {
        await dataOf(app.call("POST", "/track", { userId, event: "images.x" }));
        service.clock.advance(1000);
      }
    }
    service.clock.set(from + (day + 1) * 86_400_000);
  }
  const dayOf = (day: number) => new Date(from + day * 86_400_000).toISOString().slice(0, 10);
  return { app, from, dayOf };
}

Deno.test("another catalog refuses what is past its quotas, by day, group and users, and changes nothing", async () => {
  const { app, from, dayOf } = await appWithCalls({ a: [6, 2], b: [5, 5], c: [1, 0] });
  const before = await countersOf(service, app);
  const { events, users, refused, counters } = await whatIf(service, app, from, { catalog: imagesOf(4) });
  assert.deepEqual([events, users], [19, 3]);
  assert.deepEqual(refused, [
    { day: dayOf(0), groupId: "images", calls: 3, users: 2 },
    { day: dayOf(1), groupId: "images", calls: 1, users: 1 },
  ]);
  assert.deepEqual(counters.map(({ userId, count }: { userId: string; count: number }) => [userId, count]), [
    ["a", 4],
    ["a", 2],
    ["b", 4],
    ["b", 4],
    ["c", 1],
  ]);
  assert.deepEqual(await countersOf(service, app), before);
  assert.equal((await whatIf(service, app, from + 86_400_000, { catalog: imagesOf(4) })).events, 7);
});

Deno.test("each event is decided under the plan of its time", async () => {
  const { app, from, dayOf } = await appWithCalls({ a: [3], b: [3] });
  await dataOf(app.call("POST", "/subscriptions", { userId: "a", planId: "q" }));
  await dataOf(app.call("DELETE", "/subscriptions", { userId: "b" }));
  for (const userId of ["a", "b"]) {
    for (let call = 0; call < 5; call++) {
      service.clock.advance(1000);
      await dataOf(app.call("POST", "/track", { userId, event: "images.x" }));
    }
  }
  service.clock.advance(1000);
  const { refused, counters } = await whatIf(service, app, from, { catalog: imagesOf(2) });
  assert.deepEqual(refused, [
    { day: dayOf(0), groupId: "images", calls: 2, users: 2 },
    { day: dayOf(1), groupId: "more", calls: 1, users: 1 },
  ]);
  assert.equal(counters.find(({ groupId }: { groupId: string }) => groupId === "more").count, 4);
});

Deno.test("an app tries one catalog at a time; an invalid one and an empty span are refused", async () => {
  const { app, from } = await appWithCalls({ a: [3] });
  const path = `/api/admin/v1/apps/${app.appId}/what-if`;
  const span = {
    mode: "live",
    from: new Date(from).toISOString(),
    to: new Date(service.clock.now()).toISOString(),
  };
  const open = await service.http.fetch(
    new Request(`http://service.test${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(span),
    }),
  );
  const reader = (open.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  const ask = (body: object) => service.admin("POST", `/apps/${app.appId}/what-if`, body);
  assertRefused(await ask(span), 429, "rate_limited");
  await reader.cancel();
  assert.equal((await whatIf(service, app, from)).events, 3);
  assertRefused(await ask({ ...span, catalog: { plans: [{}] } }), 400, "invalid_request");
  const error = assertRefused(await ask({ ...span, to: span.from }), 400, "invalid_request");
  assert.equal(error.message, "to: must be after from");
});
