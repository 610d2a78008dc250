// The middleware on the real Hono, with the real service.

import assert from "node:assert/strict";
import { type Context, Hono } from "hono";
import { HTTPException } from "npm:hono@4.13.19/http-exception";
import { HoldfastError } from "../../src/client/client.ts";
import { meter } from "../../src/client/hono.ts";
import type { SettlingCalls } from "../../src/client/with_reservation.ts";
import { meteredUser, NOTHING } from "./model.ts";

const event = "route.draw";
const userId = (context: Context) => context.req.header("x-user") ?? "";

async function setUp() {
  const { client, shown } = await meteredUser();
  let runs = 0;
  const app = new Hono<{ Variables: { tokens: number } }>();
  const metered = meter({ client, userId, event });
  const done = (context: Context) => {
    runs += 1;
    return context.json({ done: true });
  };
  app.get("/done", metered, done);
  app.get("/moved", metered, (context) => context.redirect("/done"));
  app.get("/missing", metered, (context) => context.notFound());
  app.get("/broken", metered, () => {
    throw new Error("broken");
  });
  app.get("/refused", metered, () => {
    throw new HTTPException(402);
  });
  app.get("/large", meter({ client, userId, event, count: 11, metadata: { kind: "large" } }), done);
  const commit = (context: Context) => ({ usage: { inputTokens: context.get("tokens") } });
  const metadata = (context: Context) => ({ model: context.req.query("model") ?? "" });
  app.get("/used", meter({ client, userId: "u", event, inputTokens: 50, metadata, commit }), (context) => {
    context.set("tokens", 7);
    return context.json({});
  });
  const ask = (path: string, user = "u") => app.request(path, { headers: { "x-user": user } });
  return { app, client, ask, shown, runs: () => runs };
}

Deno.test("a route is committed below 400, and released at 400 or above or where it throws", async () => {
  for (
    const [path, status, calls] of [
      ["/done", 200, 1],
      ["/moved", 302, 1],
      ["/missing", 404, 0],
      ["/broken", 500, 0],
      ["/refused", 402, 0],
    ] as const
  ) {
    const { ask, shown } = await setUp();
    assert.equal((await ask(path)).status, status, path);
    assert.deepEqual(await shown(), { ...NOTHING, calls }, path);
  }
});

Deno.test("an error that the app turns into a good answer is released", async () => {
  const { app, ask, shown } = await setUp();
  app.onError((_, context) => context.json({ sorry: true }));
  assert.equal((await ask("/broken")).status, 200);
  assert.deepEqual(await shown(), NOTHING);
});

Deno.test("a refused request gets 429 in the envelope, and its handler does not run", async () => {
  const { ask, shown, runs } = await setUp();
  const answer = await ask("/large");
  assert.equal(answer.status, 429);
  const { ok, error } = await answer.json();
  assert.deepEqual([ok, error.code, error.details.reasons], [false, "limit_reached", ["limit_reached"]]);
  assert.equal((await (await ask("/done", "stranger")).json()).error.code, "no_subscription");
  assert.deepEqual([runs(), await shown()], [0, NOTHING]);
});

Deno.test("a cap of the workspace is a refusal too; other trouble goes to the app", async () => {
  const { client } = await setUp();
  const app = new Hono();
  let error = new HoldfastError({ code: "workspace_limit_reached", status: 429, message: "Full" });
  const failing: SettlingCalls = { ...callsOf(client), reserve: () => Promise.reject(error) };
  app.get("/", meter({ client: failing, userId: "u", event }), (context) => context.text("ran"));
  const answer = await app.request("/");
  assert.deepEqual([answer.status, await answer.json()], [429, {
    ok: false,
    error: { code: "workspace_limit_reached", message: "Full" },
  }]);
  assert.equal(answer.headers.get("retry-after"), null);
  const refused = {
    allowed: false,
    matched: true,
    reasons: ["rate_limit_reached"],
    retryAfterMs: 60_100,
  } as const;
  failing.reserve = () => Promise.resolve(refused);
  const later = await app.request("/");
  assert.deepEqual([later.status, later.headers.get("retry-after")], [429, "61"]);
  failing.reserve = () => Promise.reject(error);
  const seen: unknown[] = [];
  app.onError((error, context) => {
    seen.push(error);
    return context.text("down", 503);
  });
  error = new HoldfastError({ code: "unavailable", status: 503, message: "Starting" });
  assert.equal((await app.request("/")).status, 503);
  assert.deepEqual(seen, [error]);
});

Deno.test("a route may say what it used", async () => {
  const { ask, shown } = await setUp();
  assert.equal((await ask("/used?model=mini")).status, 200);
  assert.deepEqual(await shown(), { tokens: 7, cents: 0.007, calls: 1 });
});

type Calls = Parameters<typeof meter>[0]["client"];

function callsOf(client: Calls): Calls {
  return {
    reserve: client.reserve.bind(client),
    commit: client.commit.bind(client),
    release: client.release.bind(client),
  };
}
