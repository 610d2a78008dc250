// Who may sign in to the console, and for how long: wrong tokens, cookies, sessions in every process, ways back.

import assert from "node:assert/strict";
import { ACTIONS, PAGES } from "../../routes/console/routes.ts";
import { scryptSync } from "node:crypto";
import type { Hono } from "hono";
import { makeApp } from "../../routes/app.ts";
import { Operators } from "../../routes/console/parts/operators.ts";
import { NO_FEATURES } from "../../src/process/features.ts";
import { Service } from "../../src/cluster/service.ts";
import { ADMIN_TOKEN, send } from "../support/test_service.ts";
import { consoleOf, OPERATORS, SUPPORT_TOKEN } from "./console_support.ts";
import { assertRefused, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const HOURS = 3_600_000;
const HOME = "/console/apps";

interface Asked {
  readonly cookie?: string;
  /** The address that the connection comes from. */
  readonly from?: string;
  readonly headers?: Record<string, string>;
}

function request(
  http: Hono,
  path: string,
  { cookie, from = "192.0.2.1", headers = {} }: Asked = {},
  body?: URLSearchParams,
) {
  const text = body?.toString();
  const init: RequestInit = {
    method: text === undefined ? "GET" : "POST",
    headers: {
      ...(cookie === undefined ? {} : { cookie }),
      ...(text === undefined
        ? {}
        : { "content-type": "application/x-www-form-urlencoded", "content-length": String(text.length) }),
      ...headers,
    },
    ...(text === undefined ? {} : { body: text }),
  };
  return http.fetch(new Request(`http://service.test${path}`, init), { remoteAddr: { hostname: from } });
}

function signIn(http: Hono, token: string, asked: Asked = {}, to = HOME) {
  return request(http, "/console/sign-in", asked, new URLSearchParams({ token, to }));
}

/** The cookie of a new session, as a browser sends it. */
async function cookieFor(http: Hono, token = ADMIN_TOKEN): Promise<string> {
  const response = await signIn(http, token);
  assert.equal(response.status, 303, await response.text());
  return (response.headers.get("set-cookie") ?? "").split(";")[0] as string;
}

/** Whether a cookie opens a page. */
async function opens(http: Hono, cookie: string): Promise<boolean> {
  const response = await request(http, HOME, { cookie });
  if (response.status === 200) return true;
  assert.equal(response.status, 303);
  assert.equal(response.headers.get("location"), `/console/sign-in?to=${encodeURIComponent(HOME)}`);
  return false;
}

async function signOut(http: Hono, cookie: string): Promise<void> {
  const page = await (await request(http, HOME, { cookie })).text();
  const csrf = /action="\/console\/sign-out"[^>]*><input type="hidden" name="csrf" value="([^"]+)"/.exec(page)
    ?.[1];
  const left = await request(
    http,
    "/console/sign-out",
    { cookie },
    new URLSearchParams({ csrf: csrf ?? "" }),
  );
  assert.equal(left.status, 303);
  assert.match(left.headers.get("set-cookie") ?? "", /^holdfast_console=; Max-Age=0; /);
}

Deno.test("a cookie is valid for the console alone and for twelve hours, and hidden from scripts and other sites", async () => {
  for (const isSecure of [false, true]) {
    const http = consoleOf(service, { isSecure });
    const set = (await signIn(http, ADMIN_TOKEN)).headers.get("set-cookie") ?? "";
    const [pair, ...attributes] = set.split("; ");
    assert.match(pair ?? "", /^holdfast_console=[\w.-]+$/);
    const meant = [
      "HttpOnly",
      "Max-Age=43200",
      "Path=/console",
      "SameSite=Strict",
      ...(isSecure ? ["Secure"] : []),
    ];
    assert.deepEqual(attributes.sort(), meant);
    assert.ok(!set.includes(ADMIN_TOKEN));
  }
});

Deno.test("a session ends after twelve hours, also for a browser that keeps the cookie", async () => {
  const http = consoleOf(service);
  const cookie = await cookieFor(http);
  service.clock.advance(12 * HOURS - 1);
  assert.ok(await opens(http, cookie));
  service.clock.advance(1);
  assert.ok(!await opens(http, cookie));
});

