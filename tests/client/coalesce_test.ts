// Calls that are made while others are under way leave together: what is sent, and what each caller gets. The fetch answers when
// a test says.

import assert from "node:assert/strict";
import { type ClientOptions, createClient, HoldfastClient } from "../../src/client/client.ts";
import { Transport } from "../../src/client/transport.ts";
import { appWithUser, countOf, serviceOfFile } from "../routes/support.ts";
import { BASE_URL, clientOf, errorOf, fetchOf, type Sent, sentOf } from "./support.ts";

const service = serviceOfFile();

/** A request under way. */
interface Open extends Sent {
  readonly signal: AbortSignal;
  /** Answers it; `null` breaks the connection. */
  answer(reply: Response | null): void;
  /** The calls of a batch; a single call as a list of one. */
  readonly calls: Record<string, unknown>[];
  readonly isBatch: boolean;
}

/** A fetch whose requests stay open until a test answers them, and heed no signal. */
function openFetch() {
  const open: Open[] = [];
  const fetch = (url: string, init: RequestInit): Promise<Response> => {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const sent = sentOf(url, init);
    const { calls } = JSON.parse(sent.body as string);
    const answer = (reply: Response | null) =>
      reply === null ? reject(new TypeError("reset")) : resolve(reply);
    const isBatch = sent.path === "/api/v1/batch";
    open.push({
      ...sent,
      signal: init.signal as AbortSignal,
      answer,
      isBatch,
      calls: calls ?? [JSON.parse(sent.body as string)],
    });
    return promise;
  };
  return { open, fetch };
}

function clientWith(fetch: ClientOptions["fetch"], options: Partial<ClientOptions> = {}): HoldfastClient {
  return createClient({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch, ...options });
}

/** Lets everything run that is ready. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function held(id: string) {
  return { allowed: true, matched: true, reservationId: id, expiresAt: "2026-01-01T00:00:00.000Z" };
}

/** A success of a single call or, for a batch, one result for each of its calls. */
function success(...data: readonly unknown[]): Response {
  return Response.json({ ok: true, data: data[0] });
}

function results(...each: readonly unknown[]): Response {
  return Response.json({ ok: true, data: { results: each } }, { headers: { "x-request-id": "req_1" } });
}

function ok(data: unknown) {
  return { status: 200, ok: true, data };
}

/** The user of each call of a request. */
function usersOf({ calls }: Open): unknown[] {
  return calls.map(({ userId }) => userId);
}

Deno.test("a lone call is sent at once to its own path, and what is called meanwhile leaves together", async () => {
  const { open, fetch } = openFetch();
  const client = clientWith(fetch);
  const first = client.reserve("a", "image.x");
  await settle();
  assert.deepEqual(open.map(({ path }) => path), ["/api/v1/reserve"]);
  const others = [
    client.reserve("b", "image.x", 1, { model: "m" }, { count: 2 }, { idempotencyKey: "own" }),
    client.canUse("c", "image.x"),
    client.track("d", "image.x"),
    client.commit("rsv_1", { costCents: 1 }),
    client.release("rsv_2"),
  ];
  await settle();
  assert.deepEqual(open.map(({ path }) => path), ["/api/v1/reserve", "/api/v1/batch"]);
  const [single, batch] = open as [Open, Open];
  assert.deepEqual(batch.calls.map(({ call }) => call), ["reserve", "can-use", "track", "commit", "release"]);
  const { call: _call, ...reserve } = batch.calls[0] as Record<string, unknown>;
  const body = { userId: "b", event: "image.x", metadata: { model: "m" }, count: 2, quantity: 1 };
  assert.deepEqual(reserve, { ...body, idempotencyKey: "own" });
  assert.equal("idempotencyKey" in (batch.calls[1] as object), false);
  assert.equal(batch.headers.get("idempotency-key"), null);
  assert.equal(new Set(batch.calls.slice(2).map(({ idempotencyKey }) => idempotencyKey)).size, 3);

  const limit = { code: "limit_reached", message: "Full", details: { eventId: "e" } };
  batch.answer(results(
    ok(held("rsv_b")),
    ok({ allowed: false, matched: true, reasons: ["limit_reached"], details: [] }),
    { status: 429, ok: false, error: limit, retryAfterSeconds: 3 },
    ok({ eventId: "evt_1", groups: [] }),
    ok({}),
  ));
  const [b, c, d, e, f] = await Promise.allSettled(others);
  assert.deepEqual([b?.status, c?.status, d?.status, e?.status, f?.status], [
    "fulfilled",
    "fulfilled",
    "rejected",
    "fulfilled",
    "fulfilled",
  ]);
  const { code, status, message, details, requestId, retryAfterMs } = (d as PromiseRejectedResult).reason;
  assert.deepEqual({ code, status, message, details, requestId, retryAfterMs }, {
    ...limit,
    status: 429,
    requestId: "req_1",
    retryAfterMs: 3000,
  });
  single.answer(success(held("rsv_a")));
  assert.equal((await first).reservationId, "rsv_a");
});

