// Cells move while calls run, and channels break: calls are answered through any node that can reach the owner, each runs
// once, and none fails because a node joins or leaves in order. On a server only.

import assert from "node:assert/strict";
import { CATALOG } from "../routes/support.ts";
import type { Answer, TestApp } from "../support/test_service.ts";
import { CELLS } from "../../actors/doors.ts";
import type { Hub } from "../../src/channel/hub.ts";
import { wantedOwners } from "../../src/cluster/rendezvous.ts";
import { CELL_LIMITS } from "../../src/process/limits.ts";
import { sessionNameOf } from "../../src/storage/journal/ranges.ts";
import { Writer } from "../../src/storage/journal/writer.ts";
import { far, isDeep } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";
import { Nodes, type TestMember } from "./support.ts";

const ignore = testServerUrl() === null;
const LOOPS = 10;
const CHANGES = far(3);
/** Forty clients that never rest would take both cores from the nodes that join. */
const REST_MAX_MS = isDeep ? 0 : 60;
/** Limits above all that a test uses. */
const WIDE = {
  plans: [{
    id: "plan_pro",
    name: "Pro",
    rank: 1,
    period: { type: "lifetime", anchor: "subscription_start" },
    limits: [{ id: "lg", label: "All", unit: "count", quota: 1e9, matches: [{ event: "image.*" }] }],
  }],
};

async function appWithUser(by: TestMember, catalog: object): Promise<TestApp> {
  const app = await by.newApp(catalog);
  const { status } = await by.ask(app.secretLive, "POST", "/subscriptions", {
    userId: "u",
    planId: "plan_pro",
  });
  assert.equal(status, 200);
  return app;
}