Deno.test("every process accepts a session until the token of its person changes", async () => {
  const cookie = await cookieFor(consoleOf(service));
  assert.ok(await opens(consoleOf(service), cookie));
  const operators = OPERATORS.map((operator) =>
    operator.name === "admin" ? { ...operator, token: "another-admin-token-0123" } : operator
  );
  const changed = consoleOf(service, { operators });
  assert.ok(!await opens(changed, cookie));
  assert.ok(await opens(changed, await cookieFor(consoleOf(service), SUPPORT_TOKEN)), "others go on");
  const left = consoleOf(service, { operators: OPERATORS.filter(({ name }) => name !== "admin") });
  assert.ok(!await opens(left, cookie));
});

Deno.test("the key of a person's sessions is made of the token by scrypt, so that a cookie is no quick test of a guess", async () => {
  const [operator] = await new Operators(OPERATORS.slice(0, 1)).all();
  const key = scryptSync(ADMIN_TOKEN, "holdfast console session", 32, { N: 16_384, r: 8, p: 1 });
  assert.equal(operator?.sessionKey, key.toString("base64url"));
});

Deno.test("a cookie that was changed, or signed with another person's key, is invalid", async () => {
  const http = consoleOf(service);
  const cookie = await cookieFor(http);
  const [first = "", signature = ""] = cookie.slice("holdfast_console=".length).split(".");
  const payload = JSON.parse(atob(first.replaceAll("-", "+").replaceAll("_", "/")));
  const longer = btoa(JSON.stringify({ ...payload, until: payload.until + HOURS })).replaceAll("=", "");
  const support = (await cookieFor(http, SUPPORT_TOKEN)).slice("holdfast_console=".length);
  for (
    const value of [
      `${longer}.${signature}`,
      `${first}.${signature.slice(1)}`,
      `${first}.${support.split(".")[1]}`,
      first,
      "",
      "a.b.c",
    ]
  ) assert.ok(!await opens(http, `holdfast_console=${value}`), value);
});

Deno.test("signing out ends every copy of the cookie, in every process", async () => {
  const http = consoleOf(service);
  const cookie = await cookieFor(http);
  const other = await cookieFor(http);
  await signOut(http, cookie);
  for (const process of [http, consoleOf(service)]) assert.ok(!await opens(process, cookie));
  assert.ok(await opens(http, other), "another session of the same person goes on");
});

const WRONG = "wrong-token-0123456789";

/** Presents a token to the admin API; its status, and the seconds to wait. */
async function asAdmin(http: Hono, token: string | null, from = "192.0.2.1"): Promise<unknown[]> {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const { status, headers: answered } = await request(http, "/api/admin/v1/apps", { from, headers });
  return [status, answered.get("retry-after")];
}

Deno.test("an address has ten wrong tokens a minute in console and admin API together, and the right token always passes", async () => {
  const http = consoleOf(service);
  const wrong = await Promise.all([
    ...Array.from({ length: 6 }, async () => (await signIn(http, WRONG)).status),
    ...Array.from({ length: 9 }, () => asAdmin(http, WRONG).then(([status]) => status)),
  ]);
  assert.deepEqual(wrong.toSorted(), [...Array(10).fill(401), ...Array(5).fill(429)]);
  const late = await signIn(http, WRONG);
  assert.deepEqual([late.status, late.headers.get("retry-after")], [429, "60"]);
  assert.match(await late.text(), /Too many invalid tokens. Try again in 60 seconds/);
  assert.deepEqual(await asAdmin(http, WRONG), [429, "60"]);
  assert.deepEqual(await asAdmin(http, null), [401, null], "no token is no guess");
  for (let at = 0; at < 12; at++) {
    assert.equal((await signIn(http, ADMIN_TOKEN)).status, 303, "nobody locks the owner of a token out");
    assert.deepEqual(await asAdmin(http, ADMIN_TOKEN), [200, null]);
  }
  assert.equal((await signIn(http, WRONG, { from: "192.0.2.2" })).status, 401);
  service.clock.advance(59_999);
  assert.deepEqual(await asAdmin(http, WRONG), [429, "1"]);
  service.clock.advance(1);
  assert.equal((await signIn(http, WRONG)).status, 401);
});

