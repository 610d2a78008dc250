// `deno task admin doctor` against services and stores in every state: what it finds, and its exit status.

import assert from "node:assert/strict";
import { MIGRATIONS } from "../../sql/migrations.ts";
import type { Check } from "../../src/operations/doctor/checks.ts";
import { runAdmin } from "../../src/cli/admin.ts";
import { EXIT } from "../../src/cli/shell.ts";
import { claimCells } from "../../src/storage/nodes/cell_store.ts";
import { endNode } from "../../src/storage/nodes/node_store.ts";
import { joinAlone } from "../storage/sample.ts";
import { openTestStore, testServerUrl } from "../support/test_store.ts";
import { operatorOf, runTask, serve, testShell, troublesOf, withService } from "./support.ts";

const NOWHERE = "http://127.0.0.1:9";
/** Services of tests run on a store in memory, which does not sync; the doctor must report that. */
const NOT_SYNCED = testServerUrl() === null ? ["fail database"] : [];

/** Runs the doctor in this process. */
async function doctor(variables: Record<string, string>, ...args: string[]) {
  const { shell, out } = testShell(variables);
  const code = await runAdmin(["doctor", "--json", ...args], shell);
  const { verdict, checks } = JSON.parse(out()) as { verdict: string; checks: Check[] };
  return { code, verdict, checks, troubles: troublesOf(checks) };
}

Deno.test("a running service examines itself, and all is well", async () => {
  await withService(async (service) => {
    service.clock.now = Date.now;
    const { code, verdict, checks, troubles } = await doctor(operatorOf(service));
    assert.deepEqual(troubles, NOT_SYNCED, JSON.stringify(checks));
    const isWell = troubles.length === 0;
    assert.equal(code, isWell ? EXIT.ok : EXIT.refused);
    assert.equal(verdict === "fail", !isWell);
    assert.deepEqual(
      checks.map(({ name }) => name),
      [
        "settings",
        "service",
        "database",
        "standbys",
        "migrations",
        "members",
        "clock",
        "backlog",
        "drift",
        "prices",
        "webhooks",
        "stripe",
        "top-ups",
        "gateway",
        "features",
      ],
    );
    const text = testShell(operatorOf(service));
    assert.equal(await runAdmin(["doctor"], text.shell), code);
    assert.match(text.out(), /^ok {4}settings {4}readable; .+\nok {4}service {5}serves at http.+\n/);
    assert.match(text.out(), isWell ? /\n(All is well|Passed with warnings)\.$/ : /\nSomething is broken\.$/);
  });
});

Deno.test("clocks that differ, users that no sweep settled and books that do not add up are found", async () => {
  await withService(async (service) => {
    const app = await service.newApp();
    await app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" });
    await app.call("POST", "/reserve", { userId: "u", event: "image.render", ttlSeconds: 10 });
    await service.serving().term.flush();
    assert.deepEqual((await doctor(operatorOf(service))).troubles, [...NOT_SYNCED, "fail clock"]);
    service.clock.now = Date.now;
    assert.deepEqual((await doctor(operatorOf(service))).troubles, [...NOT_SYNCED, "warn backlog"]);
    await service.admin("POST", "/sweep");
    await service.serving().term.flush();
    assert.deepEqual((await doctor(operatorOf(service))).troubles, NOT_SYNCED);
    await service.store.database.query("update counters set count = count + 1");
    const { code, troubles, checks } = await doctor(operatorOf(service));
    assert.deepEqual([code, troubles], [EXIT.refused, [...NOT_SYNCED, "fail drift"]]);
    assert.match(
      checks.find(({ name }) => name === "drift")?.found ?? "",
      /^\d+ in everything: users 1,.+first user 1:/,
    );
    assert.ok(!JSON.stringify(checks).includes('"u"'), "it names no end user");
  });
});

