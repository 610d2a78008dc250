// A rolling restart of all processes goes unnoticed: calls of the client library never fail, and long work of every
// kind ends correctly. On a server only.

import assert from "node:assert/strict";
import { createClient, type HoldfastClient } from "../../src/client/client.ts";
import { reconcile } from "../../src/storage/queries/reconcile.ts";
import { pause, until } from "./program.ts";
import { Rolling } from "./rolling.ts";
import { ADMIN_TOKEN, makeApp, Stage } from "./stage.ts";
import { isDeep } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";

const ignore = testServerUrl() === null;
const BASE_URL = "http://holdfast.test";
/** How long a decision may take: other tests may keep both cores busy. */
const DECISION_MS = 20_000;
const LOOPS = isDeep ? 12 : 4;
/** A restart mostly waits for newcomers to settle: clients that never rest would take both cores for all that time. */
const REST_MS = isDeep ? 5 : 2_000;
/** The same for a client that exports a person with a long history, and a client that repeats all merges. */
const EXPORT_REST_MS = isDeep ? 200 : 5_000;
const BATCH_REST_MS = isDeep ? 0 : 4_000;
const FEATURES = {
  HOLDFAST_PRIVACY_SECRET: "crash-privacy-secret-0123456789",
  ANALYTICS_EXPORT_SECRET: "crash-export-secret-0123456789",
};
/** The id of the erased user: no row may contain it. */
const MARK = "zebra-77";
const PAIRS = isDeep ? 400 : 60;
const EXPORTED_EVENTS = isDeep ? 2_000 : 250;

/** Clients that meter until stopped, and count the answers. */
class Meters {
  readonly failures: string[] = [];
  readonly tracked = new Map<string, number>();
  calls = 0;
  isOver = false;
  #running: Promise<void>[] = [];
  readonly #client: HoldfastClient;

  constructor(client: HoldfastClient) {
    this.#client = client;
  }

  start(users: readonly string[]): void {
    this.#running = Array.from(
      { length: LOOPS },
      (_, place) => this.#loop(users[place % users.length] as string),
    );
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.#running);
  }

  async #loop(userId: string): Promise<void> {
    while (!this.isOver) {
      try {
        const held = await this.#client.reserve(userId, "image.x", 2);
        if (held.allowed) await this.#client.commit(held.reservationId, { actual: { count: 1 } });
        await this.#client.track(userId, "image.x");
        await this.#client.usage(userId);
        this.tracked.set(userId, (this.tracked.get(userId) ?? 0) + (held.allowed ? 2 : 1));
        this.calls += 4;
      } catch (error) {
        this.failures.push(String(error));
      }
      await pause(Math.random() * 2 * REST_MS);
    }
  }
}

Deno.test({
  name: "a rolling restart of three processes under load: no call of the client library fails",
  ignore,
  fn: async () => {
    await using stage = await Stage.open();
    const rolling = await Rolling.open(stage, 3);
    const users = ["u1", "u2", "u3", "u4"];
    const worlds = await Promise.all([1, 2, 3, 4].map(async (place) => {
      const { secretKey } = await makeApp(rolling.origin(), `Rolling ${place}`);
      let retries = 0;
      const client = createClient({
        apiKey: secretKey,
        baseUrl: BASE_URL,
        fetch: rolling.fetch,
        timeoutMs: DECISION_MS,
        onRetry: () => retries++,
      });
      for (const userId of users) await client.subscriptions.upsert({ userId, planId: "plan_wide" });
      return { client, meters: new Meters(client), retries: () => retries };
    }));
    for (const { meters } of worlds) meters.start(users);
    const startedAt = performance.now();
    await rolling.restartAll(true);
    for (const { meters } of worlds) await meters.stop();
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    for (const { client, meters } of worlds) {
      assert.deepEqual(meters.failures, []);
      for (const [userId, count] of meters.tracked) {
        assert.equal((await client.usage(userId)).counters[0]?.count, count, userId);
      }
    }
    const sum = (of: (world: (typeof worlds)[number]) => number) =>
      worlds.reduce((all, world) => all + of(world), 0);
    console.log(
      `${sum(({ meters }) => meters.calls)} calls in ${seconds} s, ${
        sum(({ retries }) => retries())
      } retries, no failure`,
    );
  },
});

Deno.test({
  name: "a batch of merges, an erasure, an export and a rolling restart at once end right",
  ignore,
  fn: async () => {
    await using stage = await Stage.open();
    const rolling = await Rolling.open(stage, 3, FEATURES);
    const { secretKey } = await makeApp(rolling.origin(), "Everything");
    const client = createClient({
      apiKey: secretKey,
      baseUrl: BASE_URL,
      fetch: rolling.fetch,
      timeoutMs: DECISION_MS,
    });
    await populate(client);
    const meters = new Meters(client);
    meters.start(["t1", "bystander"]);

    let isOver = false;
    const restarting = rolling.restartAll(false).finally(() => isOver = true);
    const [merged, exported] = await Promise.all([
      mergeAll(client, () => isOver),
      exportAgain(rolling, client, () => isOver),
      erase(client),
      restarting,
    ]);
    await meters.stop();
    assert.deepEqual(meters.failures, []);

    await assertMerged(client);
    await assertErased(stage, rolling);
    const drifts: string[] = [];
    const { holds } = await reconcile(stage.look, ({ userId, text }) => drifts.push(`${userId}: ${text}`));
    assert.deepEqual(drifts, []);
    console.log(
      `${merged} answers to merges, ${exported} exports, ${meters.calls} metering calls, ${holds} open holds`,
    );
  },
});