Deno.test("all addresses together have a hundred wrong tokens a minute", async () => {
  const http = consoleOf(service);
  for (let at = 0; at < 100; at++) {
    const from = `198.51.100.${at}`;
    if (at % 2 === 0) assert.equal((await signIn(http, WRONG, { from })).status, 401);
    else assert.deepEqual(await asAdmin(http, WRONG, from), [401, null]);
  }
  const from = "203.0.113.7";
  const more = await signIn(http, WRONG, { from });
  assert.deepEqual([more.status, more.headers.get("retry-after")], [429, "60"]);
  assert.equal((await signIn(http, ADMIN_TOKEN, { from })).status, 303);
  service.clock.advance(60_000);
  assert.equal((await signIn(http, WRONG, { from })).status, 401);
});

Deno.test("only a whole token is valid", async () => {
  const http = consoleOf(service);
  for (
    const token of [
      "",
      ADMIN_TOKEN.slice(1),
      `${ADMIN_TOKEN} `,
      ADMIN_TOKEN.toUpperCase(),
      `${ADMIN_TOKEN}\0`,
    ]
  ) {
    const response = await signIn(http, token, { from: `192.0.2.${100 + token.length}` });
    assert.equal(response.status, 401, token);
    assert.equal(response.headers.get("set-cookie"), null);
  }
});

Deno.test("a sign-in from another site is refused", async () => {
  const http = consoleOf(service);
  for (const site of ["cross-site", "same-site"]) {
    const response = await signIn(http, ADMIN_TOKEN, { headers: { "sec-fetch-site": site } });
    assert.deepEqual([response.status, response.headers.get("set-cookie")], [403, null]);
  }
  // Browsers name the site only over https; over plain http they name the origin.
  for (const origin of ["https://evil.test", "http://service.test:8080", "http://sub.service.test", "null"]) {
    const response = await signIn(http, ADMIN_TOKEN, { headers: { origin } });
    assert.deepEqual([response.status, response.headers.get("set-cookie")], [403, null], origin);
  }
  for (const host of ["service.test", "service.test:80"]) {
    const headers = { origin: "http://service.test", host };
    assert.equal((await signIn(http, ADMIN_TOKEN, { headers })).status, 303, host);
  }
  for (const site of ["same-origin", "none"]) {
    assert.equal((await signIn(http, ADMIN_TOKEN, { headers: { "sec-fetch-site": site } })).status, 303);
  }
});

Deno.test("a sign-in leads to the requested page, and only to pages of the console", async () => {
  const http = consoleOf(service);
  const asked = "/console/apps/app_1/test/users/a%2Fb%20c?from=2&q=%2Fx";
  const sent = await request(http, asked);
  assert.equal(sent.status, 303);
  const form = await request(http, sent.headers.get("location") ?? "");
  const to = /name="to" value="([^"]*)"/.exec(await form.text())?.[1]?.replaceAll("&amp;", "&") ?? "";
  assert.equal((await signIn(http, ADMIN_TOKEN, {}, to)).headers.get("location"), asked);
  for (
    const elsewhere of [
      "https://evil.test/",
      "//evil.test/console/",
      "/\\evil.test/console/",
      "\\\\evil.test",
      "/console//evil.test",
      "/console/..//evil.test",
      "/console/../../evil",
      "/console/%2e%2e/api/openapi.json",
      "/console/\t/evil.test",
      "/console/apps\r\nset-cookie: a=b",
      "/console/apps%0d%0aset-cookie: a=b\n",
      "/consoles",
      "/consolé",
      "/console.evil.test",
      "/console@evil.test",
      "javascript:alert(1)",
      "/console/sign-in",
      "/console/sign-out",
      "/console/x/../sign-in?to=/console/sign-in",
      "",
    ]
  ) {
    assert.equal((await signIn(http, ADMIN_TOKEN, {}, elsewhere)).headers.get("location"), HOME, elsewhere);
  }
  const strange = await signIn(http, ADMIN_TOKEN, {}, "/console/apps/é?q=%0d%0aü");
  assert.equal(strange.headers.get("location"), "/console/apps/%C3%A9?q=%0d%0a%C3%BC");
});

Deno.test("a form that is sent without a session returns to its own page after the sign-in", async () => {
  const response = await request(
    consoleOf(service),
    "/console/apps/a/live/keys/new?x=1",
    {},
    new URLSearchParams(),
  );
  assert.equal(response.status, 303);
  const to = encodeURIComponent("/console/apps/a/live/keys/new?x=1");
  assert.equal(response.headers.get("location"), `/console/sign-in?to=${to}`);
  await response.body?.cancel();
  const pages = new Set(PAGES.map(({ path }) => path));
  assert.deepEqual(ACTIONS.filter(({ path }) => !pages.has(path)), []);
});

