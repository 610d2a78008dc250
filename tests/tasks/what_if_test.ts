// `deno task whatif`, as a program beside a running service, and on a store that no service has open.

import assert from "node:assert/strict";
import { runWhatIf } from "../../src/cli/what_if.ts";
import { openEmbedded } from "../../src/storage/embedded/embedded_folder.ts";
import { copyMigratedStore } from "../support/kept_stores.ts";
import { testServerUrl } from "../support/test_store.ts";
import { operatorOf, runTask, testShell, withService } from "./support.ts";

function catalogOf(quota: number) {
  const limits = [{ id: "lg", label: "Calls", unit: "count", quota, matches: [{ event: "*" }] }];
  const period = { type: "daily", anchor: "calendar" };
  return { plans: [{ id: "plan_a", name: "A", rank: 1, period, limits }] };
}

/** Runs a test with a file of a catalog with a quota. */
async function withCatalog(quota: number, work: (file: string) => Promise<void>): Promise<void> {
  const file = await Deno.makeTempFile({ suffix: ".json" });
  try {
    await Deno.writeTextFile(file, JSON.stringify(catalogOf(quota)));
    await work(file);
  } finally {
    await Deno.remove(file);
  }
}

const SPAN = ["--from", "2026-01-15", "--to", "2026-01-16"];

Deno.test("the running service tries a catalog; progress goes to standard error", async () => {
  await withService(async (service) => {
    const app = await service.newApp(catalogOf(100));
    await app.call("POST", "/subscriptions", { userId: "u", planId: "plan_a" });
    for (let call = 0; call < 5; call++) await app.call("POST", "/track", { userId: "u", event: "x" });
    await withCatalog(2, async (file) => {
      const args = [...SPAN, "--app", app.appId];
      const tried = await runTask("whatif", [...args, "--catalog", file, "--json"], operatorOf(service));
      assert.deepEqual([tried.code, tried.err], [0, "Decided so far: 5 events of 1 user\n"]);
      assert.deepEqual(JSON.parse(tried.out), {
        events: 5,
        refused: [{ day: "2026-01-15", groupId: "lg", calls: 3, users: 1 }],
        users: 1,
        counters: [{ userId: "u", groupId: "lg", windowStart: "2026-01-15T00:00:00.000Z", count: 2 }],
      });
      const { shell, out } = testShell(operatorOf(service));
      assert.equal(await runWhatIf(args, shell), 0);
      assert.equal(out(), "No call of 5 events of 1 user would be refused");
      await Deno.writeTextFile(file, "{}{");
      assert.equal(await runWhatIf([...args, "--catalog", file], testShell(operatorOf(service)).shell), 2);
      const wrong = testShell(operatorOf(service));
      assert.equal(await runWhatIf(["--from", "yesterday", "--to", "2026-01-16"], wrong.shell), 2);
      assert.match(wrong.err(), /^--from: must be a date or a time/);
    });
  });
});

const AT = Date.UTC(2026, 0, 15, 12);

/** An app with a user, and three events, the first one of a version that kept no work. */
const ROWS = `
  insert into workspaces (id, name, created_at_ms) values ('ws_1', 'W', 1);
  insert into apps (id, workspace_id, name, identity_secret, created_at_ms) values ('app_1', 'ws_1', 'A', 's', 1);
  insert into catalogs (app_id, version, document, plan_order, applied_at_ms)
    values ('app_1', 1, '${JSON.stringify(catalogOf(100))}', '["plan_a"]', 1);
  insert into realms (realm, app_id, mode) values (1, 'app_1', 'live');
  insert into users (key, realm, id) values (1, 1, 'u');
  insert into subscriptions (id, user_key, plan_id, started_at_ms, ended, custom_limits)
    values ('sub_1', 1, 'plan_a', 1, false, '[]');
  insert into events (id, user_key, realm, type, quantity, cost_cents, match_status, created_at_ms, lines, uncovered, work)
    values ('evt_1', 1, 1, 'x', 2, 0, 'matched', ${AT}, '[]', '[]', null),
      ('evt_2', 1, 1, 'x', 3, 0, 'matched', ${AT}, '[]', '[]', ',3'),
      ('evt_3', 1, 1, 'x', 1, 0, 'blocked', ${AT + 1}, '[]', '[]', '');`;

Deno.test({
  name: "without a service the task opens the store",
  ignore: testServerUrl() !== null,
  fn: async () => {
    const folder = await Deno.makeTempDir({ prefix: "holdfast_what_if_" });
    const variables = { HOLDFAST_DATA_DIR: `${folder}/data` };
    try {
      const none = testShell(variables);
      assert.equal(await runWhatIf(SPAN, none.shell), 3);
      assert.match(none.err(), /there is no store in/);
      await copyMigratedStore(variables.HOLDFAST_DATA_DIR);
      const database = await openEmbedded(variables.HOLDFAST_DATA_DIR);
      await database.script(ROWS);
      await database.close();
      await withCatalog(4, async (file) => {
        const tried = await runTask("whatif", [...SPAN, "--json", "--catalog", file], variables);
        assert.equal(tried.code, 0, tried.err);
        const { events, refused, counters } = JSON.parse(tried.out);
        assert.deepEqual([events, counters[0].count], [3, 3]);
        assert.deepEqual(refused, [{ day: "2026-01-15", groupId: "lg", calls: 1, users: 1 }]);
      });
      const unknown = testShell(variables);
      assert.equal(await runWhatIf([...SPAN, "--app", "app_2"], unknown.shell), 1);
      assert.match(unknown.err(), /App not found: app_2/);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