Deno.test("prices not compared with their source for 90 days are listed with their app", async () => {
  await withService(async (service) => {
    service.clock.now = Date.now;
    const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
    const row = { modality: "image", amountMode: "per_call", centsPerCall: 1 };
    const { appId } = await service.newApp({
      models: [
        { ...row, id: "old", checkedAt: daysAgo(91) },
        { ...row, id: "older", checkedAt: "2025-01-31T00:00:00Z" },
        { ...row, id: "recent", checkedAt: daysAgo(89) },
        { ...row, id: "unknown" },
      ],
    });
    await service.newApp();
    const { troubles, checks } = await doctor(operatorOf(service));
    assert.deepEqual(troubles, [...NOT_SYNCED, "warn prices"]);
    const { found, advice } = checks.find(({ name }) => name === "prices") as Check;
    assert.equal(found, `2 last checked more than 90 days ago: ${appId}: old, older`);
    assert.match(advice ?? "", /deno task admin models import FILE/);
  });
});

Deno.test("an endpoint that fails for over an hour is named with its app, and the oldest message told", async () => {
  await withService(async (service) => {
    service.clock.now = Date.now;
    const { appId } = await service.newApp();
    const webhook = { url: "https://localhost/", mode: "live", events: ["*"] };
    const made = await service.admin("POST", `/apps/${appId}/webhooks`, webhook);
    const { webhookId } = made.body.data;
    const ago = (minutes: number) => Date.now() - minutes * 60_000;
    const { database } = service.store;
    await database.query("update webhooks set failing_since_ms = $1::bigint", [ago(59)]);
    assert.deepEqual((await doctor(operatorOf(service))).troubles, NOT_SYNCED);
    await database.query("update webhooks set failing_since_ms = $1::bigint", [ago(61)]);
    await database.query(
      `insert into webhook_messages (id, webhook_id, realm, type, body, created_at_ms, next_attempt_at_ms)
       select 'whm_1', $1, realm, 'ping', '{}', $2::bigint, 9e15 from realms where app_id = $3 and mode = 'live'`,
      [webhookId, ago(7), appId],
    );
    const { troubles, checks } = await doctor(operatorOf(service));
    assert.deepEqual(troubles, [...NOT_SYNCED, "warn webhooks"]);
    const { found } = checks.find(({ name }) => name === "webhooks") as Check;
    assert.match(found, /^enabled 1, the oldest message waits for 7 minutes; /);
    assert.ok(found.endsWith(`: ${webhookId} of ${appId}`), found);
  });
});

Deno.test("a service that refuses the token, a standby and a service that is down are distinguished", async () => {
  await withService(async (service) => {
    const stranger = { ...operatorOf(service), HOLDFAST_ADMIN_TOKEN: "wrong-token-0123456789" };
    const { code, checks } = await doctor({ ...stranger, HOLDFAST_DATA_DIR: "/none" });
    assert.equal(code, EXIT.refused, "there is no store either");
    assert.match(checks[1]?.found ?? "", /^serves at .+, but: Refused \(invalid_key\)/);
  });
  const states = [["standby", "ok"], ["starting", "warn"], ["stopping", "warn"]] as const;
  for (const [status, verdict] of states) {
    const error = { code: "unavailable", message: "Not now", details: { status } };
    const { url, close } = serve(() => Response.json({ ok: false, error }, { status: 503 }));
    const { checks } = await doctor({ HOLDFAST_DATA_DIR: "/none" }, "--url", url);
    assert.deepEqual([checks[1]?.name, checks[1]?.verdict], ["service", verdict]);
    await close();
  }
  const { url, close } = serve(() => new Response("<html>"));
  for (const base of [url, NOWHERE]) {
    const { checks } = await doctor({ HOLDFAST_DATA_DIR: "/none" }, "--url", base);
    assert.match(checks[1]?.found ?? "", /^no answer at/);
  }
  await close();
});

