// Exports: who gets a link, that no other token opens anything, and the contents of the document.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { Buffer } from "node:buffer";
import fc from "npm:fast-check@4.10.2";
import { signExport } from "../../routes/calls/export.ts";
import { appWithUser, assertRefused, CATALOG, dataOf, serviceOfFile } from "./support.ts";
import { captured, consent, exportOf, identified, linked, linkOf, open, realmOf } from "./people_support.ts";
import { anyChar } from "../support/any_char.ts";
import type { TestApp, TestService } from "../support/test_service.ts";

const service = serviceOfFile({ publicUrl: "https://api.example.test" });
const SECRET = "test-export-secret-0123456789";
const DAY_MS = 24 * 3_600_000;
const anyText = fc.string({ unit: anyChar, maxLength: 60 });

function openToken(token: string | null) {
  return open(service, `http://x/api/v1/export-download${token === null ? "" : `?token=${token}`}`);
}

function tokenOf(url: string): string {
  return new URL(url).searchParams.get("token") as string;
}

/** A token of any payload, rightly signed. */
function sign(payload: unknown, encode = (text: string) => Buffer.from(text).toString("base64url")): string {
  const first = encode(typeof payload === "string" ? payload : JSON.stringify(payload));
  return `${first}.${createHmac("sha256", SECRET).update(first).digest("base64url")}`;
}

async function refuses(token: string | null, note = "") {
  const error = assertRefused(await openToken(token), 401, "invalid_or_expired_token", `${note} ${token}`);
  assert.ok(token === null || token.length < 20 || !error.message.includes(token));
}

Deno.test("the link opens the document without a key, for 24 hours of real time", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "u" }, app.publicTest);
  const start = service.clock.now();
  const body = { distinctId: "u" };
  const data = await dataOf(app.call("POST", "/export-person", body, { key: app.secretTest }));
  assert.deepEqual(Object.keys(data).sort(), ["downloadUrl", "expiresAt", "format"]);
  assert.deepEqual([data.format, data.expiresAt], ["json", new Date(start + DAY_MS).toISOString()]);
  assert.match(
    data.downloadUrl,
    /^https:\/\/api\.example\.test\/api\/v1\/export-download\?token=[\w-]+\.[\w-]{43}$/,
  );
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 1e6 }, { key: app.secretTest }));
  service.clock.set(start + DAY_MS - 1);
  const answer = await open(service, data.downloadUrl);
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get("content-type") ?? "", /^application\/json/);
  assert.match(answer.headers.get("content-disposition") ?? "", /^attachment; filename="[\w-]+\.json"$/);
  assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  assert.ok(answer.headers.has("x-request-id"));
  assert.deepEqual([answer.body.mode, answer.body.person.distinctIds], ["test", ["u"]]);
  service.clock.set(start + DAY_MS);
  assertRefused(await open(service, data.downloadUrl), 401, "invalid_or_expired_token");
});

Deno.test("a link is made with a secret key and a good id, and never kept under an idempotency key", async () => {
  const app = await service.newApp();
  const ask = (body: unknown, key = app.secretLive, headers = {}) =>
    app.call("POST", "/export-person", body, { key, headers });
  assertRefused(await ask({ distinctId: "u" }, app.publicLive), 403, "requires_secret_key");
  for (const distinctId of ["", "x".repeat(201), 5, null, undefined]) {
    assertRefused(await ask({ distinctId }), 400, "invalid_request");
  }
  const headers = { "idempotency-key": "link" };
  const first = await dataOf(ask({ distinctId: "u" }, app.secretLive, headers));
  service.clock.advance(1);
  const second = await ask({ distinctId: "u" }, app.secretLive, headers);
  assert.equal(second.headers.get("idempotent-replayed"), null);
  assert.notEqual(second.body.data.expiresAt, first.expiresAt);
  await service.serving().term.flush();
  const kept = await service.store.database.query("select 1 from idempotency where key = 'link'");
  assert.equal(kept.length, 0);
});

Deno.test("any change of a token refuses it: flipped bits, cuts, other alphabets, swapped parts", async () => {
  const app = await service.newApp();
  const token = tokenOf(await linkOf(app, "u-ÿþ?>~"));
  assert.equal((await openToken(token)).status, 200);
  const [first, signature] = token.split(".") as [string, string];
  for (let index = 0; index < token.length; index++) {
    for (const bit of [1, 2, 32]) {
      const bytes = Buffer.from(token, "latin1");
      bytes[index] = (bytes[index] as number) ^ bit;
      await refuses(encodeURIComponent(bytes.toString("latin1")), `bit ${bit} of byte ${index}`);
    }
  }
  for (let length = 0; length < token.length; length++) await refuses(token.slice(0, length));
  const standard = (text: string) => Buffer.from(text, "base64url").toString("base64");
  const hex = (text: string) => Buffer.from(text, "base64url").toString("hex");
  const swapped = [
    `${signature}.${first}`,
    `${first}.${first}`,
    `${first}${signature}`,
    `${first}..${signature}`,
    `.${first}.${signature}`,
    `${token}.`,
    `${token}.${signature}`,
    `${token}%20`,
    `%20${token}`,
    `${token}%00`,
    `${token}%`,
    `%ff${token}`,
    `${token}=`,
    `${first}=.${signature}`,
    `${first}==.${signature}=`,
    encodeURIComponent(`${standard(first)}.${signature}`),
    encodeURIComponent(`${first}.${standard(signature)}`),
    encodeURIComponent(`${first}.${standard(signature).replace("=", "")}`),
    `${first}.${hex(signature)}`,
    encodeURIComponent(`${first.slice(0, 4)}\n${first.slice(4)}.${signature}`),
  ].filter((text) => decodeURIComponent(text.replace(/%ff|%$/, "")) !== token);
  for (const text of swapped) await refuses(text);
  const last = signature.at(-1) as string;
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  // 43 digits hold 258 bits: the last two of them are no part of the 256 that are compared.
  const sameBytes = [...alphabet].filter((digit) =>
    digit !== last && (alphabet.indexOf(digit) >> 2) === (alphabet.indexOf(last) >> 2)
  );
  assert.equal(sameBytes.length, 3);
  for (const digit of sameBytes) {
    const other = signature.slice(0, -1) + digit;
    assert.ok(Buffer.from(other, "base64url").equals(Buffer.from(signature, "base64url")));
    await refuses(`${first}.${other}`, "the same bytes otherwise encoded");
  }
  for (const text of [null, "", ".", "..", "null", "undefined"]) await refuses(text);
});

