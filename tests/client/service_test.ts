// What the client does at the running service: every call and every example (`calls.ts` and `examples_run.ts`, which
// share the service), and what it promises beside single calls: a write counts once whatever broke, work under a hold
// always settles it, many pairs come through, and lists end where they end.

import assert from "node:assert/strict";
import {
  type AliasPair,
  type AliasProgress,
  createClient,
  HoldfastClient,
  HoldfastError,
} from "../../src/client/client.ts";
import { Transport } from "../../src/client/transport.ts";
import { appWithUser, countOf } from "../routes/support.ts";
import "./examples_run.ts";
import "./calls.ts";
import { service } from "./service.ts";
import { BASE_URL, clientOf, fetchOf } from "./support.ts";

const SOON = { maxRetries: 20, baseDelayMs: 1, maxDelayMs: 2000 };

/** A connection that breaks, before the service gets a request or after it has served it. */
function brokenFetch(...faults: readonly ("before" | "after" | "none")[]) {
  const send = fetchOf(service);
  let calls = 0;
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const fault = faults[calls++] ?? "none";
    if (fault === "before") throw new TypeError("connection refused");
    const response = await send(url, init);
    if (fault === "none") return response;
    await response.body?.cancel();
    throw new TypeError("connection reset");
  };
  return { fetch, calls: () => calls };
}

Deno.test("a write counts once, whether its request or its answer is lost", async () => {
  const app = await appWithUser(service);
  const { fetch, calls } = brokenFetch("before", "after", "after");
  const client = clientOf(service, app, { fetch, retries: SOON });
  const { counters } = await client.track("u", "image.x", 1, {}, { count: 3 });
  assert.deepEqual([counters[0]?.count, calls()], [3, 4]);
  const own = brokenFetch("after");
  const other = clientOf(service, app, { fetch: own.fetch, retries: SOON });
  const hold = await other.reserve("u", "image.x", 1, {}, { count: 5 });
  assert.ok(hold.allowed);
  assert.equal(await countOf(app, "lg_images"), 8);
  const settled = brokenFetch("after", "after");
  await clientOf(service, app, { fetch: settled.fetch, retries: SOON }).commit(hold.reservationId);
  assert.equal((await client.events.list({ userId: "u" })).events.length, 2);
});

Deno.test("a cancel is not repeated after its answer was lost", async () => {
  const app = await appWithUser(service);
  const { fetch, calls } = brokenFetch("after");
  const { endsAt } = await clientOf(service, app, { fetch, retries: SOON }).subscriptions.cancel({
    userId: "u",
  });
  assert.deepEqual([endsAt, calls()], [new Date(service.clock.now()).toISOString(), 2]);
});

Deno.test("two calls with the caller's own idempotency key count once, and with another input they conflict", async () => {
  const app = await appWithUser(service);
  const client = clientOf(service, app);
  const first = await client.track("u", "image.x", 1, {}, {}, { idempotencyKey: "job_1" });
  const again = await client.track("u", "image.x", 1, {}, {}, { idempotencyKey: "job_1" });
  assert.deepEqual(again, first);
  assert.equal(await countOf(app, "lg_images"), 1);
  const other = client.track("u", "image.x", 1, {}, { count: 2 }, { idempotencyKey: "job_1" });
  await assert.rejects(other, (error: HoldfastError) => error.code === "idempotency_conflict");
});

Deno.test("calls survive a restart of the service, each counted once", async () => {
  const app = await appWithUser(service);
  const send = fetchOf(service);
  let down: Promise<void> | null = null;
  let calls = 0;
  const fetch = (url: string, init: RequestInit): Promise<Response> => {
    // The term ends while calls are under way. They and those that follow get 503 until a new term serves.
    if (++calls === 2) down = service.restart();
    return send(url, init);
  };
  const met = new Set<string>();
  const transport = new Transport({
    apiKey: app.secretLive,
    baseUrl: BASE_URL,
    fetch,
    retries: { maxRetries: 1000 },
    onRetry: ({ error }) => met.add(`${error.code} ${error.status} ${error.retryAfterMs}`),
  }, () => new Promise((resolve) => setTimeout(resolve, 5)));
  const client = new HoldfastClient(transport);
  await Promise.all(Array.from({ length: 8 }, () => client.track("u", "image.x")));
  await down;
  assert.deepEqual([...met], ["unavailable 503 1000"]);
  assert.equal(await countOf(app, "lg_images"), 8);
});

