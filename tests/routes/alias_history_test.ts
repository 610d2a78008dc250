// Aliases and history: large histories move in the background, in steps that a restart survives, and reads by either id
// are complete before, during and after the move, also those that began before the merge itself.

import type { Statements } from "../support/test_service.ts";
import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { movedOf, Town } from "./alias_support.ts";
import { yieldToLoop } from "../../src/storage/database.ts";

const service = serviceOfFile();

// deno-lint-ignore no-explicit-any -- tests look at whatever came back
type Data = any;

const EVENT = "free.x";
const STEP_ROWS = 500;

/** Tracks that credits pay for, so that each makes an event and a ledger row. */
async function trackMany(town: Town, userId: string, count: number): Promise<void> {
  for (let made = 0; made < count; made += 50) {
    await Promise.all(
      Array.from({ length: Math.min(50, count - made) }, () => town.track(userId, EVENT)),
    );
    service.clock.advance(1000);
  }
}

/** What an id shows of its history, whole. */
async function historyOf(town: Town, userId: string): Promise<Data> {
  return {
    feed: await town.feed(userId),
    ledger: (await town.ledger(userId)).map(({ id }) => id),
    subscriptions: (await town.get(`/users/${userId}`)).history.map(({ id }: Data) => id),
    credits: (await town.credits(userId)).map(({ balanceId }) => balanceId).sort(),
  };
}

/** How many rows are left under a key of their own. */
async function pendingOf(town: Town, from: string, to: string): Promise<boolean> {
  const report = await dataOf(town.askAlias(from, to));
  assert.equal(report.alreadyMerged, true);
  return report.historyPending;
}

