// The proof that the books add up, on rows written by SQL: a clean book passes, each kind of drift is found and
// named, also by the exit status of the task.

import assert from "node:assert/strict";
import { MIGRATIONS } from "../../sql/migrations.ts";
import { type Drift, reconcile, reconcileSample } from "../../src/storage/queries/reconcile.ts";
import { runReconcile } from "../../src/cli/reconcile.ts";
import { EXIT } from "../../src/cli/shell.ts";
import type { Database, Session } from "../../src/storage/database.ts";
import { openEmbedded } from "../../src/storage/embedded/embedded_folder.ts";
import { deleteHistory } from "../../src/storage/stores/erasure_store.ts";
import { copyEmptyStore, copyMigratedStore } from "../support/kept_stores.ts";
import { startTestService } from "../support/test_service.ts";
import { testServerUrl } from "../support/test_store.ts";
import { FAULTS } from "./book_faults.ts";
import { balance, counter, END, lines, seed, SEEN, START, withBooks } from "./books.ts";
import { runTask, shortenLockWaits, testShell } from "./support.ts";

shortenLockWaits();

/** What a proof says, a line for each drift: kind, user and text. */
async function proof(database: Database, stepUsersMax?: number) {
  const drifts: string[] = [];
  const add = ({ kind, userKey, userId, text }: Drift) =>
    drifts.push(`${kind} ${userKey} ${userId ?? "-"} ${text}`);
  const summary = await reconcile(database, add, stepUsersMax);
  assert.equal(summary.drifts, drifts.length);
  return { summary, drifts };
}

Deno.test("books that add up have no drift, whatever the step", async () => {
  await withBooks(async (database) => {
    for (const step of [undefined, 1, 2, 3, 4]) {
      const { summary, drifts } = await proof(database, step);
      assert.deepEqual(drifts, []);
      assert.deepEqual(summary, { ...SEEN, drifts: 0 });
    }
    await database.query("insert into journal values (1, ''), (2, '')");
    assert.equal((await proof(database)).summary.undrainedBatches, 2);
  });
});

Deno.test("a sample proves the users from its place on, and says whether that is everybody", async () => {
  await withBooks(async (database) => {
    await database.query("update counters set count = 5 where user_key = 2");
    const sample = async (place: number, usersMax?: number) => {
      const drifts: number[] = [];
      const add = ({ userKey }: Drift) => void drifts.push(userKey);
      const { users, isWhole } = await reconcileSample(database, add, place, usersMax);
      return { users, isWhole, drifts };
    };
    assert.deepEqual(await sample(0.5), { users: 4, isWhole: true, drifts: [2] });
    assert.deepEqual(await sample(0.9, 4), { users: 4, isWhole: true, drifts: [2] });
    assert.deepEqual(await sample(0, 1), { users: 1, isWhole: false, drifts: [] });
    assert.deepEqual(await sample(0.34, 1), { users: 1, isWhole: false, drifts: [2] });
    assert.deepEqual(await sample(0.999, 1), { users: 1, isWhole: false, drifts: [] });
    assert.deepEqual(await sample(0, 2), { users: 2, isWhole: false, drifts: [2] });
  });
});

Deno.test("an empty database adds up", async () => {
  await withBooks(async (database) => {
    await seed(database, []);
    const { summary } = await proof(database);
    assert.deepEqual(Object.values(summary), [0, 0, 0, 0, 0, 0, 0]);
  });
});

/** Users of a step. A step a user takes the embedded store five times as long. */
const STEPS = testServerUrl() === null ? [undefined] : [undefined, 1];

Deno.test("each kind of drift is found and named, and nothing else", async () => {
  await withBooks(async (database) => {
    for (const [name, sql, expected] of FAULTS) {
      await seed(database);
      await database.script(sql);
      for (const step of STEPS) assert.deepEqual((await proof(database, step)).drifts, expected, name);
    }
  });
});

Deno.test("users who are being erased have no drift, also under the number of an alias", async () => {
  await withBooks(async (database) => {
    const keys = (await database.query<{ key: number }>("select key from users")).map(({ key }) => key);
    await database.transaction((session) => deleteHistory(session, keys, 1_000));
    assert.notDeepEqual((await proof(database)).drifts, []);
    await database.query("update users set erasing = merged_into is null");
    assert.deepEqual((await proof(database)).drifts, []);
  });
});