Deno.test("up to four requests are out, of up to 500 calls and 256 KiB, and larger calls leave alone", async () => {
  const { open, fetch } = openFetch();
  const client = clientWith(fetch, { timeoutMs: 60_000 });
  const calls = [client.track("0", "e")];
  for (let no = 1; no <= 1200; no++) calls.push(client.track(`${no}`, "e"));
  await settle();
  assert.deepEqual(open.map(({ calls }) => calls.length), [1, 500, 500, 200]);
  calls.push(client.track("late", "e", 1, { text: "x".repeat(300 * 1024) }));
  for (const no of [1, 2, 3]) calls.push(client.track(`long ${no}`, "e", 1, { text: "ä".repeat(40 * 1024) }));
  await settle();
  assert.equal(open.length, 4);
  for (const request of open) {
    request.answer(request.isBatch ? results(...request.calls.map(() => ok({}))) : success({}));
  }
  await settle();
  assert.deepEqual(open.slice(4).map(usersOf), [["late"], ["long 1", "long 2"], ["long 3"]]);
  for (const request of open.slice(4)) {
    assert.ok((request.body as string).length > 0);
    request.answer(request.isBatch ? results(...request.calls.map(() => ok({}))) : success({}));
  }
  assert.equal((await Promise.all(calls)).length, 1205);
});

Deno.test("a call that is aborted before it is sent is taken out; after it, its reservation is given back", async () => {
  const { open, fetch } = openFetch();
  const client = clientWith(fetch);
  const [early, late, own] = [new AbortController(), new AbortController(), new AbortController()];
  const first = client.track("first", "e");
  const calls = [
    client.reserve("early", "e", 1, {}, {}, { signal: early.signal }),
    client.reserve("late", "e", 1, {}, {}, { signal: late.signal }),
    client.reserve("own", "e", 1, {}, {}, { signal: own.signal, idempotencyKey: "job" }),
    client.reserve("kept", "e"),
    client.reserve("refused", "e", 1, {}, {}, { signal: late.signal }),
  ];
  const outcomes = Promise.allSettled(calls);
  early.abort(new Error("early"));
  await settle();
  assert.deepEqual(open.map(usersOf), [["first"], ["late", "own", "kept", "refused"]]);
  late.abort(new Error("late"));
  own.abort(new Error("own"));
  await assert.rejects(calls[1] as Promise<unknown>, /late/);
  const no = { allowed: false, matched: true, reasons: ["limit_reached"] };
  const [single, batch] = open as [Open, Open];
  batch.answer(results(ok(held("rsv_late")), ok(held("rsv_own")), ok(held("rsv_kept")), ok(no)));
  await settle();
  const seen = (await outcomes).map((one) =>
    one.status === "fulfilled" ? one.value.allowed : one.reason.message
  );
  assert.deepEqual(seen, ["early", "late", "own", true, "late"]);
  const releases = open.slice(2);
  const released = releases.flatMap(({ calls }) => calls.map(({ reservationId }) => reservationId));
  assert.deepEqual(released, ["rsv_late", "rsv_own"]);
  for (const release of releases) release.answer(success({}));
  single.answer(success({}));
  await first;
});

Deno.test("a reservation is not given back where its key was sent again after the caller had gone", async () => {
  const { open, fetch } = openFetch();
  const client = clientWith(fetch, { retries: { maxRetries: 0 } });
  const first = client.track("first", "e");
  const job = (timeoutMs: number) =>
    client.reserve("job", "e", 1, {}, {}, { idempotencyKey: "job", timeoutMs });
  const other = client.track("other", "e");
  assert.equal((await errorOf(job(20))).code, "timeout");
  const again = job(60_000);
  await settle();
  assert.deepEqual(open.map(usersOf), [["first"], ["other", "job"], ["job"]]);
  const [single, late, second] = open as [Open, Open, Open];
  second.answer(success(held("rsv_job")));
  assert.equal((await again).reservationId, "rsv_job");
  late.answer(results(ok({}), ok(held("rsv_job"))));
  await other;
  await settle();
  assert.deepEqual(open.slice(3).map(({ path }) => path), []);
  single.answer(success({}));
  await first;
});

