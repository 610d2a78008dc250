// What if: recorded events decided anew. Under the catalog in force the counters are those that the service has; under another
// one the calls are refused that it would have refused.

import assert from "node:assert/strict";
import { ADMIN_TOKEN, type TestApp } from "../support/test_service.ts";
import { Random } from "../model/random.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const DAILY = { type: "daily", anchor: "calendar" };

/** A limit group that matches one kind of event. */
function group(id: string, unit: string, quota: number, more: object = {}) {
  return { id, label: id, unit, quota, matches: [{ event: `${id}.*` }], ...more };
}

const LIMITS = [
  group("images", "count", 12),
  group("chat", "tokens", 9_000, { period: { type: "hourly", anchor: "subscription_start" } }),
  group("clips", "seconds", 90),
  group("spend", "cents", 60),
  group("points", "credits", 50),
  group("sold", "count", 5, { overage: { max: 4 } }),
  group("burst", "count", 30, { period: { type: "session", seconds: 7_200 } }),
];

const CATALOG = {
  models: [
    {
      id: "gpt",
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: 500,
      outputCentsPerMillionTokens: 2_000,
    },
    { id: "veo", modality: "video", amountMode: "per_unit", centsPerSecond: 0.5 },
  ],
  rates: [{ event: "points.*", perImage: 2, perMillionInputTokens: 500, perMillionOutputTokens: 900 }],
  plans: [
    { id: "small", name: "Small", rank: 1, period: DAILY, limits: LIMITS },
    {
      id: "large",
      name: "Large",
      rank: 2,
      period: { type: "weekly", anchor: "subscription_start" },
      includes: [{ packId: "extra", quantity: 1 }],
      limits: LIMITS.map((limit) => ({ ...limit, quota: limit.quota * 3 })),
    },
    {
      id: "team",
      name: "Team",
      rank: 3,
      period: DAILY,
      limits: [{ ...group("images", "count", 25, { perMember: { quota: 9 } }) }],
    },
  ],
  packs: [{
    id: "extra",
    name: "Extra",
    kind: "per_type",
    items: [{ id: "i", label: "Images", unit: "count", amount: 6, matches: [{ event: "images.*" }] }],
  }],
};

const PLANS = { a: "small", b: "small", c: "large", d: "small", boss: "team" };

/** Asks what a catalog would do to the events of a span: the result in the last line of the answer. */
async function whatIf(app: TestApp, from: number, more: object = {}) {
  const span = {
    mode: "live",
    from: new Date(from).toISOString(),
    to: new Date(service.clock.now()).toISOString(),
  };
  const { status, body } = await service.admin("POST", `/apps/${app.appId}/what-if`, { ...span, ...more });
  assert.equal(status, 200, JSON.stringify(body));
  const lines = String(body).trim().split("\n").map((line) => JSON.parse(line));
  assert.ok(lines.slice(0, -1).every(({ progress }) => progress !== undefined), String(body));
  return lines.at(-1).result;
}

/** The counters that the service has, as a result lists them. */
async function countersOf(app: TestApp) {
  await service.serving().term.flush();
  const rows = await service.store.database.query<Record<string, string | number>>(
    `select u.id, c.group_id, c.window_start_ms, c.count from counters c join users u on u.key = c.user_key
     join realms r on r.realm = u.realm where r.app_id = $1 and c.count > 0 and c.kind is distinct from 'rate'`,
    [app.appId],
  );
  return rows.map((row) => ({
    userId: row.id,
    groupId: row.group_id,
    windowStart: new Date(Number(row.window_start_ms)).toISOString(),
    count: Number(row.count),
  })).toSorted(inOrder);
}

function inOrder(one: object, other: object): number {
  return JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;
}

/** One call of a workload, of a random kind and size: a track, or a reserve that is settled. */
async function callAtRandom(app: TestApp, random: Random): Promise<number> {
  const userId = random.pick(Object.keys(PLANS));
  const kind = random.pick(LIMITS).id;
  const event = `${kind}.x`;
  const size = {
    ...kind === "chat" || random.chance(0.2) ? { inputTokens: random.whole(0, 3_000) } : {},
    ...kind === "clips" || random.chance(0.2) ? { quantity: random.whole(1, 40) / 2 } : {},
    ...random.chance(0.5) ? { count: random.whole(1, 4) } : {},
    ...random.chance(0.3) ? { metadata: { model: random.pick(["gpt", "veo", "none"]) } } : {},
    ...random.chance(0.2) ? { inputCostCents: random.whole(0, 9) } : {},
  };
  const usage = { inputTokens: random.whole(0, 2_000), outputTokens: random.whole(0, 2_000) };
  if (random.chance(0.5)) {
    const { status } = await app.call("POST", "/track", {
      userId,
      event,
      ...size,
      ...random.chance(0.3) ? { usage } : {},
    });
    return status;
  }
  const hold = await app.call("POST", "/reserve", {
    userId,
    event,
    ...size,
    maxOutputTokens: random.whole(0, 900),
  });
  if (hold.body.data?.allowed !== true) return hold.status;
  const { reservationId } = hold.body.data;
  service.clock.advance(random.whole(0, 200) * 1000);
  if (random.chance(0.15)) return (await app.call("POST", "/release", { reservationId })).status;
  const final = random.pick([{}, { usage }, { actual: { count: random.whole(0, 6) } }, {
    extra: { tokens: 500 },
  }, { costCents: 7 }]);
  return (await app.call("POST", "/commit", { reservationId, ...final })).status;
}

Deno.test("under the catalog in force a random workload counts what the service counted", async () => {
  for (const seed of [1, 2]) {
    const random = new Random(seed);
    const app = await service.newApp(CATALOG);
    service.clock.set(Math.ceil(service.clock.now() / 86_400_000) * 86_400_000);
    const from = service.clock.now();
    for (const [userId, planId] of Object.entries(PLANS)) {
      await dataOf(app.call("POST", "/subscriptions", { userId, planId }));
      service.clock.advance(1000);
    }
    for (const userId of ["a", "b"]) {
      await dataOf(app.call("PUT", `/users/${userId}/parent`, { parentId: "boss" }));
    }
    const statuses = new Map<number, number>();
    for (let step = 0; step < 250; step++) {
      service.clock.advance(random.whole(0, 200) * 1000);
      if (step === 100) {
        await dataOf(app.call("POST", "/credits/grant", { userId: "d", packId: "extra", quantity: 2 }));
      }
      const status = await callAtRandom(app, random);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    assert.ok((statuses.get(429) ?? 0) > 5, JSON.stringify([...statuses]));
    service.clock.advance(1);
    const { events, users, counters } = await whatIf(app, from);
    assert.deepEqual(counters.toSorted(inOrder), await countersOf(app), `seed ${seed}`);
    assert.equal(users, 5);
    assert.ok(events > 120);
  }
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
  const before = await countersOf(app);
  const { events, users, refused, counters } = await whatIf(app, from, { catalog: imagesOf(4) });
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
  assert.deepEqual(await countersOf(app), before);
  assert.equal((await whatIf(app, from + 86_400_000, { catalog: imagesOf(4) })).events, 7);
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
  const { refused, counters } = await whatIf(app, from, { catalog: imagesOf(2) });
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
  assert.equal((await whatIf(app, from)).events, 3);
  assertRefused(await ask({ ...span, catalog: { plans: [{}] } }), 400, "invalid_request");
  assertRefused(await ask({ ...span, to: span.from }), 400, "invalid_request", /to: must be after from/);
});