/** A client that reserves, commits and tracks through any node; each answer must be 200. */
async function meter(nodes: Nodes, app: TestApp, isOver: () => boolean, keyed: boolean): Promise<number> {
  let counted = 0;
  const post = async (path: string, body: object) => {
    const node = nodes.all[Math.floor(Math.random() * nodes.all.length)] as TestMember;
    const headers: Record<string, string> = keyed ? { "idempotency-key": crypto.randomUUID() } : {};
    const answer = await node.ask(app.secretLive, "POST", path, body, { headers });
    assert.equal(answer.status, 200, `${node.name} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body.data;
  };
  while (!isOver()) {
    const { reservationId } = await post("/reserve", { userId: "u", event: "image.x", count: 3 });
    await post("/commit", { reservationId, actual: { count: 2 } });
    await post("/track", { userId: "u", event: "image.x" });
    counted += 3;
    await new Promise((resolve) => setTimeout(resolve, Math.random() * REST_MAX_MS));
  }
  return counted;
}

Deno.test({
  name: "calls through all nodes are answered, each once, while nodes join and leave in good order",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 2, fronts: 1 });
    const [first] = nodes.all as [TestMember];
    const apps = await Promise.all(Array.from({ length: 4 }, () => appWithUser(first, WIDE)));
    let isOver = false;
    const counts = apps.map((app) =>
      Promise.all(
        Array.from({ length: LOOPS }, (_, place) => meter(nodes, app, () => isOver, place % 2 === 0)),
      )
    );
    const running = Promise.all(counts);
    running.catch(() => isOver = true);
    for (let change = 0; change < CHANGES && !isOver; change++) {
      await nodes.join(change % 3 === 1 ? 0 : 1);
      await nodes.settled();
      await nodes.leave(nodes.all[0] as TestMember);
    }
    isOver = true;
    const counted = await running;
    for (const [place, app] of apps.entries()) {
      const [node] = nodes.all as [TestMember];
      const { body } = await node.ask(app.secretLive, "GET", "/usage?userId=u");
      assert.equal(
        body.data.counters[0].count,
        (counted[place] as number[]).reduce((sum, count) => sum + count, 0),
      );
    }
  },
});

Deno.test({
  name: "a node takes no cell back that the next owner is about to take, however often it looks",
  ignore,
  fn: async () => {
    const { freeMs } = CELL_LIMITS;
    const { lockCells } = Writer.prototype;
    const mayTake = Promise.withResolvers<void>();
    await using nodes = await Nodes.open({ nodes: 1 });
    const [first] = nodes.all as [TestMember];
    const { node, counts: { cluster } } = first.serving;
    try {
      (CELL_LIMITS as { freeMs: number }).freeMs = Infinity;
      Writer.prototype.lockCells = async function (cells) {
        if (this.term !== first.term) await mayTake.promise;
        return await lockCells.call(this, cells);
      };
      await nodes.join();
      await nodes.until(() => cluster.cellsHandedOver > 0);
      let looks = 0;
      const hub = node.parts.hub as Hub;
      const { setPeers } = hub;
      hub.setPeers = (peers) => {
        looks += 1;
        setPeers.call(hub, peers);
      };
      await nodes.until(() => {
        node.wake();
        return looks >= 10;
      });
      assert.equal(cluster.cellsTaken, CELLS, "each once, at the start");
    } finally {
      mayTake.resolve();
      Writer.prototype.lockCells = lockCells;
      (CELL_LIMITS as { freeMs: number }).freeMs = freeMs;
    }
    await nodes.settled();
  },
});

Deno.test({
  name: "a call that does not end keeps its own cell from moving, and no other one",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 1 });
    const [first] = nodes.all as [TestMember];
    const { doors } = first.serving.term;
    // The cell that would move first.
    const next = wantedOwners([first.term, first.term + 1]).indexOf(first.term + 1);
    doors.tryEnter(next);
    const second = await nodes.join();
    const wanted = wantedOwners([first.term, second.term]);
    const moving = wanted.flatMap((owner, cell) => owner === second.term ? [cell] : []);
    assert.equal(moving[0], next);
    const isThere = (cell: number) => second.serving.term.doors.isOpen(cell);
    await nodes.until(() => moving.every((cell) => isThere(cell) === (cell !== next)));
    assert.ok(doors.isHere(next));
    doors.leave(next);
    await nodes.settled();
  },
});

Deno.test({
  name:
    "nodes that do not reach each other answer each other's calls through a third node, and without one 503",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 3 });
    const app = await appWithUser(nodes.all[0] as TestMember, CATALOG);
    const owner = nodes.ownerOf(app);
    const stranger = nodes.strangerTo(app);
    const third = nodes.all.find((node) => node !== owner && node !== stranger) as TestMember;
    const track = (headers: Record<string, string> = {}): Promise<Answer> =>
      stranger.ask(app.secretLive, "POST", "/track", { userId: "u", event: "image.x" }, { headers });
    const countOf = async (by: TestMember) =>
      (await by.ask(app.secretLive, "GET", "/usage?userId=u")).body.data.counters[0].count;

    await nodes.cut(stranger, owner);
    assert.equal((await track()).status, 200);
    assert.equal(await countOf(stranger), 1);
    const cells = owner.serving.term.doors.held;

    await nodes.cut(stranger, third);
    const { status, body, headers } = await track({ "idempotency-key": "alone" });
    assert.deepEqual([status, body.error.code, headers.get("retry-after")], [503, "unavailable", "1"]);
    assert.deepEqual(owner.serving.term.doors.held, cells, "no cell moves because a channel is down");

    nodes.cables.mend(stranger.name, owner.name);
    nodes.cables.mend(stranger.name, third.name);
    await nodes.settled();
    assert.equal((await track({ "idempotency-key": "alone" })).status, 200);
    assert.equal(await countOf(owner), 2);
  },
});

Deno.test({
  name: "a node joins again after its term ended, and others answer for its cells at once",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 3 });
    const app = await appWithUser(nodes.all[0] as TestMember, WIDE);
    for (let round = 1; round <= 3; round++) {
      const owner = nodes.ownerOf(app);
      const other = nodes.strangerTo(app);
      const track = () => other.ask(app.secretLive, "POST", "/track", { userId: "u", event: "image.x" });
      assert.equal((await track()).status, 200);
      await nodes.break(owner);
      let answer = await track();
      while (answer.status === 503) answer = await track();
      assert.equal(answer.status, 200);
      assert.ok(answer.body.data.counters[0].count >= 2 * round);
      await nodes.settled();
    }
  },
});

Deno.test({
  name: "a node whose idle sessions were lost unnoticed still takes over from another",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 2 });
    const [dying, heir] = nodes.all as [TestMember, TestMember];
    const apps = await Promise.all(Array.from({ length: 8 }, () => appWithUser(dying, WIDE)));
    const lost = await nodes.store.database.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = $1 and datname = current_database()
         and pid not in (select pid from pg_locks where locktype = 'advisory' and granted)`,
      [sessionNameOf(heir.term)],
    );
    assert.ok(lost.length > 1, "the pool's sessions and the drain's");
    await nodes.break(dying);
    await nodes.settled();
    for (const app of apps) {
      const { status } = await heir.ask(app.secretLive, "POST", "/track", { userId: "u", event: "image.x" });
      assert.equal(status, 200);
    }
  },
});
