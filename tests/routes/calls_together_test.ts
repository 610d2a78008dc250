// Calls in one request: each is the call alone, at its place.

import assert from "node:assert/strict";
import { RUNTIME_LIMITS, SWEEP_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";
import type { Answer, TestApp } from "../support/test_service.ts";
import { applyCatalog } from "./credits_support.ts";
import {
  appWithUser,
  assertRefused,
  CATALOG,
  countOf,
  dataOf,
  holdImages,
  serviceOfFile,
} from "./support.ts";

const service = serviceOfFile();

const IMAGE = { userId: "u", event: "image.x" };
const RESERVE = { call: "reserve", ...IMAGE };
const TRACK = { call: "track", ...IMAGE };

/** Calls in one request; `key` is that of the request. */
function batch(app: TestApp, calls: unknown, key?: string): Promise<Answer> {
  const headers: Record<string, string> = key === undefined ? {} : { "idempotency-key": key };
  return app.call("POST", "/batch", { calls }, { headers });
}

// deno-lint-ignore no-explicit-any -- results are looked at as they came
async function resultsOf(app: TestApp, calls: unknown, key?: string): Promise<any[]> {
  return (await dataOf(batch(app, calls, key))).results;
}

function once(app: TestApp, path: string, body: unknown, key: string): Promise<Answer> {
  return app.call("POST", path, body, { headers: { "idempotency-key": key } });
}

/** The results without what differs from one call to the next. */
function shapesOf(results: readonly unknown[]): unknown[] {
  return JSON.parse(JSON.stringify(results, (name, value) => /(^id|Id|At)$/.test(name) ? "" : value));
}

Deno.test("each call has the status and the answer that it has alone, at its place", async () => {
  const [app, other] = [await appWithUser(service), await appWithUser(service)];
  const bodies = async (of: TestApp): Promise<[string, unknown][]> => {
    const [held, gone] = [await holdImages(of), await holdImages(of)];
    return [
      ["reserve", { ...IMAGE, count: 3 }],
      ["can-use", IMAGE],
      ["track", { ...IMAGE, metdata: {} }],
      ["commit", { reservationId: held, costCents: 4 }],
      ["release", { reservationId: gone, reason: "no" }],
      ["reserve", { ...IMAGE, options: { count: 200 } }],
      ["track", { ...IMAGE, count: 200 }],
      ["commit", { reservationId: held }],
      ["release", { reservationId: "rsv_nobody" }],
      ["reserve", { ...IMAGE, tokens: 5 }],
      ["can-use", { userId: "u\0", event: "image.x" }],
      ["reserve", { ...IMAGE, userId: "nobody" }],
    ];
  };
  const calls = (await bodies(app)).map(([call, body]) => ({ call, ...body as object }));
  const results = await resultsOf(app, calls);
  const alone: unknown[] = [];
  for (const [call, body] of await bodies(other)) {
    const answer = await other.call("POST", `/${call}`, body);
    alone.push({ status: answer.status, ...answer.body });
  }
  assert.deepEqual(shapesOf(results), shapesOf(alone));
  assert.deepEqual(results.map(({ status }) => status), [
    200,
    200,
    200,
    200,
    200,
    200,
    429,
    409,
    404,
    400,
    400,
    200,
  ]);
  assert.equal(await countOf(app, "lg_images"), await countOf(other, "lg_images"));
});

Deno.test("what is no call is a result, and the batch is refused for its list and its key alone", async () => {
  const app = await appWithUser(service);
  const results = await resultsOf(app, [
    "text",
    null,
    [RESERVE],
    {},
    { ...IMAGE, call: "explain" },
    { ...IMAGE, call: 7 },
    { ...RESERVE, idempotencyKey: "" },
    TRACK,
  ]);
  const codes = results.map(({ status, ok, error }) => [status, ok, error?.code]);
  assert.deepEqual(codes, [...Array(7).fill([400, false, "invalid_request"]), [200, true, undefined]]);
  assert.match(
    results[4].error.message,
    /^call: must be one of "reserve", "commit", "release", "can-use", "track"/,
  );
  for (
    const [calls, message] of [
      [undefined, "is required"],
      [[], "must have at least 1 element"],
      [RESERVE, "must be an array"],
      [Array(501).fill(RESERVE), "must have at most 500 elements"],
    ] as const
  ) {
    const refused = await batch(app, calls);
    assertRefused(refused, 400, "invalid_request");
    assert.equal(refused.body.error.message, `calls: ${message}`);
  }
  const call = (body: unknown) => app.call("POST", "/batch", body, { key: app.publicLive });
  assertRefused(await call({ calls: [TRACK] }), 403, "requires_secret_key");
  const long = { ...TRACK, prompt: "x".repeat(1024 * 1024) };
  assertRefused(await batch(app, Array(8).fill(long)), 413, "payload_too_large");
  const told = await dataOf(app.call("POST", "/batch", { calls: [TRACK], tokens: 5 }));
  assert.deepEqual(told.warnings, ["unknown_member: tokens"]);
});

Deno.test("calls of one user are decided in order, whether they name the user, an alias or a reservation", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/track", { userId: "old", event: "image.x" }));
  await dataOf(app.call("POST", "/customers/alias", { from: "old", to: "u" }));
  const held = await holdImages(app, 50);
  await service.restart();
  const results = await resultsOf(app, [
    { ...TRACK, count: 40 },
    { ...TRACK, userId: "old", count: 10 },
    { call: "release", reservationId: held },
    { ...TRACK, userId: "old", count: 10 },
    { call: "commit", reservationId: held },
    { ...RESERVE, count: 40 },
    RESERVE,
  ]);
  const seen = results.map(({ status, data }) => data?.counters?.[0].count ?? data?.allowed ?? status);
  assert.deepEqual(seen, [90, 100, 200, 60, 409, true, false]);
});

