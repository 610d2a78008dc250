// People: capture and identify. What is accepted, whose an event is, which properties win, and the merge of a session.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";
import {
  captured,
  consent,
  countsOf,
  eventsOf,
  exportOf,
  identified,
  isOut,
  linked,
  realmOf,
  tracesOf,
} from "./people_support.ts";

const service = serviceOfFile();

Deno.test("an event of an id belongs to its person, an event without an id to no person", async () => {
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

Deno.test("personalization and prompt logs are other scopes: they do not change capture", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "u" });
  await consent(app, "/opt-out", "u", "ai_personalization");
  await consent(app, "/opt-out", "u", "prompt_logging");
  await captured(app, { distinctId: "u" });
  const [before, after] = await eventsOf(service, app);
  assert.ok(before !== undefined && before.person_id === after?.person_id);
});

const merge = (distinctId: string, mergeAnonymousId: string, more = {}) => ({
  distinctId,
  mergeAnonymousId,
  consentGiven: true,
  ...more,
});

Deno.test("properties overwrite, those of the first time do not, and both hold for later reads", async () => {
  const app = await service.newApp();
  const first = await identified(app, {
    distinctId: "u",
    properties: { name: "Ada", plan: "free" },
    propertiesOnce: { source: "ad", plan: "none" },
  });
  service.clock.advance(1000);
  const second = await identified(app, {
    distinctId: "u",
    properties: { plan: "pro", gone: null },
    propertiesOnce: { source: "mail", gone: "late", seen: true },
  }, app.secretLive);
  assert.deepEqual(second, { personId: first.personId, merged: false });
  const at = new Date(service.clock.now() - 1000).toISOString();
  assert.deepEqual((await exportOf(service, app, "u")).person, {
    personId: first.personId,
    distinctIds: ["u"],
    properties: { source: "ad", plan: "pro", name: "Ada", seen: true, gone: null },
    identifiedAt: at,
    createdAt: at,
  });
});

Deno.test("a person who was only captured is not identified yet", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "u" });
  const { person } = await exportOf(service, app, "u");
  assert.deepEqual([person.identifiedAt, person.properties], [null, {}]);
  assert.equal((await identified(app, { distinctId: "u" })).personId, person.personId);
  assert.notEqual((await exportOf(service, app, "u")).person.identifiedAt, null);
});

Deno.test("an anonymous session joins the person with consent, and its events with it", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "anon_1", event: "visit" });
  const body = merge("u", "anon_1", { properties: { name: "Ada" } });
  for (const consentGiven of [undefined, null, false]) {
    const answer = await app.call("POST", "/identify", { ...body, consentGiven }, { key: app.publicLive });
    assertRefused(answer, 403, "consent_required");
  }
  assert.deepEqual((await countsOf(service, app)).person_ids, 1, "a refusal writes nothing");
  const { personId, merged } = await identified(app, body, app.secretLive);
  assert.equal(merged, true);
  await captured(app, { distinctId: "anon_1", event: "later" });
  for (const id of ["u", "anon_1"]) {
    const { person, events } = await exportOf(service, app, id);
    assert.deepEqual([person.personId, person.distinctIds], [personId, ["anon_1", "u"]]);
    assert.deepEqual(events.analytics.map(({ event }: { event: string }) => event), ["later", "visit"]);
  }
  assert.deepEqual(
    await identified(app, body, app.secretLive),
    { personId, merged: true },
    "once more is the same",
  );
});

Deno.test("an unknown session joins as well", async () => {
  const app = await service.newApp();
  const { personId } = await identified(app, { distinctId: "u" });
  assert.deepEqual(await identified(app, merge("u", "anon_new"), app.secretLive), { personId, merged: true });
  assert.deepEqual((await exportOf(service, app, "anon_new")).person.distinctIds, ["anon_new", "u"]);
  assert.equal((await countsOf(service, app)).people, 1);
});

