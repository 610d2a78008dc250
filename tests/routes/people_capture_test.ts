// Capture: what is accepted, whose an event is, and that one person is one however many calls come at once.

import assert from "node:assert/strict";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { captured, consent, countsOf, eventsOf, realmOf, tracesOf } from "./people_support.ts";

const service = serviceOfFile();

Deno.test("an event of an id is its person's, and one without an id is nobody's", async () => {
  const app = await service.newApp();
  const now = service.clock.now();
  await captured(app, {
    distinctId: "u",
    event: "signup",
    properties: { plan: "pro", seats: 2.5, trial: true },
  });
  await captured(app, { distinctId: "u", properties: { none: null } }, app.secretLive);
  await captured(app, { distinctId: null, properties: null, timestamp: null });
  await captured(app, {});
  const [first, second, third, fourth] = await eventsOf(service, app);
  assert.deepEqual(
    [first?.event, first?.properties, first?.at_ms],
    ["signup", '{"plan":"pro","seats":2.5,"trial":true}', now],
  );
  assert.match(first?.person_id ?? "", /^pid_/);
  assert.equal(second?.person_id, first?.person_id);
  for (const row of [third, fourth]) {
    assert.deepEqual([row?.person_id, row?.pseudonym, row?.properties], [null, null, "{}"]);
  }
  const counts = await countsOf(service, app);
  assert.deepEqual(counts, { people: 1, person_ids: 1, analytics_events: 4, pseudonyms: 0 });
});

Deno.test("nothing of the caller but the event is kept", async () => {
  const app = await service.newApp();
  const headers = {
    "user-agent": "agent-of-nobody",
    "x-forwarded-for": "203.0.113.77",
    referer: "http://from.test",
  };
  await dataOf(app.call("POST", "/capture", { event: "page" }, { headers }));
  for (const text of ["agent-of-nobody", "203.0.113.77", "from.test"]) {
    assert.deepEqual(await tracesOf(service, text), [], text);
  }
});

Deno.test("a time may be long ago and at most 24 hours ahead by the realm's clock", async () => {
  const app = await service.newApp();
  const now = service.clock.now();
  const day = 24 * 3_600_000;
  const at = (ms: number) => new Date(ms).toISOString();
  await captured(app, { distinctId: "u", timestamp: "1999-12-31T23:59:59+01:00" });
  await captured(app, { distinctId: "u", timestamp: at(now + day) });
  const late = await app.call("POST", "/capture", { event: "e", timestamp: at(now + day + 1) });
  assertRefused(late, 400, "invalid_request");
  const times = (await eventsOf(service, app)).map(({ at_ms }) => at_ms);
  assert.deepEqual(times, [Date.UTC(1999, 11, 31, 22, 59, 59), now + day]);
  const test = { key: app.secretTest };
  const later = { event: "e", distinctId: "u", timestamp: at(now + 2 * day) };
  assertRefused(await app.call("POST", "/capture", later, test), 400, "invalid_request");
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 86_400 }, test));
  await dataOf(app.call("POST", "/capture", later, test));
});

Deno.test("bad input is refused whole", async () => {
  const app = await service.newApp();
  const bad: unknown[] = [
    {},
    { event: "" },
    { event: "a*" },
    { event: "a\nb" },
    { event: 1 },
    { event: "x".repeat(201) },
    { event: "e", distinctId: "" },
    { event: "e", distinctId: 7 },
    { event: "e", distinctId: "x".repeat(201) },
    { event: "e", distinctId: "a\0b" },
    { event: "e", distinctId: "a\ud800" },
    { event: "e", properties: [] },
    { event: "e", properties: "x" },
    { event: "e", properties: { a: [] } },
    { event: "e", properties: { a: { b: 1 } } },
    { event: "e", properties: { a: "\ud800" } },
    { event: "e", properties: { text: "x".repeat(16 * 1024) } },
    { event: "e", timestamp: "yesterday" },
    { event: "e", timestamp: 5 },
    '{"event":"e","properties":{"a":1e999}}',
    '{"event":"e","properties":{"a":-1e999}}',
  ];
  for (const body of bad) {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    assertRefused(await app.call("POST", "/capture", text), 400, "invalid_request", text.slice(0, 80));
  }
  assert.equal((await eventsOf(service, app)).length, 0);
  const most = { text: "x".repeat(16 * 1024 - '{"text":""}'.length) };
  await captured(app, { properties: most });
  await captured(app, { distinctId: "😀".repeat(200), event: "é".repeat(200) });
  const odd = '{"event":"e","properties":{"__proto__":"own","constructor":1,"":null}}';
  await dataOf(app.call("POST", "/capture", odd));
  assert.equal(
    (await eventsOf(service, app)).at(-1)?.properties,
    '{"__proto__":"own","constructor":1,"":null}',
  );
});

Deno.test("parallel first events of an id make one person", async () => {
  const app = await service.newApp();
  const calls = Array.from({ length: 24 }, (_, index) => captured(app, { distinctId: `u${index % 3}` }));
  await Promise.all(calls);
  const counts = await countsOf(service, app);
  assert.deepEqual(counts, { people: 3, person_ids: 3, analytics_events: 24, pseudonyms: 0 });
  assert.equal(new Set((await eventsOf(service, app)).map(({ person_id }) => person_id)).size, 3);
});

Deno.test("apps and modes share no people", async () => {
  const [app, other] = [await service.newApp(), await service.newApp()];
  await captured(app, { distinctId: "u" });
  await captured(app, { distinctId: "u" }, app.publicTest);
  await captured(other, { distinctId: "u" });
  const people = await service.store.database.query<{ realm: number }>(
    "select realm from person_ids where distinct_id = 'u' and realm >= $1::int",
    [service.serving().registry.apps.get(app.appId)?.realms.live.realm ?? 0],
  );
  assert.equal(new Set(people.map(({ realm }) => realm)).size, 3);
});

Deno.test("an event under an idempotency key is recorded once", async () => {
  const app = await service.newApp();
  const headers = { "idempotency-key": "once" };
  const body = { event: "e", distinctId: "u" };
  await dataOf(app.call("POST", "/capture", body, { headers }));
  const again = await app.call("POST", "/capture", body, { headers });
  assert.deepEqual([again.status, again.headers.get("idempotent-replayed")], [200, "true"]);
  assert.equal((await eventsOf(service, app)).length, 1);
});

Deno.test("an event of a person who is about to be erased is dropped, and the answer is the same", async () => {
  const app = await appWithUser(service);
  await captured(app, { distinctId: "u", event: "before" });
  await service.serving().term.flush();
  await service.store.database.query(
    "update users set erasing = true where id = 'u' and realm = $1::int",
    [realmOf(service, app).realm],
  );
  await captured(app, { distinctId: "u", event: "after" });
  assert.deepEqual((await eventsOf(service, app)).map(({ event }) => event), ["before"]);
});

Deno.test("personalization and prompt logs are other scopes: they leave capture as it is", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "u" });
  await consent(app, "/opt-out", "u", "ai_personalization");
  await consent(app, "/opt-out", "u", "prompt_logging");
  await captured(app, { distinctId: "u" });
  const [before, after] = await eventsOf(service, app);
  assert.ok(before !== undefined && before.person_id === after?.person_id);
});
