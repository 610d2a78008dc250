// A primary with a synchronous standby: an answer is given only for what both have. A wait for the standby that is
// cancelled is no success, and a failover loses no answer. Two servers of the test's own; where PostgreSQL is not
// installed there is nothing to test.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { openPostgres } from "../../src/storage/postgres_database.ts";
import { auditServing } from "./audit.ts";
import { Load } from "./load.ts";
import { startNodes } from "./nodes.ts";
import { OwnServer } from "./own_server.ts";
import { pause, until } from "./program.ts";
import { makeApp, Stage, untilReady } from "./stage.ts";
import { answerOf, once } from "./wire.ts";

const WAIT_MS = 20_000;
const SYNCHRONOUS = [
  "alter system set synchronous_standby_names = '*'",
  "select pg_reload_conf()",
];
/** An administrator's own session must not wait for a standby that is away. */
const ALONE = ["alter system set synchronous_standby_names = ''", "select pg_reload_conf()"];
const CANCEL = `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`;

/** A primary whose commits wait for its standby. */
async function openPair(): Promise<AsyncDisposable & { primary: OwnServer; standby: OwnServer } | null> {
  const primary = await OwnServer.open();
  if (primary === null) return null;
  const standby = await OwnServer.open(primary) as OwnServer;
  await primary.tell(...SYNCHRONOUS);
  await untilStreaming(primary);
  return {
    primary,
    standby,
    [Symbol.asyncDispose]: async () => {
      await standby[Symbol.asyncDispose]();
      await primary[Symbol.asyncDispose]();
    },
  };
}

/** Waits until a server has a synchronous standby. */
async function untilStreaming(primary: OwnServer): Promise<void> {
  const database = openPostgres(primary.url, 1);
  await until("the standby streams", WAIT_MS, async () => {
    const rows = await database.query("select from pg_stat_replication where sync_state = 'sync'");
    return rows.length === 1 ? true : null;
  });
  await database.close();
}

/** Cancels waits for the standby until some were cancelled, as an impatient administrator or pooler does. */
async function cancelWaits(primary: OwnServer): Promise<void> {
  const database = openPostgres(primary.url, 1);
  await until("a commit waits", WAIT_MS, async () => (await database.query(CANCEL)).length > 0 ? true : null);
  await database.close();
}

/** The primary of an administrator who waits for a standby that is not there. */
async function openAlone(): Promise<OwnServer | null> {
  const primary = await OwnServer.open();
  await primary?.tell(...SYNCHRONOUS);
  return primary;
}

Deno.test("a commit whose wait for the standby is cancelled fails, with all later ones of its session", async () => {
  await using primary = await openAlone();
  if (primary === null) return;
  const database = openPostgres(primary.url, 2);
  const cancelling = setInterval(() => void primary.tell(CANCEL), 200);
  await assert.rejects(database.query("create table marks (id integer)"), Unavailable);
  let isClosed = false;
  const session = await database.pin(() => isClosed = true);
  const insert = (id: number) => `insert into marks values (${id})`;
  const failed = [
    session.query(insert(1)),
    session.query(insert(2)),
    database.transaction((inner) => inner.query(insert(3))),
    database.query(insert(4)),
    database.script(insert(5)),
  ];
  await Promise.all(failed.map((work) => assert.rejects(work, Unavailable)));
  clearInterval(cancelling);
  assert.ok(isClosed, "its holder hears of it");
  await assert.rejects(session.query("select 1"), Unavailable);
  assert.ok(
    (await database.query("select from marks")).length > 0,
    "a new connection serves, and shows commits",
  );
  await database.close();
});

Deno.test("no answer is lost by a cancelled wait or a failover, and the processes find the new primary", async () => {
  await using pair = await openPair();
  if (pair === null) return;
  const { primary, standby } = pair;
  await using stage = await Stage.open(`postgres://postgres@${primary.place},${standby.place}/postgres`);
  const nodes = await startNodes(stage, 2);
  const [origin = ""] = nodes.map((node) => node.origin);
  await stage.populate(origin);
  // The audit expects no other calls in the app of the load.
  const { secretKey } = await makeApp(origin, "Beside");
  const post = (path: string, body: object) =>
    once(origin, { method: "POST", path, bearer: secretKey, idempotencyKey: path, body }, WAIT_MS);
  const track = () => post("/api/v1/track", { userId: "ann", event: "image.x" });
  const subscribed = await post("/api/v1/subscriptions", { userId: "ann", planId: "plan_wide" });
  assert.equal(answerOf(subscribed).status, 200);

  await standby.crash("SIGKILL");
  const sent = track();
  await cancelWaits(primary);
  assert.equal(answerOf(await sent).status, 503);
  await standby.start();
  await untilStreaming(primary);
  for (const node of nodes) await untilReady(node.origin, WAIT_MS);
  const { status, body } = answerOf(await track());
  assert.deepEqual([status, body.data.counters[0].count], [200, 1], "a retry is counted once");

  const load = new Load(origin, stage.secretKey);
  load.origins = nodes.map((node) => node.origin);
  load.start();
  await pause(1_500);
  await primary.crash("SIGKILL");
  const killedAt = performance.now();
  await standby.tell(...ALONE, "select pg_promote()");
  for (const node of nodes) await untilReady(node.origin, WAIT_MS);
  const silentMs = Math.round(performance.now() - killedAt);
  await pause(1_500);
  await load.stop();
  assert.deepEqual(await auditServing(stage, load, origin), []);
  console.log(`${load.record.calls.size} calls; silent for ${silentMs} ms`);
});