/** Users to merge, one to erase with all that there is of a user, and one with a long history to export. */
async function populate(client: HoldfastClient): Promise<void> {
  const users = Array.from({ length: PAIRS }, (_, place) => [`f${place}`, `t${place}`]).flat();
  for (let at = 0; at < users.length; at += 50) {
    await Promise.all(
      users.slice(at, at + 50).map(async (userId) => {
        await client.subscriptions.upsert({ userId, planId: "plan_wide" });
        await client.track(userId, "image.x");
        await client.reserve(userId, "image.x", 1, {}, { ttlSeconds: 86_400 });
      }),
    );
  }
  for (const userId of [MARK, `${MARK}-old`, "bystander", "reader"]) {
    await client.subscriptions.upsert({ userId, planId: "plan_wide" });
    await client.track(userId, "image.x", 1, { who: userId });
    await client.reserve(userId, "image.x", 1, { who: userId }, { ttlSeconds: 86_400 });
    await client.analytics.capture({ distinctId: userId, event: "seen", properties: { who: userId } });
    await client.analytics.identify({ distinctId: userId, properties: { name: userId } });
  }
  await client.customers.alias({ from: `${MARK}-old`, to: MARK });
  for (let at = 0; at < EXPORTED_EVENTS; at += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, place) => {
      const properties = { place: at + place, text: "é".repeat(200) };
      return client.analytics.capture({ distinctId: "reader", event: "read", properties });
    }));
  }
}

/** The errors that an answer may have for an unmerged pair: the client must send it again. */
const OPEN_PAIR = ["not_processed", "unavailable"];

/** Sends all pairs as one batch, again and again: each pair is merged, or the answer says that it may not be. */
async function mergeAll(client: HoldfastClient, isOver: () => boolean): Promise<number> {
  const pairs = Array.from({ length: PAIRS }, (_, place) => ({ from: `f${place}`, to: `t${place}` }));
  let answers = 0;
  let open = 0;
  do {
    const { results } = await client.customers.aliasMany(pairs);
    assert.equal(results.length, PAIRS);
    for (const [place, result] of results.entries()) {
      if (!result.ok) assert.ok(OPEN_PAIR.includes(result.error.code), JSON.stringify(result));
      else assert.equal((await client.customers.get(`f${place}`)).canonicalId, `t${place}`);
    }
    answers += results.length;
    open = results.filter(({ ok }) => !ok).length;
    await pause(BATCH_REST_MS);
  } while (!isOver() || open > 0);
  return answers;
}

/** Exports a person again and again: a document is whole, or its connection says that it is not. */
async function exportAgain(rolling: Rolling, client: HoldfastClient, isOver: () => boolean): Promise<number> {
  let documents = 0;
  do {
    const { downloadUrl } = await client.analytics.exportPerson("reader");
    const { pathname, search } = new URL(downloadUrl);
    let text: string;
    try {
      const response = await fetch(`${rolling.origin()}${pathname}${search}`);
      text = await response.text();
      if (response.status === 503) continue;
      assert.equal(response.status, 200, text);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      continue;
    }
    const document = JSON.parse(text);
    const places = new Set([...text.matchAll(/"place":(\d+)/g)].map(([, place]) => place));
    assert.equal(places.size, EXPORTED_EVENTS, JSON.stringify(Object.keys(document)));
    documents++;
    await pause(EXPORT_REST_MS);
  } while (!isOver());
  assert.ok(documents > 0);
  return documents;
}

async function erase(client: HoldfastClient): Promise<void> {
  const { jobId } = await client.analytics.deletePerson(MARK);
  await until("the erasure is complete", 300_000, async () => {
    const { status, errorMessage } = await client.analytics.deletionStatus(jobId);
    assert.equal(errorMessage, null);
    if (status === "completed") return true;
    await pause(200);
    return null;
  });
}

async function assertMerged(client: HoldfastClient): Promise<void> {
  for (let place = 0; place < PAIRS; place++) {
    const customer = await client.customers.get(`f${place}`);
    assert.equal(customer.canonicalId, `t${place}`);
    // One of each, and what the meters added to the first ones.
    const { counters } = await client.usage(`t${place}`);
    if (place !== 1) assert.equal(counters[0]?.count, 4, `t${place}`);
  }
}

async function assertErased(stage: Stage, rolling: Rolling): Promise<void> {
  const response = await fetch(`${rolling.origin()}/api/admin/v1/sweep`, {
    method: "POST",
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  assert.equal(response.status, 200, await response.text());
  const tables = await stage.look.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public'",
  );
  assert.ok(tables.length > 20);
  for (const { name } of tables) {
    const rows = await stage.look.query(`select 1 from ${name} t where t::text like '%${MARK}%' limit 1`);
    assert.equal(rows.length, 0, `${name} holds what was erased`);
  }
}
