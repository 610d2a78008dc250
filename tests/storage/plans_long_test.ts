// The cost of a page or a step does not grow with the rows of its user. The tests count pages of the tables, for a user
// with nearly all rows, and measure no time.

import assert from "node:assert/strict";
import { firstUnadded, listDailyUse } from "../../src/storage/queries/daily_use.ts";
import { listEvents } from "../../src/storage/queries/feed.ts";
import { listHolds } from "../../src/storage/queries/holds.ts";
import { listLedger } from "../../src/storage/queries/ledger.ts";
import { listUserPage, type UserListQuery } from "../../src/storage/queries/user_list.ts";
import { lookUp } from "../../src/storage/queries/users.ts";
import { listRefusedCalls } from "../../src/storage/queries/refused_calls.ts";
import type { Database, Session } from "../../src/storage/database.ts";
import { addUpDailyUse, listUnadded } from "../../src/storage/stores/daily_use_store.ts";
import { deleteHistory } from "../../src/storage/stores/erasure_store.ts";
import { listLinkedIds } from "../../src/storage/stores/linked_ids.ts";
import { idsOfPeople, readPersonState } from "../../src/storage/stores/people_store.ts";
import { countHistory, moveHistory } from "../../src/storage/stores/merge_store.ts";
import { loadClocks, loadTotals } from "../../src/storage/stores/registry_store.ts";
import { deleteOldRefusedCalls } from "../../src/storage/stores/retention_store.ts";
import { openUserStore } from "../../src/storage/stores/user_store.ts";
import { deleteRefusedCalls, moveRefusedCalls } from "../../src/storage/stores/refused_call_store.ts";
import { explaining, pagesOf, type Plan } from "../bench/table_plans.ts";
import { openTestStore } from "../support/test_store.ts";

const ROWS = 12_000;
const HEAVY = 1;
const ALIAS = 2;
/** Far fewer pages than a user's rows have, and far more than a page or a step of twenty rows needs. */
const PAGES_MAX = 300;
const STEP_PAGES_MAX = 500;

async function fillEvents(database: Database): Promise<void> {
  await database.script(`
    insert into events select 'evt_' || lpad(n::text, 20, '0'), case when n % 40 = 0 then 3 + n % 290 else 1 + n % 2 end,
      1, 'image.x', 1, 0, 'matched', n, repeat('m', 200), null, null, null, '[]', '[]'
      from generate_series(1, ${ROWS}) n;`);
}

async function fill(database: Database): Promise<void> {
  await database.script(`
    insert into users (key, realm, id, merged_into)
      select n, 1, 'u' || n, case n when ${ALIAS} then ${HEAVY} end from generate_series(1, 300) n;
    insert into history_moves values (${ALIAS}, 0);
    insert into credit_ledger select 'cle_' || lpad(n::text, 20, '0'), 1 + n % 2, 'crb', 'cpk', 1, 'grant', null, null,
      repeat('m', 200), n from generate_series(1, ${ROWS}) n;
    insert into subscription_events select 'sbe_' || n, n, 'created', 's', 'p', null, null, n
      from generate_series(3, 300) n;`);
  await fillEvents(database);
  // Every second row is of one user, every third of one event, and both have many rows of an hour that no query reads.
  await database.script(`
    insert into refusals (realm, user_id, event, reasons, hour_ms, group_ids, count, first_at_ms, last_at_ms)
      select 1, case n % 2 when 0 then 'u1' else 'v' || n % 290 end, case n % 3 when 0 then 'image.x' else 'e' || n end,
        '["limit_reached"]', n * 3600000::bigint, '["' || repeat('g', 200) || '"]', 1, n, n
      from generate_series(1, ${ROWS}) n;`);
  await database.query("vacuum analyze refusals");
  // Separately: a vacuum cannot run in a transaction.
  await database.query("vacuum analyze events");
  await database.query("vacuum analyze credit_ledger");
  await database.query("vacuum analyze users");
}

