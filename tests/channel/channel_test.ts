// Channels between nodes: batched calls, notifications, joining and leaving peers, losses, bounds. Streams and hostile
// peers have their own files.

import assert from "node:assert/strict";
import { KIND } from "../../src/channel/frames.ts";
import { ChannelFull, type Reply } from "../../src/channel/hub.ts";
import { CHANNEL_LIMITS } from "../../src/process/channel_limits.ts";
import {
  closeAll,
  type ClusterNode,
  connectAll,
  endOf,
  inVirtualTime,
  type MemoryLine,
  MemoryNetwork,
  startMember,
} from "./nodes.ts";
import { until } from "../support/until.ts";

const never = () => new Promise<never>(() => {});

Deno.test("of each pair the node with the higher term dials, once, and both make calls on that channel", async () => {
  const network = new MemoryNetwork();
  const nodes = await Promise.all([1, 2, 3].map((term) => startMember(term, { network })));
  await connectAll(...nodes);
  assert.equal(network.lines.length / 2, 3);
  for (const { hub, term, events } of nodes) {
    const others = [1, 2, 3].filter((other) => other !== term);
    for (const other of others) {
      const call = { from: term, text: "é" };
      assert.deepEqual(await hub.call(other, call), { head: call, body: "" });
    }
    assert.deepEqual([...events].sort(), others.map((other) => `opened ${other}`));
    assert.equal(hub.isOpen(term), false);
  }
  await closeAll(...nodes);
});

Deno.test("calls of one turn leave as one frame, and so do their answers", async () => {
  const network = new MemoryNetwork();
  const [one, two] = await Promise.all([startMember(1, { network }), startMember(2, { network })]);
  await connectAll(one, two);
  const numbers = Array.from({ length: 1_000 }, (_, index) => index);
  const calls: Promise<Reply>[] = [];
  for (const number of numbers) {
    calls.push(two.hub.call(1, number));
    // A turn of the event loop includes microtasks.
    await Promise.resolve();
  }
  const replies = await Promise.all(calls);
  assert.deepEqual(replies.map(({ head }) => head), numbers);
  assert.deepEqual(one.calls, numbers);
  const framesOf = (kind: number) =>
    network.lines.flatMap(({ written }) => written).filter((frame) => frame[4] === kind).length;
  assert.deepEqual([framesOf(KIND.calls), framesOf(KIND.answers)], [1, 1]);
  await closeAll(one, two);
});

Deno.test("text of any kind arrives unchanged, as a call and as an answer's body", async () => {
  const [one, two] = await Promise.all([startMember(1), startMember(2)]);
  await connectAll(one, two);
  const bodies = [
    "",
    "\n",
    "\ufeffmark",
    '"quoted" \\ \u0000 \u2028 \t\r\n',
    "😀 astral 𝔘𝔫𝔦 \u{10ffff}",
    "é".repeat(1024 * 1024),
    `[[1,null,3]]\nabc`,
    "",
    JSON.stringify({ a: "\n", "__proto__": 1 }),
  ];
  const replies = await Promise.all(bodies.map((body) => one.hub.call(2, { body, same: body })));
  assert.deepEqual(replies.map(({ body }) => body), bodies);
  assert.deepEqual(replies.map(({ head }) => head), bodies.map((body) => ({ body, same: body })));
  assert.deepEqual((await one.hub.call(2, null)).head, null);
  await closeAll(one, two);
});

