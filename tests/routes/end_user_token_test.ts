// The end-user token: who it lets in, and that nothing but a token of the right secret, user and time does.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { Buffer } from "node:buffer";
import type { TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, dataOf, endUserToken, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const inSeconds = (seconds: number) => Math.floor(service.clock.now() / 1000) + seconds;

function tokenOf(app: TestApp, payload: unknown = { userId: "u", exp: inSeconds(60) }): string {
  return endUserToken(app.identitySecret, payload);
}

function ask(app: TestApp, path: string, token: string | null, key = app.publicLive) {
  return app.call("GET", path, undefined, {
    key,
    headers: token === null ? {} : { "x-end-user-token": token },
  });
}

Deno.test("a valid token opens usage and usage/me of its own user, in the mode of the key", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  const token = tokenOf(app);
  for (const path of ["/usage?userId=u", "/usage", "/usage/me", "/usage/me?event=image.*"]) {
    const usage = await dataOf(ask(app, path, token));
    assert.deepEqual([usage.userId, usage.counters[0].count], ["u", 1], path);
    assert.ok(!("duplicateActiveSubscriptions" in usage), path);
  }
  const test = await dataOf(ask(app, "/usage/me", token, app.publicTest));
  assert.deepEqual([test.userId, test.period], ["u", null]);
  const own = await dataOf(ask(app, "/usage/me", token, app.secretLive));
  assert.deepEqual(own.counters[0].count, 1);
  assert.ok(!("duplicateActiveSubscriptions" in own), "usage/me never shows duplicates");
  assert.ok("duplicateActiveSubscriptions" in await dataOf(app.call("GET", "/usage?userId=u")));
});

Deno.test("usage/me needs the token with every key, usage with public ones alone", async () => {
  const app = await appWithUser(service);
  for (const key of [app.secretLive, app.secretTest, app.publicLive, app.publicTest]) {
    assertRefused(await ask(app, "/usage/me", null, key), 403, "forbidden");
    assertRefused(await ask(app, "/usage/me", "x.y", key), 403, "forbidden");
  }
  for (const key of [app.publicLive, app.publicTest]) {
    assertRefused(await ask(app, "/usage?userId=u", null, key), 403, "forbidden");
    assertRefused(await ask(app, "/usage", null, key), 403, "forbidden");
  }
  await dataOf(ask(app, "/usage?userId=u", "broken", app.secretLive));
  assertRefused(await ask(app, "/usage", tokenOf(app), app.secretLive), 400, "invalid_request");
});

Deno.test("a token of another user does not open a user's usage, and usage/me answers its own user", async () => {
  const app = await appWithUser(service);
  const token = tokenOf(app, { userId: "v", exp: inSeconds(60) });
  assertRefused(await ask(app, "/usage?userId=u", token), 403, "forbidden");
  assertRefused(await ask(app, "/usage?userId=V", token), 403, "forbidden");
  assert.equal((await dataOf(ask(app, "/usage/me?userId=u", token))).userId, "v");
});

Deno.test("a token holds until its exp in seconds, by the real clock and not the test clock", async () => {
  const app = await appWithUser(service);
  const exp = inSeconds(100);
  const token = tokenOf(app, { userId: "u", exp });
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 1e6 }, { key: app.secretTest }));
  await dataOf(ask(app, "/usage/me", token, app.publicTest));
  service.clock.set(exp * 1000 - 1);
  await dataOf(ask(app, "/usage/me", token));
  service.clock.set(exp * 1000);
  assertRefused(await ask(app, "/usage/me", token), 403, "forbidden");
  for (const past of [inSeconds(-1), 0, -5, -1e308]) {
    assertRefused(await ask(app, "/usage/me", tokenOf(app, { userId: "u", exp: past })), 403, "forbidden");
  }
});

Deno.test("a token changed at any one character is refused", async () => {
  const app = await appWithUser(service);
  const token = tokenOf(app);
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (let at = 0; at < token.length; at++) {
    const place = digits.indexOf(token[at] as string);
    // The next digit differs in the last bit, which a lenient decoder would drop at the end of a signature.
    for (const other of [digits[place ^ 1] ?? "A", "=", ""]) {
      const changed = token.slice(0, at) + other + token.slice(at + 1);
      assertRefused(await ask(app, "/usage/me", changed), 403, "forbidden", `${at}: ${other}`);
    }
  }
  for (
    const changed of [
      `${token}=`,
      `${token}.`,
      `.${token}`,
      `${token}.x`,
      token.replace(".", ""),
      token + "A",
    ]
  ) {
    assertRefused(await ask(app, "/usage/me", changed), 403, "forbidden", changed);
  }
});

Deno.test("a token under another secret, or another way of signing, is refused", async () => {
  const app = await appWithUser(service);
  const other = await appWithUser(service);
  const payload = { userId: "u", exp: inSeconds(60) };
  const first = Buffer.from(JSON.stringify(payload)).toString("base64url");
  const sign = (text: string, encoding: "hex" | "base64" | "base64url", hash = "sha256") =>
    createHmac(hash, app.identitySecret).update(text).digest(encoding);
  const bad = [
    endUserToken(other.identitySecret, payload),
    endUserToken("", payload),
    endUserToken(app.secretLive, payload),
    `${first}.`,
    `.${sign("", "base64url")}`,
    `${first}.${sign(first, "hex")}`,
    `${first}.${sign(first, "base64")}`,
    `${first}.${sign(first, "base64url", "sha512")}`,
    `${first}.${sign(JSON.stringify(payload), "base64url")}`,
  ];
  for (const token of bad) assertRefused(await ask(app, "/usage/me", token), 403, "forbidden", token);
  await dataOf(ask(app, "/usage/me", `${first}.${sign(first, "base64url")}`));
});

Deno.test("a signed payload that is no user and time is refused", async () => {
  const app = await appWithUser(service);
  const exp = inSeconds(60);
  const payloads: unknown[] = [
    { userId: "u", exp: String(exp) },
    { userId: "u", exp: null },
    { userId: "u" },
    { exp },
    { userId: 5, exp },
    { userId: null, exp },
    { userId: "", exp },
    { userId: "x".repeat(201), exp },
    { userId: ["u"], exp },
    { userId: "u", exp: [exp] },
    { userId: "u", exp: {} },
    { userId: "u", exp: true },
    `{"userId":"u\\u0000","exp":${exp}}`,
    `{"userId":"\\ud800","exp":${exp}}`,
    `{"__proto__":{"userId":"u","exp":${exp}}}`,
    "null",
    "5",
    "[]",
    '"u"',
    "{",
    "",
    [],
  ];
  for (const payload of payloads) {
    for (const path of ["/usage/me", "/usage", "/usage?userId=u"]) {
      assertRefused(await ask(app, path, tokenOf(app, payload)), 403, "forbidden", JSON.stringify(payload));
    }
  }
});