Deno.test("a page of a feed or a ledger and a step of a sweep read few pages of a user with many rows", async () => {
  const store = await openTestStore();
  try {
    await fill(store.database);
    const plans: Plan[] = [];
    const database = explaining(store.database, (plan) => plans.push(plan));
    const few = async (what: string, work: () => Promise<unknown>, pagesMax = PAGES_MAX) => {
      plans.length = 0;
      await work();
      assert.ok(plans.length > 0, what);
      for (const plan of plans) {
        const pages = pagesOf(plan);
        assert.ok(pages <= pagesMax, `${what}: ${pages} pages\n${plan.statement}\n${plan.lines.join("\n")}`);
      }
    };
    const logs = { isOn: true, keptFrom: 0 };
    const query = { realm: 1, logs, userId: "u1", eventType: null, limit: 20, offset: 0 };
    await few("feed of a user", () => listEvents(database, query));
    await few("feed of a user, no such type", () => listEvents(database, { ...query, eventType: "none" }));
    await few("feed of a user, deep", () => listEvents(database, { ...query, offset: 5_000 }));
    await few("feed of the app", () => listEvents(database, { ...query, userId: null }));
    const between = { from: ROWS / 2, to: ROWS / 2 + 100 };
    await few("feed of a user between times", () => listEvents(database, { ...query, ...between }));
    await few(
      "feed of the app between times",
      () => listEvents(database, { ...query, ...between, userId: null }),
    );
    await few("feed of a type before a time", () => {
      return listEvents(database, { ...query, to: ROWS / 2, userId: null, eventType: "image.x" });
    });
    const refused = {
      realm: 1,
      keptFrom: 100,
      userId: null,
      event: null,
      refusedBy: null,
      limit: 20,
      offset: 0,
    };
    for (const userId of [null, "u1", "unknown"]) {
      for (const event of [null, "image.x", "none"]) {
        const of = `refused calls of ${userId} and ${event}`;
        await few(of, () => listRefusedCalls(database, { ...refused, userId, event }));
        // Each row of the app's page looks up its user.
        const offset = userId === null ? 30 : 1_000;
        await few(`${of}, deep`, () => listRefusedCalls(database, { ...refused, userId, event, offset }));
      }
    }
    const ledger = { userKey: HEAVY, balanceId: null, limit: 20 };
    const after = { at: ROWS / 2, id: "cle_", userKey: HEAVY };
    await few("ledger", () => listLedger(database, { ...ledger, after: null }));
    await few("ledger from a cursor on", () => listLedger(database, { ...ledger, after }));
    await few("size of a history", () => countHistory(database, [HEAVY, ALIAS], 100));
    const step = (work: () => Promise<unknown>, what: string) => few(what, work, STEP_PAGES_MAX);
    await step(() => database.transaction((session) => moveHistory(session, ALIAS, 20)), "history move");
    await step(() => database.transaction((session) => deleteHistory(session, [HEAVY], 20)), "erasure");
    const ofCalls = (work: (session: Session) => Promise<unknown>, what: string) =>
      step(() => database.transaction(work), `${what} of refused calls`);
    await ofCalls((session) => moveRefusedCalls(session, 1, "u1", "u2", 20), "move");
    await ofCalls((session) => deleteRefusedCalls(session, 1, ["u1", "u2"], 20), "erasure");
    await ofCalls((session) => deleteOldRefusedCalls(session, 1, ROWS / 2, 20), "retention");
  } finally {
    await store.close();
  }
});

