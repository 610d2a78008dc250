// Background work with several nodes: each does the work of its own cells, none is done twice, and a cell that moves takes
// its pending work along.

import assert from "node:assert/strict";
import { runErasures } from "../../src/people/erasure.ts";
import { CATALOG, dataOf } from "../routes/support.ts";
import type { TestApp } from "../support/test_service.ts";
import { testServerUrl } from "../support/test_store.ts";
import { Members, type TestMember } from "./support.ts";

const ignore = testServerUrl() === null;
const APPS_MAX = 30;

/** Makes apps so that each node owns at least one. */
async function appsOfBoth(members: Members): Promise<TestApp[]> {
  const apps: TestApp[] = [];
  const isOwner = (member: TestMember) => apps.some((app) => member.owns(app));
  while (!members.all.every(isOwner)) {
    assert.ok(apps.length < APPS_MAX);
    apps.push(await (members.all[0] as TestMember).newApp(CATALOG));
  }
  return apps;
}

function realmOf(member: TestMember, { appId }: TestApp): number {
  return member.serving.registry.apps.get(appId)?.realms.live.realm as number;
}

/** Leaves an erasure and an expired first answer in an app. */
async function leaveWork({ store, all }: Members, app: TestApp): Promise<void> {
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
    await using members = await Members.open();
    const apps = await appsOfBoth(members);
    for (const app of apps) await leaveWork(members, app);
    const counts = await dataOf((members.all[1] as TestMember).admin("POST", "/sweep"));
    assert.deepEqual([counts.idempotencyRecords, counts.erasures], [apps.length, apps.length]);
    for (const member of members.all) {
      const own = apps.filter((app) => member.owns(app)).length;
      const { idempotency, erasures } = member.service.counts.sweeps;
      assert.deepEqual([idempotency.rows, erasures.rows], [own, own]);
    }
  },
});

Deno.test({
  name:
    "an erasure is run by the owner of its workspace alone, and by the next owner where it was not run yet",
  ignore,
  fn: async () => {
    await using members = await Members.open();
    const apps = await appsOfBoth(members);
    const [first] = members.all as [TestMember];
    const app = apps.find((some) => !first.owns(some)) as TestApp;
    await leaveWork(members, app);
    assert.equal(await runErasures(first.serving), 0);
    await members.leave(members.ownerOf(app));
    await members.settled();
    assert.equal(await runErasures(first.serving), 1);
    assert.equal(await runErasures(first.serving), 0);
  },
});

Deno.test({
  name: "a test clock that any node moves is one clock, also at the next owner",
  ignore,
  fn: async () => {
    await using members = await Members.open();
    const app = (await appsOfBoth(members)).find((some) => !members.all[0]?.owns(some)) as TestApp;
    const [first] = members.all as [TestMember];
    const path = "/test-clock";
    const moved = await dataOf(first.ask(app.secretTest, "POST", path, { advanceSeconds: 3_600 }));
    assert.deepEqual(await dataOf(members.ownerOf(app).ask(app.secretTest, "GET", path)), moved);
    await members.leave(members.ownerOf(app));
    await members.settled();
    assert.deepEqual(await dataOf(first.ask(app.secretTest, "GET", path)), moved);
    const again = await dataOf(first.ask(app.secretTest, "POST", path, { advanceSeconds: 60 }));
    assert.equal(Date.parse(again.now) - Date.parse(moved.now), 60_000);
  },
});

Deno.test({
  name: "counts of refused calls are all kept while cells are handed over and nodes stop in good order",
  ignore,
  fn: async () => {
    await using members = await Members.open();
    const apps = await appsOfBoth(members);
    let rounds = 0;
    const refuse = async () => {
      rounds += 1;
      for (const app of apps) {
        for (const member of members.all) {
          const body = { userId: member.name, event: "image.x" };
          assert.equal((await dataOf(member.ask(app.secretLive, "POST", "/reserve", body))).allowed, false);
        }
      }
    };
    const keeper = members.all[0] as TestMember;
    for (const how of ["leave", "stop"] as const) {
      await refuse();
      await members.join();
      await refuse();
      await members.settled();
      await refuse();
      const other = members.all[1] as TestMember;
      if (how === "leave") await members.leave(other);
      else await members.all.splice(1, 1)[0]?.service.stop();
      await members.settled();
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