Deno.test("each call has its own time, from the moment when it is made", async () => {
  const { open, fetch } = openFetch();
  const client = clientWith(fetch, { retries: { maxRetries: 0 } });
  const blocking = [client.track("0", "e"), client.track("1", "e"), client.track("2", "e")];
  await settle();
  blocking.push(client.track("3", "e"));
  await settle();
  blocking.push(client.track("4", "e"));
  await settle();
  assert.equal(open.length, 4);
  const waiting = client.track("waits", "e", 1, {}, {}, { timeoutMs: 20 });
  const error = await errorOf(waiting);
  assert.deepEqual([error.code, error.status], ["timeout", 0]);
  const decision = await errorOf(client.reserve("waits", "e", 1, {}, {}, { timeoutMs: 20 }));
  assert.equal(decision.code, "timeout");
  for (const request of open) request.answer(request.isBatch ? results(ok({}), ok({})) : success({}));
  await Promise.all(blocking);
  await settle();
  assert.equal(open.length, 4);
});

Deno.test("a lost batch is sent again call by call, under the same keys", async () => {
  const { open, fetch } = openFetch();
  const transport = new Transport(
    { apiKey: "sk_live_x", baseUrl: BASE_URL, fetch },
    () => Promise.resolve(),
  );
  const client = new HoldfastClient(transport);
  const first = client.track("0", "e");
  const others = [client.track("1", "e"), client.track("2", "e"), client.reserve("3", "e")];
  await settle();
  const [single, batch] = open as [Open, Open];
  single.answer(success({}));
  batch.answer(null);
  await settle();
  const again = open.slice(2);
  assert.deepEqual(again.map(({ path }) => path), ["/api/v1/track", "/api/v1/track", "/api/v1/reserve"]);
  assert.deepEqual(
    again.map(({ headers }) => headers.get("idempotency-key")),
    batch.calls.map(({ idempotencyKey }) => idempotencyKey),
  );
  for (const request of again) request.answer(success(held("rsv_1")));
  await Promise.all([first, ...others]);
});

Deno.test("a batch that the service cannot read is sent call by call, so that no call fails for another", async () => {
  const { open, fetch } = openFetch();
  const client = clientWith(fetch);
  const first = client.track("0", "e");
  const others = [client.track("1", "e"), client.track("2", "e")];
  await settle();
  open[1]?.answer(
    Response.json({ ok: false, error: { code: "invalid_request", message: "no" } }, { status: 400 }),
  );
  await settle();
  assert.deepEqual(open.slice(2).map(({ path }) => path), ["/api/v1/track", "/api/v1/track"]);
  for (const request of open) request.answer(success({}));
  await Promise.all([first, ...others]);
});

Deno.test("an older service is asked call by call for ten minutes", async () => {
  for (const status of [404, 405]) {
    const { open, fetch } = openFetch();
    using clock = clockAt(1000);
    const client = clientWith(fetch);
    const round = async () => {
      const before = open.length;
      const calls = Array.from({ length: 7 }, (_, no) => client.track(`${no}`, "e"));
      await settle();
      const sent = open.slice(before);
      return { sent, calls };
    };
    const first = await round();
    assert.deepEqual(first.sent.map(({ isBatch }) => isBatch), [false, true]);
    const gone = { ok: false, error: { code: "not_found", message: "Unknown endpoint" } };
    first.sent[1]?.answer(Response.json(gone, { status }));
    await settle();
    for (const request of open) request.answer(success({}));
    await Promise.all(first.calls);
    assert.equal(open.length, 8);
    clock.now += 599_000;
    const second = await round();
    assert.deepEqual(second.sent.map(({ path }) => path), Array(7).fill("/api/v1/track"));
    for (const request of open) request.answer(success({}));
    await Promise.all(second.calls);
    clock.now += 2_000;
    const third = await round();
    assert.deepEqual(third.sent.map(({ isBatch }) => isBatch), [false, true]);
    third.sent[0]?.answer(success({}));
    third.sent[1]?.answer(results(...Array(6).fill(ok({}))));
    await Promise.all(third.calls);
  }
});