Deno.test("the key of a call is its header alone, both ways, compared as JSON values", async () => {
  const app = await appWithUser(service);
  const one = { userId: "u", event: "image.x", metadata: { b: 1, a: [{ d: 2, c: 3 }] } };
  const same = { metadata: { a: [{ c: 3, d: 2 }], b: 1 }, event: "image.x", userId: "u" };
  const [first] = await resultsOf(app, [{ call: "reserve", ...one, idempotencyKey: "k" }]);
  const alone = await once(app, "/reserve", same, "k");
  assert.deepEqual(alone.body, { ok: true, data: first.data });
  assert.equal(alone.headers.get("idempotent-replayed"), "true");
  await service.restart();
  const [again, changed, path] = await resultsOf(app, [
    { idempotencyKey: "k", ...same, call: "reserve" },
    { call: "reserve", ...one, count: 2, idempotencyKey: "k" },
    { call: "can-use", ...one, idempotencyKey: "k" },
  ]);
  assert.deepEqual(again, { ...first, replayed: true });
  assert.deepEqual([changed.status, changed.error.code], [409, "idempotency_conflict"]);
  assert.deepEqual([path.status, path.error.code], [409, "idempotency_conflict"]);

  const { reservationId } = first.data;
  const single = await once(app, "/commit", { reservationId, costCents: 4 }, "c");
  const [committed, released] = await resultsOf(app, [
    { call: "commit", costCents: 4, reservationId, idempotencyKey: "c" },
    { call: "release", reservationId, idempotencyKey: "r" },
  ]);
  assert.deepEqual(committed, { status: 200, ...single.body, replayed: true });
  assertRefused(await once(app, "/release", { reservationId }, "r"), 409, released.error.code);
  assert.equal(await countOf(app, "lg_images"), 1);
});

Deno.test("batches and single calls that come at once with the same keys decide each key once", async () => {
  const app = await appWithUser(service);
  const keys = ["a", "b", "c"];
  const of = (names: string[]) =>
    resultsOf(app, names.map((idempotencyKey) => ({ ...RESERVE, idempotencyKey })));
  const [one, other, alone] = await Promise.all([
    of(keys),
    of(["c", "b", "a", "a"]),
    once(app, "/reserve", IMAGE, "b"),
  ]);
  const ids = one.map(({ data }) => data.reservationId);
  assert.equal(new Set(ids).size, 3);
  assert.deepEqual(other.map(({ data }) => data.reservationId), [ids[2], ids[1], ids[0], ids[0]]);
  assert.equal(alone.body.data.reservationId, ids[1]);
  assert.equal(await countOf(app, "lg_images"), 3);
});

Deno.test("a key of the batch gives the whole answer again, and derives keys for calls without one", async () => {
  const app = await appWithUser(service);
  const calls = [
    { ...RESERVE, idempotencyKey: null },
    { ...TRACK, idempotencyKey: "own" },
    { ...TRACK, count: 500 },
  ];
  const first = await batch(app, calls, "key");
  const again = await batch(app, calls, "key");
  assert.deepEqual(again.body, first.body);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assertRefused(await batch(app, [RESERVE], "key"), 409, "idempotency_conflict");
  assert.equal(await countOf(app, "lg_images"), 2);
  const [alone] = await resultsOf(app, [{ ...TRACK, idempotencyKey: "own" }]);
  assert.equal(alone.replayed, true);
});