Deno.test("use by day reads few pages, however many events, users and days there are", async () => {
  const store = await openTestStore();
  try {
    await store.database.script(`
      insert into users (key, realm, id, merged_into)
        select n, 1, 'u' || n, case when n % 50 = 0 then n + 1 end from generate_series(1, 20000) n;
      insert into daily_use_of_users
        select n, day, 'image.x', 1, 1 + n % 7, 0, 1, 0 from generate_series(1, 20000) n, generate_series(100, 109) day;
      insert into daily_use
        select 1, day, 'type.' || n, n, 0, 1, 0 from generate_series(1, 2000) n, generate_series(100, 109) day;
      insert into daily_use select 1, day, '', 20000, 0, 1, 0 from generate_series(100, 109) day;
      insert into daily_use_parts
        select 1, day, kind, 'part ' || n, n, n % 3, 0, 0, n, 0
        from generate_series(1, 2000) n, generate_series(100, 109) day, unnest(array['plan', 'model']) kind;
      insert into daily_use_parts_of_users
        select n, day, 'part 1', 'part 2', n % 24, 1, 1 + n % 7, 0, 0, 0, 1, 0
        from generate_series(1, 20000) n, generate_series(100, 109) day;
      insert into daily_use_marks values (1, 0, '');`);
    await fillEvents(store.database);
    const plans: Plan[] = [];
    const database = explaining(store.database, (plan) => plans.push(plan));
    const query = { realm: 1, from: 20, to: 109, userId: null } as const;
    await store.database.script("analyze");
    for (const by of ["event", "user", "model", "plan", "hour"] as const) {
      for (const measure of ["events", "cost_cents", "blocked"] as const) {
        const days = await listDailyUse(database, { ...query, by, measure });
        if (measure === "events" && by !== "hour") assert.ok((days.at(-1)?.parts.length ?? 0) >= 10);
        await listDailyUse(database, { ...query, by, measure, userId: "u7" });
      }
    }
    assert.equal(await firstUnadded(database, 1), 1);
    assert.deepEqual(await listUnadded(database, [1, 2]), [1]);
    for (const plan of plans) {
      assert.ok(
        pagesOf(plan) <= 3_000,
        `${pagesOf(plan)} pages\n${plan.statement}\n${plan.lines.join("\n")}`,
      );
    }
    plans.length = 0;
    const added = () => database.transaction((session) => addUpDailyUse(session, 1, ROWS + 1, 50));
    assert.deepEqual([await added(), await added()], [50, 50]);
    for (const plan of plans) {
      assert.ok(
        pagesOf(plan) <= 1_500,
        `${pagesOf(plan)} pages\n${plan.statement}\n${plan.lines.join("\n")}`,
      );
    }
  } finally {
    await store.close();
  }
});

Deno.test("users by the beginning of an id, open holds and ids that are looked up are read by index ranges", async () => {
  const store = await openTestStore();
  try {
    await store.database.script(`
      insert into users (key, realm, id, merged_into)
        select n, 1 + n % 2, 'user_' || lpad(n::text, 6, '0'), case n % 10 when 0 then n + 2 end
        from generate_series(1, 60000) n;
      insert into user_summaries select n, 1, 'g', n % 120, n % 10, n from generate_series(1, 60000) n;
      insert into credit_balances select 'crb_' || n, n, 1 + n % 2, 'p', 'P', null, 'generic', 'count', '[]', 0, 1, 0, null,
        'order_' || n, 'purchase', null, 1, 0, 0, null, 0, 0 from generate_series(1, 20000) n;
      insert into subscriptions select 'sub_' || n, n, 'plan', 'stripe', 'si_' || n, 0, null, false, null, '{}'
        from generate_series(1, 20000) n;`);
    for (const table of ["users", "user_summaries", "credit_balances", "subscriptions"]) {
      await store.database.query(`vacuum analyze ${table}`);
    }
    const plans: Plan[] = [];
    const database = explaining(store.database, (plan) => plans.push(plan));
    const list = (more: Partial<UserListQuery> = {}) => () =>
      listUserPage(database, {
        ...{ realm: 1, now: 5, sort: "id", order: "asc", filter: null, planId: null, startsWith: "" },
        ...{ found: null, after: null, limit: 10, ...more },
      });
    const works: [what: string, work: () => Promise<unknown>][] = [
      ["all users", list()],
      ["a prefix of many", list({ startsWith: "user_0" })],
      ["a page deep in it", list({ startsWith: "user_0", after: ["head", "user_030001"] })],
      ["a prefix of no user", list({ startsWith: "unknown" })],
      ["users by their limits", list({ sort: "limit", order: "desc" })],
      ["users by their last calls", list({ sort: "lastSeen", order: "desc" })],
      ["a subscription", () => lookUp(database, 2, "sub_17", 20)],
      ["a reference of a balance", () => lookUp(database, 2, "order_17", 20)],
      ["a reference of a subscription", () => lookUp(database, 2, "si_17", 20)],
      ["a reference of nothing", () => lookUp(database, 2, "nothing", 20)],
      ["holds", () => listHolds(database, 17, 20)],
    ];
    for (const [what, work] of works) {
      plans.length = 0;
      await work();
      assert.ok(plans.length > 0, what);
      for (const plan of plans) {
        const pages = pagesOf(plan);
        assert.ok(pages <= 120, `${what}: ${pages} pages\n${plan.statement}\n${plan.lines.join("\n")}`);
      }
    }
  } finally {
    await store.close();
  }
});

