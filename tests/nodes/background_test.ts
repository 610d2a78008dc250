// Background work with several nodes: each does the work of its own cells, none is done twice, and a cell that moves takes
// its pending work along.

import assert from "node:assert/strict";
import { runErasures } from "../../src/people/erasure.ts";
import { CATALOG, dataOf } from "../routes/support.ts";
import type { TestApp } from "../support/test_service.ts";
import { testServerUrl } from "../support/test_store.ts";
import { Nodes, type TestMember } from "./support.ts";

const ignore = testServerUrl() === null;
const APPS_MAX = 30;

/** Makes apps so that each node owns at least one. */
async function appsOfBoth(nodes: Nodes): Promise<TestApp[]> {
  const apps: TestApp[] = [];
  const isOwner = (node: TestMember) => apps.some((app) => node.owns(app));
  while (!nodes.all.every(isOwner)) {
    assert.ok(apps.length < APPS_MAX);
    apps.push(await (nodes.all[0] as TestMember).newApp(CATALOG));
  }
  return apps;
}

function realmOf(node: TestMember, { appId }: TestApp): number {
  return node.serving.registry.apps.get(appId)?.realms.live.realm as number;
}

/** Leaves an erasure and an expired first answer in an app. */
async function leaveWork({ store, all }: Nodes, app: TestApp): Promise<void> {
  const realm = realmOf(all[0] as TestMember, app);
  await store.database.query(
    `insert into erasure_jobs (id, realm, status, distinct_ids, requested_at_ms)
     values ($1, $2::int, 'queued', '["p"]', 0)`,
    [`job_${app.appId}`, realm],
  );
  await store.database.query(
    `insert into idempotency (realm, key, request_hash, status, body, at_ms) values ($1::int, 'old', '', 200, '', 0)`,
    [realm],
  );
}

Deno.test({
  name: "each node sweeps its own workspaces, and a sweep requested from any node counts all",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open();
    const apps = await appsOfBoth(nodes);
    for (const app of apps) await leaveWork(nodes, app);
    const counts = await dataOf((nodes.all[1] as TestMember).admin("POST", "/sweep"));
    assert.deepEqual([counts.idempotencyRecords, counts.erasures], [apps.length, apps.length]);
    for (const node of nodes.all) {
      const own = apps.filter((app) => node.owns(app)).length;
      const { idempotency, erasures } = node.service.counts.sweeps;
      assert.deepEqual([idempotency.rows, erasures.rows], [own, own]);
    }
  },
});

Deno.test({
  name:
    "an erasure is run by the owner of its workspace alone, and by the next owner where it was not run yet",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open();
    const apps = await appsOfBoth(nodes);
    const [first] = nodes.all as [TestMember];
    const app = apps.find((some) => !first.owns(some)) as TestApp;
    await leaveWork(nodes, app);
    assert.equal(await runErasures(first.serving), 0);
    await nodes.leave(nodes.ownerOf(app));
    await nodes.settled();
    assert.equal(await runErasures(first.serving), 1);
    assert.equal(await runErasures(first.serving), 0);
  },
});

Deno.test({
  name: "a test clock that any node moves is one clock, also at the next owner",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open();
    const app = (await appsOfBoth(nodes)).find((some) => !nodes.all[0]?.owns(some)) as TestApp;
    const [first] = nodes.all as [TestMember];
    const path = "/test-clock";
    const moved = await dataOf(first.ask(app.secretTest, "POST", path, { advanceSeconds: 3_600 }));
    assert.deepEqual(await dataOf(nodes.ownerOf(app).ask(app.secretTest, "GET", path)), moved);
    await nodes.leave(nodes.ownerOf(app));
    await nodes.settled();
    assert.deepEqual(await dataOf(first.ask(app.secretTest, "GET", path)), moved);
    const again = await dataOf(first.ask(app.secretTest, "POST", path, { advanceSeconds: 60 }));
    assert.equal(Date.parse(again.now) - Date.parse(moved.now), 60_000);
  },
});

Deno.test({
  name: "counts of refused calls are all kept while cells are handed over and nodes stop in good order",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open();
    const apps = await appsOfBoth(nodes);
    let rounds = 0;
    const refuse = async () => {
      rounds += 1;
      for (const app of apps) {
        for (const node of nodes.all) {
          const body = { userId: node.name, event: "image.x" };
          assert.equal((await dataOf(node.ask(app.secretLive, "POST", "/reserve", body))).allowed, false);
        }
      }
    };
    const keeper = nodes.all[0] as TestMember;
    for (const how of ["leave", "stop"] as const) {
      await refuse();
      await nodes.join();
      await refuse();
      await nodes.settled();
      await refuse();
      const other = nodes.all[1] as TestMember;
      if (how === "leave") await nodes.leave(other);
      else await nodes.all.splice(1, 1)[0]?.service.stop();
      await nodes.settled();
    }
    await refuse();
    for (const app of apps) {
      const { refusals } = await dataOf(keeper.ask(app.secretLive, "GET", "/refusals"));
      const counts = new Map(
        refusals.map((row: { userId: string; count: number }) => [row.userId, row.count]),
      );
      assert.equal(counts.get(keeper.name), rounds, `${app.appId}: ${JSON.stringify(refusals)}`);
    }
  },
});
