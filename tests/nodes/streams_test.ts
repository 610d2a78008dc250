// Streams of usage over several nodes: through any node, a stream shows the owner's decisions, and goes on when the cell
// moves. On a server only.

import assert from "node:assert/strict";
import { CATALOG } from "../routes/support.ts";
import { EventReader } from "../support/event_stream.ts";
import type { TestApp } from "../support/test_service.ts";
import { testServerUrl } from "../support/test_store.ts";
import { Nodes, type TestMember } from "./support.ts";

const ignore = testServerUrl() === null;

async function appWithUser(by: TestMember): Promise<TestApp> {
  const app = await by.newApp(CATALOG);
  const body = { userId: "u", planId: "plan_pro" };
  assert.equal((await by.ask(app.secretLive, "POST", "/subscriptions", body)).status, 200);
  return app;
}

function open(at: TestMember, app: TestApp): Promise<EventReader> {
  return EventReader.open(at.http, "/usage/stream?userId=u", app.secretLive);
}

async function track(by: TestMember, app: TestApp): Promise<void> {
  const answer = await by.ask(app.secretLive, "POST", "/track", { userId: "u", event: "image.x" });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
}

const countIn = (usage: { counters: { count: number }[] }) => usage.counters[0]?.count;

Deno.test({
  name: "a stream through any node goes on when the cell moves to another one, and when its owner breaks off",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 2, fronts: 1 });
    const [first] = nodes.all as [TestMember];
    const app = await appWithUser(first);
    const front = nodes.fronts[0] as TestMember;
    const owner = nodes.ownerOf(app);
    const stranger = nodes.strangerTo(app);
    await using byFront = await open(front, app);
    await using byStranger = await open(stranger, app);
    const streams = [byFront, byStranger];
    for (const stream of streams) assert.equal(countIn(await stream.data()), 0);
    await track(front, app);
    for (const stream of streams) assert.equal(countIn(await stream.data()), 1);

    await nodes.leave(owner);
    await nodes.settled();
    await track(front, app);
    for (const stream of streams) assert.equal(countIn(await stream.data()), 2);

    await nodes.break(nodes.ownerOf(app));
    await nodes.settled();
    await track(front, app);
    for (const stream of streams) {
      assert.equal(countIn(await stream.until((usage) => countIn(usage) === 3)), 3);
    }
  },
});

Deno.test({
  name: "a leaving node keeps its streams until the end, and they delay no hand-over",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 2 });
    const [first] = nodes.all as [TestMember];
    const app = await appWithUser(first);
    const owner = nodes.ownerOf(app);
    const other = nodes.strangerTo(app);
    await using stream = await open(owner, app);
    await stream.data();
    assert.equal(await owner.service.leave(), true);
    assert.deepEqual(owner.serving.term.doors.held, []);
    await nodes.join();
    await track(other, app);
    assert.equal(countIn(await stream.data()), 1);
    owner.service.endStreams();
    await stream.ends("stopping");
  },
});

Deno.test({
  name: "streams through any node end like those at the owner",
  ignore,
  fn: async () => {
    await using nodes = await Nodes.open({ nodes: 1, fronts: 1 });
    const [owner] = nodes.all as [TestMember];
    const [front] = nodes.fronts as [TestMember];
    const app = await appWithUser(owner);
    await using merged = await open(front, app);
    await merged.data();
    const made = await owner.admin("POST", `/apps/${app.appId}/keys`, { class: "secret", mode: "live" });
    const { key, keyId } = made.body.data;
    await using revoked = await EventReader.open(front.http, "/usage/stream?userId=v", key);
    await revoked.data();
    await owner.ask(app.secretLive, "POST", "/customers/alias", { from: "u", to: "v" });
    await merged.ends("merged");
    assert.equal((await revoked.until(({ counters }) => counters.length > 0)).userId, "v");
    await owner.admin("DELETE", `/apps/${app.appId}/keys/${keyId}`);
    await revoked.ends("key_revoked");
  },
});
