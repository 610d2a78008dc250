// The list of databases: what it numbers, and what it refuses.

import assert from "node:assert/strict";
import { ConfigError } from "../../src/process/settings.ts";
import { readDatabases } from "../../src/process/database_list.ts";
import { refuseOneOfSeveral } from "../../src/cluster/store.ts";
import { readStoreFacts } from "../../src/storage/nodes/store_numbers.ts";
import { newRealms } from "../../src/storage/stores/registry_store.ts";
import { nextKeys } from "../../src/storage/nodes/node_store.ts";
import { startDrainThread } from "../../src/storage/journal/drain_thread.ts";
import { openPostgres } from "../../src/storage/postgres_database.ts";
import { testServerUrl } from "../support/test_store.ts";
import { listOf, openSwitched, type SwitchedDatabase } from "./support.ts";

type Databases = Readonly<Record<string, SwitchedDatabase>>;

/** Runs a test with fresh databases. */
async function withDatabases(count: number, test: (...all: SwitchedDatabase[]) => Promise<void>) {
  const all = await Promise.all(Array.from({ length: count }, openSwitched));
  try {
    await test(...all);
  } finally {
    for (const { store } of all) await store.close();
  }
}

/** Opens every database of a list, one after another from the last. */
async function openAll(databases: Databases): Promise<number[]> {
  const list = listOf(databases);
  for (const store of list.stores.toReversed()) await list.open(store);
  return await Promise.all(list.stores.map(async ({ database }) => {
    const { own } = await readStoreFacts(database);
    return own?.number ?? -1;
  }));
}

function addWorkspace({ database }: SwitchedDatabase) {
  return database.query("insert into workspaces (id, name, created_at_ms) values ('ws_1', 'Old', 0)");
}

async function refusal(databases: Databases): Promise<string> {
  try {
    await openAll(databases);
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.message;
  }
  return "";
}

Deno.test("the setting is read by names, also with several hosts in a URL, and names what is wrong", () => {
  const faultOf = (url: string) => url.startsWith("postgres://") ? null : "must be a URL";
  const rows: [text: string, read: unknown][] = [
    ["eu1=postgres://h/a", [{ name: "eu1", url: "postgres://h/a" }]],
    ["eu1=postgres://h,i/a, eu2=postgres://j/b", [
      { name: "eu1", url: "postgres://h,i/a" },
      { name: "eu2", url: "postgres://j/b" },
    ]],
    ["postgres://h/a", /must be a list such as/],
    ["EU=postgres://h/a", /must be a list such as/],
    ["eu1=http://h/secret", /^"eu1" must be a URL$/],
    ["eu1=postgres://h/a,eu1=postgres://h/b", /names "eu1" twice/],
    ["eu1=postgres://h/a,eu2=postgres://h/a", /the same URL for "eu1" and "eu2"/],
    [Array.from({ length: 65 }, (_, n) => `e${n}=postgres://h/${n}`).join(), /more than 64/],
  ];
  for (const [text, expected] of rows) {
    const read = readDatabases(text, faultOf);
    if (expected instanceof RegExp) assert.match(read as string, expected, text);
    else assert.deepEqual(read, expected, text);
  }
});

Deno.test("new databases are numbered once, whichever opens first, and keep their numbers in another order", () =>
  withDatabases(3, async (one, two, three) => {
    assert.deepEqual(await openAll({ b: one, a: two }), [1, 0]);
    assert.deepEqual(await openAll({ a: two, b: one }), [0, 1]);
    assert.deepEqual(await openAll({ a: two, c: three, b: one }), [0, 2, 1]);
  }));

Deno.test("realms and users of stores come from ranges that never meet; a used database goes on where it is", () =>
  withDatabases(2, async (used, added) => {
    await addWorkspace(used);
    await used.database.query(
      "insert into apps (id, workspace_id, name, identity_secret, created_at_ms) values ('app_1', 'ws_1', 'Old', 's', 0)",
    );
    await used.database.query("insert into realms (realm, app_id, mode) values (7, 'app_1', 'live')");
    // The used one is the first although its name is the last.
    assert.deepEqual(await openAll({ a: added, z: used }), [1, 0]);
    const realmsOf = ({ database }: SwitchedDatabase) =>
      database.transaction(async (session) => (await newRealms(session, "app_2")).map(({ realm }) => realm));
    assert.deepEqual(await realmsOf(used), [8, 9]);
    assert.deepEqual(await realmsOf(added), [2 ** 25 + 1, 2 ** 25 + 2]);
    assert.ok((await nextKeys(used.database)).first < 2 ** 47);
    assert.equal((await nextKeys(added.database)).first, 2 ** 47 + 1);
    assert.equal((await nextKeys(added.database)).first, 2 ** 47 + 1001);
  }));

