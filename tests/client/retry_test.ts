// Which calls are retried and which are not, and what a retry sends: with a fetch that does what the test says. Pauses
// are checked as numbers; no test waits for one.

import assert from "node:assert/strict";
import { HoldfastError } from "../../src/client/client.ts";
import { Metering } from "../../src/client/metering.ts";
import {
  DEFAULT_RETRIES,
  mayPass,
  readRetryAfter,
  retryDelayMs,
  waitPauseMs,
} from "../../src/client/retry.ts";
import { type ClientOptions, Transport, type WireCall } from "../../src/client/transport.ts";
import { BASE_URL, breakOff, errorOf, fail, scriptedFetch, succeed } from "./support.ts";

const READ: WireCall = { method: "GET", path: "/usage", access: "any" };
const WRITE: WireCall = {
  method: "POST",
  path: "/track",
  access: "secret",
  body: { userId: "u", event: "e" },
};

/** A transport that notes its pauses and does not wait. */
function transportOf(fetch: ClientOptions["fetch"], options: Partial<ClientOptions> = {}) {
  const pauses: number[] = [];
  const wait = (ms: number) => Promise.resolve(void pauses.push(ms));
  const full = { apiKey: "sk_live_x", baseUrl: BASE_URL, fetch, ...options };
  return { transport: new Transport(full, wait), pauses };
}

Deno.test("a write is retried after faults, with the same idempotency key and the same bytes", async () => {
  const { fetch, sent } = scriptedFetch(
    breakOff,
    fail(503, "unavailable"),
    () => new Response("<html>Bad gateway</html>", { status: 502 }),
    fail(429, "rate_limited"),
    succeed({ eventId: "evt_1" }),
  );
  const { transport, pauses } = transportOf(fetch);
  assert.deepEqual(await transport.send(WRITE), { eventId: "evt_1" });
  assert.equal(sent.length, 5);
  assert.equal(pauses.length, 4);
  const keys = new Set(sent.map(({ headers }) => headers.get("idempotency-key")));
  assert.equal(keys.size, 1);
  assert.match([...keys][0] as string, /^[0-9a-f]{32}$/);
  assert.deepEqual(new Set(sent.map(({ body }) => body)), new Set([JSON.stringify(WRITE.body)]));
});

Deno.test("each write has an idempotency key of its own or the one given, and what changes nothing has none", async () => {
  const { fetch, sent } = scriptedFetch(succeed());
  const { transport } = transportOf(fetch);
  await transport.send(WRITE);
  await transport.send(WRITE);
  await transport.send(WRITE, { idempotencyKey: "job_7" });
  await transport.send({ ...WRITE, isRead: true }, { idempotencyKey: "job_7" });
  await transport.send(READ, { idempotencyKey: "job_7" });
  const [first, second, third, ...rest] = sent.map(({ headers }) => headers.get("idempotency-key"));
  assert.ok(typeof first === "string" && typeof second === "string");
  assert.notEqual(first, second);
  assert.deepEqual([third, ...rest], ["job_7", null, null]);
});

Deno.test("a call whose answer would be the same again is not retried", async () => {
  const cases: [number, string][] = [
    [400, "invalid_request"],
    [401, "invalid_key"],
    [403, "forbidden"],
    [404, "not_found"],
    [409, "reservation_not_pending"],
    [429, "limit_reached"],
    [429, "workspace_limit_reached"],
    [500, "internal_error"],
    [501, "not_implemented"],
    [502, "generation_failed"],
  ];
  for (const [status, code] of cases) {
    const { fetch, sent } = scriptedFetch(fail(status, code));
    const { transport, pauses } = transportOf(fetch);
    const error = await errorOf(transport.send(WRITE));
    const { message, details, requestId, retryAfterMs } = error;
    assert.deepEqual({ code: error.code, status: error.status }, { code, status });
    assert.deepEqual({ message, details, requestId, retryAfterMs }, {
      message: `It is ${code}`,
      details: undefined,
      requestId: "req_1",
      retryAfterMs: null,
    });
    assert.deepEqual([sent.length, pauses], [1, []], code);
  }
});

Deno.test("retries end after their number, or when the service asks for too long a pause", async () => {
  const broken = scriptedFetch(breakOff);
  const { transport, pauses } = transportOf(broken.fetch, { retries: { maxRetries: 2 } });
  const error = await errorOf(transport.send(READ));
  assert.deepEqual([error.code, error.status, error.requestId], ["network_error", 0, null]);
  assert.equal((error.cause as Error).message, "connection reset");
  assert.deepEqual([broken.sent.length, pauses.length], [3, 2]);

  await errorOf(transport.send(READ, { maxRetries: 0 }));
  assert.equal(broken.sent.length, 4);

  const busy = scriptedFetch(fail(429, "rate_limited", { "retry-after": "3600" }));
  const late = await errorOf(transportOf(busy.fetch).transport.send(READ));
  assert.deepEqual([late.code, late.retryAfterMs, busy.sent.length], ["rate_limited", 3_600_000, 1]);
});