Deno.test("work under a reservation is committed; it does not start where quota is lacking; when it throws, it is released", async () => {
  const app = await appWithUser(service);
  const client = clientOf(service, app);
  const asked = { userId: "u", event: "image.x", count: 40 };
  const done = await client.withReservation(asked, ({ reservationId }) => ({
    value: reservationId?.slice(0, 4),
    commit: { actual: { count: 30 }, costCents: 2 },
  }));
  assert.ok(done.allowed);
  assert.deepEqual([done.value, done.commit?.groups[0]?.current], ["rsv_", 30]);

  let begun = 0;
  const refused = await client.withReservation({ ...asked, count: 71 }, () => ({ value: ++begun }));
  assert.deepEqual([refused.allowed, refused.reasons, begun], [false, ["limit_reached"], 0]);

  const controller = new AbortController();
  const failing = client.withReservation(asked, async () => {
    assert.equal(await countOf(app, "lg_images"), 70);
    controller.abort();
    throw new RangeError("out of paint");
  }, { signal: controller.signal });
  await assert.rejects(failing, /out of paint/);
  assert.equal(await countOf(app, "lg_images"), 30);
  const { events } = await client.events.list({ userId: "u", limit: 1 });
  assert.equal((await client.events.get(events[0]?.id as string)).reason, "The work failed");
});

Deno.test("an unknown member is sent unchanged, so that the error of the service has the right one", async () => {
  const app = await appWithUser(service);
  const client = clientOf(service, app);
  const hold = await client.reserve("u", "image.x");
  assert.ok(hold.allowed);
  const slip: object = { tokens: 5 };
  const isSlip = (error: HoldfastError) =>
    error.code === "invalid_request" && /^tokens: /.test(error.message);
  await assert.rejects(client.commit(hold.reservationId, slip), isSlip);
  await assert.rejects(client.track("u", "image.x", 1, {}, slip), isSlip);
  await assert.rejects(client.reserve("u", "image.x", 1, {}, slip), isSlip);
  await client.commit(hold.reservationId);
});

Deno.test("the error of the work is thrown on even when the release fails too", async () => {
  const app = await appWithUser(service);
  const { fetch } = brokenFetch("none", "before");
  const client = clientOf(service, app, { fetch, retries: { maxRetries: 0 } });
  const work = () => Promise.reject(new RangeError("out of paint"));
  await assert.rejects(client.withReservation({ userId: "u", event: "image.x" }, work), /out of paint/);
});

/** A service that merges the first pairs of each batch and has no time for the rest. */
function slowBatches(pairsEach: number) {
  const chunks: string[][] = [];
  const fetch = (_: string, { body }: RequestInit) => {
    const { pairs } = JSON.parse(body as string) as { pairs: AliasPair[] };
    chunks.push(pairs.map(({ from }) => from));
    const results = pairs.map(({ from, to }, place) =>
      place < pairsEach
        ? { from, to, ok: true, report: {}, billableOperations: 1 }
        : { from, to, ok: false, error: { code: "not_processed", message: "" }, billableOperations: 0 }
    );
    return Promise.resolve(Response.json({ ok: true, data: { results, billableOperations: pairsEach } }));
  };
  return { client: createClient({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch }), chunks };
}

const pairsOf = (...ids: readonly string[]) => ids.map((from) => ({ from, to: "u" }));

