// The link of an export: who gets one, what it opens, and that no other token opens anything. What the document holds
// is in people_export_test.ts.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { signExport } from "../../routes/export.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { captured, exportOf, identified, linkOf, open } from "./people_support.ts";
import { startTestService } from "../support/test_service.ts";

const service = serviceOfFile();
const SECRET = "test-export-secret-0123456789";
const DAY_MS = 24 * 3_600_000;
// Making it blocks for seconds, in which a writer shows no sign of life and then answers nothing: not amid a test.
const anyText = fc.string({ unit: "binary", maxLength: 60 });

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
  const own = await startTestService();
  try {
    const app = await own.newApp();
    await captured(app, { distinctId: "u" }, app.publicTest);
    const start = own.clock.now();
    const body = { distinctId: "u" };
    const data = await dataOf(app.call("POST", "/export-person", body, { key: app.secretTest }));
    assert.deepEqual(Object.keys(data).sort(), ["downloadUrl", "expiresAt", "format"]);
    assert.deepEqual([data.format, data.expiresAt], ["json", new Date(start + DAY_MS).toISOString()]);
    assert.match(
      data.downloadUrl,
      /^http:\/\/service\.test\/api\/v1\/export-download\?token=[\w-]+\.[\w-]{43}$/,
    );
    await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 1e6 }, { key: app.secretTest }));
    own.clock.set(start + DAY_MS - 1);
    const answer = await open(own, data.downloadUrl);
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get("content-type") ?? "", /^application\/json/);
    assert.match(answer.headers.get("content-disposition") ?? "", /^attachment; filename="[\w-]+\.json"$/);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    assert.ok(answer.headers.has("x-request-id"));
    assert.deepEqual([answer.body.mode, answer.body.person.distinctIds], ["test", ["u"]]);
    own.clock.set(start + DAY_MS);
    assertRefused(await open(own, data.downloadUrl), 401, "invalid_or_expired_token");
  } finally {
    await own.close();
  }
});

Deno.test("the link stands at the public address where one is set, and needs the secret", async () => {
  const own = await startTestService(undefined, { publicUrl: "https://api.example.test" });
  try {
    const app = await own.newApp();
    assert.match(await linkOf(app, "u"), /^https:\/\/api\.example\.test\/api\/v1\/export-download\?token=/);
  } finally {
    await own.close();
  }
  const bare = await startTestService(undefined, { exportSecret: null });
  try {
    const app = await bare.newApp();
    const answer = await app.call("POST", "/export-person", { distinctId: "u" });
    assertRefused(answer, 501, "not_implemented");
    const token = sign({
      appId: app.appId,
      mode: "live",
      distinctId: "u",
      expiresAt: "2099-01-01T00:00:00Z",
    });
    const download = await open(bare, `http://x/api/v1/export-download?token=${token}`);
    assertRefused(download, 501, "not_implemented");
  } finally {
    await bare.close();
  }
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