Deno.test("pauses double, half of each is random, and none is shorter than the service asks for", () => {
  const unavailable = (retryAfterMs: number | null = null) =>
    new HoldfastError({ code: "unavailable", status: 503, message: "", retryAfterMs });
  const delays = (chance: number, error = unavailable()) =>
    [0, 1, 2, 3, 4, 5].map((retry) => retryDelayMs(DEFAULT_RETRIES, retry, error, chance));
  assert.deepEqual(delays(0), [125, 250, 500, 1000, 2000, null]);
  assert.deepEqual(delays(1), [250, 500, 1000, 2000, 4000, null]);
  assert.deepEqual(delays(0, unavailable(1000)), [1125, 1250, 1500, 2000, 3000, null]);
  assert.equal(retryDelayMs({ ...DEFAULT_RETRIES, maxRetries: 99 }, 40, unavailable(), 1), 10_000);
  assert.equal(retryDelayMs(DEFAULT_RETRIES, 0, unavailable(10_001), 0), null);
  assert.equal(mayPass(new HoldfastError({ code: "bad_answer", status: 200, message: "" })), false);
});

Deno.test("Retry-After is read as seconds or as a date", () => {
  const now = Date.UTC(2026, 0, 1);
  assert.equal(readRetryAfter("7", now), 7000);
  assert.equal(readRetryAfter("Thu, 01 Jan 2026 00:00:05 GMT", now), 5000);
  assert.equal(readRetryAfter("Thu, 01 Jan 2015 00:00:05 GMT", now), 0);
  assert.equal(readRetryAfter("soon", now), null);
  assert.equal(readRetryAfter(null, now), null);
});

Deno.test("onRetry hears of each retry, with its error and its pause", async () => {
  const { fetch } = scriptedFetch(fail(503, "unavailable", { "retry-after": "1" }), breakOff, succeed());
  const told: unknown[] = [];
  const { transport, pauses } = transportOf(fetch, {
    onRetry: ({ method, path, retry, delayMs, error }) =>
      told.push([method, path, retry, delayMs, error.code]),
  });
  await transport.send(READ);
  assert.deepEqual(told, [
    ["GET", "/usage", 1, pauses[0], "unavailable"],
    ["GET", "/usage", 2, pauses[1], "network_error"],
  ]);
  assert.ok((pauses[0] as number) >= 1000);
});

Deno.test("an answer that is not the service's is a bad_answer", async () => {
  const replies: [number, string, string][] = [
    [200, "<html>Welcome</html>", "bad_answer"],
    [200, '{"ok":true}', "bad_answer"],
    [200, "null", "bad_answer"],
    [403, "<html>Forbidden</html>", "bad_answer"],
    [404, '{"error":"no such route"}', "bad_answer"],
    [500, "", "bad_answer"],
  ];
  for (const [status, body, code] of replies) {
    const { fetch, sent } = scriptedFetch(() => new Response(body, { status }));
    const error = await errorOf(transportOf(fetch).transport.send(READ));
    assert.deepEqual([error.code, error.status, sent.length], [code, status, 1], body);
  }
});