Deno.test("pairs for which a batch had no time are sent again before the next ones, and results keep the order", async () => {
  const { client, chunks } = slowBatches(2);
  const progress: AliasProgress[] = [];
  const onProgress = (step: AliasProgress) => void progress.push(step);
  const pairs = pairsOf("a", "b", "c", "d", "e");
  const answer = await client.customers.aliasMany(pairs, { chunkSize: 3, onProgress });
  assert.deepEqual(chunks, [["a", "b", "c"], ["c", "d", "e"], ["e"]]);
  assert.deepEqual(answer.results.map(({ from, ok }) => [from, ok]), pairs.map(({ from }) => [from, true]));
  assert.equal(answer.billableOperations, 5);
  assert.deepEqual(progress.map(({ done, total }) => [done, total]), [[2, 5], [4, 5], [5, 5]]);
  assert.deepEqual(progress.map(({ results }) => results.map(({ from }) => from).join("")), [
    "ab",
    "cd",
    "e",
  ]);
});

Deno.test("pairs of a batch without any progress stay not_processed", async () => {
  const { client, chunks } = slowBatches(0);
  const { results } = await client.customers.aliasMany(pairsOf("a", "b", "c"), { chunkSize: 2 });
  assert.deepEqual(chunks, [["a", "b"], ["c"]]);
  assert.deepEqual(results.map(({ error }) => error?.code), [
    "not_processed",
    "not_processed",
    "not_processed",
  ]);
  assert.deepEqual(await client.customers.aliasMany([]), { results: [], billableOperations: 0 });
});

Deno.test("many pairs merge chunk by chunk, and repeating them costs nothing", async () => {
  const app = await appWithUser(service);
  const client = clientOf(service, app);
  const ids = Array.from({ length: 7 }, (_, place) => `old_${place}`);
  await Promise.all(ids.map((id) => client.track(id, "image.x")));
  const pairs = [...pairsOf(...ids), { from: "u", to: "old_0" }];
  const dry = await client.customers.aliasMany(pairs, { dryRun: true });
  assert.deepEqual(dry.results.map(({ ok }) => ok), Array(8).fill(true));
  const { results } = await client.customers.aliasMany(pairs, { chunkSize: 3 });
  assert.deepEqual(results.map(({ ok, error }) => error?.code ?? ok), [
    ...Array(7).fill(true),
    "alias_cycle",
  ]);
  const again = await client.customers.aliasMany(pairsOf(...ids), { chunkSize: 2 });
  assert.ok(again.results.every(({ report }) => report?.alreadyMerged === true));
  assert.equal(again.billableOperations, 0);
  assert.deepEqual((await client.customers.get("u")).aliases.toSorted(), ids);
});

Deno.test("a list read to its end has each event once, even when others arrive meanwhile", async () => {
  const app = await appWithUser(service);
  const client = clientOf(service, app);
  const before: string[] = [];
  for (let step = 0; step < 7; step++) {
    service.clock.advance(1);
    before.unshift((await client.track("u", "image.x")).eventId);
  }
  const seen: string[] = [];
  for await (const { id } of client.events.all({ userId: "u", limit: 3 })) {
    seen.push(id);
    if (seen.length % 3 !== 0) continue;
    service.clock.advance(1);
    await client.track("u", "image.x");
  }
  assert.deepEqual(seen, before);
});

Deno.test("a list that is longer than the service's pages reach ends with an error", async () => {
  const row = (id: number) => ({ id: `evt_${id}` });
  const fetch = (url: string) => {
    const offset = Number(new URL(url).searchParams.get("offset"));
    const events = Array.from({ length: 100 }, (_, place) => row(offset + place));
    return Promise.resolve(Response.json({ ok: true, data: { events } }));
  };
  const client = createClient({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch });
  let count = 0;
  const read = async () => {
    for await (const _ of client.events.all()) count++;
  };
  await assert.rejects(read(), (error: HoldfastError) => error.code === "invalid_request");
  assert.equal(count, 10_100);
});
