// The document of an export: what it holds of whom, and that a large one is made as it is read.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { appWithUser, CATALOG, dataOf, serviceOfFile } from "./support.ts";
import { captured, consent, exportOf, identified, linked, linkOf, open, realmOf } from "./people_support.ts";
import type { TestApp, TestService } from "../support/test_service.ts";

const service = serviceOfFile();

Deno.test("the document holds everything of every id, newest first, in this exact shape", async () => {
  const app = await appWithUser(service);
  const at = () => new Date(service.clock.now()).toISOString();
  const start = at();
  await captured(app, { distinctId: "anon_1", event: "visit", properties: { page: "/" } });
  service.clock.advance(1000);
  const { personId } = await identified(app, {
    distinctId: "u",
    properties: { name: "Ada" },
    mergeAnonymousId: "anon_1",
    consentGiven: true,
  });
  const { eventId: first } = await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  service.clock.advance(1000);
  const { eventId: second } = await dataOf(app.call("POST", "/track", { userId: "device", event: "chat.y" }));
  await dataOf(app.call("POST", "/customers/alias", { from: "device", to: "u" }));
  await captured(app, { event: "of nobody" });
  await consent(app, "/opt-out", "anon_1");
  service.clock.advance(1000);
  await consent(app, "/opt-in", "u", "ai_personalization");
  await captured(app, { distinctId: "u", event: "under a pseudonym" });
  const document = await exportOf(service, app, "anon_1");
  const { id } = document.events.analytics[0];
  const feed = await dataOf(app.call("GET", "/events"));
  assert.deepEqual(document, {
    format: "json",
    exportedAt: at(),
    appId: app.appId,
    mode: "live",
    distinctId: "anon_1",
    person: {
      personId,
      distinctIds: ["anon_1", "device", "u"],
      properties: { name: "Ada" },
      identifiedAt: new Date(Date.parse(start) + 1000).toISOString(),
      createdAt: start,
    },
    events: {
      analytics: [{ id, event: "visit", properties: { page: "/" }, timestamp: start }],
      metering: feed.events,
    },
    consentLog: document.consentLog,
  });
  assert.deepEqual(feed.events.map((event: { id: string }) => event.id), [second, first]);
  const [optIn, optOut] = document.consentLog;
  assert.deepEqual(document.consentLog, [
    { id: optIn.id, action: "opt_in", scope: "ai_personalization", consentGiven: true, createdAt: at() },
    {
      id: optOut.id,
      action: "opt_out",
      scope: "all",
      consentGiven: false,
      createdAt: new Date(service.clock.now() - 1000).toISOString(),
    },
  ]);
});

Deno.test("an unknown id and one without a person export what there is, and opted-out ones all of it", async () => {
  const app = await appWithUser(service);
  const none = await exportOf(service, app, "nobody");
  assert.deepEqual(
    [none.person, none.events, none.consentLog],
    [null, { analytics: [], metering: [] }, []],
  );
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  await consent(app, "/opt-out", "u");
  const metered = await exportOf(service, app, "u");
  assert.deepEqual([metered.person, metered.events.metering.length, metered.consentLog.length], [null, 1, 1]);
  const odd = "u/?&=%\"'\u2028\ufeff😀\u0001";
  assert.equal((await exportOf(service, app, odd)).distinctId, odd);
});

Deno.test("a preview stands in the document for the prompt itself, as in the feed", async () => {
  const app = await service.newApp({ ...CATALOG, settings: { ...CATALOG.settings, promptLogging: true } });
  const prompt = "😀".repeat(300);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "e", prompt }));
  const { events } = await exportOf(service, app, "u");
  assert.deepEqual(events.metering, (await dataOf(app.call("GET", "/events"))).events);
  assert.equal([...events.metering[0].promptPreview].length, 200);
});