/** A fetch that never answers, and ends only with its signal, as a real one does. */
function silentFetch() {
  let calls = 0;
  const fetch = (_: string, { signal }: RequestInit) =>
    new Promise<Response>((_, reject) => {
      calls++;
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  return { fetch, calls: () => calls };
}

Deno.test("a try without an answer in time is a timeout, and is retried", async () => {
  const silent = silentFetch();
  const { transport, pauses } = transportOf(silent.fetch, { timeoutMs: 1, retries: { maxRetries: 1 } });
  const error = await errorOf(transport.send(WRITE));
  assert.deepEqual([error.code, error.status], ["timeout", 0]);
  assert.deepEqual([silent.calls(), pauses.length], [2, 1]);
});

Deno.test("an aborted call rejects with the signal's reason and is not retried", async () => {
  const silent = silentFetch();
  const { transport } = transportOf(silent.fetch);
  const controller = new AbortController();
  const call = transport.send(WRITE, { signal: controller.signal });
  const reason = new Error("the page is gone");
  queueMicrotask(() => controller.abort(reason));
  await assert.rejects(call, reason);
  const calls = silent.calls();
  await assert.rejects(transport.send(WRITE, { signal: controller.signal }), reason);
  assert.equal(silent.calls(), calls);
});

Deno.test("an abort ends the pause between two tries", async () => {
  const controller = new AbortController();
  const { fetch, sent } = scriptedFetch(breakOff);
  const transport = new Transport({
    apiKey: "sk_live_x",
    baseUrl: BASE_URL,
    fetch,
    retries: { baseDelayMs: 3_600_000, maxDelayMs: 3_600_000 },
    onRetry: () => queueMicrotask(() => controller.abort(new Error("enough"))),
  });
  await assert.rejects(transport.send(READ, { signal: controller.signal }), /enough/);
  assert.equal(sent.length, 1);
});

Deno.test({
  name: "a finished call leaves no timer behind, which would keep a program alive",
  sanitizeOps: true,
  fn: async () => {
    const { signal } = new AbortController();
    const { transport } = transportOf(scriptedFetch(breakOff, succeed()).fetch);
    await transport.send(READ, { signal });
  },
});

/** A client whose pauses move its clock, with the replies to its reserves; the last one again and again. */
function waitingOn(...replies: readonly (() => Response)[]) {
  const { fetch, sent } = scriptedFetch(...replies);
  let now = 0;
  const wait = (ms: number, signal?: AbortSignal) => {
    now += ms;
    return signal?.aborted ? Promise.reject(signal.reason) : Promise.resolve();
  };
  const transport = new Transport({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch }, wait);
  const keys = () => sent.map(({ headers }) => headers.get("idempotency-key"));
  return { client: new Metering(transport, () => now), sent, keys, waited: () => now };
}

const HELD = { allowed: true, matched: true, reservationId: "rsv_1", expiresAt: "2030-01-01T00:00:00.000Z" };
const refusedFor = (retryAfterMs?: number | null) =>
  succeed({ allowed: false, matched: true, reasons: ["rate_limit_reached"], retryAfterMs });

Deno.test("a pause while guards refuse is at least what they ask, at most a second, half as long again by chance", () => {
  const rows: [asked: number | null | undefined, leftMs: number, chance: number, pause: number | null][] = [
    [200, 5_000, 0, 200],
    [200, 5_000, 1, 300],
    [90_000, 5_000, 0, 1_000],
    [90_000, 5_000, 1, 1_500],
    [90_000, 700, 1, 700],
    [200, 0, 0, null],
    [null, 5_000, 0, null],
    [undefined, 5_000, 0, null],
  ];
  for (const [retryAfterMs, leftMs, chance, pause] of rows) {
    assert.equal(waitPauseMs({ retryAfterMs }, leftMs, chance), pause, `${retryAfterMs} ${leftMs} ${chance}`);
  }
});

Deno.test("a reserve waits while guards alone refuse, each time with another key, until it is allowed", async () => {
  const { client, sent, keys, waited } = waitingOn(refusedFor(3_000), refusedFor(400), succeed(HELD));
  const hold = await client.reserve("u", "e", 1, {}, { waitSeconds: 10 });
  assert.equal(hold.reservationId, "rsv_1");
  assert.equal(new Set(keys()).size, 3);
  assert.ok(waited() >= 1_400 && waited() <= 2_100, `${waited()}`);
  const [body, ...others] = new Set(sent.map(({ body }) => body));
  assert.deepEqual([body, others], [
    JSON.stringify({ userId: "u", event: "e", quantity: 1, metadata: {} }),
    [],
  ]);
  const asked = waitingOn(refusedFor(3_000), refusedFor(400), succeed(HELD), succeed({ eventId: "evt_1" }));
  const call = { idempotencyKey: "job_7" };
  const work = { userId: "u", event: "e", waitSeconds: 10 };
  const done = await asked.client.withReservation(work, () => ({ value: 1 }), call);
  assert.equal(done.allowed && done.value, 1);
  assert.deepEqual(asked.keys().slice(0, 3), ["job_7", "job_7:2", "job_7:3"]);
  const long = waitingOn(refusedFor(400), succeed(HELD));
  const [common, own] = ["x".repeat(189), "job_8"];
  await long.client.reserve("u", "e", 1, {}, { waitSeconds: 10 }, { idempotencyKey: common + own });
  assert.equal(long.keys()[1], `${common}${own}:2`, "the end of a long key is kept");
});

Deno.test("a reserve does not wait unless told, past its seconds, for what never passes, or after its signal", async () => {
  const cases: [reply: ReturnType<typeof refusedFor>, waitSeconds: number | undefined, waited: number][] = [
    [refusedFor(3_000), undefined, 0],
    [refusedFor(3_000), 0, 0],
    [refusedFor(90_000), 5, 5_000],
    [refusedFor(null), 60, 0],
    [refusedFor(), 60, 0],
  ];
  for (const [reply, waitSeconds, time] of cases) {
    const { client, waited } = waitingOn(reply);
    const answer = await client.reserve("u", "e", 1, {}, { waitSeconds });
    assert.deepEqual([answer.allowed, waited()], [false, time]);
  }
  for (const waitSeconds of [-1, 61, NaN]) {
    const { client, sent } = waitingOn(succeed(HELD));
    const error = await errorOf(client.reserve("u", "e", 1, {}, { waitSeconds }));
    assert.deepEqual([error.code, sent.length], ["invalid_request", 0]);
    assert.equal(error.message, "waitSeconds: must be a number from 0 to 60");
  }
  const stop = new AbortController();
  const { client, sent } = waitingOn(() => {
    stop.abort(new Error("left"));
    return refusedFor(3_000)();
  });
  await assert.rejects(client.reserve("u", "e", 1, {}, { waitSeconds: 9 }, { signal: stop.signal }), /left/);
  assert.equal(sent.length, 1);
});