Deno.test("open holds of few users are read by index ranges, whatever the planner knows of them", async () => {
  const store = await openTestStore();
  try {
    const { database: plain } = store;
    await plain.script(`
      insert into users (key, realm, id) select n, 1, 'u' || n from generate_series(1, 4000) n;
      insert into reservations (id, user_key, status, event, amounts, per_unit, lines, created_at_ms, expires_at_ms, settled_at_ms)
        select 'rsv_' || to_hex(user_key) || '_' || lpad(n::text, 20, '0'), user_key, status, 'e', '[1,0,0,0]', false, '[]', n, n,
          case when status <> 'held' then 1 end
        from generate_series(1, 24000) n, lateral (
          select case when n % 3 = 0 then ${HEAVY} else n % 4000 + 1 end as user_key,
            case when n % 4 = 0 then 'committed' else 'held' end as status) of;
      update users set due_at_ms = 1;`);
    const few = [3, 4, 5, 6].map((key) => ({ realm: 1, key }));
    const many = Array.from({ length: 200 }, (_, index) => ({ realm: 1, key: 100 + index }));
    const plans: Plan[] = [];
    const database = explaining(plain, (plan) => plans.push(plan));
    const users = openUserStore(database);
    const check = async (what: string, work: () => Promise<unknown>, pagesMax: number) => {
      plans.length = 0;
      await work();
      const read = plans.filter(({ statement }) => statement.includes("reservations"));
      assert.ok(read.length > 0, what);
      for (const plan of read) {
        const pages = pagesOf(plan);
        assert.ok(pages <= pagesMax, `${what}: ${pages} pages\n${plan.statement}\n${plan.lines.join("\n")}`);
      }
    };
    const checkAll = async () => {
      await check("a load of few", () => users.load(few, 1), 60);
      await check("a load of many", () => users.load(many, 1), 2_200);
      await check("holds of a user with many", () => listHolds(database, HEAVY, 20), 400);
      await check("an open hold", () => lookUp(database, 1, `rsv_5_${"4".padStart(20, "0")}`, 20), 120);
      const ofHeavy = `rsv_${HEAVY.toString(16)}_${"3".padStart(20, "0")}`;
      await check("texts of a hold of a user with many", () => users.loadTexts([HEAVY], ofHeavy, 3), 20);
      await check("a settled one", () => users.loadReservation([5], `rsv_5_${"8".padStart(20, "0")}`), 20);
    };
    await checkAll();
    await plain.script("analyze");
    await checkAll();
    // Statistics from a time at which one user had all open holds.
    await plain.script(`create temp table kept as select * from reservations where user_key <> ${HEAVY};
      delete from reservations where user_key <> ${HEAVY}; analyze; insert into reservations select * from kept;`);
    await checkAll();
  } finally {
    await store.close();
  }
});