/** A clock that a test moves, in place of the process's. */
function clockAt(now: number): Disposable & { now: number } {
  const { now: real } = performance;
  const clock = { now, [Symbol.dispose]: () => void (performance.now = real) };
  performance.now = () => clock.now;
  return clock;
}

Deno.test("a call with a header, or with members of a batch, keeps them; without coalesce each call is alone", async () => {
  const { open, fetch } = openFetch();
  const client = clientWith(fetch);
  const calls = [
    client.track("0", "e"),
    client.track("named", "e", 1, {}, {}, { requestId: "req_7" }),
    client.track("slip", "e", 1, {}, { idempotencyKey: "x" } as object),
    client.track("spaced", "e", 1, {}, {}, { idempotencyKey: "a b" }),
    client.track("1", "e"),
    client.track("2", "e"),
  ];
  await settle();
  assert.deepEqual(open.map(usersOf), [["0"], ["named"], ["slip"], ["spaced"]]);
  assert.equal(open[1]?.headers.get("x-request-id"), "req_7");
  assert.equal(open[3]?.headers.get("idempotency-key"), "a b");
  for (const request of open) request.answer(success({}));
  await settle();
  assert.deepEqual(open.slice(4).map(usersOf), [["1", "2"]]);
  open[4]?.answer(results(ok({}), ok({})));
  await Promise.all(calls);

  const alone = openFetch();
  const single = clientWith(alone.fetch, { coalesce: false });
  const six = Array.from({ length: 6 }, () => single.track("u", "e"));
  await settle();
  assert.deepEqual(alone.open.map(({ path }) => path), Array(6).fill("/api/v1/track"));
  for (const request of alone.open) request.answer(success({}));
  await Promise.all(six);
});

Deno.test("callers at once are decided once each by the service, also where answers are lost", async () => {
  const app = await appWithUser(service);
  const paths: string[] = [];
  let sent = 0;
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    paths.push(new URL(url).pathname);
    const answer = await fetchOf(service)(url, init);
    if (++sent === 2 || sent === 5) throw new TypeError("reset");
    return answer;
  };
  const client = clientOf(service, app, { fetch, retries: { baseDelayMs: 1 } });
  const calls = Array.from({ length: 90 }, () => client.reserve("u", "image.x"));
  const holds = await Promise.all(calls);
  assert.equal(new Set(holds.map(({ reservationId }) => reservationId)).size, 90);
  assert.equal(await countOf(app, "lg_images"), 90);
  await Promise.all(holds.slice(0, 40).map(({ reservationId }) => client.release(reservationId as string)));
  assert.equal(await countOf(app, "lg_images"), 50);
  assert.ok(paths.includes("/api/v1/batch"));
});

Deno.test("a call sent by itself needs no look-up of its key once an answer said how keys may begin", async () => {
  const app = await appWithUser(service);
  const client = clientOf(service, app, { coalesce: false });
  const { query } = service.statements;
  const looks: number[] = [];
  service.statements.query = (text, params) => {
    if (text.includes("join idempotency")) looks[looks.length - 1]! += 1;
    return query(text, params);
  };
  try {
    for (const track of [() => client.track("u", "image.x"), () => client.reserve("u", "image.x")]) {
      for (let time = 0; time < 2; time++) {
        looks.push(0);
        await track();
      }
    }
  } finally {
    service.statements.query = query;
  }
  assert.deepEqual(looks, [1, 0, 0, 0]);
});

Deno.test("keys of new calls begin as the newest batch said, and a strange prefix is left alone", async () => {
  const { open, fetch } = openFetch();
  const client = clientWith(fetch);
  const keys: unknown[] = [];
  const calls: Promise<unknown>[] = [client.track("a", "image.x")];
  await settle();
  for (const keyPrefix of ["p1.", "p2.", "no\n", undefined]) {
    calls.push(client.track("b", "image.x"), client.track("c", "image.x"));
    await settle();
    const batch = open.at(-1) as Open;
    keys.push(
      batch.calls.map(({ idempotencyKey }) => /^(p\d\.)?[0-9a-f]{24,32}$/.exec(String(idempotencyKey))?.[1]),
    );
    batch.answer(Response.json({ ok: true, data: { results: batch.calls.map(() => ok({})), keyPrefix } }));
    await settle();
  }
  assert.deepEqual(keys, [[undefined, undefined], ["p1.", "p1."], ["p2.", "p2."], [undefined, undefined]]);
  open[0]?.answer(success({}));
  await Promise.all(calls);
});