Deno.test("after an erasure the document has nothing, and a link of before opens that", async () => {
  const app = await appWithUser(service);
  await identified(app, { distinctId: "u", properties: { name: "Ada" } });
  await captured(app, { distinctId: "u" });
  await consent(app, "/opt-out", "u");
  const link = await linkOf(app, "u");
  const { jobId } = await dataOf(app.call("POST", "/delete-person", { distinctId: "u" }));
  const status = () =>
    app.call("GET", `/deletion-status?jobId=${jobId}`).then(({ body }) => body.data.status);
  for (let tries = 0; tries < 200 && await status() !== "completed"; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(await status(), "completed");
  const { person, events, consentLog } = (await open(service, link)).body;
  assert.deepEqual([person, events, consentLog], [null, { analytics: [], metering: [] }, []]);
});

const MANY = 50_000;

/** Puts many events of a person into the tables: some of it and some of people who were merged into it. */
async function seed(service: TestService, app: TestApp): Promise<void> {
  await dataOf(app.call("POST", "/track", { userId: "u", event: "e" }));
  await dataOf(app.call("POST", "/track", { userId: "device", event: "e" }));
  for (const id of ["x", "y", "device"]) await linked(app, id, "u");
  for (const distinctId of ["early", "late"]) {
    await captured(app, { distinctId });
    await linked(app, distinctId, "u");
  }
  await service.serving().term.flush();
  const { database } = service.store;
  const { realm } = realmOf(service, app);
  await database.query(
    `insert into events (id, user_key, realm, type, quantity, cost_cents, match_status, created_at_ms, lines, uncovered)
     select 'evt_' || lpad(n::text, 20, '0'), u.key, $1::int, 'e', 1, 0.5, 'unmatched', 1000000 + n / 7, '[]', '[]'
     from generate_series(1, $2::int) n
     join users u on u.realm = $1::int and u.id = case when n % 3 = 0 then 'device' else 'u' end`,
    [realm, MANY],
  );
  await database.query(
    `insert into analytics_events (id, realm, person_id, event, properties, at_ms)
     select 'ane_' || lpad(n::text, 20, '0'), $1::int, p.id, 'e', '{"n":' || n || '}', 1000000 + n / 7
     from generate_series(1, $2::int) n
     join (select id, row_number() over (order by id) - 1 as place, count(*) over () as people
       from people where realm = $1::int) p on p.place = n % p.people`,
    [realm, MANY],
  );
}

Deno.test("a large document is complete, in order, and made as it is read", async () => {
  const app = await service.newApp();
  await seed(service, app);
  const url = await linkOf(app, "late");
  const { database } = service.store;
  let queries = 0;
  const query = database.query;
  const counted: typeof query = (text, params) => {
    queries += 1;
    return query(text, params);
  };
  Object.assign(database, { query: counted });
  try {
    const { pathname, search } = new URL(url);
    const response = await service.http.fetch(new Request(`http://x${pathname}${search}`));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const chunks: Uint8Array[] = [];
    for (let count = 0; count < 3; count++) chunks.push((await reader.read()).value as Uint8Array);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.ok(queries < 30, `${queries} queries for the first pieces`);
    const heap = Deno.memoryUsage().heapUsed;
    let peak = 0;
    let largest = 0;
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      chunks.push(piece.value);
      largest = Math.max(largest, piece.value.byteLength);
      peak = Math.max(peak, Deno.memoryUsage().heapUsed - heap);
    }
    assert.ok(largest < 1_000_000, `a piece of ${largest} bytes`);
    assert.ok(peak < 200_000_000, `${peak} bytes more`);
    const document = JSON.parse(Buffer.concat(chunks).toString());
    const { analytics, metering } = document.events;
    assertNewestFirst(analytics.map(({ id, timestamp }: Record<string, string>) => [timestamp, id]));
    assertNewestFirst(metering.map(({ id, createdAt }: Record<string, string>) => [createdAt, id]));
    assert.deepEqual([analytics.length, metering.length], [MANY + 2, MANY + 2]);
  } finally {
    Object.assign(database, { query });
  }
});

Deno.test("a reader who leaves ends the work", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "u" });
  const { pathname, search } = new URL(await linkOf(app, "u"));
  const response = await service.http.fetch(new Request(`http://x${pathname}${search}`));
  await response.body?.cancel();
  assert.equal((await exportOf(service, app, "u")).events.analytics.length, 1);
});

function assertNewestFirst(rows: readonly [string, string][]) {
  for (let index = 1; index < rows.length; index++) {
    const [before, after] = [rows[index - 1], rows[index]] as [[string, string], [string, string]];
    const isOrdered = before[0] === after[0] ? before[1] > after[1] : before[0] > after[0];
    assert.ok(isOrdered, `${before} then ${after}`);
  }
}
