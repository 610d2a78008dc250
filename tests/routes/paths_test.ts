// Which paths lead where: routes go by the raw path, and admin API, console and metrics may have an address of their own.

import assert from "node:assert/strict";
import { makeApp, type SurfacePart } from "../../routes/app.ts";
import { ADMIN_TOKEN } from "../support/test_service.ts";
import { OPERATORS } from "./console_support.ts";
import { appWithUser, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

/** The surface at one address, with the console. */
function surface(part: SurfacePart) {
  const console = { operators: OPERATORS, isSecure: false, supportSeesPrompts: false, agentGrants: 0 };
  const http = makeApp(service.service, ADMIN_TOKEN, console, part);
  return async (path: string, key?: string, method = "GET") => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const response = await http.fetch(new Request(`http://service.test${path}`, { method, headers }));
    const text = await response.text();
    return { status: response.status, text };
  };
}

/** A path with one letter escaped, at each place. */
function escapedForms(path: string): string[] {
  return [...path].flatMap((letter, at) =>
    /[\w.-]/.test(letter)
      ? [`${path.slice(0, at)}%${letter.charCodeAt(0).toString(16)}${path.slice(at + 1)}`]
      : []
  );
}

Deno.test("an escaped form of a route is not found, wherever the escape is", async () => {
  const app = await appWithUser(service);
  const ask = surface("all");
  const rows: [path: string, key: string | undefined][] = [
    ["/metrics", undefined],
    ["/healthz", undefined],
    ["/console/sign-in", undefined],
    ["/api/admin/v1/apps", ADMIN_TOKEN],
    ["/api/v1/plans", app.secretLive],
    ["/openai/v1/models", app.secretLive],
  ];
  for (const [path, key] of rows) {
    assert.ok([200, 501].includes((await ask(path, key)).status), path);
    for (const escaped of escapedForms(path)) {
      const { status } = await ask(escaped, key);
      // Below /api/ a caller without a key of an app gets 401 for every unknown path.
      const refusals = escaped.startsWith("/api/") ? [404, 401] : [404];
      // Without a session every path of the console leads to the sign-in.
      if (escaped.startsWith("/console/")) refusals.push(303);
      assert.ok(refusals.includes(status), `${escaped}: ${status}`);
    }
  }
  for (const path of ["/%61pi/v1/plans", "/api/%761/plans", "/api/v1/plan%73", "/api/%61dmin/v1/apps"]) {
    assert.equal((await ask(path, app.secretLive)).status, 404, path);
  }
});

Deno.test("a parameter of a path is decoded once, whatever it escapes", async () => {
  const app = await appWithUser(service);
  const ids = ["a b", "100%", "%41", "ü/ö?#", "..x", "%2F"];
  for (const userId of ids) await dataOf(app.call("POST", "/subscriptions", { userId, planId: "plan_pro" }));
  for (const userId of ids) {
    const path = `/users/${encodeURIComponent(userId)}`;
    assert.equal((await dataOf(app.call("GET", path))).userId, userId);
  }
  const escaped = await dataOf(app.call("GET", "/users/%75"));
  assert.equal(escaped.userId, "u");
});

Deno.test("with an address of their own, admin API, console and metrics are there and nowhere else", async () => {
  const app = await appWithUser(service);
  const [outside, inside] = [surface("public"), surface("admin")];
  for (const path of ["/healthz", "/readyz"]) {
    for (const ask of [outside, inside]) assert.equal((await ask(path)).status, 200, path);
  }
  const operators = ["/metrics", "/console", "/console/sign-in", "/console/apps", "/api/admin/v1/apps"];
  for (const path of [...operators, "/console/assets/x", "/api/admin/v1/nothing"]) {
    for (const key of [undefined, ADMIN_TOKEN, "wrong", app.secretLive]) {
      for (const method of ["GET", "POST", "DELETE"]) {
        assert.equal((await outside(path, key, method)).status, 404, `${method} ${path} ${key}`);
      }
    }
  }
  for (const path of operators) {
    assert.ok([200, 303].includes((await inside(path, ADMIN_TOKEN)).status), path);
  }
  assert.equal((await inside("/api/admin/v1/apps", "wrong")).status, 401);
  assert.equal((await outside("/api/v1/plans", app.secretLive)).status, 200);
  assert.equal((await inside("/api/v1/plans", app.secretLive)).status, 404);
  for (const path of ["/openai/v1/models", "/docs", "/api/openapi.json", "/", "/api/v1/stripe/x/live"]) {
    assert.equal((await inside(path, app.secretLive, path.includes("stripe") ? "POST" : "GET")).status, 404);
  }
});