Deno.test("an identified id is no session: it joins no other person", async () => {
  const app = await service.newApp();
  await identified(app, { distinctId: "v" });
  await identified(app, merge("u", "anon_1"), app.secretLive);
  await linked(app, "w", "v");
  for (const taken of ["v", "w", "anon_1"]) {
    const answer = await app.call("POST", "/identify", merge("x", taken, { properties: { a: 1 } }));
    assert.match(assertRefused(answer, 400, "invalid_request", taken).message, /mergeAnonymousId/);
  }
  assertRefused(await app.call("POST", "/identify", merge("u", "u")), 400, "invalid_request");
  assert.equal((await exportOf(service, app, "x")).person, null, "a refusal writes nothing");
  const counts = await countsOf(service, app);
  assert.deepEqual([counts.people, counts.person_ids], [2, 4]);
});

Deno.test("parallel calls make one person, and one of two takes a session", async () => {
  const app = await service.newApp();
  const same = await Promise.all(
    Array.from(
      { length: 12 },
      (_, index) => identified(app, { distinctId: "u", properties: { [`p${index}`]: index } }),
    ),
  );
  assert.equal(new Set(same.map(({ personId }) => personId)).size, 1);
  assert.equal(Object.keys((await exportOf(service, app, "u")).person.properties).length, 12);
  await captured(app, { distinctId: "anon_2" });
  const rivals = await Promise.all(
    Array.from({ length: 6 }, (_, index) => app.call("POST", "/identify", merge(`r${index}`, "anon_2"))),
  );
  assert.deepEqual(rivals.map(({ status }) => status).sort(), [200, 400, 400, 400, 400, 400]);
  const merged = await Promise.all(
    Array.from({ length: 8 }, (_, index) => identified(app, merge("u", `anon_many_${index % 4}`))),
  );
  assert.deepEqual(new Set(merged.map(({ personId }) => personId)), new Set([same[0]?.personId]));
  const first = identified(app, { distinctId: "anon_3" });
  const second = app.call("POST", "/identify", merge("late", "anon_3"));
  await first;
  const isMerged = (await second).status === 200;
  const { person } = await exportOf(service, app, "late");
  assert.equal(person?.distinctIds.includes("anon_3") ?? false, isMerged);
});

Deno.test("for an id that opted out nothing is stored, and its answer stays the same", async () => {
  const app = await service.newApp();
  await consent(app, "/opt-out", "quiet-one");
  const before = await countsOf(service, app);
  const first = await identified(app, { distinctId: "quiet-one", properties: { a: 1 } });
  assert.deepEqual(await identified(app, { distinctId: "quiet-one" }), first);
  await service.restart();
  assert.deepEqual(await identified(app, { distinctId: "quiet-one" }, app.secretLive), first);
  const merged = await identified(app, merge("quiet-one", "anon_of_quiet"));
  assert.deepEqual(merged, { personId: first.personId, merged: true });
  assertRefused(
    await app.call("POST", "/identify", { distinctId: "quiet-one", mergeAnonymousId: "a" }),
    403,
    "consent_required",
  );
  assert.deepEqual(await countsOf(service, app), before);
  assert.equal(await isOut(app, "anon_of_quiet"), true, "consents follow a merge");
  await service.serving().term.flush();
  assert.deepEqual(await tracesOf(service, "anon_of_quiet"), ["users"]);
  assert.deepEqual(await tracesOf(service, first.personId), []);
  const other = await identified(app, { distinctId: "quiet-one" }, app.publicTest);
  assert.notEqual(other.personId, first.personId);
});

