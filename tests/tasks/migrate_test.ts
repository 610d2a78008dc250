// The migrate task: migrations are applied once, then there is nothing to do; bad settings and a store in use are one
// clear line.

import assert from "node:assert/strict";
import { EXIT } from "../../src/cli/shell.ts";
import { runMigrate } from "../../src/cli/migrate.ts";
import { openPostgres } from "../../src/storage/postgres_database.ts";
import { copyEmptyStore } from "../support/kept_stores.ts";
import { testServerUrl } from "../support/test_store.ts";
import { runTask, shortenLockWaits, testShell } from "./support.ts";

shortenLockWaits();

const NOTHING = "Nothing to do: every migration is applied";

/** Runs the task in this process. */
async function migrate(args: readonly string[], variables: Record<string, string>) {
  const { shell, out, err } = testShell(variables);
  return { code: await runMigrate(args, shell), out: out(), err: err() };
}

Deno.test({
  name: "migrate migrates the embedded store, and finds nothing to do the second time",
  ignore: testServerUrl() !== null,
  fn: async () => {
    const folder = await Deno.makeTempDir({ prefix: "holdfast_migrate_" });
    try {
      const variables = { HOLDFAST_DATA_DIR: folder };
      await copyEmptyStore(folder);
      // As a program, with the permissions that users give it.
      const first = await runTask("migrate", [], variables);
      assert.equal(first.code, EXIT.ok, first.err);
      assert.match(first.out, /^Applied 0001_core\n/);
      assert.deepEqual(await migrate([], variables), { code: EXIT.ok, out: NOTHING, err: "" });

      using lock = await Deno.open(`${folder}/lock`, { write: true });
      await lock.lock(true);
      const locked = await migrate([], variables);
      assert.equal(locked.code, EXIT.refused);
      assert.match(locked.err, /^Cannot migrate: another process uses the data folder ".+"$/);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

Deno.test("migrate says in one line which setting is wrong", async () => {
  const nowhere = "postgres://postgres@127.0.0.1:9/none";
  const rows: [number, string[], string, RegExp][] = [
    [EXIT.refused, [], "nonsense", /^Cannot migrate: DATABASE_URL must be a URL .+$/],
    [EXIT.refused, [], nowhere, /^Cannot migrate: DATABASE_URL: .*ECONNREFUSED.*$/],
    [EXIT.usage, ["now"], "nonsense", /^Too many arguments/],
  ];
  for (const [code, args, DATABASE_URL, message] of rows) {
    const outcome = await migrate(args, { DATABASE_URL });
    assert.equal(outcome.code, code, outcome.err);
    assert.match(outcome.err, message);
  }
});

Deno.test({
  name: "migrate migrates a server's database",
  ignore: testServerUrl() === null,
  fn: async () => {
    const url = new URL(testServerUrl() as string);
    const admin = openPostgres(url.href, 1);
    const name = `holdfast_migrate_${crypto.randomUUID().slice(0, 8)}`;
    await admin.script(`create database ${name}`);
    url.pathname = `/${name}`;
    try {
      const first = await runTask("migrate", [], { DATABASE_URL: url.href });
      assert.match(first.out, /^Applied 0001_core\n/, first.err);
      assert.equal((await runTask("migrate", [], { DATABASE_URL: url.href })).out, `${NOTHING}\n`);
    } finally {
      await admin.script(`drop database ${name} with (force)`);
      await admin.close();
    }
  },
});
