// A row that its table would refuse is not journaled: the turn that made it fails, and all others go on.

import assert from "node:assert/strict";
import type { RowChange } from "../../actors/port.ts";
import { misfitOf, NARROW } from "../../src/storage/rows/misfits.ts";
import { TABLES } from "../../src/storage/rows/tables.ts";
import { serviceOfFile } from "../routes/support.ts";
import { testServerUrl } from "../support/test_store.ts";
import { balance, counter, event, reservation, run, subscription, user, withWriter } from "./sample.ts";

const service = serviceOfFile();

/** A member's name as its column's. */
const snake = (name: string) =>
  name === "notified" ? "told" : name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

Deno.test("the columns that take less than any whole number, and those of indexes, are known", () =>
  withWriter(async ({ store: { database } }) => {
    const columns = await database.query<{ name: string }>(
      `select format_type(a.atttypid, null) || ' ' || t.relname || '.' || a.attname as name
       from pg_class t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
       where t.relnamespace = 'public'::regnamespace and t.relkind in ('r', 'p')
         and format_type(a.atttypid, null) in ('integer', 'smallint', 'double precision')`,
    );
    const known = Object.entries(NARROW).flatMap(([table, { max = {}, fractions = [] }]) => [
      ...Object.entries(max).map(([name, most]) =>
        `${most > 2 ** 15 ? "integer" : "smallint"} ${table}.${snake(name)}`
      ),
      ...fractions.map((name) => `double precision ${table}.${snake(name)}`),
    ]);
    const journaled = new Map(TABLES.map(({ name, columns }) => [name, columns]));
    const isWritten = (name: string) => {
      const [, table = "", column = ""] = /(\w+)\.(\w+)$/.exec(name) ?? [];
      return column !== "realm" && journaled.get(table)?.includes(column) === true;
    };
    assert.deepEqual(known.sort(), columns.map(({ name }) => name).filter(isWritten).sort());
    const indexed = await database.query<{ name: string }>(
      `select distinct t.relname || '.' || a.attname as name
       from pg_index x join pg_class t on t.oid = x.indrelid
       join pg_attribute a on a.attrelid = t.oid and a.attnum = any(x.indkey) and a.atttypid = 'text'::regtype
       where t.relnamespace = 'public'::regnamespace`,
    );
    const bounded = new Set(
      Object.entries(NARROW).flatMap(([table, { indexed = [] }]) =>
        indexed.flat().map((name) => `${table}.${snake(name)}`)
      ),
    );
    // They come from the catalog.
    const planIds = ["users.held_plan_id", "subscriptions.then_plan_id", "subscriptions.scheduled_plan_id"];
    const missing = indexed.map(({ name }) => name).filter((name) => isWritten(name) && !bounded.has(name));
    assert.deepEqual(missing.sort(), planIds.sort());
  }));

Deno.test("what the tables refuse is found in a row, and what they take is not", () =>
  withWriter(async ({ write }) => {
    const long = Array.from({ length: 3_000 }, (_, at) => String.fromCharCode(0x4e00 + at * 7 % 20_000)).join(
      "",
    );
    const wide = "\u{1f600}".repeat(350);
    const rows: RowChange[] = [
      { verb: "put", table: "counters", row: counter({ planId: wide, groupId: wide }) },
      { verb: "put", table: "users", row: user({ dueAt: 1.5 }) },
      { verb: "put", table: "users", row: user({ optedOut: 2 ** 31 }) },
      { verb: "put", table: "users", row: user({ id: long }) },
      { verb: "put", table: "counters", row: counter({ windowEnd: NaN }) },
      { verb: "append", table: "reservations", row: reservation({ expiresAt: 2 ** 64 }) },
      { verb: "append", table: "reservations", row: reservation({ event: "a\0b" }) },
      { verb: "append", table: "events", row: event({ type: long }) },
      { verb: "append", table: "credit_balances", row: balance({ notified: 0.5 }) },
      { verb: "append", table: "runs", row: run({ openHolds: 1e10 }) },
      {
        verb: "append",
        table: "subscriptions",
        row: subscription({ trial: { endsAt: 0.1, thenPlanId: null } }),
      },
    ];
    for (const change of rows) assert.notEqual(misfitOf([change]), null, change.table);
    // A server's driver reports a refused COPY only after a while, and without its reason.
    if (testServerUrl() === null) await assert.rejects(write([rows[1] as RowChange]), /bigint/);
    const fine: RowChange[] = [
      { verb: "put", table: "users", row: user() },
      { verb: "append", table: "reservations", row: reservation({ metadata: long }) },
      { verb: "append", table: "credit_balances", row: balance({ priority: 0.5 }) },
      // Each has an index of its own.
      {
        verb: "append",
        table: "credit_balances",
        row: balance({ packId: wide, externalRef: wide, ownRef: wide }),
      },
    ];
    assert.equal(misfitOf(fine), null);
  }));

