// Writes that do not go through the journal hold the cell of their workspace, and work beside the calls stays inside its
// door: a member that has lost a cell, and does not know it yet, writes nothing of it, and a hand-over meets no sweep.

import assert from "node:assert/strict";
import type { Realm } from "../../actors/call.ts";
import { Doors } from "../../actors/doors.ts";
import { sweepRealmBeside } from "../../actors/sweep.ts";
import { runErasures } from "../../src/people/erasure.ts";
import type { SweepName } from "../../src/cluster/counts.ts";
import { runSweep } from "../../src/operations/sweeps/sweeps.ts";
import { CELL_LIMITS } from "../../src/process/limits.ts";
import type { Param, Session } from "../../src/storage/database.ts";
import { limitsOfFile } from "../support/limits.ts";
import type { TestApp } from "../support/test_service.ts";
import { connect, eventOf, send, subscriptionOf } from "./stripe_support.ts";
import { assertRefused, CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

// A sweep waits so long at a shut door.
limitsOfFile(CELL_LIMITS, { doorWaitMs: 50 });

/** Tables that have rows which no drain writes. */
const TABLES = [
  "analytics_events",
  "people",
  "person_ids",
  "person_links",
  "pseudonyms",
  "erasure_jobs",
  "event_logs",
  "history_moves",
  "idempotency",
  "merges",
  "realms",
  "refusals",
  "reservations",
  "stripe_connections",
  "stripe_disputes",
  "stripe_payments",
  "stripe_purchases",
  "stripe_refunds",
  "stripe_subscriptions",
  "stripe_unhandled",
  "webhook_messages",
];

async function rowsOfAll(): Promise<Record<string, unknown>> {
  await service.serving().term.flush();
  const dump: Record<string, unknown> = {};
  for (const table of TABLES) {
    dump[table] = await service.store.database.query(`select t::text as row from ${table} t order by 1`);
  }
  return dump;
}

async function sql(text: string, params: readonly Param[] = []): Promise<unknown[]> {
  return [...await service.store.database.query(text, params)];
}

function partsOf({ appId }: TestApp) {
  const app = service.serving().registry.apps.get(appId);
  assert.ok(app !== undefined);
  return { cell: app.cell, live: app.realms.live.realm };
}

/** Runs work while a cell's row names another member, as after a take-over that this one has not noticed. */
async function taken<T>(app: TestApp, work: () => Promise<T>): Promise<T> {
  const { cell } = partsOf(app);
  const setTerm = (term: number) =>
    sql("update cells set term = $2::bigint where cell = $1::int", [cell, term]);
  await setTerm(1_000_000);
  try {
    return await work();
  } finally {
    await setTerm(service.serving().node.term);
  }
}

/** A write that does not go through the journal: what is there before it, and the call. */
interface Write {
  readonly name: string;
  prepare?(app: TestApp): Promise<unknown>;
  write(app: TestApp): ReturnType<TestApp["call"]>;
}

const sweep = () => service.admin("POST", "/sweep");
const track = (app: TestApp, userId: string) =>
  dataOf(app.call("POST", "/track", { userId, event: "image.x" }));

const WRITES: readonly Write[] = [
  {
    name: "a capture",
    write: (app) => app.call("POST", "/capture", { distinctId: "p", event: "seen" }),
  },
  {
    name: "an identification",
    write: (app) => app.call("POST", "/identify", { distinctId: "p", properties: { a: 1 } }),
  },
  {
    name: "an identification that links a session",
    write: (app) =>
      app.call("POST", "/identify", { distinctId: "p", mergeAnonymousId: "anon_p", consentGiven: true }),
  },
  ...[
    eventOf("customer.subscription.created", subscriptionOf()),
    eventOf("charge.refunded", { id: "ch_1", refunded: true }),
    eventOf("customer.created", {}),
  ].map((event) => ({
    name: `${event.type} of Stripe`,
    prepare: (app: TestApp) => connect(service, app),
    write: (app: TestApp) => send(service, app, event),
  })),
  {
    name: "an alias of people",
    write: (app) => app.call("POST", "/alias", { distinctId: "p", alias: "q" }),
  },
  {
    name: "people of linked ids that become one",
    prepare: async (app) => {
      await dataOf(app.call("POST", "/identify", { distinctId: "a", properties: {} }));
      await dataOf(app.call("POST", "/customers/alias", { from: "a", to: "b" }));
      // As two calls at the same time leave them.
      await service.serving().term.flush();
      await sql("delete from person_ids where realm = $1::int and distinct_id = 'b'", [partsOf(app).live]);
    },
    write: (app) => app.call("POST", "/capture", { distinctId: "a", event: "seen" }),
  },
  {
    name: "an opt-in, which forgets a pseudonym",
    prepare: async (app) => {
      await dataOf(app.call("POST", "/opt-out", { distinctId: "p" }));
      await dataOf(app.call("POST", "/capture", { distinctId: "p", event: "seen" }));
    },
    write: (app) => app.call("POST", "/opt-in", { distinctId: "p" }),
  },
  {
    name: "consent to an alias that was made without it",
    prepare: async (app) => {
      await track(app, "anon_p");
      await dataOf(app.call("POST", "/customers/alias", { from: "anon_p", to: "p" }));
    },
    write: (app) => app.call("POST", "/customers/alias", { from: "anon_p", to: "p", consentGiven: true }),
  },
  {
    name: "the request of an erasure",
    write: (app) => app.call("POST", "/delete-person", { distinctId: "p" }),
  },
  { name: "a job of an erasure", prepare: (app) => queueJob(app), write: sweep },
  {
    name: "the retention of prompt logs",
    prepare: (app) =>
      sql(
        `insert into event_logs (event_id, user_key, realm, prompt, at_ms) values ($1, 0, $2::int, 'old', 0)`,
        [crypto.randomUUID(), partsOf(app).live],
      ),
    write: sweep,
  },
  { name: "the retention of counts of refused calls", prepare: (app) => keepOldRefusal(app), write: sweep },
  {
    name: "a count of refused calls",
    prepare: (app) => dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x" })),
    write: (app) => app.call("GET", "/refusals"),
  },
  { name: "the retention of messages", prepare: (app) => keepOldMessage(app), write: sweep },
  { name: "the retention of first answers", prepare: (app) => keepOldAnswer(app), write: sweep },
  {
    name: "a history move",
    prepare: (app) => leaveHistory(app),
    write: () => service.admin("POST", "/move-history"),
  },
  {
    name: "a move of the test clock",
    write: (app) => app.call("POST", "/test-clock", { advanceSeconds: 60 }, { key: app.secretTest }),
  },
];

function queueJob(app: TestApp): Promise<unknown> {
  return sql(
    `insert into erasure_jobs (id, realm, status, distinct_ids, requested_at_ms)
     values ($1, $2::int, 'queued', '["p"]', 0)`,
    [`job_${app.appId}`, partsOf(app).live],
  );
}

function keepOldAnswer(app: TestApp): Promise<unknown> {
  return sql(
    `insert into idempotency (realm, key, request_hash, status, body, at_ms) values ($1::int, 'old', '', 200, '', 0)`,
    [partsOf(app).live],
  );
}

function keepOldRefusal(app: TestApp): Promise<unknown> {
  return sql(
    `insert into refusals (realm, user_id, event, reasons, hour_ms, group_ids, count, first_at_ms, last_at_ms)
     values ($1, 'u', 'old', '["limit_reached"]', 0, '[]', 1, 0, 0)`,
    [partsOf(app).live],
  );
}

function keepOldMessage(app: TestApp): Promise<unknown> {
  return sql(
    `insert into webhook_messages (id, webhook_id, realm, type, body, created_at_ms, status, ended_at_ms)
     values ($1, 'whk_1', $2::int, 'ping', '{}', 0, 'delivered', 0)`,
    [`whm_${app.appId}`, partsOf(app).live],
  );
}

/** An alias with a row of history that is filed under its own number. */
async function leaveHistory(app: TestApp): Promise<void> {
  await track(app, "old");
  await dataOf(app.call("POST", "/customers/alias", { from: "old", to: "new" }));
  await service.serving().term.flush();
  const old = "select key from users where realm = $1::int and id = 'old'";
  await sql(`insert into history_moves (user_key, at_ms) select key, 0 from (${old}) as alias`, [
    partsOf(app).live,
  ]);
  await sql(`update events set user_key = (${old}) where realm = $1::int`, [partsOf(app).live]);
}

/** Waits for erasures that other tests asked for: they go on after their answers. */
async function untilErased(): Promise<void> {
  const open = "select from erasure_jobs where status in ('queued', 'in_progress')";
  while ((await sql(open)).length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
}

for (const { name, prepare, write } of WRITES) {
  Deno.test(`${name} is not written for a cell that another member owns`, async () => {
    const app = await service.newApp(CATALOG);
    await untilErased();
    await prepare?.(app);
    const before = await rowsOfAll();
    const refused = await taken(app, async () => {
      const answer = await write(app);
      assert.deepEqual(await rowsOfAll(), before);
      return answer;
    });
    assertRefused(refused, 503, "unavailable");
    assert.equal((await write(app)).status, 200);
    assert.notDeepEqual(await rowsOfAll(), before);
  });
}

/** What each sweep finds to do in an app, and the statement of it that a test can stop at. */
const STEPS: readonly [SweepName, (app: TestApp) => Promise<unknown>][] = [
  ["due", async (app) => {
    await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
    await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x", ttlSeconds: 10 }));
    service.clock.advance(20_000);
  }],
  ["idempotency", keepOldAnswer],
  ["refusals", keepOldRefusal],
  ["messages", keepOldMessage],
  ["history", leaveHistory],
  ["erasures", queueJob],
  ["prompt_logs", WRITES.find(({ name }) => name.endsWith("prompt logs"))?.prepare ?? queueJob],
];

for (const [name, prepare] of STEPS) {
  Deno.test(`no cell is handed over in the middle of a step of the sweep: ${name}`, async () => {
    const app = await service.newApp(CATALOG);
    await prepare(app);
    await service.serving().term.flush();
    const step = stopIn(app);
    const sweeping = runSweep(service.serving(), name);
    await step.reached;
    let isEmpty = false;
    await shutWhile(app, async (shut) => {
      void shut.then(() => isEmpty = true);
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(isEmpty, false);
      step.go();
      await shut;
      await sweeping;
    });
  });

  Deno.test(`a sweep leaves a cell alone that is about to go, and does not fail: ${name}`, async () => {
    const app = await service.newApp(CATALOG);
    await runSweep(service.serving(), name);
    await prepare(app);
    await service.serving().term.flush();
    const skipped = await shutWhile(app, () => runSweep(service.serving(), name));
    const nothing = name === "due" ? { expiredReservations: 0, endedSubscriptions: 0 } : 0;
    assert.deepEqual(skipped, nothing);
    assert.notDeepEqual(await runSweep(service.serving(), name), nothing);
  });
}

Deno.test("a step in which a user fails is over when the last of its users is", async () => {
  const doors = new Doors();
  doors.open([1]);
  const slow = Promise.withResolvers<null>();
  const term = {
    doors,
    isServing: true,
    flush: () => Promise.resolve(),
    directory: { runByKey: (key: number) => key === 1 ? Promise.reject(new Error("A test")) : slow.promise },
  };
  const realm = { realm: 1, cell: 1, now: () => 0 } as Realm;
  const sweeping = sweepRealmBeside(term, { listDue: () => Promise.resolve([1, 2]) }, realm);
  const failing = assert.rejects(sweeping, /A test/);
  await new Promise((resolve) => setTimeout(resolve, 5));
  let isEmpty = false;
  const shut = doors.shut([1]).then(() => isEmpty = true);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(isEmpty, false);
  slow.resolve(null);
  await Promise.all([failing, shut]);
});

/** Runs work while the door of an app's cell is shut, as before a hand-over. */
async function shutWhile<T>(app: TestApp, work: (isShut: Promise<void>) => Promise<T>): Promise<T> {
  const { cell } = partsOf(app);
  const { doors } = service.serving().term;
  try {
    return await work(doors.shut([cell]));
  } finally {
    doors.open([cell]);
  }
}

/** Ends a transaction that is about to write for the app. */
class Stopped extends Error {}

/** Stops the next step of a sweep in an app: what lists its due users, or a transaction, which then begins anew. */
function stopIn(app: TestApp): { readonly reached: Promise<void>; go(): void } {
  const { cell, live } = partsOf(app);
  const database = service.statements;
  const { query, transaction } = database;
  const reached = Promise.withResolvers<void>();
  const going = Promise.withResolvers<void>();
  const stop = () => {
    Object.assign(database, { query, transaction });
    reached.resolve();
    return going.promise;
  };
  // A sweep over all cells names them as an array; rows of no workspace are written with an empty one.
  const isFence = (text: string, [asked]: readonly Param[]) =>
    /from cells where .* for share/.test(text) &&
    String(asked).match(/\d+/g)?.includes(String(cell)) === true;
  const change = {
    query: async <Row>(text: string, params: readonly Param[] = []) => {
      if (/due_at_ms <=/.test(text) && params[0] === live) await stop();
      return await query<Row>(text, params);
    },
    transaction: async <T>(work: (session: Session) => Promise<T>) => {
      const stopping = (session: Session): Session => ({
        ...session,
        query: (text, params = []) =>
          isFence(text, params) ? Promise.reject(new Stopped()) : session.query(text, params),
      });
      try {
        return await transaction((session) => work(stopping(session)));
      } catch (error) {
        if (!(error instanceof Stopped)) throw error;
        await stop();
        return await transaction(work);
      }
    },
  };
  Object.assign(database, change);
  return { reached: reached.promise, go: () => going.resolve() };
}

Deno.test("an erasure ends after its step when its door is shut, and goes on when it is open", async () => {
  const app = await service.newApp(CATALOG);
  await track(app, "p");
  await queueJob(app);
  const { cell, live } = partsOf(app);
  const { doors } = service.serving().term;
  const step = stopIn(app);
  const running = runErasures(service.serving());
  await step.reached;
  assert.equal(doors.isPinned(cell), true);
  await shutWhile(app, async (shut) => {
    step.go();
    await shut;
    assert.equal(await running, 0);
  });
  assert.equal(doors.isPinned(cell), false);
  const jobs = () => sql("select status from erasure_jobs where realm = $1::int", [live]);
  assert.deepEqual(await jobs(), [{ status: "in_progress" }]);
  assert.equal(await runErasures(service.serving()), 1);
  assert.deepEqual(await jobs(), [{ status: "completed" }]);
});