Deno.test("a poll without a session sends the whole page to the sign-in", async () => {
  const response = await request(consoleOf(service), HOME, {
    headers: { "hx-request": "true", "hx-current-url": "http://service.test/console/system?x=1" },
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("hx-redirect"), "/console/sign-in?to=%2Fconsole%2Fsystem%3Fx%3D1");
  assert.equal(await response.text(), "");
});

Deno.test("only the admin token opens the admin API, and a cookie opens no API", async () => {
  const http = consoleOf(service);
  const key = { key: SUPPORT_TOKEN };
  assertRefused(await send(http, "GET", "/api/admin/v1/apps", undefined, key), 401, "invalid_key");
  const cookie = await cookieFor(http);
  for (const path of ["/api/admin/v1/apps", "/api/v1/events"]) {
    assertRefused(await send(http, "GET", path, undefined, { headers: { cookie } }), 401, "invalid_key");
  }
});

Deno.test("without a console its paths are unknown", async () => {
  const http = makeApp(service.service, ADMIN_TOKEN, null);
  for (const path of ["/console", "/console/sign-in", HOME, "/console/assets/x/console.css"]) {
    assert.equal((await request(http, path)).status, 404, path);
  }
});

Deno.test("a process that cannot serve has an error page, and still serves the assets", async () => {
  const { database } = service.store;
  const idle = new Service(database, service.serving().ids, service.clock, NO_FEATURES);
  const http = makeApp(idle, ADMIN_TOKEN, {
    operators: OPERATORS,
    isSecure: false,
    supportSeesPrompts: false,
    agentGrants: 0,
  });
  for (const path of [HOME, "/console/sign-in", "/console/nowhere"]) {
    const response = await request(http, path, { cookie: "holdfast_console=a.b" });
    const html = await response.text();
    assert.deepEqual([response.status, response.headers.get("retry-after")], [503, "2"], path);
    const styles = /<link rel="stylesheet" href="([^"]+)"/.exec(html)?.[1] ?? "";
    const asset = await request(http, styles);
    assert.equal(asset.status, 200);
    await asset.body?.cancel();
  }
  assert.equal((await signIn(http, ADMIN_TOKEN)).status, 503);
});

Deno.test("assets are cached for good under a path with their hash", async () => {
  const http = consoleOf(service);
  const cookie = await cookieFor(http);
  const html = await (await request(http, HOME, { cookie })).text();
  const paths = [...html.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
  assert.ok(paths.length >= 3, html);
  let bytes = html.length;
  for (const path of paths) {
    assert.match(path, /^\/console\/assets\/[\w-]{16}\/[\w.]+$/);
    const response = await request(http, path);
    assert.equal(response.headers.get("cache-control"), "public, max-age=31536000, immutable");
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    bytes += (await response.arrayBuffer()).byteLength;
    const [, hash = ""] = /assets\/([\w-]+)\//.exec(path) ?? [];
    assert.equal((await request(http, path.replace(hash, "0".repeat(16)))).status, 404);
  }
  assert.ok(bytes < 200_000, `${bytes} bytes`);
});

Deno.test("every answer has a request id, the caller's where it is valid, and the headers of all others", async () => {
  const http = consoleOf(service);
  const cookie = await cookieFor(http);
  for (const path of ["/console", HOME, "/console/sign-in", "/console/nowhere", "/console/assets/none"]) {
    for (const id of ["req_of_caller", "not valid"]) {
      const { headers } = await request(http, path, { cookie, headers: { "x-request-id": id } });
      assert.match(
        headers.get("x-request-id") ?? "",
        id === "not valid" ? /^[\w.-]+$/ : /^req_of_caller$/,
        path,
      );
      assert.equal(headers.get("x-content-type-options"), "nosniff", path);
      assert.ok(headers.has("referrer-policy"), path);
    }
  }
});

Deno.test("a hostile host is refused, and no answer repeats a host", async () => {
  const http = consoleOf(service);
  const hostile = await request(http, HOME, { headers: { host: "evil.test/console/.." } });
  assert.equal(hostile.status, 400);
  const sent = await request(http, HOME, { headers: { host: "evil.test" } });
  assert.ok(!JSON.stringify([...sent.headers]).includes("evil.test"));
});