Deno.test("what linked ids share is looked up by index, however many rows the planner expects", async () => {
  const store = await openTestStore();
  try {
    await store.database.script(`
      insert into users (key, realm, id, merged_into)
        select n, 1, 'u' || n, case when n <= 4000 then n + 4000 end from generate_series(1, 12000) n;
      insert into merges (id, realm, from_key, to_key, report, history_keys, at_ms)
        select 'mrg_' || n, 1, n, n + 4000, '{"analytics":"linked"}', '[]', 0 from generate_series(1, 4000) n;
      insert into people (id, realm, properties, created_at_ms) select 'pid_' || n, 1, '{}', 0 from generate_series(1, 6000) n;
      insert into person_ids (realm, distinct_id, person_id)
        select 1, 'u' || n, 'pid_' || n from generate_series(5000, 6000) n;`);
    const plans: Plan[] = [];
    const database = explaining(store.database, (plan) => plans.push(plan));
    for (const analyzed of [false, true]) {
      if (analyzed) await store.database.script("analyze");
      assert.equal((await readPersonState(database, 1, "u1001")).isSplit, true);
      assert.deepEqual(await idsOfPeople(database, 1, ["u7", "u6000"]), ["u2000", "u4007", "u6000", "u7"]);
      assert.deepEqual(await listLinkedIds(database, 1, "u9"), ["u4009", "u9"]);
    }
    for (const plan of plans) {
      assert.ok(pagesOf(plan) < 80, `${pagesOf(plan)} pages\n${plan.lines.join("\n")}`);
    }
  } finally {
    await store.close();
  }
});

Deno.test("a merged user's pages are those of all its rows, moved or not", async () => {
  const store = await openTestStore();
  try {
    await fill(store.database);
    const logs = { isOn: true, keptFrom: 0 };
    const query = { realm: 1, logs, userId: "u2", eventType: null, limit: 100, offset: 0 };
    const expected = (await store.database.query<{ id: string }>(
      "select id from events where user_key in (1, 2) order by created_at_ms desc, id desc limit 300",
    )).map(({ id }) => id);
    const pages = async () => {
      const ids: string[] = [];
      for (const offset of [0, 100, 200]) {
        const page = await listEvents(store.database, { ...query, offset });
        ids.push(...page.map(({ id }) => id));
      }
      return ids;
    };
    assert.deepEqual(await pages(), expected);
    for (let step = 0; step < 3; step++) {
      await store.database.transaction((session) => moveHistory(session, ALIAS, 500));
      assert.deepEqual(await pages(), expected);
    }
  } finally {
    await store.close();
  }
});

Deno.test("the clocks and counts of many apps are read without reading the list of them again for each row", async () => {
  const store = await openTestStore();
  try {
    await store.database.script(`
      insert into workspaces (id, name, created_at_ms) select 'ws_' || n, 'W', 0 from generate_series(1, 500) n;
      insert into apps (id, workspace_id, name, identity_secret, created_at_ms)
        select 'app_' || n, 'ws_' || n, 'A', 's', 0 from generate_series(1, 500) n;
      insert into realms (realm, app_id, mode) select n, 'app_' || n, 'live' from generate_series(1, 500) n;
      insert into operations select 'ws_' || n, 'live', '2026-01', n from generate_series(1, 500) n;
      analyze;`);
    const plans: Plan[] = [];
    const database = explaining(store.database, (plan) => plans.push(plan));
    const realms = new Set(Array.from({ length: 500 }, (_, place) => 1 + place));
    const workspaces = new Set([...realms].map((realm) => `ws_${realm}`));
    assert.equal((await loadClocks(database, realms)).length, 500);
    const parts = { realms: new Set(realms), workspaces: new Set(workspaces) };
    assert.equal((await loadTotals(database, parts, "2026-01")).operations.length, 500);
    assert.ok(plans.length > 0);
    for (const { statement, lines } of plans) {
      assert.ok(!lines.some((line) => /Filter:.*= ANY/.test(line)), `${statement}\n${lines.join("\n")}`);
    }
  } finally {
    await store.close();
  }
});
