// Statements on the embedded store stay prepared: what they answer does not depend on what ran before.

import assert from "node:assert/strict";
import { isOfValues } from "../../src/storage/database.ts";
import { openTestStore, testServerUrl } from "../support/test_store.ts";

const ignore = testServerUrl() !== null;

Deno.test({
  name: "a repeated statement follows its table, also as columns come and go",
  ignore,
  fn: async () => {
    const { database, close } = await openTestStore();
    const read = () => database.query("select * from followed");
    await database.script("create table followed (a bigint); insert into followed values (1)");
    for (let times = 0; times < 3; times++) assert.deepEqual(await read(), [{ a: 1 }]);
    await database.script("alter table followed add b text default '\ufeffnew'");
    for (let times = 0; times < 3; times++) assert.deepEqual(await read(), [{ a: 1, b: "\ufeffnew" }]);
    await database.script("drop table followed");
    await assert.rejects(read(), /followed/);
    await database.script("create table followed (c boolean); insert into followed values (true)");
    for (let times = 0; times < 3; times++) assert.deepEqual(await read(), [{ c: true }]);
    await database.script("drop table followed");
    await close();
  },
});

Deno.test({
  name: "a statement that fails, alone or in a transaction, leaves the next one unharmed",
  ignore,
  fn: async () => {
    const { database, close } = await openTestStore();
    const text = "select $1::int / $2::int as part, $3::text as note";
    for (let times = 0; times < 3; times++) {
      await assert.rejects(database.query(text, [1, 0, null]), isOfValues);
      await assert.rejects(database.query(text, ["x", 1, null]), isOfValues);
      const failing = database.transaction(async (session) => {
        assert.deepEqual(await session.query(text, [6, 3, "a"]), [{ part: 2, note: "a" }]);
        await session.query(text, [1, 0, null]);
      });
      await assert.rejects(failing, isOfValues);
      assert.deepEqual(await database.query(text, [6, 2, null]), [{ part: 3, note: null }]);
    }
    await close();
  },
});

Deno.test({
  name: "only statements that are repeated stay prepared, and the longest unused make room",
  ignore,
  fn: async () => {
    const { database, close } = await openTestStore();
    const prepared = async () =>
      (await database.query<{ statement: string }>("select statement from pg_prepared_statements"))
        .map(({ statement }) => statement);
    const texts = Array.from({ length: 300 }, (_, at) => `select ${at} as at`);
    for (const text of texts) await database.query(text);
    assert.deepEqual((await prepared()).filter((each) => texts.includes(each)), []);
    for (const [at, text] of texts.entries()) {
      for (let times = 0; times < 2; times++) assert.deepEqual(await database.query(text), [{ at }]);
    }
    const kept = await prepared();
    assert.ok(kept.length <= 258, String(kept.length));
    assert.ok(!kept.includes("select 0 as at") && kept.includes("select 298 as at"));
    await close();
  },
});
