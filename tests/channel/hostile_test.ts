// Hostile and broken peers: their data costs only their own connection. Other nodes are not affected, and frames that were
// recorded, or belong to another role or handshake, open nothing.

import assert from "node:assert/strict";
import {
  FrameReader,
  HELLO_BOUNDS,
  idFrame,
  jsonLineFrame,
  KIND,
  textFrame,
} from "../../src/channel/frames.ts";
import { ChannelStats, type Identity, type Reply } from "../../src/channel/hub.ts";
import type { Connection } from "../../src/channel/network.ts";
import { CHANNEL_LIMITS } from "../../src/process/channel_limits.ts";
import {
  closeAll,
  connectAll,
  endOf,
  linePair,
  type MemoryLine,
  MemoryNetwork,
  sleep,
  startMember,
  tcp,
} from "./nodes.ts";
import { closedBy, identityOf, meet, pass, textIn } from "./strangers.ts";
import { until } from "../support/until.ts";

/** The header of a frame, with any length and kind. */
function header(length: number, kind: number): Uint8Array {
  const bytes = new Uint8Array(5);
  new DataView(bytes.buffer).setUint32(0, length);
  bytes[4] = kind;
  return bytes;
}

Deno.test("a stranger's bytes cost its connection, and nodes go on", async () => {
  const [one, two] = await Promise.all([startMember(1), startMember(2)]);
  await connectAll(one, two);
  const network = tcp();
  const openings: Record<string, Uint8Array> = {
    garbage: crypto.getRandomValues(new Uint8Array(1_000)),
    http: new TextEncoder().encode("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a length of gigabytes": header(0xffff_ffff, KIND.hello),
    "a hello above its bound": header(CHANNEL_LIMITS.helloBytesMax + 1, KIND.hello),
    "calls before a hello": textFrame(KIND.calls, `[[1,"run me"]]`),
    "an unknown kind": textFrame(99, "{}"),
    "no JSON": textFrame(KIND.hello, "{"),
    "no text": new Uint8Array([...header(2, KIND.hello), 0xff, 0xff]),
    "null": textFrame(KIND.hello, "null"),
    "no nonce": textFrame(KIND.hello, "{}"),
    "an invalid nonce": textFrame(KIND.hello, `{"nonce":["${"0".repeat(64)}"]}`),
    "the end of a hello": textFrame(KIND.dialerProof, "{}"),
  };
  for (const [name, bytes] of Object.entries(openings)) {
    const line = await network.connect(one.address);
    const refused = one.hub.stats.refusedPeers;
    await line.write(bytes);
    await closedBy(line);
    line.close();
    assert.equal(one.hub.stats.refusedPeers, refused + 1, name);
    assert.equal((await two.hub.call(1, name)).head, name);
  }
  const half = await network.connect(one.address);
  await half.write(textFrame(KIND.hello, `{"protocol":1,"nonce":"${"0".repeat(64)}"}`).subarray(0, 20));
  half.close();
  await until(() => one.hub.stats.refusedPeers === Object.keys(openings).length + 1);
  assert.deepEqual(one.calls, Object.keys(openings));
  assert.equal(one.hub.stats.lost + two.hub.stats.lost, 0);
  await closeAll(one, two);
});

Deno.test("a stranger learns a protocol and a nonce, and without a proof nothing else", async () => {
  const one = await startMember(1);
  const line = await tcp().connect(one.address);
  const reader = new FrameReader(line, new ChannelStats());
  await line.write(textFrame(KIND.hello, `{"protocol":1,"nonce":"${"0".repeat(64)}"}`));
  const challenge = await reader.next(HELLO_BOUNDS);
  const said = JSON.parse(new TextDecoder().decode(challenge?.payload));
  assert.deepEqual(Object.keys(said), ["protocol", "nonce"]);
  await line.write(
    textFrame(
      KIND.dialerProof,
      JSON.stringify({ term: 2, expected: 1, intent: "channel", proof: "0".repeat(64) }),
    ),
  );
  assert.equal(await reader.next(HELLO_BOUNDS).catch(() => null), null);
  line.close();
  await closeAll(one);
});

Deno.test("a dialer with another secret, database, protocol or term gets no channel", async () => {
  const one = await startMember(5);
  one.hub.setPeers([4, 6].map((term) => ({ term, address: "127.0.0.1:1" })));
  const attempts: [string, number, number, Partial<Identity>][] = [
    ["the secret", 6, 5, { secret: "a guess" }],
    ["the database", 6, 5, { database: "db2" }],
    ["the protocol", 6, 5, { protocol: 2 }],
    ["the term it expects", 6, 3, {}],
    ["the order of terms", 4, 5, {}],
    ["our own term", 5, 5, {}],
  ];
  for (const [name, term, expected, parts] of attempts) {
    const line = await tcp().connect(one.address);
    await meet(line, term, expected, "channel", identityOf(term, parts)).catch(() => {});
    await closedByNow(line);
    assert.equal(one.hub.stats.opened, 0, name);
  }
  const line = await tcp().connect(one.address);
  assert.equal((await meet(line, 6, 5)).found, 5);
  await until(() => one.hub.stats.opened === 1);
  line.close();
  await closeAll(one);
});

/** Ends our side, so that the other side closes. */
async function closedByNow(line: Connection): Promise<void> {
  line.close();
  await sleep(10);
}

Deno.test("a dialer accepts a listener as a node only by its proof", async () => {
  const answers: [string, (line: Connection) => Promise<void>][] = [
    ["its own words", async (line) => {
      for (let bytes = await line.read(); bytes !== null; bytes = await line.read()) await line.write(bytes);
    }],
    ["a guess", async (line) => {
      const reader = new FrameReader(line, new ChannelStats());
      await textIn(reader);
      await line.write(textFrame(KIND.challenge, JSON.stringify({ protocol: 1, nonce: "0".repeat(64) })));
      await textIn(reader);
      await line.write(textFrame(KIND.listenerProof, JSON.stringify({ term: 1, proof: "0".repeat(64) })));
    }],
    ["its own proof", async (line) => {
      const reader = new FrameReader(line, new ChannelStats());
      const hello = await textIn(reader);
      await line.write(textFrame(KIND.challenge, JSON.stringify({ protocol: 1, nonce: hello.nonce })));
      const { proof } = await textIn(reader);
      await line.write(textFrame(KIND.listenerProof, JSON.stringify({ term: 1, proof })));
    }],
    ["an end", (line) => Promise.resolve(line.close())],
  ];
  for (const [name, answer] of answers) {
    const [ours, theirs] = linePair();
    const answered = answer(theirs).catch(() => {});
    assert.notEqual(await endOf(meet(ours, 2, 1)), "resolved", name);
    ours.close();
    await answered;
  }
});

Deno.test("a handshake that was recorded opens nothing a second time", async () => {
  const network = new MemoryNetwork();
  const [one, two] = await Promise.all([startMember(1, { network }), startMember(2, { network })]);
  await connectAll(one, two);
  const recorded = (network.lines[0] as MemoryLine).written.slice(0, 2);
  assert.deepEqual(recorded.map((frame) => frame[4]), [KIND.hello, KIND.dialerProof]);
  two.hub.setPeers([]);
  await until(() => !one.hub.isOpen(2));
  const opened = one.hub.stats.opened;
  const line = await network.connect(one.address);
  for (const frame of recorded) await line.write(frame);
  await line.write(textFrame(KIND.calls, `[[1,"replayed"]]`));
  await closedBy(line);
  assert.equal(one.hub.stats.opened, opened);
  assert.deepEqual(one.calls, []);

  // The same with the listener's half, sent to a dialer.
  const listener = (network.lines[1] as MemoryLine).written.slice(0, 2);
  const [ours, theirs] = linePair();
  for (const frame of listener) await theirs.write(frame);
  await assert.rejects(meet(ours, 2, 1));
  await closeAll(one, two);
});

Deno.test("a proof that is sent back to its maker, or on to another node, opens no channel", async () => {
  // A stranger at the address of node 1 passes the frames of 3 on to 3 itself, or to 2.
  for (const target of [3, 2]) {
    const network = new MemoryNetwork();
    const [two, three] = await Promise.all([startMember(2, { network }), startMember(3, { network })]);
    const between = await network.listen(async (line) => {
      const on = await network.connect((target === 3 ? three : two).address);
      void pass(line, on);
      void pass(on, line);
    });
    three.hub.setPeers([{ term: 1, address: between.address }]);
    two.hub.setPeers([{ term: 3, address: "memory:0" }, { term: 1, address: between.address }]);
    await until(() => (target === 3 ? three : two).hub.stats.refusedPeers >= 1);
    assert.equal(two.hub.stats.opened + three.hub.stats.opened, 0);
    // Our own proof proves nothing about the process of another node.
    assert.equal(await three.hub.probe(between.address, 1), target === 3 ? "unknown" : "gone");
    await closeAll(two, three);
  }
});

Deno.test("a proved peer that violates the protocol loses its channel, and others keep theirs", async () => {
  const { callsMax, requestsMax, frameBytesMax, chunkBytesMax } = CHANNEL_LIMITS;
  const calls = `[${Array.from({ length: callsMax + 1 }, (_, id) => `[${id},0]`)}]`;
  const request = (id: number) => jsonLineFrame(KIND.request, `[${id},"waits"]`, new Uint8Array());
  const breaks: Record<string, readonly Uint8Array[]> = {
    "an answer to an unknown call": [textFrame(KIND.answers, `[[1,null,0]]\n`)],
    "an answer longer than its frame": [textFrame(KIND.answers, `[[1,null,5]]\nabc`)],
    "answers without a line": [textFrame(KIND.answers, `[[1,null,0]]`)],
    "more calls than the bound": [textFrame(KIND.calls, calls)],
    "more requests than the bound": Array.from({ length: requestsMax + 1 }, (_, id) => request(id)),
    "a request twice": [request(1), request(1)],
    "calls that are no list": [textFrame(KIND.calls, `{"length":1}`)],
    "a call without a number": [textFrame(KIND.calls, `[["1",null]]`)],
    "no JSON": [textFrame(KIND.notes, "[")],
    "no text": [new Uint8Array([...header(5, KIND.notes), 0x5b, 0x22, 0xff, 0x22, 0x5d])],
    "an unknown kind": [textFrame(99, "")],
    "a hello again": [textFrame(KIND.hello, "{}")],
    "a frame of gigabytes": [header(0xffff_ffff, KIND.calls)],
    "a frame above its bound": [header(frameBytesMax + 1, KIND.calls)],
    "a piece above its bound": [header(chunkBytesMax + 9, KIND.replyChunk)],
    "a ping that says something": [textFrame(KIND.ping, "x")],
    "a piece of an answer to nothing": [idFrame(KIND.replyChunk, 7, new Uint8Array(9))],
    "a head of an answer to nothing": [textFrame(KIND.replyHead, "[7,null,true]")],
    "an end of nothing": [idFrame(KIND.replyEnd, 7)],
    "an end without a number": [textFrame(KIND.replyEnd, "")],
    "more credit than there is room": [request(1), idFrame(KIND.credit, 1, new Uint8Array([1, 0, 0, 0]))],
  };
  const network = new MemoryNetwork();
  const never = () => new Promise<never>(() => {});
  const [one, two] = await Promise.all([
    startMember(1, {
      network,
      onCall: (call) => call === 0 ? never() : Promise.resolve<Reply>({ head: call, body: "" }),
      onRequest: never,
    }),
    startMember(2, { network }),
  ]);
  await connectAll(one, two);
  const known = [two, { term: 3, address: "memory:nowhere" }];
  one.hub.setPeers(known);
  for (const [name, frames] of Object.entries(breaks)) {
    const line = await network.connect(one.address);
    await meet(line, 3, 1);
    await until(() => one.hub.isOpen(3));
    const refused = one.hub.stats.refusedPeers;
    for (const frame of frames) await line.write(frame).catch(() => {});
    await until(() => !one.hub.isOpen(3));
    assert.ok((line as MemoryLine).peer.isClosed, name);
    assert.equal(one.hub.stats.refusedPeers, refused + 1, name);
    assert.equal((await two.hub.call(1, name)).head, name);
  }
  assert.equal(two.hub.stats.lost, 0);
  await closeAll(one, two);
});

Deno.test("a proved peer with a malformed answer loses its channel", async () => {
  const network = new MemoryNetwork();
  const one = await startMember(1, { network });
  one.hub.setPeers([{ term: 3, address: "memory:nowhere" }]);
  const openTo = async () => {
    const line = await network.connect(one.address);
    await meet(line, 3, 1);
    await until(() => one.hub.isOpen(3));
    return line;
  };
  for (
    const answer of ["[[1,null,5]]\nabc", "[[1,null,-3]]\n", "[[1,null,3],[1,null,0]]\nabc", "[[1,null]]\n"]
  ) {
    const line = await openTo();
    const called = endOf(one.hub.call(3, "x"));
    await sleep(1);
    await line.write(textFrame(KIND.answers, answer));
    assert.equal(await called, answer.startsWith("[[1,null,3]") ? "resolved" : "ChannelLost", answer);
    await until(() => !one.hub.isOpen(3));
  }
  // More of a stream than its reader has room for.
  const line = await openTo();
  const { signal } = new AbortController();
  const asked = one.hub.request(3, "x", new Uint8Array(), signal);
  await sleep(1);
  await line.write(textFrame(KIND.replyHead, "[1,null,true]"));
  const { body } = await asked;
  const chunk = idFrame(KIND.replyChunk, 1, new Uint8Array(CHANNEL_LIMITS.chunkBytesMax));
  for (let sent = 0; sent < CHANNEL_LIMITS.streamBytesMax; sent += CHANNEL_LIMITS.chunkBytesMax) {
    await line.write(chunk);
  }
  await sleep(1);
  assert.ok(one.hub.isOpen(3));
  const refused = one.hub.stats.refusedPeers;
  await line.write(chunk);
  await until(() => !one.hub.isOpen(3));
  assert.equal(one.hub.stats.refusedPeers, refused + 1);
  assert.equal(await endOf(new Response(body).bytes()), "ChannelLost");
  await closeAll(one);
});

Deno.test("frames that cross a cancellation or an end are not faults", async () => {
  const network = new MemoryNetwork();
  const one = await startMember(1, { network });
  one.hub.setPeers([{ term: 3, address: "memory:nowhere" }]);
  const line = await network.connect(one.address);
  await meet(line, 3, 1);
  await line.write(idFrame(KIND.cancel, 7));
  await line.write(idFrame(KIND.credit, 7, new Uint8Array([0, 0, 0, 9])));
  await line.write(textFrame(KIND.calls, `[[1,"still"]]`));
  await until(() => one.calls.length === 1);
  assert.ok(one.hub.isOpen(3));
  line.close();
  await closeAll(one);
});

Deno.test("a frame in the smallest pieces is a frame, and so are many in one piece", async () => {
  const network = new MemoryNetwork();
  const one = await startMember(1, { network });
  one.hub.setPeers([{ term: 3, address: "memory:nowhere" }]);
  const line = await network.connect(one.address);
  await meet(line, 3, 1);
  const frames = Array.from({ length: 5 }, (_, id) => textFrame(KIND.calls, `[[${id},"é${id}"]]`));
  const bytes = new Uint8Array(frames.flatMap((frame) => [...frame]));
  for (const size of [1, 3, 7, bytes.length, 2]) {
    const before = one.calls.length;
    for (let at = 0; at < bytes.length; at += size) await line.write(bytes.subarray(at, at + size));
    await until(() => one.calls.length === before + 5);
    assert.deepEqual(one.calls.slice(before), ["é0", "é1", "é2", "é3", "é4"]);
  }
  line.close();
  await closeAll(one);
});

Deno.test("200 silent connections do not keep nodes from connecting", async () => {
  const one = await startMember(1);
  const network = tcp();
  const idle = await Promise.all(Array.from({ length: 200 }, () => network.connect(one.address)));
  // All but the last 64 were closed for a newer connection.
  await until(() => one.hub.stats.refusedPeers === 200 - CHANNEL_LIMITS.unprovedMax);
  const two = await startMember(2);
  await connectAll(one, two);
  assert.equal((await two.hub.call(1, "through")).head, "through");
  for (const line of idle) line.close();
  await until(() => one.hub.stats.refusedPeers === 200);
  assert.ok(one.hub.isOpen(2));
  await closeAll(one, two);
});

Deno.test("a handshake with frames changed in transit opens nothing", async () => {
  const changes: [string, RegExp, string, Partial<Identity>][] = [
    ["nothing", /"term":3/, `"term":3`, {}],
    ["the dialer's term", /"term":3/, `"term":4`, {}],
    ["the listener's term", /"term":1,"proof"/, `"term":2,"proof"`, {}],
    ["the expected term", /"expected":2/, `"expected":1`, {}],
    ["the intent", /"intent":"probe"/, `"intent":"channel"`, {}],
    ["the protocol", /"protocol":[12]/, `"protocol":1`, { protocol: 2 }],
  ];
  for (const [name, pattern, word, parts] of changes) {
    const network = new MemoryNetwork();
    const one = await startMember(1, { network });
    one.hub.setPeers([3, 4].map((term) => ({ term, address: "memory:nowhere" })));
    const [ours, theirs] = linePair();
    const on = await network.connect(one.address);
    void pass(theirs, on, (text) => text.replace(pattern, name === "the protocol" ? `"protocol":1` : word));
    void pass(on, theirs, (text) => text.replace(pattern, name === "the protocol" ? `"protocol":2` : word));
    const intent = name === "the intent" ? "probe" : "channel";
    const expected = name === "the expected term" ? 2 : 1;
    const met = await endOf(meet(ours, 3, expected, intent, identityOf(3, parts)));
    await sleep(5);
    assert.equal(met === "resolved", name === "nothing", name);
    // The listener's proof comes last: the listener has opened its side, and the dialer closes.
    const isOpened = name === "nothing" || name === "the listener's term";
    assert.equal(one.hub.stats.opened, isOpened ? 1 : 0, name);
    ours.close();
    await closeAll(one);
  }
});