Deno.test("answers arrive in the order in which they are ready, and only the call that fails is lost", async () => {
  const [one, two] = await Promise.all([
    startMember(1, {
      onCall: async (call) => {
        if (call === "fails") throw new Error("Not today");
        if (call === "badly") return { head: 1n, body: "" };
        if (call === "nothing") return undefined as never;
        if (call === "slow") await new Promise((resolve) => setTimeout(resolve, 20));
        return { head: call, body: `${call}` };
      },
    }),
    startMember(2),
  ]);
  await connectAll(one, two);
  const order: unknown[] = [];
  const calls = ["slow", "fails", "badly", "nothing", "quick"].map(async (call) => {
    const end = await endOf(two.hub.call(1, call));
    order.push(`${call}: ${end}`);
  });
  await Promise.all(calls);
  assert.equal(order.at(-1), "slow: resolved");
  assert.deepEqual(order.slice(0, -1).sort(), [
    "badly: ChannelLost",
    "fails: ChannelLost",
    "nothing: ChannelLost",
    "quick: resolved",
  ]);
  await closeAll(one, two);
});

Deno.test("notifications reach nodes with a channel, and are dropped without one", async () => {
  const nodes = await Promise.all([1, 2, 3].map((term) => startMember(term)));
  const [one, two, three] = nodes as [ClusterNode, ClusterNode, ClusterNode];
  one.hub.note(2, "too early");
  await connectAll(...nodes);
  one.hub.noteAll({ all: true });
  one.hub.note(3, "three alone");
  await until(() => three.notes.length === 2 && two.notes.length === 1);
  assert.deepEqual(two.notes, [{ all: true }]);
  assert.deepEqual(three.notes, [{ all: true }, "three alone"]);
  await closeAll(...nodes);
});

Deno.test("a lost channel loses its calls and no others, and another channel follows", async () => {
  const network = new MemoryNetwork();
  const answer = Promise.withResolvers<Reply>();
  const [one, two, three] = await Promise.all([
    startMember(1, { network, onCall: never }),
    startMember(2, { network }),
    startMember(3, { network, onCall: () => answer.promise }),
  ]);
  await connectAll(one, two);
  await connectAll(one, two, three);
  const lost = [two.hub.call(1, 1), two.hub.call(1, 2)].map(endOf);
  const kept = two.hub.call(3, 3);
  await until(() => one.calls.length === 2 && three.calls.length === 1);
  network.lines[0]?.close();
  assert.deepEqual(await Promise.all(lost), ["ChannelLost", "ChannelLost"]);
  answer.resolve({ head: "still", body: "" });
  assert.equal((await kept).head, "still");
  await until(() => two.hub.isOpen(1) && one.hub.isOpen(2));
  // A call that was sent is never sent again.
  assert.deepEqual(one.calls, [1, 2]);
  for (const [{ events }, other] of [[one, 2], [two, 1]] as const) {
    const ofPair = events.filter((event) => event.endsWith(` ${other}`));
    assert.deepEqual(ofPair, [`opened ${other}`, `lost ${other}`, `opened ${other}`]);
  }
  assert.deepEqual(three.events, ["opened 1", "opened 2"].filter((event) => three.events.includes(event)));
  await closeAll(one, two, three);
});

Deno.test("both nodes of a pair learn that the other process is gone, whichever dials", async () => {
  for (const ends of [0, 1]) {
    const nodes = await Promise.all([startMember(1), startMember(2)]);
    await connectAll(...nodes);
    const [ending, staying] = [nodes[ends], nodes[1 - ends]] as [ClusterNode, ClusterNode];
    await ending.hub.close();
    await until(() => staying.events.includes(`gone ${ending.term}`));
    assert.deepEqual(staying.events, [`opened ${ending.term}`, `lost ${ending.term}`, `gone ${ending.term}`]);
    // A hub does not report channels that it closed itself.
    assert.deepEqual(ending.events, [`opened ${staying.term}`]);
    assert.equal(await staying.hub.probe(ending.address, ending.term), "gone");
    await staying.hub.close();
  }
});