Deno.test("a call is counted by rate limit and cap as alone, and says when to come back", async () => {
  const rateLimit = { perSecond: 0.001, burst: 3 };
  const app = await service.newApp({ ...CATALOG, settings: { rateLimit } }, {});
  const results = await resultsOf(app, [{ ...IMAGE, call: "nothing" }, TRACK, RESERVE, TRACK]);
  assert.deepEqual(results.map(({ status }) => status), [400, 200, 200, 429]);
  assert.equal(results[3].error.code, "rate_limited");
  assert.equal(results[3].retryAfterSeconds, 1000);
  const capped = await appWithUser(service, { operationCap: 2 });
  const codes = (await resultsOf(capped, [TRACK, { ...TRACK, call: "can-use" }, TRACK, TRACK, RESERVE]))
    .map(({ ok, error }) => ok || error.code);
  assert.deepEqual(codes, [true, true, true, "workspace_limit_reached", "workspace_limit_reached"]);
});

Deno.test("a retry of a batch with a key makes the calls that the rate limit refused", async () => {
  const rateLimit = { perSecond: 0.001, burst: 1 };
  const app = await service.newApp({ ...CATALOG, settings: { rateLimit } }, {});
  const retried = async () =>
    (await resultsOf(app, [TRACK, TRACK], "key")).map(({ status, replayed }) => [status, replayed]);
  assert.deepEqual(await retried(), [[200, undefined], [429, undefined]]);
  await applyCatalog(service, app, CATALOG);
  assert.deepEqual(await retried(), [[200, true], [200, undefined]]);
});

Deno.test("a retry of a batch with a key makes the calls that a cap refused", async () => {
  const app = await appWithUser(service, { operationCap: 1 });
  const retried = async () =>
    (await resultsOf(app, [TRACK, TRACK], "key")).map(({ status, replayed }) => [status, replayed]);
  assert.deepEqual(await retried(), [[200, undefined], [429, undefined]]);
  await service.admin("PATCH", `/workspaces/${app.workspaceId}`, { operationCap: 2 });
  assert.deepEqual(await retried(), [[200, true], [200, undefined]]);
});

Deno.test("a call counts in the metrics as a request of its own route", async () => {
  const app = await appWithUser(service);
  const routes = ["reserve", "release"].map((name) =>
    service.serving().counts.requests.of("POST", `/api/v1/${name}`)
  );
  const before = routes.map(({ started, replayed }) => [started, replayed]);
  const keyed = { ...RESERVE, idempotencyKey: "k" };
  await resultsOf(app, [keyed, keyed, { call: "release", reservationId: "rsv_nobody" }, { call: "none" }]);
  const added = routes.map((
    route,
    at,
  ) => [route.started - before[at]![0]!, route.replayed - before[at]![1]!]);
  assert.deepEqual(added, [[2, 1], [1, 0]]);
  assert.deepEqual(routes.map(({ inFlight }) => inFlight), [0, 0]);
});

/** From here on calls may take their time. */
function takeTime(): void {
  (RUNTIME_LIMITS as { batchUndecidedMs: number }).batchUndecidedMs = 60_000;
}

/** Holds the loads of users until it is opened. */
function heldLoads(): Disposable & { open(): void } {
  const { store } = service.serving();
  const { load } = store;
  const { promise, resolve } = Promise.withResolvers<void>();
  store.load = async (...args) => {
    await promise;
    return await load.apply(store, args);
  };
  const open = () => {
    store.load = load;
    resolve();
  };
  return { open, [Symbol.dispose]: open };
}

Deno.test("a call with a key that is undecided for long is unavailable, and finished all the same", async () => {
  using _limits = changedLimits(RUNTIME_LIMITS, { batchUndecidedMs: 10 });
  const app = await appWithUser(service);
  const keyed = [{ ...TRACK, idempotencyKey: "a" }, { ...RESERVE, idempotencyKey: "b" }, { call: "no" }];
  await service.restart();
  {
    using held = heldLoads();
    const results = await resultsOf(app, keyed);
    const seen = results.map((
      { status, error, retryAfterSeconds },
    ) => [status, error.code, retryAfterSeconds]);
    const unavailable = [503, "unavailable", 1];
    assert.deepEqual(seen, [unavailable, unavailable, [400, "invalid_request", undefined]]);
    held.open();
  }
  takeTime();
  const [tracked, reserved] = await resultsOf(app, keyed);
  assert.deepEqual([tracked.replayed, reserved.replayed], [true, true]);
  assert.equal(await countOf(app, "lg_images"), 2);
});