/** Checks that the types keep: each compares a word with a list, or bits that no caller sends. */
const BY_TYPE = /= ANY \(ARRAY|^consents |^webhook_messages |^users /;
/** Checks of several columns. */
const CLASHES: Readonly<Record<string, object>> = {
  "counters window_end_ms > window_start_ms": counter({ windowStart: 5, windowEnd: 5 }),
  "shares window_end_ms > window_start_ms": { windowStart: 5, windowEnd: 4 },
  "overage_windows window_end_ms > window_start_ms": { windowStart: 5, windowEnd: 5 },
  "reservations status = 'held' = settled_at_ms IS NULL": reservation({ status: "held", settledAt: 5 }),
  "subscriptions NOT ended OR ends_at_ms IS NOT NULL": subscription({ ended: true, endsAt: null }),
  "subscriptions provider IS NULL = external_id IS NULL": subscription({ provider: "p", externalId: null }),
  "credit_balances revoked_at_ms IS NULL OR remaining = 0": balance({ revokedAt: 5, remaining: 1n }),
};

Deno.test("every check constraint of a journaled table is known, and its rows are found before they are journaled", () =>
  withWriter(async ({ store: { database } }) => {
    const checks = await database.query<{ name: string; text: string }>(
      `select t.relname as name, pg_get_constraintdef(c.oid) as text from pg_constraint c
         join pg_class t on t.oid = c.conrelid where c.contype = 'c' and t.relnamespace = 'public'::regnamespace`,
    );
    const journaled = new Set(TABLES.map(({ name }) => name));
    const plain = (text: string) => text.replaceAll(/^CHECK |::\w+|[()]/g, "");
    const found = checks.filter(({ name, text }) => journaled.has(name) && !BY_TYPE.test(`${name} ${text}`))
      .map(({ name, text }) => `${name} ${plain(text)}`);
    const signs = Object.entries(NARROW).flatMap(([table, { unsigned = [], positive = [] }]) => [
      ...unsigned.map((name) => `${table} ${snake(name)} >= 0`),
      ...positive.map((name) => `${table} ${snake(name)} > 0`),
    ]);
    assert.deepEqual([...signs, ...Object.keys(CLASHES)].sort(), found.sort());
    for (const [name, row] of Object.entries(CLASHES)) {
      const table = name.split(" ", 1)[0] as RowChange["table"];
      assert.notEqual(misfitOf([{ verb: "put", table, row } as RowChange]), null, name);
    }
    for (const [table, { unsigned = [], positive = [] }] of Object.entries(NARROW)) {
      const misfit = (member: string, value: unknown) =>
        misfitOf([
          {
            verb: "put",
            table,
            row: { [member]: value, windowEnd: null, revokedAt: null },
          } as unknown as RowChange,
        ]);
      for (const member of [...unsigned, ...positive]) {
        assert.notEqual(misfit(member, -1n), null, `${table}.${member}`);
        assert.equal(misfit(member, 1n), null, `${table}.${member}`);
        assert.equal(misfit(member, 0n) === null, unsigned.includes(member), `${table}.${member}`);
      }
    }
  }));

Deno.test("a turn whose row does not fit its table fails, and the user and all others go on", async () => {
  const app = await service.newApp();
  const other = await service.newApp();
  const subscribe = { userId: "u", planId: "plan_pro" };
  for (const each of [app, other]) {
    assert.equal((await each.call("POST", "/subscriptions", subscribe)).status, 200);
  }
  const reserve = { userId: "u", event: "image.render" };
  const { clock } = service;
  const now = clock.now();
  // No column takes a fraction of a millisecond.
  clock.set(now + 0.5);
  assert.equal((await app.call("POST", "/reserve", reserve)).status, 500);
  clock.set(now + 1);
  for (const each of [app, other]) assert.equal((await each.call("POST", "/reserve", reserve)).status, 200);
  await service.restart();
  const { body } = await app.call("GET", "/usage?userId=u&event=image.render");
  assert.equal(body.data.counters[0].count, 1);
});
