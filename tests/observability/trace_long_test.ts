// Traces and logs of the real program, with a collector beside it: a call is there as spans, log lines name their
// request and trace, and no end-user id, key, token or prompt appears anywhere.

import assert from "node:assert/strict";
import { until } from "../crash/program.ts";
import { ADMIN_TOKEN, Stage } from "../crash/stage.ts";
import { answerOf, once, type WireCall } from "../crash/wire.ts";
import { type CollectedSpan, Collector } from "./collector.ts";

const PERSON = "person-7f3a@secret.example";
const PROMPT = "a prompt that only its caller may read";
const WRONG_KEY = "sk_live_wrongwrongwrongwrongwrongwrong01";
const EXPORT_SECRET = "an-export-secret-0123456789";
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const COLLECTED_MS = 30_000;

Deno.test("a call can be followed in its trace, and no secret is in traces, logs or output", async () => {
  await using collector = new Collector();
  await using stage = await Stage.open();
  const { program, origin } = await stage.startReady({
    ...collector.settings,
    HOLDFAST_LOG_LEVEL: "debug",
    ANALYTICS_EXPORT_SECRET: EXPORT_SECRET,
  });
  await stage.populate(origin);
  const bearer = stage.secretKey;
  const call = async (method: string, path: string, body?: unknown, more: Partial<WireCall> = {}) =>
    answerOf(await once(origin, { method, path: `/api/v1${path}`, bearer, body, ...more }));

  await call("POST", "/subscriptions", { userId: PERSON, planId: "plan_tight" });
  const traced = { traceparent: `00-${TRACE}-b7ad6b7169203331-01`, "x-request-id": "request-1" };
  const reserve = { userId: PERSON, event: "image.x", prompt: PROMPT };
  const held = await call("POST", "/reserve", reserve, { headers: traced });
  assert.equal(held.body.data.allowed, true);
  await call("POST", "/reserve", { ...reserve, count: 1000 }, { headers: { "x-request-id": "request-2" } });
  await call("POST", "/track", { ...reserve, userId: "stranger" }, { idempotencyKey: "once" });
  await call("POST", "/commit", { reservationId: held.body.data.reservationId, response: PROMPT });
  await call("GET", `/usage?userId=${encodeURIComponent(PERSON)}`);
  await call("GET", `/users/${PERSON}`);
  await call("GET", `/customers/${encodeURIComponent(PERSON)}`);
  await call("GET", `/nothing/${PERSON}`);
  await call("POST", "/reserve", reserve, { bearer: WRONG_KEY });
  await call("POST", "/reserve", { userId: PERSON, event: "*", prompt: PROMPT });
  await call("POST", "/export-person", [PROMPT]);
  const { downloadUrl } = (await call("POST", "/export-person", { distinctId: PERSON })).body.data;
  const { pathname, search } = new URL(downloadUrl);
  const token = search.slice("?token=".length);
  await (await fetch(`${origin}${pathname}${search}`)).text();
  await (await fetch(`${origin}${pathname}${search}x`)).text();
  await call("GET", "/events");

  const batchOf = (spans: CollectedSpan[]) =>
    spans.find(({ traceId, name }) => traceId === TRACE && name === "append")?.links[0];
  const spans = await until("everything is exported", COLLECTED_MS, () => {
    const { spans, paths } = collector;
    const batch = batchOf(spans);
    const isDrained = spans.some(({ name, links }) =>
      name === "drain" && batch !== undefined && links.includes(batch)
    );
    const isDone = spans.some(({ name }) => name === "GET /api/v1/events");
    return isDrained && isDone && paths.has("/v1/logs") ? spans : null;
  });
  checkWay(spans, batchOf(spans));
  checkRoutes(spans);
  program.signal("SIGTERM");
  assert.equal((await program.exit(COLLECTED_MS)).code, 0, program.stderr);

  checkLines(program.stderr);

  const secrets = [
    PERSON,
    encodeURIComponent(PERSON),
    PROMPT,
    bearer,
    WRONG_KEY,
    EXPORT_SECRET,
    ADMIN_TOKEN,
    token,
  ];
  for (const [place, text] of [["exported", collector.text], ["errors", program.stderr]] as const) {
    for (const secret of secrets) assert.ok(!text.includes(secret), `${secret} is in what was ${place}`);
  }
});

/** Checks the reserve in its caller's trace: request, mailbox, decide and append, then batch and drain by links. */
function checkWay(spans: readonly CollectedSpan[], batchId: string | undefined): void {
  const way = spans.filter(({ traceId }) => traceId === TRACE);
  const named = (name: string) => way.find((span) => span.name === name) ?? assert.fail(`no span "${name}"`);
  const request = named("POST /api/v1/reserve");
  assert.equal(request.parentSpanId, "b7ad6b7169203331");
  assert.equal(request.attributes["holdfast.code"], "ok");
  assert.equal(request.attributes["holdfast.request_id"], "request-1");
  assert.equal(way.length, 4);
  for (const name of ["mailbox", "decide", "append"]) {
    const { parentSpanId, attributes } = named(name);
    assert.equal(parentSpanId, request.spanId, name);
    assert.equal(attributes["holdfast.command"], "reserve");
    assert.equal(attributes["holdfast.mode"], "live");
  }
  assert.equal(named("decide").attributes["holdfast.outcome"], "ok");
  const batch = spans.find(({ spanId }) => spanId === batchId) ?? assert.fail("no span of the batch");
  assert.equal(batch.name, "batch");
  assert.equal(batch.parentSpanId, "");
  assert.ok(batch.attributes["holdfast.changes"] as number > 0);
  const refused = spans.filter(({ attributes }) => attributes["holdfast.reasons"] !== undefined);
  assert.deepEqual(refused.map(({ name }) => name), ["decide"]);
  assert.deepEqual(refused[0]?.attributes["holdfast.reasons"], ["limit_reached"]);
}

/** Checks that requests are named by their pattern and hold no address. */
function checkRoutes(spans: readonly CollectedSpan[]): void {
  const requests = spans.filter(({ attributes }) => attributes["http.request.method"] !== undefined);
  const routes = new Set(requests.map(({ attributes }) => attributes["http.route"]));
  for (
    const path of ["v1/users/:userId", "v1/customers/:id", "v1/usage", "v1/export-download", "admin/v1/apps"]
  ) {
    assert.ok(routes.has(`/api/${path}`), path);
  }
  assert.ok(routes.has("none"));
  for (const { attributes } of spans) {
    for (const name of ["url.full", "url.path", "url.query"]) assert.equal(attributes[name], undefined, name);
  }
}

/** Checks that every line has a level and a message, and the line of a request its id and trace. */
function checkLines(stderr: string): void {
  const lines = stderr.trim().split("\n").map((line) => JSON.parse(line));
  for (const { at, level, message } of lines) {
    assert.match(at, /^\d{4}-.*Z$/);
    assert.ok(["debug", "info", "warn", "error"].includes(level), level);
    assert.equal(typeof message, "string");
  }
  const line = lines.find(({ requestId }) => requestId === "request-1");
  assert.equal(line.traceId, TRACE);
  assert.deepEqual([line.method, line.route, line.status, line.code], ["POST", "/api/v1/reserve", 200, "ok"]);
  assert.equal(typeof line.ms, "number");
}