Deno.test("users beyond one step, and drifts beyond one page, are all looked at", async () => {
  await withBooks(async (database) => {
    // With the 4 users before them, steps of 500 end at 4960, 9960 and 14960; one without users follows.
    await database.query(
      `insert into users (key, realm, id) select 10 * n, 1, 'more_' || n from generate_series(1, 1496) n`,
    );
    await database.query(
      `insert into counters select 10 * n, 'plan_a', 'g', ${START}, ${END}, 2, 0, 0 from generate_series(1, 1496) n`,
    );
    await database.query(
      `insert into events select 'evt_' || n || part, 10 * n, 1, 'x', 1, 0, 'matched', ${START}, null, null, null, null,
         $1, '[]' from generate_series(1, 1496) n, unnest(array['a', 'b']) part`,
      [lines(["g", "1"])],
    );
    const clean = await proof(database);
    assert.deepEqual(clean.drifts, []);
    assert.deepEqual([clean.summary.users, clean.summary.events], [1500, 6 + 2 * 1496]);

    await database.query("update counters set count = 3 where user_key in (4960, 4970, 9960, 9970, 14960)");
    await database.query(balance("crb_7", 5005, "0", "0"));
    const few = await proof(database);
    // Within a step, what has no user comes first.
    assert.deepEqual(few.drifts.map((text) => text.split(" ").slice(0, 2).join(" ")), [
      "count 4960",
      "unknown_user 5005",
      "count 4970",
      "count 9960",
      "count 9970",
      "count 14960",
    ]);

    await database.query("update counters set count = 3 where user_key >= 10");
    const all = await proof(database, 5_000);
    assert.equal(new Set(all.drifts).size, 1496 + 1);
  });
});

Deno.test({
  name: "a proof sees one moment, whatever is written while it runs",
  ignore: testServerUrl() === null,
  fn: async () => {
    await withBooks(async (database) => {
      let queries = 0;
      const disturbed: Database = {
        ...database,
        transaction: (work) =>
          database.transaction((session) => {
            const query: Session["query"] = async (text, params) => {
              const rows = await session.query(text, params);
              if (++queries === 3) await database.query(counter(3, "g", "9", "0"));
              return rows as never[];
            };
            return work({ ...session, query });
          }),
      };
      assert.deepEqual((await proof(disturbed, 1)).drifts, []);
      assert.ok(queries > 3);
      assert.equal((await proof(database, 1)).drifts.length, 1);
    });
  },
});

Deno.test("what a service writes adds up", async () => {
  const service = await startTestService();
  try {
    const app = await service.newApp();
    for (const userId of ["a", "b"]) {
      await app.call("POST", "/subscriptions", { userId, planId: "plan_pro" });
      await app.call("POST", "/track", { userId, event: "image.render", count: 2.5 });
      const ids: string[] = [];
      for (const ttlSeconds of [600, 600, 600, 10]) {
        const answer = await app.call("POST", "/reserve", { userId, event: "image.render", ttlSeconds });
        ids.push(answer.body.data.reservationId);
      }
      await app.call("POST", "/commit", { reservationId: ids[0], actual: { count: 4 } });
      await app.call("POST", "/release", { reservationId: ids[1] });
      service.clock.advance(11_000);
      await app.call("POST", "/commit", { reservationId: ids[3] });
    }
    await service.serving().term.flush();
    const { summary, drifts } = await proof(service.store.database);
    assert.deepEqual(drifts, []);
    assert.deepEqual([summary.users, summary.holds, summary.events], [2, 2, 8]);
    assert.ok(summary.counters >= 2);
  } finally {
    await service.close();
  }
});

const ALL_WELL = "The books add up: 4 users, 5 counters, 2 credit balances, 2 open holds, 6 events\n";