Deno.test("bad settings are named, and nothing else is looked at", async () => {
  const { code, checks } = await doctor({ DATABASE_URL: "nonsense" });
  assert.equal(code, EXIT.refused);
  assert.deepEqual(checks.map(({ name, verdict }) => `${verdict} ${name}`), ["fail settings"]);
  assert.match(checks[0]?.found ?? "", /^DATABASE_URL must be a URL/);
  const open = await doctor({ HOLDFAST_PUBLIC_URL: "http://x.example", HOLDFAST_DATA_DIR: "/none" });
  assert.equal(open.troubles[0], "warn settings");
});

Deno.test("without a service nothing is made where no store is, and a folder in use is left alone", async () => {
  const folder = await Deno.makeTempDir({ prefix: "holdfast_doctor_" });
  const HOLDFAST_DATA_DIR = `${folder}/data`;
  try {
    // As a program, with the permissions that users give it.
    const none = await runTask("admin", ["doctor", "--url", NOWHERE], { HOLDFAST_DATA_DIR });
    assert.deepEqual([none.code, none.err], [EXIT.refused, ""]);
    assert.match(none.out, /\nfail {2}service .+\n +-> Start it.+\nfail {2}database .*there is no store in/);
    assert.match(none.out, /\nSomething is broken\.\n$/);
    await assert.rejects(Deno.stat(HOLDFAST_DATA_DIR), Deno.errors.NotFound);

    await Deno.mkdir(HOLDFAST_DATA_DIR);
    using lock = await Deno.open(`${HOLDFAST_DATA_DIR}/lock`, { create: true, write: true });
    await lock.lock(true);
    const used = await doctor({ HOLDFAST_DATA_DIR }, "--url", NOWHERE);
    assert.deepEqual(used.troubles, ["fail service", "warn database"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test({
  name: "without a service a server's database is looked at: migrations, and who serves it",
  ignore: testServerUrl() === null,
  fn: async () => {
    const store = await openTestStore();
    const DATABASE_URL = store.url as string;
    const variables = {
      DATABASE_URL,
      HOLDFAST_ADMIN_TOKEN: "token-0123456789abc",
      HOLDFAST_PRIVACY_SECRET: "",
    };
    const look = () => doctor(variables, "--url", NOWHERE);
    try {
      assert.deepEqual((await look()).troubles, ["fail service", "warn members", "warn features"]);

      const session = await store.database.pin(() => {});
      const writer = await joinAlone(store.database, session);
      const held = await look();
      assert.deepEqual(held.troubles, ["fail service", "fail members", "warn features"]);
      assert.match(
        held.checks.find(({ name }) => name === "members")?.found ?? "",
        /^cells 0 to 63 without an owner/,
      );
      await claimCells(store.database, Array.from({ length: 64 }, (_, cell) => cell), null, writer.term);
      await writer.beat({ share: 1, registryVersion: 0 });
      const { troubles: left, checks } = await look();
      assert.deepEqual(left, ["fail service", "warn features"]);
      assert.equal(
        checks.find(({ name }) => name === "members")?.found,
        `${writer.term} at no address (64 cells)`,
      );
      await writer.close();
      await endNode(store.database, writer.term);

      await store.database.query("insert into migrations values ('9999_later', '')");
      assert.ok((await look()).troubles.includes("fail migrations"));
      await store.database.query("delete from migrations where name in ($1, '9999_later')", [
        MIGRATIONS.at(-1)?.name as string,
      ]);
      const { troubles } = await look();
      assert.deepEqual(troubles.slice(1, 5), [
        "fail migrations",
        "warn members",
        "warn backlog",
        "warn drift",
      ]);

      const away = await doctor({ DATABASE_URL: "postgres://me:hush@127.0.0.1:9/none" }, "--url", NOWHERE);
      assert.deepEqual(away.troubles.slice(1, 3), ["fail service", "fail database"]);
      assert.ok(!JSON.stringify(away).includes("hush"), "no password is printed");
    } finally {
      await store.close();
    }
  },
});