Deno.test("a session that opted out brings its opt-outs, and the person is captured under a pseudonym", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "anon_1", event: "visit" });
  await consent(app, "/opt-out", "anon_1");
  await identified(app, merge("u", "anon_1", { properties: { name: "Ada" } }), app.secretLive);
  for (const id of ["anon_1", "u"]) {
    assert.deepEqual([await isOut(app, id), await isOut(app, id, "ai_personalization")], [true, true], id);
    assert.equal(await isOut(app, id, "prompt_logging"), false);
  }
  const { person, events } = await exportOf(service, app, "u");
  assert.deepEqual([person.distinctIds, person.properties], [["anon_1", "u"], {}]);
  assert.equal(events.analytics.length, 1, "what was there is kept");
  await captured(app, { distinctId: "u" });
  const last = (await eventsOf(service, app)).at(-1);
  assert.deepEqual([last?.person_id, last?.pseudonym?.slice(0, 4)], [null, "psn_"]);
  await consent(app, "/opt-out", "anon_unseen");
  await identified(app, merge("v", "anon_unseen"), app.secretLive);
  assert.equal(await isOut(app, "v"), true);
  const counts = await countsOf(service, app);
  assert.deepEqual([counts.people, counts.person_ids], [1, 2], "a session that is unknown stays so");
});

Deno.test("a refused merge moves no opt-outs", async () => {
  const app = await service.newApp();
  await identified(app, { distinctId: "v" });
  await consent(app, "/opt-out", "v");
  assertRefused(await app.call("POST", "/identify", merge("u", "v")), 400, "invalid_request");
  assert.equal(await isOut(app, "u"), false);
});

Deno.test("a person has at most 64 KiB of properties, and more change nothing", async () => {
  const app = await service.newApp();
  const part = (name: string) => ({ [name]: "x".repeat(16_000) });
  for (const name of ["a", "b", "c", "d"]) await identified(app, { distinctId: "u", properties: part(name) });
  const answer = await app.call("POST", "/identify", { distinctId: "u", propertiesOnce: part("e") });
  assertRefused(answer, 400, "invalid_request");
  await identified(app, { distinctId: "u", properties: { a: "small", ...part("f") } });
  const { properties } = (await exportOf(service, app, "u")).person;
  assert.deepEqual(Object.keys(properties).sort(), ["a", "b", "c", "d", "f"]);
  await identified(app, merge("u", "anon_1"));
});

Deno.test("an email may be longer than its index can hold, also that of a merged person", async () => {
  const app = await service.newApp();
  const long = (first: string) => first + randomBytes(3000).toString("base64url");
  const emails = { email: long("😀"), $email: long("b"), name: long("c") };
  await identified(app, { distinctId: "u", properties: emails });
  await identified(app, { distinctId: "v" });
  await dataOf(app.call("POST", "/alias", { distinctId: "u", alias: "v" }));
  const { person } = await exportOf(service, app, "v");
  assert.deepEqual([person.properties, person.distinctIds], [emails, ["u", "v"]]);
});

Deno.test("bad input is refused, and a test key has people of its own", async () => {
  const app = await service.newApp();
  const bad: unknown[] = [
    {},
    { distinctId: "" },
    { distinctId: "x".repeat(201) },
    { distinctId: "u", properties: { a: [] } },
    { distinctId: "u", propertiesOnce: { a: {} } },
    { distinctId: "u", properties: 1 },
    { distinctId: "u", mergeAnonymousId: "" },
    { distinctId: "u", mergeAnonymousId: "a", consentGiven: "yes" },
    { distinctId: "u", properties: { text: "x".repeat(16 * 1024) } },
  ];
  for (const body of bad) {
    const note = JSON.stringify(body).slice(0, 80);
    assertRefused(await app.call("POST", "/identify", body), 400, "invalid_request", note);
  }
  const live = await identified(app, { distinctId: "u" });
  const test = await identified(app, { distinctId: "u" }, app.publicTest);
  assert.notEqual(live.personId, test.personId);
  const { realm } = realmOf(service, app);
  const rows = await service.store.database.query("select 1 from people where realm = $1::int", [realm]);
  assert.equal(rows.length, 1);
  const null_ = { distinctId: "u", properties: null, propertiesOnce: null, mergeAnonymousId: null };
  assert.deepEqual(await dataOf(app.call("POST", "/identify", null_)), live);
});