Deno.test({
  name: "reconcile on the embedded store: its exit status and what it prints",
  ignore: testServerUrl() !== null,
  fn: async () => {
    const folder = await Deno.makeTempDir({ prefix: "holdfast_reconcile_" });
    const HOLDFAST_DATA_DIR = `${folder}/data`;
    const run = async () => {
      const { shell, out, err } = testShell({ HOLDFAST_DATA_DIR });
      return { code: await runReconcile([], shell), out: out(), err: err() };
    };
    const inStore = async (work: (database: Database) => Promise<unknown>) => {
      const database = await openEmbedded(HOLDFAST_DATA_DIR);
      await work(database);
      await database.close();
    };
    try {
      const none = await run();
      assert.deepEqual([none.code, none.out], [2, ""]);
      assert.match(none.err, /^Cannot reconcile: HOLDFAST_DATA_DIR: there is no store in ".+"$/);
      await assert.rejects(Deno.stat(HOLDFAST_DATA_DIR), Deno.errors.NotFound);

      await copyEmptyStore(HOLDFAST_DATA_DIR);
      const bare = await run();
      assert.deepEqual([bare.code, bare.out], [2, ""]);
      assert.match(bare.err, /^Cannot reconcile: migration "0001_core" is not applied: .+$/);

      await Deno.remove(HOLDFAST_DATA_DIR, { recursive: true });
      await copyMigratedStore(HOLDFAST_DATA_DIR);
      await inStore(seed);
      // As a program, with the permissions that users give it.
      const program = await runTask("reconcile", [], { HOLDFAST_DATA_DIR });
      assert.deepEqual(program, { code: 0, out: ALL_WELL, err: "" });

      using lock = await Deno.open(`${HOLDFAST_DATA_DIR}/lock`, { write: true });
      await lock.lock(true);
      const locked = await run();
      assert.deepEqual([locked.code, locked.out], [2, ""]);
      assert.match(locked.err, /^Cannot reconcile: another process uses the data folder ".+"$/);
      await lock.unlock();

      await inStore((database) => database.query("update counters set count = 5 where user_key = 2"));
      const drifted = await run();
      assert.deepEqual([drifted.code, drifted.err], [1, ""]);
      assert.deepEqual(drifted.out.split("\n"), [
        `user 2 "user_2": counter "g" of plan "plan_a" from ${START} ms: count 5, but open holds 0 + events 4 + adjusted 0 = 4`,
        "1 drift: 4 users, 5 counters, 2 credit balances, 2 open holds, 6 events",
      ]);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

Deno.test({
  name: "reconcile on a server, with connections of others: its exit status and its JSON",
  ignore: testServerUrl() === null,
  fn: async () => {
    await withBooks(async (database, url) => {
      const variables = { DATABASE_URL: url as string };
      const run = (...args: string[]) => runTask("reconcile", args, variables);
      assert.deepEqual(await run(), { code: 0, out: ALL_WELL, err: "" });
      const clean = await run("--json");
      assert.deepEqual(JSON.parse(clean.out), { drifts: [], summary: { ...SEEN, drifts: 0 } });

      await database.query("update credit_balances set remaining = 1, held = 0 where id = 'crb_1'");
      await database.query("insert into journal values (1, '')");
      const text = await run();
      assert.equal(text.code, 1, text.err);
      assert.equal(text.out.split("\n").length, 2 + 2 + 1);
      assert.match(text.out, /\n1 batch of the journal not drained yet: .+\n$/);
      const drifted = await run("--json");
      assert.equal(drifted.code, 1);
      const { drifts, summary } = JSON.parse(drifted.out);
      assert.deepEqual(summary, { ...SEEN, undrainedBatches: 1, drifts: 2 });
      assert.deepEqual(drifts.map((drift: Drift) => [drift.kind, drift.userKey, drift.userId]), [
        ["remaining", 1, "user_1"],
        ["held", 1, "user_1"],
      ]);

      // A fault in the middle ends the document in good order: the second user's lines are no JSON.
      await database.query("update events set lines = '{' where user_key = 2");
      const broken = await run("--json");
      assert.deepEqual([broken.code, broken.err], [2, ""]);
      assert.match(
        JSON.parse(broken.out).error.message,
        /^Cannot reconcile: invalid input syntax for type json/,
      );
    });
  },
});

Deno.test("a proof that cannot be made is one line and exit status 2, or an error in JSON", async () => {
  const last = MIGRATIONS.at(-1)?.name as string;
  const rows: [string[], string, RegExp][] = [
    [[], "nonsense", /^Cannot reconcile: DATABASE_URL must be a URL [^\n]+$/],
    [[], "postgres://postgres@127.0.0.1:9/none", /^Cannot reconcile: DATABASE_URL: .*ECONNREFUSED[^\n]*$/],
    [["now"], "nonsense", /^Too many arguments/],
    [["--yaml"], "nonsense", /^Unknown option '--yaml'/],
  ];
  for (const [args, DATABASE_URL, message] of rows) {
    const { shell, out, err } = testShell({ DATABASE_URL });
    assert.equal(await runReconcile(args, shell), 2);
    assert.match(err(), message);
    assert.equal(out(), "");
  }
  const { shell, out, err } = testShell({ DATABASE_URL: "nonsense" });
  assert.equal(await runReconcile(["--json"], shell), 2);
  assert.match(JSON.parse(out()).error.message, /^Cannot reconcile: DATABASE_URL/);
  assert.equal(err(), "");

  if (testServerUrl() === null) return;
  await withBooks(async (database, url) => {
    const failed = async () => {
      const { shell, err } = testShell({ DATABASE_URL: url as string });
      assert.equal(await runReconcile([], shell), 2);
      return err();
    };
    await database.query("insert into migrations values ('9999_later', '')");
    assert.match(await failed(), /^Cannot reconcile: a newer program applied migration "9999_later"$/);
    await database.query("delete from migrations where name in ($1, '9999_later')", [last]);
    assert.match(
      await failed(),
      new RegExp(`^Cannot reconcile: migration "${last}" is not applied: [^\n]+$`),
    );
  });
});

Deno.test("reconcile has help with its exit statuses and an example", async () => {
  const { shell, out } = testShell();
  assert.equal(await runReconcile(["--help"], shell), EXIT.ok);
  assert.match(out(), /^Usage: deno task reconcile \[options\]/);
  assert.match(out(), /\nExit status: 0 /);
  assert.match(out(), /\nExample:\n {2}DATABASE_URL=/);
});