async function moveHistory(): Promise<number> {
  const { status, body } = await service.admin("POST", "/move-history");
  assert.equal(status, 200, JSON.stringify(body));
  return body.data.historyRows;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Replaces functions of the database until the work is done. */
async function withDatabase(
  change: (database: Statements, original: Statements) => void,
  work: () => Promise<void>,
): Promise<void> {
  const database = service.statements;
  const original = { ...database };
  change(database, original);
  try {
    await work();
  } finally {
    Object.assign(database, original);
  }
}

/** Events of "a", with a ledger row each: more than a step moves. */
const EVENTS = 260;

/** A town where "a" has many events with a ledger row each, and "b" some of both. */
async function largeTown(): Promise<Town> {
  const town = await Town.open(service);
  await town.subscribe("a", "plan_pro");
  await town.subscribe("b", "plan_free");
  await town.grant("a", 1000);
  await town.grant("b", 10);
  await trackMany(town, "b", 3);
  await trackMany(town, "a", EVENTS);
  await trackMany(town, "b", 3);
  return town;
}

/** What both users' histories are together, newest first, with the rows that a merge writes left out. */
function together(a: Data, b: Data): Data {
  const merged = (name: string) => [...a[name], ...b[name]];
  return { feed: merged("feed").sort(), ledger: merged("ledger").sort(), credits: merged("credits").sort() };
}

function assertWhole(history: Data, expected: Data, note: string): void {
  assert.deepEqual([...history.feed].sort(), expected.feed, `${note}: feed`);
  assert.deepEqual(history.credits, expected.credits, `${note}: credits`);
  const ledger = new Set(history.ledger);
  assert.equal(ledger.size, history.ledger.length, `${note}: no ledger row twice`);
  assert.deepEqual(expected.ledger.filter((id: string) => !ledger.has(id)), [], `${note}: ledger`);
  assert.equal(history.ledger.length, expected.ledger.length + 1, `${note}: one row of the merge`);
}

Deno.test("a large history moves in the background: reads by either id are whole before, during and after", async () => {
  const town = await largeTown();
  await town.hold("a", "image.x");
  const committed = await town.hold("a", "image.x");
  await town.post("/commit", { reservationId: committed });
  const expected = together(await historyOf(town, "a"), await historyOf(town, "b"));
  const report = await dataOf(town.askAlias("a", "b"));
  assert.equal(report.historyPending, true);
  assert.deepEqual(movedOf(report), { counters: 1, reservations: 1, subscriptions: 1, creditBalances: 1 });
  assert.equal(report.billableOperations, 2);

  const whole = await historyOf(town, "a");
  assertWhole(whole, expected, "before");
  assert.deepEqual(await historyOf(town, "b"), whole);
  assert.equal(await pendingOf(town, "a", "b"), true);

  let isMoving = true;
  const moving = moveHistory().finally(() => isMoving = false);
  let reads = 0;
  do {
    const id = reads++ % 2 === 0 ? "a" : "b";
    assert.deepEqual(await historyOf(town, id), whole, "during");
    // Like a call over the network; without it no timer of the move runs.
    await yieldToLoop();
  } while (isMoving);
  // One event more, and ledger rows of the grant and the subscription, the merge's among them or not.
  const moved = await moving;
  assert.ok(moved >= 2 * EVENTS + 3 && moved <= 2 * EVENTS + 5, String(moved));
  assert.equal(await pendingOf(town, "a", "b"), false);
  assert.equal(await moveHistory(), 0);
  for (const id of ["b", "a"]) assert.deepEqual(await historyOf(town, id), whole, "after");
  for (const eventId of whole.feed.slice(0, 3)) {
    assert.equal((await town.get(`/events/${eventId}`)).endUserId, "b");
  }
  await service.restart();
  for (const id of ["b", "a"]) assert.deepEqual(await historyOf(town, id), whole, "after a restart");
});

Deno.test("a move that stops in its middle is whole to reads, and goes on in the next term by the sweep", async () => {
  const town = await largeTown();
  const expected = together(await historyOf(town, "a"), await historyOf(town, "b"));
  assert.equal((await dataOf(town.askAlias("a", "b"))).historyPending, true);
  let steps = 0;
  const stepping = (database: Statements, original: Statements) => {
    database.transaction = (work) => {
      // The entry of the audit log comes first, then a step of the move.
      if (steps++ > 1) throw new Error("A test stops the move");
      return original.transaction(work);
    };
  };
  await withDatabase(stepping, async () => {
    assert.equal((await service.admin("POST", "/move-history")).status, 500);
  });
  assert.equal(steps, 4, "entry, step, the step that is stopped, the end of the entry");
  const [left] = await service.store.database.query<{ rows: number }>(
    `select count(*)::int as rows from events e join users u on u.key = e.user_key
     where u.id = 'a' and u.merged_into is not null and u.realm = (select max(realm) from events)`,
  );
  assert.ok(left !== undefined && left.rows < EVENTS, "some rows have moved");
  for (let restart = 0; restart < 2; restart++) {
    for (const id of ["a", "b"]) assertWhole(await historyOf(town, id), expected, "in the middle");
    assert.equal(await pendingOf(town, "a", "b"), true);
    if (restart === 0) await service.restart();
  }
  const { body } = await service.admin("POST", "/sweep");
  const rest = 2 * EVENTS + 2 - STEP_ROWS;
  assert.ok(body.data.historyRows >= rest && body.data.historyRows <= rest + 2);
  assert.equal(await pendingOf(town, "a", "b"), false);
  for (const id of ["a", "b"]) assertWhole(await historyOf(town, id), expected, "in the end");
});

Deno.test("a user is merged again while history still moves: all of it is found by every id", async () => {
  const town = await largeTown();
  await town.subscribe("c", "plan_team");
  await trackMany(town, "c", 2);
  await dataOf(town.askAlias("a", "b"));
  const before = await historyOf(town, "b");
  const ofC = await town.feed("c");
  const report = await dataOf(town.askAlias("b", "c"));
  assert.equal(report.historyPending, true, "rows of an alias of from are rows of from");
  for (let round = 0; round < 3; round++) {
    const seen = await historyOf(town, "c");
    assert.deepEqual([...seen.feed].sort(), [...before.feed, ...ofC].sort());
    assert.equal(seen.ledger.length, before.ledger.length + 2);
    for (const id of ["a", "b"]) assert.deepEqual(await historyOf(town, id), seen);
    if (round === 0) assert.ok(await moveHistory() > 2 * EVENTS);
    if (round === 1) await service.restart();
  }
  assert.equal(await pendingOf(town, "a", "c"), false);
  assert.equal(await pendingOf(town, "b", "a"), false);
});

Deno.test("a history of 500 rows moves within the call, one of 501 does not", async () => {
  for (const [count, isPending] of [[498, false], [499, true]] as const) {
    const town = await Town.open(service);
    // One row each: the subscription and a settled reservation.
    await town.subscribe("a", "plan_pro");
    const released = await town.hold("a", "image.x");
    await trackMany(town, "a", count - 1);
    await town.post("/release", { reservationId: released });
    const report = await dataOf(town.askAlias("a", "b"));
    assert.equal(report.historyPending, isPending);
    const moved = isPending
      ? { subscriptions: 1 }
      : { events: count, reservations: 1, subscriptions: 1, subscriptionEvents: 1 };
    assert.deepEqual(movedOf(report), moved);
    assert.equal(await pendingOf(town, "a", "b"), isPending);
    assert.equal((await town.feed("a")).length, count);
    const rows = await moveHistory();
    assert.ok(isPending ? rows >= count : rows === 0, String(rows));
    const again = await dataOf(town.askAlias("a", "b"));
    assert.deepEqual(movedOf(again), {
      events: count,
      reservations: 1,
      subscriptions: 1,
      subscriptionEvents: 1,
    });
  }
});

Deno.test("late commits, reads by id and pages go on while the history of an alias moves", async () => {
  const town = await largeTown();
  const [lapsed, open] = [await town.hold("a", "image.x"), await town.hold("a", EVENT, { ttlSeconds: 3600 })];
  await town.pass(601);
  await town.counts("a");
  await dataOf(town.askAlias("a", "b"));
  const page = await town.get("/credits/history?userId=a&limit=100");
  const feed = await town.feed("a");
  await town.post("/commit", { reservationId: lapsed });
  await town.post("/commit", { reservationId: open });
  await moveHistory();
  assertRefused(await town.ask("POST", "/commit", { reservationId: lapsed }), 409, "reservation_not_pending");
  assert.deepEqual((await town.feed("b")).slice(2), feed);
  // A cursor from before the move goes on after it.
  const ids = page.entries.map(({ id }: Data) => id);
  const next = await town.get(`/credits/history?userId=b&limit=500&cursor=${page.nextCursor}`);
  const rest = next.entries.map(({ id }: Data) => id);
  const all = (await town.ledger("a")).map(({ id }) => id);
  const newer = all.length - ids.length - rest.length;
  assert.deepEqual(all.slice(newer), [...ids, ...rest]);
  assert.equal(newer, 1, "the commit of the hold");
});

/** Merges a user into "c" right before the n-th statement of a read; null where the read has fewer. */
async function readAcrossMerge(town: Town, userId: string, path: string, n: number): Promise<Data | null> {
  let statements = 0;
  let merging: Promise<unknown> | null = null;
  const mergeOnce = async () => {
    if (merging !== null || ++statements < n) return;
    merging = dataOf(town.askAlias(userId, "c"));
    await merging;
  };
  let seen: Data = null;
  const between = (database: Statements, original: Statements) => {
    database.query = async (text, params) => {
      await mergeOnce();
      return await original.query(text, params);
    };
    database.transaction = async (work) => {
      await mergeOnce();
      return await original.transaction(work);
    };
  };
  await withDatabase(between, async () => {
    seen = await town.get(path);
  });
  return merging === null ? null : seen;
}

for (
  const [name, pathOf] of [
    ["the feed", (id: string) => `/events?userId=${id}&limit=100`],
    ["the ledger", (id: string) => `/credits/history?userId=${id}`],
    ["the list of credits", (id: string) => `/credits?userId=${id}&includeExpired=true`],
    ["the subscription history", (id: string) => `/users/${id}`],
  ] as const
) {
  Deno.test(`${name} is whole to a read that began before a merge of its user and ends after it`, async () => {
    const town = await Town.open(service);
    let crossed = 0;
    for (let n = 1;; n++) {
      const user = `b${n}`;
      await town.subscribe(user, "plan_pro");
      await town.grant(user, 10);
      await trackMany(town, user, 3);
      await town.counts(user);
      await service.serving().term.flush();
      const rowsOf = (data: Data): number =>
        (data.events ?? data.entries ?? data.history ?? data.credits).length;
      const before = rowsOf(await town.get(pathOf(user)));
      assert.ok(before > 0);
      const seen = await readAcrossMerge(town, user, pathOf(user), n);
      if (seen === null) break;
      crossed++;
      assert.ok(rowsOf(seen) >= before, `${rowsOf(seen)} of ${before} rows, merged before statement ${n}`);
    }
    assert.ok(crossed > 0);
  });
}

Deno.test("a move of one merge that ends after another merge of its user leaves no row behind", async () => {
  if (service.store.url === null) return; // The embedded store runs one transaction at a time.
  const town = await Town.open(service);
  await town.subscribe("a", "plan_pro");
  await trackMany(town, "a", 20);
  const feed = await town.feed("a");
  const merged = Promise.withResolvers<void>();
  let isFirst = true;
  const late = (database: Statements, original: Statements) => {
    database.transaction = (work) =>
      original.transaction(async (session) => {
        const done = await work(session);
        if (isFirst) {
          isFirst = false;
          // The rows of "a" are filed under "b" and not committed: "b" becomes an alias of "c" meanwhile, or waits.
          const merging = dataOf(town.askAlias("b", "c"));
          merging.then(() => merged.resolve(), merged.reject);
          await Promise.race([merging, pause(300)]);
        }
        return done;
      });
  };
  await withDatabase(late, async () => {
    await dataOf(town.askAlias("a", "b"));
    await merged.promise;
  });
  await moveHistory();
  for (const id of ["a", "b", "c"]) assert.deepEqual(await town.feed(id), feed, id);
});
