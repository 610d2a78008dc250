// What the client does while the service is unavailable: decisions in time, a breaker, work that goes on unmetered and is
// tracked afterwards, and commits that are never lost.

import assert from "node:assert/strict";
import {
  type ClientOptions,
  createClient,
  type FailedCommit,
  HoldfastError,
  type LaterEvent,
} from "../../src/client/client.ts";
import { Breaker, Decisions } from "../../src/client/decisions.ts";
import { openCall } from "../../src/client/model_calls.ts";
import { Transport } from "../../src/client/transport.ts";
import { appWithUser, countOf, serviceOfFile } from "../routes/support.ts";
import { BASE_URL, breakOff, fail, fetchOf, scriptedFetch, succeed } from "./support.ts";

const service = serviceOfFile();
const ONCE = { retries: { maxRetries: 0 } };
const WORK = { userId: "u", event: "e", count: 3 };
const UNMETERED = { allowed: true, matched: false, unmetered: true };

function clientWith(fetch: NonNullable<ClientOptions["fetch"]>, options: Partial<ClientOptions> = {}) {
  return createClient({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch, ...ONCE, ...options });
}

/** A running service whose calls a test can break by their paths. */
async function breakable(options: Partial<ClientOptions> = {}) {
  const app = await appWithUser(service);
  const broken = new Set<string>();
  const keys: string[] = [];
  const real = fetchOf(service);
  const fetch = async (url: string, init: RequestInit) => {
    const path = new URL(url).pathname.replace("/api/v1", "");
    if (broken.has(path)) {
      keys.push(new Headers(init.headers).get("idempotency-key") ?? "");
      throw new TypeError("broken");
    }
    if (path === "/commit") keys.push(new Headers(init.headers).get("idempotency-key") ?? "");
    return await real(url, init);
  };
  const client = createClient({ apiKey: app.secretLive, baseUrl: BASE_URL, fetch, ...ONCE, ...options });
  return { app, client, broken, keys };
}

Deno.test("a decision ends in its time, retries included, even if neither fetch nor a token ends", async () => {
  const deaf = () => new Promise<Response>(() => {});
  const endUserToken = () => new Promise<string>(() => {});
  for (const options of [{ timeoutMs: 20 }, {}, { endUserToken }]) {
    const client = createClient({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch: deaf, ...options });
    const call = "timeoutMs" in options ? {} : { timeoutMs: 20 };
    for (
      const ask of [
        () => client.reserve("u", "e", 1, {}, {}, call),
        () => client.canUse("u", "e", 1, {}, {}, call),
        () => client.withReservation({ ...WORK, timeoutMs: 20 }, () => ({ value: 1 })),
      ]
    ) {
      await assert.rejects(ask, (error) => error instanceof HoldfastError && error.code === "timeout");
    }
  }
});

Deno.test("a token that cannot be made fails its decision, and leaves no timer", async () => {
  const endUserToken = () => {
    throw new Error("no token");
  };
  const client = createClient({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch: breakOff, endUserToken });
  await assert.rejects(client.reserve("u", "e", 1, {}, {}, { timeoutMs: 10 }), /no token/);
  // A timer that was left would now reject a promise that nobody has.
  await new Promise((resolve) => setTimeout(resolve, 30));
});

Deno.test("a decision whose time ends in a pause between its tries ends with it, and is not tried again", async () => {
  const { fetch, sent } = scriptedFetch(breakOff);
  // The pause is far longer than the time, and the time far longer than a try.
  const retries = { baseDelayMs: 60_000, maxDelayMs: 60_000 };
  const client = createClient({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch, retries });
  await assert.rejects(
    client.reserve("u", "e", 1, {}, {}, { timeoutMs: 400 }),
    (error) => error instanceof HoldfastError && error.code === "timeout",
  );
  assert.equal(sent.length, 1);
});

