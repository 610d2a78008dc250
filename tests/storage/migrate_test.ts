// Migrations: in order, once, all or nothing, and never on tables of a newer program.

import assert from "node:assert/strict";
import { MIGRATIONS } from "../../sql/migrations.ts";
import { migrate, MigrationError } from "../../src/storage/migrate.ts";
import { withStore } from "../support/test_store.ts";

const FIRST = { name: "9001_first", sql: "-- A comment; with a semicolon\ncreate table zz (a int);\n" };
const SECOND = {
  name: "9002_second",
  sql: "alter table zz add column b int;\ninsert into zz (b) values (1);\n",
};

Deno.test("migrations run in order, and each one once", () =>
  withStore(async ({ database }) => {
    const all = [...MIGRATIONS, FIRST, SECOND];
    assert.deepEqual(await migrate(database, all), [FIRST.name, SECOND.name]);
    assert.deepEqual(await migrate(database, all), []);
    assert.deepEqual([...await database.query("select a, b from zz")], [{ a: null, b: 1 }]);
  }));

Deno.test("a migration with a changed text stops the start", () =>
  withStore(async ({ database }) => {
    await migrate(database, [...MIGRATIONS, FIRST]);
    const changed = { ...FIRST, sql: `${FIRST.sql}\n` };
    await assert.rejects(migrate(database, [...MIGRATIONS, changed]), MigrationError);
    assert.deepEqual(await migrate(database, [...MIGRATIONS, FIRST]), []);
  }));

Deno.test("tables of a newer program stop the start", () =>
  withStore(async ({ database }) => {
    await migrate(database, [...MIGRATIONS, FIRST]);
    await assert.rejects(migrate(database, MIGRATIONS), /9001_first/);
  }));

Deno.test("a migration that fails halfway leaves nothing and is tried again", () =>
  withStore(async ({ database }) => {
    const broken = { ...FIRST, sql: "create table zz (a int);\ninsert into nowhere values (1);\n" };
    await assert.rejects(migrate(database, [...MIGRATIONS, broken]));
    assert.deepEqual(await migrate(database, [...MIGRATIONS, FIRST]), [FIRST.name]);
  }));

Deno.test("two processes that start at once apply each migration once", () =>
  withStore(async ({ database }) => {
    const all = [...MIGRATIONS, FIRST, SECOND];
    const applied = await Promise.all([
      migrate(database, all),
      migrate(database, all),
      migrate(database, all),
    ]);
    assert.deepEqual(applied.flat().sort(), [FIRST.name, SECOND.name]);
    assert.equal((await database.query("select * from zz")).length, 1);
  }));