Deno.test("no text but a signed one opens anything", async () => {
  const app = await service.newApp();
  const token = tokenOf(await linkOf(app, "u"));
  const [first, signature] = token.split(".") as [string, string];
  const part = fc.oneof(
    fc.constant(first),
    fc.constant(signature),
    anyText,
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString("base64url")),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(part, { maxLength: 4 }),
      fc.constantFrom(".", "", "=.", "."),
      async (parts, dot) => {
        const text = parts.join(dot);
        if (text === token || !text.isWellFormed()) return;
        await refuses(encodeURIComponent(text));
      },
    ),
    { numRuns: 300 },
  );
});

Deno.test("a payload that no link has is refused, however well it is signed", async () => {
  const app = await service.newApp();
  const good = {
    appId: app.appId,
    mode: "live",
    distinctId: "u",
    expiresAt: new Date(service.clock.now() + 1000).toISOString(),
  };
  assert.equal((await openToken(sign(good))).status, 200);
  const { appId: _a, ...noApp } = good;
  const { mode: _m, ...noMode } = good;
  const { distinctId: _d, ...noId } = good;
  const { expiresAt: _e, ...noEnd } = good;
  const bad: unknown[] = [
    noApp,
    noMode,
    noId,
    noEnd,
    { ...good, appId: "app_x" },
    { ...good, appId: 1 },
    { ...good, mode: "LIVE" },
    { ...good, mode: "__proto__" },
    { ...good, distinctId: "" },
    { ...good, distinctId: "x".repeat(201) },
    { ...good, distinctId: "a\0b" },
    JSON.stringify({ ...good, distinctId: "@" }).replace("@", "\\ud800"),
    { ...good, expiresAt: new Date(service.clock.now()).toISOString() },
    { ...good, expiresAt: Date.parse(good.expiresAt) },
    { ...good, expiresAt: String(Date.parse(good.expiresAt)) },
    { ...good, expiresAt: "never" },
    [good],
    "null",
    "7",
    "{",
    "",
  ];
  for (const payload of bad) await refuses(sign(payload), JSON.stringify(payload));
  const encodings: ((text: string) => string)[] = [
    (text) => Buffer.from(text).toString("base64"),
    (text) => `${Buffer.from(text).toString("base64url")}=`,
    (text) => `${Buffer.from(text).toString("base64url")}==`,
    (text) => `\n${Buffer.from(text).toString("base64url")}`,
    (text) => text,
  ];
  for (const pad of ["", " ", "  "]) {
    const text = JSON.stringify({ ...good, distinctId: "ÿþ?>~" }) + pad;
    assert.equal((await openToken(sign(text))).status, 200);
    for (const encode of encodings) {
      const token = sign(text, encode);
      if (token !== sign(text)) await refuses(encodeURIComponent(token));
    }
  }
});

Deno.test("a link opens its own app and mode, and other methods and paths need a key", async () => {
  const [app, other] = [await service.newApp(), await service.newApp()];
  await identified(app, { distinctId: "u" });
  const live = await exportOf(service, app, "u");
  assert.deepEqual([live.appId, live.mode, live.person === null], [app.appId, "live", false]);
  for (const [from, key] of [[app, app.secretTest], [other, other.secretLive]] as const) {
    const document = await exportOf(service, from, "u", key);
    assert.deepEqual([document.appId, document.person], [from.appId, null]);
  }
  const grant = {
    appId: app.appId,
    mode: "live",
    distinctId: "u",
    expiresAt: service.clock.now() + 1,
  } as const;
  await refuses(signExport("another-secret-0123456789", grant));
  assert.equal((await openToken(signExport(SECRET, grant))).status, 200);
  const post = await service.http.fetch(
    new Request("http://x/api/v1/export-download?token=x", { method: "POST" }),
  );
  assert.equal(post.status, 401);
});

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
  }, app.secretLive);
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
    keys: [],
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

Deno.test("the document has a preview instead of the prompt, like the feed", async () => {
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

/** A dozen pages of each kind; only few are held at a time. */
const MANY = 12_000;

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

Deno.test("a large document is complete, in order, and made while it is read", async () => {
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
    let largest = 0;
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      chunks.push(piece.value);
      largest = Math.max(largest, piece.value.byteLength);
    }
    assert.ok(largest < 1_000_000, `a piece of ${largest} bytes`);
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