Deno.test("a decision whose last pause ends a moment early is not tried again", async () => {
  const { fetch, sent } = scriptedFetch(breakOff, succeed({ allowed: true }));
  const retries = { baseDelayMs: 60_000, maxDelayMs: 60_000 };
  const early = () => Promise.resolve();
  const transport = new Transport({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch, retries }, early);
  const call = { method: "POST", path: "/reserve", access: "secret", body: {} } as const;
  await assert.rejects(
    transport.send(call, {}, 20_000),
    (error) => error instanceof HoldfastError && error.code === "timeout",
  );
  assert.equal(sent.length, 1);
});

Deno.test("five failures in a row open the breaker, which answers at once and tries one call a second", async () => {
  let now = 0;
  const { fetch, sent } = scriptedFetch(...Array(6).fill(breakOff), succeed({ allowed: true }));
  const transport = new Transport({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch, ...ONCE });
  const decisions = new Decisions(transport, {}, new Breaker(() => now));
  const ask = () =>
    decisions.ask({ method: "POST", path: "/reserve", access: "secret" })
      .then(() => "ok", (error) => error.code);
  const asked = async (times: number) => {
    const codes = new Set<string>();
    for (let time = 0; time < times; time++) codes.add(await ask());
    return [[...codes], sent.length];
  };
  assert.deepEqual(await asked(5), [["network_error"], 5]);
  now += 999;
  assert.deepEqual(await asked(10), [["unavailable"], 5], "nothing is sent");
  now += 1;
  assert.deepEqual(await asked(10), [["network_error", "unavailable"], 6], "one call tries");
  now += 1000;
  assert.deepEqual(await asked(10), [["ok"], 16], "it closes with the first success");
});

Deno.test("an answer that is no success is still an answer: it opens no breaker and allows nothing", async () => {
  for (
    const [status, code] of [[400, "invalid_request"], [401, "invalid_key"], [429, "rate_limited"]] as const
  ) {
    const { fetch, sent } = scriptedFetch(fail(status, code));
    const client = clientWith(fetch, { onUnavailable: "allow" });
    for (let time = 0; time < 8; time++) {
      await assert.rejects(client.reserve("u", "e"), (error) => (error as HoldfastError).code === code);
    }
    assert.equal(sent.length, 8);
  }
});

Deno.test("work goes on unmetered where that is allowed, is reported, and counts once when the service is back", async () => {
  const told: [string, LaterEvent][] = [];
  const onAllowedUnmetered = (error: HoldfastError, work: LaterEvent) => told.push([error.code, work]);
  const { app, client, broken } = await breakable({ onUnavailable: "allow", onAllowedUnmetered });
  for (const path of ["/reserve", "/can-use", "/track"]) broken.add(path);
  assert.deepEqual(await client.reserve("u", "image.render", 9, {}, { count: 2 }), UNMETERED);
  assert.deepEqual(await client.canUse("u", "image.render"), { ...UNMETERED, reasons: [], details: [] });
  const asked = { userId: "u", event: "image.render", count: 3 };
  const done = await client.withReservation(
    asked,
    () => ({ value: "drawn", commit: { actual: { count: 5 } } }),
  );
  assert.deepEqual(done, { allowed: true, value: "drawn", hold: UNMETERED, commit: null });
  await assert.rejects(
    client.withReservation(asked, () => Promise.reject(new Error("no image"))),
    /no image/,
  );
  assert.deepEqual(told.map(([code, { count }]) => [code, count]), [
    ["network_error", 2],
    ["network_error", 3],
    ["network_error", 3],
  ]);
  await assert.rejects(client.flush(), AggregateError);
  broken.clear();
  await client.flush();
  await client.flush();
  assert.equal(
    await countOf(app, "lg_images"),
    7,
    "what was reserved alone, and the usage of the finished work",
  );
});

Deno.test("work of a run that went on unmetered counts in the run when the service is back", async () => {
  const { client, broken } = await breakable({ onUnavailable: "allow" });
  const { runId } = await client.runs.create({ userId: "u", limits: [{ unit: "count", quota: 9 }] });
  broken.add("/reserve");
  await client.withReservation({ ...WORK, event: "image.render", runId }, () => ({ value: "drawn" }));
  await client.flush();
  assert.equal((await client.runs.get(runId)).limits[0]?.count, WORK.count);
});

