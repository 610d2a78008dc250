// Open holds have their own table, in which they are found by user and time: the migration from the previous version,
// settlement, and holds that a merge gave to another user.

import assert from "node:assert/strict";
import { MIGRATIONS } from "../../sql/migrations.ts";
import type { RowChange } from "../../actors/port.ts";
import { listHolds } from "../../src/storage/queries/holds.ts";
import { lookUp } from "../../src/storage/queries/users.ts";
import type { Reservation } from "../../src/domain/state/reservation.ts";
import type { Database, Session } from "../../src/storage/database.ts";
import { drainBatches } from "../../src/storage/journal/drain.ts";
import { Pace } from "../../src/storage/journal/pace.ts";
import { migrate } from "../../src/storage/migrate.ts";
import type { Table } from "../../src/storage/rows/columns.ts";
import { COUNTERS, RESERVATIONS } from "../../src/storage/rows/metering_rows.ts";
import { USERS } from "../../src/storage/rows/user_rows.ts";
import { deleteHistory, deleteUsers } from "../../src/storage/stores/erasure_store.ts";
import { forgetOldPrompts } from "../../src/storage/stores/retention_store.ts";
import { openUserStore } from "../../src/storage/stores/user_store.ts";
import { HOLD_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";
import { openTestStore } from "../support/test_store.ts";
import { counter, DAY_MS, joinAlone, NOW, reservation, type TestWriter, user, withWriter } from "./sample.ts";

const OPEN_HOLDS = MIGRATIONS.findIndex(({ name }) => name === "0020_open_holds");

function idOf(owner: number, number: number): string {
  return `rsv_${owner.toString(36)}_${String(number).padStart(20, "0")}`;
}

function hold(owner: number, number: number, row: Partial<Reservation> = {}): Reservation {
  return reservation({ id: idOf(owner, number), userKey: owner, createdAt: NOW + number, ...row });
}

function settled(row: Reservation, status: "committed" | "released" | "expired" = "committed"): Reservation {
  return { ...row, status, settledAt: NOW + DAY_MS };
}

/** The table and the user of each reservation, by id. */
async function placesOf(database: Database): Promise<[id: string, place: string, userKey: number][]> {
  const rows = await database.query<{ id: string; place: string; user_key: number }>(
    "select id, tableoid::regclass::text as place, user_key from reservations order by id, 2",
  );
  return rows.map(({ id, place, user_key: userKey }) => [id, place, userKey]);
}

/** The ids of the open holds in a load of a user. */
async function loadedHolds(database: Database, key: number): Promise<string[] | undefined> {
  const [loaded] = await openUserStore(database).load([{ realm: 1, key }], NOW);
  return loaded?.reservations.map(({ id }) => id);
}

/** Writes rows into a table of an older version, without the columns that came later: those are the last ones. */
async function copyAsOf<Row>(session: Session, table: Table<Row>, rows: readonly Row[]): Promise<void> {
  const known = await session.query<{ columns: number }>(
    "select count(*)::int as columns from information_schema.columns where table_name = $1",
    [table.name],
  );
  const columns = table.columns.slice(0, known[0]?.columns);
  const lines = rows.map((row) => `${table.encode(row).split("\t").slice(0, columns.length).join("\t")}\n`);
  await session.copy(table.name, columns, lines);
}

Deno.test("the migration from the previous version loses nothing, and every hold is found and settled", async () => {
  const store = await openTestStore();
  const { database } = store;
  try {
    await database.script("drop schema public cascade; create schema public");
    await migrate(database, MIGRATIONS.slice(0, OPEN_HOLDS));
    const own = hold(1, 1, { lines: [], prompt: "a\tb", expiresAt: NOW + DAY_MS });
    const moved = hold(2, 2, { userKey: 1, createdAt: NOW - 2 * DAY_MS });
    const late = hold(1, 3);
    const rows = [
      own,
      moved,
      late,
      ...Array.from({ length: 40 }, (_, number) => hold(3, number)),
      settled(hold(1, 4)),
      settled(hold(2, 5), "released"),
      settled(hold(1, 6, { prompt: "old", expiresAt: NOW }), "expired"),
    ];
    await database.transaction(async (session) => {
      for (
        const row of [user(), user({ key: 2, id: "alias", mergedInto: 1 }), user({ key: 3, id: "other" })]
      ) {
        await copyAsOf(session, USERS, [row]);
      }
      const old = counter({ windowStart: NOW - 3 * DAY_MS, windowEnd: NOW - DAY_MS });
      await copyAsOf(session, COUNTERS, [old]);
      await copyAsOf(session, RESERVATIONS, rows);
    });
    const all = "select * from reservations order by id";
    const before = [...await database.query<Record<string, unknown>>(all)];
    assert.equal(before.length, rows.length);
    await migrate(database, MIGRATIONS);
    const after = await database.query<Record<string, unknown>>(all);
    // Migrations since have added columns.
    const names = Object.keys(before[0] ?? {});
    assert.deepEqual(after.map((row) => Object.fromEntries(names.map((name) => [name, row[name]]))), before);
    for (const [id, place] of await placesOf(database)) {
      const isOpen = rows.find((row) => row.id === id)?.status === "held";
      assert.equal(place, isOpen ? "open_reservations" : "settled_reservations", id);
    }
    const [loaded, other] = await openUserStore(database).load(
      [{ realm: 1, key: 2 }, { realm: 1, key: 3 }],
      NOW,
    );
    assert.deepEqual(loaded?.reservations, [own, late, moved]);
    assert.equal(loaded?.counters.length, 1, "the window in which the oldest hold was made");
    assert.equal(other?.reservations.length, 40);

    const indexes = async () =>
      (await database.query<{ name: string }>(
        "select indexname as name from pg_indexes where tablename = 'open_reservations' order by 1",
      )).map(({ name }) => name);
    assert.deepEqual(await indexes(), ["open_reservations_id", "open_reservations_user"]);
    const writer = await joinAlone(database, await database.pin(() => {}));
    assert.deepEqual(
      await indexes(),
      ["open_reservations_user"],
      "no process of the previous version is left",
    );
    await writer.drain([
      await writer.journal.append([
        { verb: "put", table: "reservations", row: settled(moved) },
        { verb: "put", table: "reservations", row: settled(late, "expired") },
        { verb: "append", table: "reservations", row: hold(1, 7) },
      ]),
    ]);
    assert.deepEqual(await loadedHolds(database, 1), [own.id, idOf(1, 7)]);
    assert.equal((await database.query("select id from reservations")).length, rows.length + 1);
    assert.equal(await database.transaction((session) => forgetOldPrompts(session, 1, NOW, 10)), 1);
    await writer.close();
  } finally {
    await store.close();
  }
});

Deno.test("a settled hold leaves the table of open ones; a prolonged or late committed one stays in its table", () =>
  withWriter(async ({ store: { database }, write }) => {
    const [first, second, third] = [hold(1, 1), hold(1, 2), hold(1, 3)];
    await write([
      { verb: "put", table: "users", row: user() },
      ...[first, second, third].map((row) => ({ verb: "append", table: "reservations", row }) as const),
    ]);
    const places = async () => (await placesOf(database)).map(([, place]) => place.split("_")[0]);
    assert.deepEqual(await places(), ["open", "open", "open"]);
    await write([
      { verb: "put", table: "reservations", row: settled(first, "expired") },
      { verb: "put", table: "reservations", row: settled(second, "released") },
      { verb: "put", table: "reservations", row: { ...third, expiresAt: NOW + DAY_MS } },
    ]);
    assert.deepEqual(await places(), ["settled", "settled", "open"]);
    assert.deepEqual(await loadedHolds(database, 1), [third.id]);
    await write([{ verb: "put", table: "reservations", row: settled(first) }]);
    assert.deepEqual(await places(), ["settled", "settled", "open"]);
    const users = openUserStore(database);
    assert.deepEqual((await users.loadReservation([1], first.id)).reservations, [settled(first)]);
    assert.deepEqual((await users.loadReservation([1], third.id)).reservations, [], "it came with its user");
  }));

/** Drains at once, or in pieces. */
const WAYS = [["at once", 0], ["in pieces", 1]] as const;

for (const [way, spreadMs] of WAYS) {
  Deno.test(`holds of merged users are written once under the surviving one, drained ${way}`, () =>
    withWriter(async ({ store: { database }, session, append }) => {
      const drain = async (...changes: RowChange[]) => {
        const { seq } = await append(changes);
        const [row] = await database.query<{ payload: string }>("select payload from journal");
        await session.transaction((inner) =>
          drainBatches(inner, [{ seq, payload: row?.payload as string }], new Set(), new Pace(spreadMs))
        );
      };
      const of = (key: number) => Array.from({ length: 300 }, (_, number) => hold(key, number));
      await drain(
        ...[1, 2, 3, 40].map((key) =>
          ({ verb: "put", table: "users", row: user({ key, id: `u${key}` }) }) as const
        ),
        ...[1, 2, 3, 40].flatMap(of).map((row) => ({ verb: "append", table: "reservations", row }) as const),
        { verb: "append", table: "reservations", row: settled(hold(40, 900), "expired") },
      );
      // 40 becomes an alias of 3, with its holds, then 3 an alias of 2. In the same drain one hold is settled, another is
      // prolonged, an earlier settled one is committed late, and user 1 settles a hold too.
      const alias = (key: number, into: number) => user({ key, id: `u${key}`, mergedInto: into });
      const put = (row: Reservation) => ({ verb: "put", table: "reservations", row }) as const;
      await drain(
        { verb: "put", table: "users", row: alias(40, 3) },
        ...of(40).map((row) => put({ ...row, userKey: 3 })),
      );
      assert.equal((await loadedHolds(database, 40))?.length, 600);
      await drain(
        { verb: "put", table: "users", row: alias(40, 2) },
        { verb: "put", table: "users", row: alias(3, 2) },
        ...[...of(3), ...of(40)].map((row) => put({ ...row, userKey: 2 })),
        put(settled({ ...hold(40, 1), userKey: 2 })),
        put({ ...hold(3, 2), userKey: 2, expiresAt: NOW + DAY_MS }),
        put(settled({ ...hold(40, 900), userKey: 2 })),
        put(settled(hold(1, 1))),
      );
      const places = await placesOf(database);
      assert.equal(places.length, 1201);
      assert.equal(new Set(places.map(([id]) => id)).size, 1201, "each is in one place");
      assert.deepEqual(places.filter(([, place]) => place === "settled_reservations"), [
        [idOf(40, 1), "settled_reservations", 2],
        [idOf(40, 900), "settled_reservations", 2],
        [idOf(1, 1), "settled_reservations", 1],
      ]);
      const expected = [...of(2), ...of(3), ...of(40)].map(({ id }) => id).filter((id) => id !== idOf(40, 1))
        .sort();
      for (const key of [2, 3, 40]) assert.deepEqual(await loadedHolds(database, key), expected);
      assert.equal((await loadedHolds(database, 1))?.length, 299);
      await drain(put(settled({ ...hold(40, 2), userKey: 2 }, "released")));
      assert.equal((await loadedHolds(database, 2))?.length, expected.length - 1);
    }));
}

async function mergedUser({ write }: TestWriter): Promise<void> {
  await write([
    { verb: "put", table: "users", row: user() },
    { verb: "put", table: "users", row: user({ key: 2, id: "alias", mergedInto: 1 }) },
    { verb: "put", table: "users", row: user({ key: 3, id: "other" }) },
    ...[hold(1, 5), hold(2, 6, { userKey: 1 }), hold(2, 7, { userKey: 1 }), hold(3, 8), settled(hold(2, 9))]
      .map((row) => ({ verb: "append", table: "reservations", row }) as const),
  ]);
}

Deno.test("an open hold is looked up by its id, whichever user owns it now", () =>
  withWriter(async (writer) => {
    await mergedUser(writer);
    const { database } = writer.store;
    const found = async (realm: number, id: string) =>
      (await lookUp(database, realm, id, 20)).map(({ userId, status }) => [userId, status]);
    assert.deepEqual(await found(1, idOf(1, 5)), [["u", "held"]]);
    assert.deepEqual(await found(1, idOf(2, 6)), [["u", "held"]]);
    assert.deepEqual(await found(1, idOf(2, 9)), [["u", "committed"]]);
    assert.deepEqual(await found(2, idOf(2, 6)), []);
    assert.deepEqual(await found(1, idOf(2, 5)), []);
    assert.deepEqual(await found(1, "rsv_nothing"), []);
    const { holds, hasMore } = await listHolds(database, 1, 2);
    assert.deepEqual([holds.map(({ reservationId }) => reservationId), hasMore], [
      [idOf(2, 7), idOf(2, 6)],
      true,
    ]);
  }));

Deno.test("an erasure also removes holds that came from an alias", () =>
  withWriter(async (writer) => {
    await mergedUser(writer);
    const { database } = writer.store;
    await database.transaction(async (session) => {
      assert.equal(await deleteHistory(session, [1, 2], 10), 1);
      await deleteUsers(session, [1, 2]);
    });
    assert.deepEqual(await placesOf(database), [[idOf(3, 8), "open_reservations", 3]]);
  }));

/** Settlements and changes of a hold that memory has without its texts. */
const BARE = { metadata: null, prompt: null, isBare: true } as const;

Deno.test("a put without texts leaves those of the row, drained with it or after it, until it is settled", () =>
  withWriter(async ({ store: { database }, lease, append, write }) => {
    await write([{ verb: "append", table: "users", row: user() }]);
    const texts = { metadata: '{"a":"\\t\\n"}', prompt: "two\tlines\nand \\\\N", lines: [] };
    const textsOf = async (id: string) => {
      const rows = await database.query("select status, metadata, prompt from reservations where id = $1", [
        id,
      ]);
      return rows.map((row) => Object.values(row));
    };
    for (const [place, isOneDrain] of [true, false].entries()) {
      const id = idOf(1, place);
      const row = hold(1, place, texts);
      const appends = [await append([{ verb: "append", table: "reservations", row }])];
      if (!isOneDrain) await lease.journal.drain(appends.splice(0));
      const put = async (part: Partial<Reservation>) => {
        appends.push(
          await append([{ verb: "put", table: "reservations", row: { ...row, ...BARE, ...part } }]),
        );
        if (!isOneDrain) await lease.journal.drain(appends.splice(0));
      };
      await put({ expiresAt: NOW + 2 * DAY_MS });
      await put({ status: "expired", settledAt: NOW + 2 * DAY_MS });
      if (isOneDrain) await lease.journal.drain(appends.splice(0));
      assert.deepEqual(await textsOf(id), [["expired", texts.metadata, texts.prompt]]);
      const settled = hold(1, place + 10, texts);
      appends.push(await append([{ verb: "append", table: "reservations", row: settled }]));
      if (!isOneDrain) await lease.journal.drain(appends.splice(0));
      const over = { ...settled, prompt: null, status: "released", settledAt: NOW } as const;
      appends.push(await append([{ verb: "put", table: "reservations", row: over }]));
      await lease.journal.drain(appends);
      assert.deepEqual(await textsOf(settled.id), [["released", texts.metadata, null]]);
    }
  }));

Deno.test("a load takes few texts with a user, and the others are read by their hold, of an alias too", () =>
  withWriter(async ({ store: { database }, write }) => {
    using _limits = changedLimits(HOLD_LIMITS, { loadedBytesMax: 10 });
    const rows = [
      hold(1, 1, { metadata: "é2345", prompt: null }),
      hold(1, 2, { metadata: null, prompt: "456" }),
      hold(1, 3, { metadata: "over", prompt: "the bound" }),
      hold(1, 4, { metadata: null, prompt: null }),
      hold(2, 1, { metadata: "other", prompt: null }),
      settled(hold(1, 5, { metadata: "late", prompt: "text" }), "expired"),
      settled(hold(1, 6, { metadata: "gone" }), "committed"),
    ];
    await write([
      { verb: "append", table: "users", row: user() },
      { verb: "append", table: "users", row: user({ key: 2, id: "alias" }) },
      ...rows.map((row) => ({ verb: "append", table: "reservations", row } as const)),
    ]);
    const store = openUserStore(database);
    const [loaded, other] = await store.load([{ realm: 1, key: 1 }, { realm: 1, key: 2 }], NOW);
    const [one, two, three, four, five] = rows;
    assert.deepEqual(loaded?.reservations, [one, two, { ...three, ...BARE }, four]);
    assert.deepEqual(other?.reservations, [five]);
    const read = (id: string, number: number, owners = [1, 2]) =>
      store.loadTexts(owners, id, NOW + number).then((texts) => texts && [texts.metadata, texts.prompt]);
    assert.deepEqual(await read(idOf(1, 3), 3), ["over", "the bound"]);
    assert.deepEqual(await read(idOf(2, 1), 1), ["other", null]);
    assert.deepEqual(await read(idOf(1, 5), 5), ["late", "text"]);
    assert.equal(await read(idOf(1, 6), 6), null);
    assert.equal(await read(idOf(1, 3), 3, [2]), null);
  }));