Deno.test("a node that never existed is reported as gone once, and found when it starts", async () => {
  const network = new MemoryNetwork();
  const two = await startMember(2, { network });
  two.hub.setPeers([{ term: 1, address: "memory:2" }]);
  await until(() => two.events.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.deepEqual(two.events, ["gone 1"]);
  const one = await startMember(1, { network });
  assert.equal(one.address, "memory:2");
  one.hub.setPeers([two]);
  await until(() => one.hub.isOpen(2) && two.hub.isOpen(1));
  await closeAll(one, two);
});

Deno.test("setPeers adds and removes nodes, and a new node may dial before it is known", async () => {
  const [one, two] = await Promise.all([startMember(1, { onCall: never }), startMember(2)]);
  two.hub.setPeers([one]);
  // The new node has proved its identity and waits.
  await until(() => one.hub.stats.framesReceived === 2);
  assert.equal(two.hub.isOpen(1), false);
  one.hub.setPeers([two]);
  await until(() => one.hub.isOpen(2) && two.hub.isOpen(1));
  assert.equal(two.hub.stats.lost + one.hub.stats.refusedPeers, 0);
  const under = endOf(two.hub.call(1, {}));
  await until(() => one.calls.length === 1);
  two.hub.setPeers([]);
  assert.equal(await under, "ChannelLost");
  assert.deepEqual(two.events, ["opened 1"]);
  await until(() => !one.hub.isOpen(2));
  two.hub.setPeers([one]);
  await until(() => one.hub.isOpen(2) && two.hub.isOpen(1));
  await closeAll(one, two);
});

Deno.test("a probe shows which node is at an address, and opens no channel", async () => {
  const [one, two] = await Promise.all([startMember(1), startMember(2)]);
  assert.equal(await two.hub.probe(one.address, 1), "alive");
  assert.equal(await one.hub.probe(two.address, 2), "alive");
  assert.equal(await one.hub.probe(two.address, 7), "gone");
  assert.equal(await one.hub.probe(one.address, 7), "gone");
  const stranger = await startMember(3, { identity: { secret: "another" } });
  assert.equal(await one.hub.probe(stranger.address, 3), "unknown");
  const newer = await startMember(4, { identity: { protocol: 2 } });
  assert.equal(await one.hub.probe(newer.address, 7), "unknown");
  assert.deepEqual([one.events, two.events], [[], []]);
  await closeAll(two, stranger, newer);
  // The system accepts one more connection and breaks it, which proves nothing.
  let found = await one.hub.probe(two.address, 2);
  if (found === "unknown") found = await one.hub.probe(two.address, 2);
  assert.equal(found, "gone");
  await closeAll(one);
});

Deno.test("a node that answers at the address of another node shows that the other is gone", async () => {
  const network = new MemoryNetwork();
  const [two, three] = await Promise.all([startMember(2, { network }), startMember(3, { network })]);
  three.hub.setPeers([{ term: 1, address: two.address }, two]);
  two.hub.setPeers([three]);
  await until(() => three.events.includes("gone 1") && three.hub.isOpen(2));
  assert.equal(three.hub.isOpen(1), false);
  await closeAll(two, three);
});

Deno.test("a leaving node answers calls under way and takes no new ones", async () => {
  const network = new MemoryNetwork();
  const answer = Promise.withResolvers<Reply>();
  const one = await startMember(1, { network, onCall: () => answer.promise });
  const two = await startMember(2, { network });
  await connectAll(one, two);
  const before = two.hub.call(1, "before");
  await until(() => one.calls.length === 1);
  const closed = one.hub.close();
  const { signal } = new AbortController();
  const crossing = [two.hub.call(1, "crossing"), two.hub.request(1, "crossing", new Uint8Array(), signal)];
  assert.deepEqual(await Promise.all(crossing.map(endOf)), ["ChannelFull", "ChannelFull"]);
  await until(() => !two.hub.isOpen(1));
  assert.equal(await endOf(two.hub.call(1, "after")), "ChannelFull");
  answer.resolve({ head: "answered", body: "" });
  assert.equal((await before).head, "answered");
  await closed;
  assert.deepEqual(one.calls, ["before"]);
  await two.hub.close();
});

Deno.test("a channel at its bound of calls takes no more, and other channels do", async () => {
  const network = new MemoryNetwork();
  const [one, two, three] = await Promise.all([
    startMember(1, { network, onCall: never }),
    startMember(2, { network }),
    startMember(3, { network }),
  ]);
  await connectAll(one, two, three);
  const calls = Array.from({ length: CHANNEL_LIMITS.callsMax }, (_, index) => endOf(two.hub.call(1, index)));
  assert.equal(await endOf(two.hub.call(1, "more")), "ChannelFull");
  assert.equal((await two.hub.call(3, "others")).head, "others");
  await until(() => one.calls.length === CHANNEL_LIMITS.callsMax);
  assert.ok(two.hub.isOpen(1));
  two.hub.setPeers([]);
  assert.deepEqual(new Set(await Promise.all(calls)), new Set(["ChannelLost"]));
  await closeAll(one, two, three);
});

Deno.test("data that waits to be written is bounded, and calls larger than a frame are refused", async () => {
  const network = new MemoryNetwork();
  const [one, two] = await Promise.all([startMember(1, { network }), startMember(2, { network })]);
  await connectAll(one, two);
  assert.equal(await endOf(two.hub.call(1, "x".repeat(CHANNEL_LIMITS.frameBytesMax))), "ChannelFull");
  // As many characters, of three bytes each.
  assert.equal(await endOf(two.hub.call(1, "€".repeat(CHANNEL_LIMITS.frameBytesMax / 2))), "ChannelFull");
  network.lines[0]?.hold();
  const large = "x".repeat(CHANNEL_LIMITS.frameBytesMax - 100);
  const held = Array.from({ length: 4 }, () => endOf(two.hub.call(1, large)));
  assert.equal(await endOf(two.hub.call(1, large)), "ChannelFull");
  network.lines[0]?.letGo();
  assert.deepEqual(await Promise.all(held), Array(4).fill("resolved"));
  await closeAll(one, two);
});

Deno.test("an answer without room in its channel is lost, and other answers are not", () =>
  inVirtualTime(async () => {
    const network = new MemoryNetwork();
    const body = "x".repeat(CHANNEL_LIMITS.waitingBytesMax / 5);
    const answer = () => Promise.resolve({ head: null, body });
    const [one, two] = await Promise.all([
      startMember(1, { network, onCall: answer }),
      startMember(2, { network }),
    ]);
    await connectAll(one, two);
    network.lines[1]?.hold();
    const calls = Array.from({ length: 6 }, (_, call) => endOf(two.hub.call(1, call)));
    await until(() => one.calls.length === 6);
    network.lines[1]?.letGo();
    const ends = await Promise.all(calls);
    assert.deepEqual(ends.toSorted(), ["ChannelLost", "ChannelLost", ...Array(4).fill("resolved")]);
    await closeAll(one, two);
  }));

Deno.test("while a write is under way the next frame fills", async () => {
  const network = new MemoryNetwork();
  const [one, two] = await Promise.all([startMember(1, { network }), startMember(2, { network })]);
  await connectAll(one, two);
  const line = network.lines[0] as MemoryLine;
  line.hold();
  const calls = [two.hub.call(1, "first")];
  await new Promise((resolve) => setTimeout(resolve, 5));
  for (let call = 0; call < 100; call++) {
    calls.push(two.hub.call(1, call));
    if (call % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  const before = line.written.length;
  line.letGo();
  await Promise.all(calls);
  assert.equal(line.written.slice(before).filter((frame) => frame[4] === KIND.calls).length, 2);
  assert.deepEqual(one.calls, ["first", ...Array.from({ length: 100 }, (_, call) => call)]);
  await closeAll(one, two);
});

Deno.test("a call without a channel did not run", async () => {
  const one = await startMember(1);
  await assert.rejects(one.hub.call(2, {}), ChannelFull);
  await assert.rejects(
    one.hub.request(2, {}, new Uint8Array(), new AbortController().signal),
    ChannelFull,
  );
  await closeAll(one);
});