Deno.test("a helper for models tracks the reported usage of a call that was allowed unmetered", async () => {
  const { client, broken } = await breakable({ onUnavailable: "allow" });
  broken.add("/reserve");
  const metering = { client, userId: "u", event: "image.render" };
  const call = await openCall(metering, {}, "mini", { inputTokens: 10, maxOutputTokens: 100 });
  call.report({ usage: { inputTokens: 7, outputTokens: 5 } });
  await call.finish();
  await client.flush();
  const { events } = await client.events.list({ userId: "u" });
  assert.deepEqual(events.map(({ eventType }) => eventType), ["image.render"]);
});

Deno.test("a failed commit loses no work: the value is returned, the error reported, and the commit retried under its key", async () => {
  const told: [string, FailedCommit][] = [];
  const onCommitError = (error: HoldfastError, commit: FailedCommit) => told.push([error.code, commit]);
  const { app, client, broken, keys } = await breakable({ onCommitError, timeoutMs: 5_000 });
  broken.add("/commit");
  const asked = { userId: "u", event: "image.render", count: 3 };
  const done = await client.withReservation(
    asked,
    () => ({ value: "drawn", commit: { actual: { count: 4 } } }),
  );
  assert.ok(done.allowed);
  assert.deepEqual([done.value, done.commit], ["drawn", null]);
  assert.equal(await countOf(app, "lg_images"), 3, "held");
  broken.clear();
  await client.flush();
  assert.equal(await countOf(app, "lg_images"), 4);
  const [[code, failed] = assert.fail()] = told;
  assert.deepEqual([told.length, code, failed.isRetried], [1, "network_error", true]);
  assert.deepEqual(new Set(keys), new Set([failed.idempotencyKey]), "every try has one key");
});

Deno.test("a commit that is refused for good is reported once and not retried, and a handler that throws stops nothing", async () => {
  const told: [string, boolean][] = [];
  const { client, keys } = await breakable();
  const onCommitError = (error: HoldfastError, { isRetried }: FailedCommit) => {
    told.push([error.code, isRetried]);
    throw new Error("a fault of the handler");
  };
  const asked = { userId: "u", event: "image.render", onCommitError };
  const done = await client.withReservation(asked, () => ({ value: 1, commit: { actual: { count: -1 } } }));
  assert.equal(done.allowed && done.value, 1);
  await client.flush();
  assert.deepEqual([told, keys.length], [[["invalid_request", false]], 1]);
});

Deno.test("a refused model call names the limit and when it resets", async () => {
  const { client } = await breakable();
  const metering = { client, userId: "u", event: "image.render" };
  const error = await openCall(metering, {}, undefined, { inputTokens: 0, count: 1000 }).then(
    () => assert.fail(),
    (error) => error,
  );
  assert.deepEqual([error.code, error.status], ["limit_reached", 429]);
  assert.match(error.message, /^Refused: limit_reached: "[^"]+" \(resets at 20.+Z\)$/);
  assert.deepEqual(Object.keys(error.details), ["reasons", "groups", "label", "resetsAt"]);

  await client.subscriptions.upsert({ userId: "acme", planId: "plan_team" });
  await client.accounts.setParent("u", "acme");
  const atLevel = await openCall(metering, {}, undefined, { inputTokens: 0, count: 60 }).then(
    () => assert.fail(),
    (error) => error,
  );
  assert.match(atLevel.message, /^Refused: limit_reached: "[^"]+" of "acme" \(resets at 20.+Z\)$/);
  assert.deepEqual([atLevel.details.refusedBy, atLevel.details.levels[0].userId], [["acme"], "acme"]);
  await client.subscriptions.cancel({ userId: "acme" });
  const ended = await openCall(metering, {}, undefined, { inputTokens: 0, count: 1 }).then(
    () => assert.fail(),
    (error) => error,
  );
  assert.equal(ended.message, 'Refused at "acme": no_subscription');
});
