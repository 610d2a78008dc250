// Data for others: read-only keys, the times of the feed, and the views for tools that read the database.

import assert from "node:assert/strict";
import postgres from "postgres";
import { testServerUrl } from "../support/test_store.ts";
import { newLogged, rowsOf, ZEBRA_IDS } from "./privacy_support.ts";
import { appWithUser, assertRefused, dataOf, readerKey, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const VIEWS = ["accounts", "credit_ledger", "events", "refusals", "subscriptions", "usage_windows", "users"];

Deno.test("a read-only key reads events without prompts and responses", async () => {
  const logged = await newLogged(service);
  const key = await readerKey(service, logged.app, logged.key === logged.app.secretLive ? "live" : "test");
  assert.match(key, /^rk_(live|test)_/);
  const { eventId } = await logged.commit(await logged.hold("image.x", { prompt: "a lighthouse" }), {
    response: "here it is",
  });
  const { events } = await dataOf(logged.app.call("GET", "/events", undefined, { key }));
  assert.deepEqual([events[0].id, events[0].hasLog, events[0].promptPreview], [eventId, true, null]);
  const event = await dataOf(logged.app.call("GET", `/events/${eventId}`, undefined, { key }));
  assert.deepEqual([event.hasLog, event.prompt, event.response], [true, null, null]);
  assertRefused(
    await logged.app.call("POST", "/export-person", { distinctId: "u" }, { key }),
    403,
    "forbidden",
  );
});

Deno.test("the feed takes the times of its first and last event", async () => {
  const app = await appWithUser(service);
  const times: string[] = [];
  for (let event = 0; event < 3; event++) {
    await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
    times.push(new Date(service.clock.now()).toISOString());
    service.clock.advance(60_000);
  }
  const [first, second, third] = times;
  const listed = async (query: string) =>
    (await dataOf(app.call("GET", `/events?${query}`))).events
      .map(({ createdAt }: { createdAt: string }) => times.indexOf(createdAt));
  for (const user of ["", "&userId=u", "&eventType=image.x", "&userId=u&eventType=image.x"]) {
    assert.deepEqual(await listed(`from=${second}${user}`), [2, 1], user);
    assert.deepEqual(await listed(`to=${third}${user}`), [1, 0], user);
    assert.deepEqual(await listed(`from=${second}&to=${third}${user}`), [1], user);
    assert.deepEqual(await listed(`from=${first}&to=${first}${user}`), [], user);
  }
  for (const query of [`from=${third}&to=${second}`, "from=yesterday", "to=9"]) {
    assertRefused(await app.call("GET", `/events?${query}`), 400, "invalid_request", query);
  }
});

Deno.test("the views have what they promise, and no prompts, people or metadata", async () => {
  const logged = await newLogged(service);
  await logged.commit(await logged.hold("image.x", { prompt: "a lighthouse", metadata: { secret: "fog" } }));
  await dataOf(logged.app.call("PUT", "/users/u/parent", { parentId: "team" }, { key: logged.key }));
  await service.admin("POST", "/sweep");
  const { appId } = logged.app;
  const read = (view: string) => rowsOf(service, `select * from holdfast.${view} where app_id = $1`, [appId]);
  const [event] = await read("events");
  assert.deepEqual([event?.user_id, event?.event, event?.status], ["u", "image.x", "matched"]);
  assert.ok(event !== undefined && "cost_credits" in event);
  assert.deepEqual((await read("users")).map(({ user_id }) => user_id).sort(), ["team", "u"]);
  assert.deepEqual((await read("accounts")).map(({ user_id, child_user_id }) => [user_id, child_user_id]), [
    ["team", "u"],
  ]);
  await dataOf(
    logged.app.call("POST", "/customers/alias", { from: "team", to: "firm" }, { key: logged.key }),
  );
  await service.admin("POST", "/sweep");
  const users = await read("users");
  assert.deepEqual(users.find(({ user_id }) => user_id === "u")?.parent_user_id, "firm");
  assert.deepEqual((await read("accounts")).map(({ user_id, child_user_id }) => [user_id, child_user_id]), [
    ["firm", "u"],
  ]);
  assert.ok((await read("usage_windows")).some(({ count }) => Number(count) === 1));
  assert.equal((await read("subscriptions")).length, 1);
  for (const view of VIEWS) {
    const text = JSON.stringify(await read(view), (_, value) => typeof value === "bigint" ? null : value);
    for (const hidden of ["lighthouse", "fog", ...ZEBRA_IDS]) assert.ok(!text.includes(hidden), view);
  }
});

Deno.test({
  name: "a reader may select the views, and nothing else, until it is removed",
  ignore: testServerUrl() === null,
  fn: async () => {
    const { name, url } = await dataOf(service.admin("POST", "/readers"));
    const known = async () =>
      (await dataOf(service.admin("GET", "/readers"))).map((one: { name: string }) => one.name);
    assert.deepEqual(await known(), [name]);
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    try {
      const views =
        await sql`select table_name from information_schema.views where table_schema = 'holdfast'`;
      assert.deepEqual(views.map(({ table_name }) => table_name).sort(), VIEWS);
      for (const view of VIEWS) await sql`select * from ${sql(view)} limit 1`;
      for (const table of ["public.events", "public.users", "public.journal", "public.keys"]) {
        await assert.rejects(sql`select * from ${sql(table)}`, /permission denied/);
      }
      await assert.rejects(sql`create table mine (id int)`, /read-only transaction|permission denied/);
      await dataOf(service.admin("DELETE", `/readers/${name}`));
      await assert.rejects(sql`select 1`);
    } finally {
      await sql.end({ timeout: 1 });
    }
    assert.deepEqual(await known(), []);
    assertRefused(await service.admin("DELETE", `/readers/${name}`), 404, "not_found");
    assertRefused(await service.admin("DELETE", "/readers/postgres"), 404, "not_found");
  },
});

Deno.test({
  name: "a reader with rights in a restored copy too is removed from this database, without a login",
  ignore: testServerUrl() === null,
  fn: async () => {
    const { name, url } = await dataOf(service.admin("POST", "/readers"));
    const server = postgres(testServerUrl() as string, { max: 1, onnotice: () => {} });
    const copy = `holdfast_copy_${name.slice(-8)}`;
    await server.unsafe(`create database ${copy}`);
    try {
      const restored = postgres(Object.assign(new URL(testServerUrl() as string), { pathname: copy }).href);
      await restored.unsafe(`create schema holdfast; grant usage on schema holdfast to ${name}`);
      await restored.end();
      await dataOf(service.admin("DELETE", `/readers/${name}`));
      assert.deepEqual(await dataOf(service.admin("GET", "/readers")), []);
      await assert.rejects(postgres(url, { max: 1 })`select 1`, /not permitted to log in/);
    } finally {
      await server.unsafe(`drop database ${copy}`);
      await server.unsafe(`drop role if exists ${name}`);
      await server.end();
    }
  },
});

Deno.test({
  name: "the embedded store has no readers",
  ignore: testServerUrl() !== null,
  fn: async () => assertRefused(await service.admin("POST", "/readers"), 501, "not_implemented"),
});
