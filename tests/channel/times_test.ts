// Channels over time: silence, waiting strangers, new nodes, redialing. All in the simulator's virtual time on a network
// in memory, so that minutes pass at once.

import assert from "node:assert/strict";
import { CHANNEL_BOUNDS, KIND, textFrame } from "../../src/channel/frames.ts";
import { CHANNEL_LIMITS } from "../../src/process/channel_limits.ts";
import {
  closeAll,
  connectAll,
  endOf,
  inVirtualTime,
  type MemoryLine,
  MemoryNetwork,
  sleep,
  startMember,
} from "./nodes.ts";
import { meet } from "./strangers.ts";
import { until } from "../support/until.ts";

Deno.test("a connection has the time of a hello to prove something, and a new node as long to become known", () =>
  inVirtualTime(async (time) => {
    const network = new MemoryNetwork();
    const one = await startMember(1, { network });
    const silent = await network.connect(one.address);
    const halfway = await network.connect(one.address);
    await halfway.write(textFrame(KIND.hello, `{"protocol":1,"nonce":"${"0".repeat(64)}"}`));
    const unknown = await network.connect(one.address);
    const met = endOf(meet(unknown, 9, 1));
    const ends = [silent, halfway, unknown].map((line) => (line as MemoryLine).peer);
    await until(() => ends.every(({ isClosed }) => isClosed));
    assert.ok(time.now >= CHANNEL_LIMITS.helloMs && time.now < CHANNEL_LIMITS.helloMs + 100);
    assert.equal(await met, "ProtocolFault");
    assert.deepEqual([one.hub.stats.refusedPeers, one.hub.stats.opened], [3, 0]);
    await closeAll(one);
  }));

Deno.test("unknown new nodes are bounded, and a node that connects again takes its own place", () =>
  inVirtualTime(async () => {
    const network = new MemoryNetwork();
    const one = await startMember(1, { network });
    const newcomers = async (term: number) => {
      const line = await network.connect(one.address);
      const met = endOf(meet(line, term, 1));
      await sleep(1);
      return { line: line as MemoryLine, met };
    };
    const first = await newcomers(2);
    const again = await newcomers(2);
    assert.ok(first.line.peer.isClosed && !again.line.peer.isClosed);
    const others = [];
    for (let term = 3; term < 3 + CHANNEL_LIMITS.unknownMax; term++) others.push(await newcomers(term));
    assert.equal(others.filter(({ line }) => line.peer.isClosed).length, 1);
    one.hub.setPeers([{ term: 2, address: "memory:nowhere" }]);
    assert.equal(await again.met, "resolved");
    assert.ok(one.hub.isOpen(2));
    again.line.close();
    await closeAll(one);
  }));

Deno.test("a peer that falls silent loses its channel after 2 s and gets another one", () =>
  inVirtualTime(async (time) => {
    const network = new MemoryNetwork();
    const [one, two] = await Promise.all([startMember(1, { network }), startMember(2, { network })]);
    await connectAll(one, two);
    await sleep(60_000);
    assert.deepEqual([one.events, two.events], [["opened 2"], ["opened 1"]]);
    network.lines[1]?.hold();
    const before = time.now;
    assert.equal(await endOf(two.hub.call(1, "silence")), "ChannelLost");
    const silentMs = time.now - before;
    assert.ok(silentMs > 1_500 && silentMs <= 2_500, `${silentMs} ms`);
    await until(() => two.hub.isOpen(1) && one.hub.isOpen(2));
    assert.deepEqual(one.calls, ["silence"]);
    assert.deepEqual(two.events, ["opened 1", "lost 1", "opened 1"]);
    await closeAll(one, two);
  }));

Deno.test("a peer that reads and sends nothing loses its channel", () =>
  inVirtualTime(async (time) => {
    const network = new MemoryNetwork();
    const one = await startMember(1, { network });
    one.hub.setPeers([{ term: 3, address: "memory:nowhere" }]);
    const line = await network.connect(one.address);
    const { reader } = await meet(line, 3, 1);
    while (await reader.next(CHANNEL_BOUNDS) !== null);
    assert.ok(time.now >= 2_000 && time.now <= 2_600, `${time.now} ms`);
    assert.deepEqual(one.events.slice(0, 2), ["opened 3", "lost 3"]);
    await closeAll(one);
  }));

Deno.test("after it was frozen a process gives its peer time to be heard", () =>
  inVirtualTime(async (time) => {
    const network = new MemoryNetwork();
    const [one, two] = await Promise.all([startMember(1, { network }), startMember(2, { network })]);
    await connectAll(one, two);
    // The whole process is frozen, both nodes included.
    time.now += 10_000;
    await sleep(5_000);
    assert.deepEqual([one.events, two.events], [["opened 2"], ["opened 1"]]);
    await closeAll(one, two);
  }));

Deno.test("a peer that sends and reads nothing loses its channel", () =>
  inVirtualTime(async () => {
    const network = new MemoryNetwork();
    const one = await startMember(1, { network });
    one.hub.setPeers([{ term: 3, address: "memory:nowhere" }]);
    const line = await network.connect(one.address) as MemoryLine;
    await meet(line, 3, 1);
    const pings = setInterval(() => void line.write(textFrame(KIND.ping, "")).catch(() => {}), 100);
    // Between two of its own pings.
    await sleep(10_250);
    assert.ok(one.hub.isOpen(3));
    line.peer.hold();
    assert.equal(await endOf(one.hub.call(3, "read me")), "ChannelLost");
    clearInterval(pings);
    await closeAll(one);
  }));

Deno.test("a call that has not left when the channel is lost did not run", () =>
  inVirtualTime(async () => {
    const network = new MemoryNetwork();
    const [one, two] = await Promise.all([startMember(1, { network }), startMember(2, { network })]);
    await connectAll(one, two);
    const line = network.lines[0] as MemoryLine;
    line.hold();
    const { signal } = new AbortController();
    const ask = (name: string) => endOf(two.hub.request(1, name, new Uint8Array(), signal));
    const left = endOf(two.hub.call(1, "left"));
    await sleep(1);
    const waiting = [endOf(two.hub.call(1, "waits")), ask("waits")];
    await sleep(1);
    line.close();
    assert.equal(await left, "ChannelLost");
    assert.deepEqual(await Promise.all(waiting), ["ChannelFull", "ChannelFull"]);
    assert.deepEqual(one.calls, []);
    await closeAll(one, two);
  }));

Deno.test("a silent address proves nothing, and is dialed again more and more rarely", () =>
  inVirtualTime(async () => {
    const network = new MemoryNetwork();
    const two = await startMember(2, { network });
    const silent = await network.listen(() => {});
    assert.equal(await two.hub.probe(silent.address, 1), "unknown");
    const noRoute = {
      listen: network.listen.bind(network),
      connect: () => Promise.reject(new Error("No route")),
    };
    const three = await startMember(3, { network: noRoute });
    assert.equal(await three.hub.probe(silent.address, 1), "unknown");
    let dials = 0;
    const counted = {
      listen: network.listen.bind(network),
      connect: (address: string) => {
        dials++;
        return network.connect(address);
      },
    };
    const four = await startMember(4, { network: counted });
    four.hub.setPeers([{ term: 1, address: "memory:nowhere" }]);
    await sleep(60_000);
    assert.ok(dials >= 60 && dials <= 70, `${dials} dials in a minute`);
    assert.deepEqual(four.events, ["gone 1"]);
    assert.deepEqual([two.events, three.events], [[], []]);
    await closeAll(two, three, four);
  }));