Deno.test("a wrong list is refused with a line that names what is wrong", () =>
  withDatabases(4, async (one, two, three, four) => {
    await addWorkspace(one);
    await openAll({ eu1: one, eu2: two });
    await addWorkspace(three);
    const rows: [databases: Databases, expected: RegExp][] = [
      [{ eu1: two, eu2: one }, /the URL of "eu2" leads to the database "eu1"/],
      [{ eu1: one }, /the list lacks "eu2"/],
      [
        { eu1: one, eu2: two, eu3: three },
        /"eu3" has workspaces of its own; a database that is added must be new/,
      ],
      [{ eu1: one, eu3: two }, /the URL of "eu3" leads to the database "eu2"/],
      [{ eu1: one, eu2: four }, /"eu2" is the name of another database/],
      [{ x: one, eu2: two }, /the URL of "x" leads to the database "eu1"|the list lacks "eu1"/],
    ];
    for (const [databases, expected] of rows) {
      assert.match(await refusal(databases), expected, Object.keys(databases).join());
    }
    await addWorkspace(four);
    assert.match(
      await refusal({ eu3: three, eu4: four }),
      /"eu3" and "eu4" both have workspaces from before/,
    );
  }));

Deno.test("a copy of a database, and one that its address does not lead to any more, are refused", () =>
  withDatabases(3, async (one, two, other) => {
    const { clusterId } = await readStoreFacts(one.database);
    await two.database.query("update registry set cluster_id = $1", [clusterId]);
    assert.match(await refusal({ eu1: one, eu2: two }), /copy of one, of this service/);
    const list = listOf({ eu1: one });
    const [store] = list.stores;
    await list.open(store!);
    await other.database.query("insert into stores values (0, 'eu1', (select cluster_id from registry))");
    const elsewhere = { ...other.database, close: () => Promise.resolve() };
    Object.assign(store!.database, { named: () => elsewhere });
    await assert.rejects(list.open(store!), /"eu1" leads to another database than before/);
  }));

Deno.test("numbers wait for every database, and none is given out twice; a numbered database opens alone", () =>
  withDatabases(3, async (one, two, added) => {
    one.isAway = true;
    await assert.rejects(
      openAll({ eu1: one, eu2: two }),
      /gets its number when every database of the list can be read; "eu1" cannot/,
    );
    one.isAway = false;
    await openAll({ eu1: one, eu2: two });
    one.isAway = true;
    const list = listOf({ eu1: one, eu2: two, eu3: added });
    const [, second, third] = list.stores;
    await list.open(second!);
    await assert.rejects(list.open(third!), /gets its number when every database .* "eu1" cannot: .*away/);
    one.isAway = false;
    // The first one is from a backup of the time before the second.
    await one.database.query("delete from stores where name = 'eu2'");
    await list.open(third!);
    assert.equal((await readStoreFacts(added.database)).own?.number, 2);
  }));

Deno.test("a database of several is not served alone by DATABASE_URL", () =>
  withDatabases(2, async (one, two) => {
    await openAll({ eu1: one });
    await refuseOneOfSeveral(one.database);
    await openAll({ eu1: one, eu2: two });
    for (const { database } of [one, two]) {
      await assert.rejects(
        refuseOneOfSeveral(database),
        /one of several \(eu1, eu2\); set HOLDFAST_DATABASES/,
      );
    }
  }));

Deno.test({
  name: "each new connection to a server is held against the database that was there before",
  ignore: testServerUrl() === null,
  fn: () =>
    withDatabases(2, async (one, two) => {
      const { clusterId } = await readStoreFacts(one.database);
      const expected = { clusterId: null as string | null };
      const database = openPostgres(two.store.url as string, 2, undefined, null, expected);
      try {
        await database.query("select 1");
        expected.clusterId = clusterId;
        const other = { message: /leads to another database/ };
        await assert.rejects(database.transaction((session) => session.query("select 1")), other);
        await assert.rejects(database.pin(() => {}), other);
        await assert.rejects(startDrainThread(two.store.url as string, 1, expected), other);
        const named = database.named("holdfast_other");
        await assert.rejects(named.query("select 1"), other);
        await named.close();
        expected.clusterId = (await readStoreFacts(two.database)).clusterId;
        await database.query("select 1");
        const session = await database.pin(() => {});
        await session.close();
      } finally {
        await database.close();
      }
    }),
});