Deno.test("a call without any key is waited for, and a batch with a fault is decided call by call again", async () => {
  using _limits = changedLimits(RUNTIME_LIMITS, { batchUndecidedMs: 10 });
  const app = await appWithUser(service);
  await service.restart();
  let results: unknown[];
  {
    using held = heldLoads();
    const waited = resultsOf(app, [TRACK]);
    const derived = resultsOf(app, [TRACK, { ...TRACK, idempotencyKey: "own" }], "key");
    results = (await derived).map(({ status }) => status);
    held.open();
    assert.equal((await waited)[0].status, 200);
  }
  assert.deepEqual(results, [503, 503]);
  takeTime();
  const again = await resultsOf(app, [TRACK, { ...TRACK, idempotencyKey: "own" }], "key");
  assert.deepEqual(again.map(({ status, replayed }) => [status, replayed]), [[200, true], [200, true]]);
  assert.equal(await countOf(app, "lg_images"), 3);
});

Deno.test("a new key that begins as the answer says counts once without a query, also after a restart", async () => {
  const app = await appWithUser(service);
  const { keyPrefix } = await dataOf(batch(app, [TRACK]));
  const calls = [0, 1, 2].map((place) => ({ ...TRACK, idempotencyKey: `${keyPrefix}${place}` }));
  const { query } = service.statements;
  let looks = 0;
  service.statements.query = (text, params) => {
    if (text.includes("join idempotency")) looks += 1;
    return query(text, params);
  };
  try {
    const first = await resultsOf(app, calls);
    assert.equal((await once(app, "/track", IMAGE, `${keyPrefix}single`)).status, 200);
    assert.equal(looks, 0);
    const again = first.map((result) => ({ ...result, replayed: true }));
    assert.deepEqual(await resultsOf(app, calls), again);
    await service.restart();
    assert.deepEqual(await resultsOf(app, calls), again);
    assert.equal(
      (await once(app, "/track", IMAGE, `${keyPrefix}single`)).headers.get("idempotent-replayed"),
      "true",
    );
    assert.equal(looks, 2);
  } finally {
    service.statements.query = query;
  }
  assert.equal(await countOf(app, "lg_images"), 5);
});

Deno.test("an answer to a single call has the prefix of new keys after a look-up, for a secret key alone", async () => {
  const app = await appWithUser(service);
  const prefixOf = ({ headers }: Answer) => headers.get("idempotency-key-prefix");
  const first = await once(app, "/track", IMAGE, "mine");
  const prefix = prefixOf(first);
  assert.match(prefix ?? "", /^[0-9a-v]{12}\.$/);
  assert.equal((await dataOf(batch(app, [TRACK]))).keyPrefix, prefix);
  assert.deepEqual(
    [
      await once(app, "/track", IMAGE, `${prefix}1`),
      await once(app, "/track", IMAGE, `${prefix}1`),
      await once(app, "/track", IMAGE, "mine"),
      await app.call("POST", "/track", IMAGE),
      await app.call("POST", "/capture", { distinctId: "u", event: "seen" }, {
        key: app.publicLive,
        headers: { "idempotency-key": `${prefix}2` },
      }),
    ].map((answer) => [answer.status, prefixOf(answer)]),
    Array(5).fill([200, null]),
  );
});

Deno.test("a first answer is a new row where its key is certainly new, and else a new value of a row", async () => {
  const app = await appWithUser(service);
  const { keyPrefix } = await dataOf(batch(app, [TRACK]));
  const { gate } = service.serving().term;
  const { add } = gate;
  const verbs: string[] = [];
  gate.add = (changes, ...rest) => {
    for (const { table, verb } of changes) if (table === "idempotency") verbs.push(verb);
    return add.call(gate, changes, ...rest);
  };
  const keys = [`${keyPrefix}new`, "made up"];
  const calls = keys.map((idempotencyKey) => ({ ...TRACK, idempotencyKey }));
  await resultsOf(app, calls);
  service.clock.advance(SWEEP_LIMITS.idempotencyKeptMs);
  const again = await resultsOf(app, calls);
  assert.deepEqual(again.map(({ replayed }) => replayed), [undefined, undefined]);
  assert.deepEqual(verbs, ["append", "put", "put", "put"]);
  // Moves the journal into the tables: a second new row of one key would fit no table.
  await service.restart();
  const rows = await service.store.database.query("select from idempotency where key = any($1::text[])", [
    `{"${keys.join('","')}"}`,
  ]);
  assert.equal(rows.length, 2);
});
