// HTTP requests with streamed answers: what arrives, flow control, and how either side ends an answer early.

import assert from "node:assert/strict";
import { ChannelFull, ChannelLost, type Receiver, type StreamedReply } from "../../src/channel/hub.ts";
import { CHANNEL_LIMITS } from "../../src/process/channel_limits.ts";
import { closeAll, type ClusterNode, connectAll, endOf, MemoryNetwork, startMember } from "./nodes.ts";
import { until } from "../support/until.ts";

const { signal: wanted } = new AbortController();
const NO_BYTES = new Uint8Array(0);

/** Starts two nodes with a channel; the first serves requests. */
async function pairServing(
  onRequest: Receiver["onRequest"],
  network?: MemoryNetwork,
): Promise<[ClusterNode, ClusterNode]> {
  const over = network === undefined ? {} : { network };
  const nodes = await Promise.all([startMember(1, { ...over, onRequest }), startMember(2, over)]);
  await connectAll(...nodes);
  return nodes;
}

/** A body without an end that counts the bytes taken from it. */
function endless(): { body: ReadableStream<Uint8Array>; taken: () => number; ended: Promise<unknown> } {
  let taken = 0;
  const { promise: ended, resolve } = Promise.withResolvers<unknown>();
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      taken += 10_000;
      controller.enqueue(new Uint8Array(10_000));
    },
    cancel: resolve,
  }, { highWaterMark: 0 });
  return { body, taken: () => taken, ended };
}

async function bytesOf({ body }: StreamedReply): Promise<Uint8Array> {
  return new Uint8Array(await new Response(body).arrayBuffer());
}

Deno.test("a request and its answer arrive whole, large, small and empty", async () => {
  const [one, two] = await pairServing((head, body, from) =>
    Promise.resolve({
      head: { head, from },
      body: (head as { isBare: boolean }).isBare ? null : new Response(body.slice()).body,
    })
  );
  const large = crypto.getRandomValues(new Uint8Array(65_536));
  const bodies = [NO_BYTES, new Uint8Array([10, 0, 255, 10]), new Uint8Array(3 * 1024 * 1024).fill(7), large];
  const replies = await Promise.all(
    bodies.map((body, index) => two.hub.request(1, { index, isBare: false }, body, wanted)),
  );
  for (const [index, reply] of replies.entries()) {
    assert.deepEqual(reply.head, { head: { index, isBare: false }, from: 2 });
    assert.ok(Buffer.from(await bytesOf(reply)).equals(bodies[index] as Uint8Array));
  }
  const bare = await two.hub.request(1, { isBare: true, text: "é\n😀" }, large, wanted);
  assert.deepEqual(bare, { head: { head: { isBare: true, text: "é\n😀" }, from: 2 }, body: null });
  await closeAll(one, two);
});

Deno.test("a slow reader delays only its own stream", async () => {
  const slow = endless();
  const quickBytes = 2 * 1024 * 1024;
  const [one, two] = await pairServing((head) =>
    Promise.resolve({
      head,
      body: head === "slow" ? slow.body : new Response(new Uint8Array(quickBytes)).body,
    })
  );
  const { body } = await two.hub.request(1, "slow", NO_BYTES, wanted);
  await until(() => slow.taken() >= CHANNEL_LIMITS.streamBytesMax);
  for (let round = 0; round < 20; round++) assert.equal((await two.hub.call(1, round)).head, round);
  const quick = await two.hub.request(1, "quick", NO_BYTES, wanted);
  assert.equal((await bytesOf(quick)).length, quickBytes);
  // One more piece waits for room.
  assert.ok(slow.taken() <= CHANNEL_LIMITS.streamBytesMax + 20_000, `${slow.taken()} bytes taken`);
  const reader = body?.getReader();
  for (let read = 0; read < 3 * CHANNEL_LIMITS.streamBytesMax;) {
    read += (await reader?.read())?.value?.length ?? 0;
  }
  await reader?.cancel("enough");
  await slow.ended;
  await closeAll(one, two);
});

Deno.test("answers to a peer that reads nothing stay at their sources, however many they are", async () => {
  const network = new MemoryNetwork();
  const sources = Array.from({ length: 20 }, endless);
  const [one, two] = await pairServing((head) => {
    return Promise.resolve({ head, body: sources[head as number]?.body ?? null });
  }, network);
  network.lines[1]?.hold();
  const asked = sources.map((_, index) => endOf(two.hub.request(1, index, NO_BYTES, wanted)));
  await until(() => sources.every(({ taken }) => taken() > 0));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const taken = sources.reduce((sum, source) => sum + source.taken(), 0);
  const most = CHANNEL_LIMITS.streamsWaitingBytesMax + sources.length * 20_000;
  assert.ok(taken <= most, `${taken} bytes taken`);
  network.lines[1]?.close();
  await Promise.all([...asked, ...sources.map(({ ended }) => ended)]);
  await closeAll(one, two);
});

Deno.test("cancelling an answer ends it at its source, before the head and after", async () => {
  const sources: ReturnType<typeof endless>[] = [];
  const aborted: string[] = [];
  const [one, two] = await pairServing((head, _body, _from, signal) => {
    signal.addEventListener("abort", () => aborted.push(`${head}`));
    if (head === "waits") {
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }
    const source = endless();
    sources.push(source);
    return Promise.resolve({ head, body: source.body });
  });
  const before = new AbortController();
  const waiting = two.hub.request(1, "waits", NO_BYTES, before.signal);
  await two.hub.call(1, "a turn");
  before.abort(new RangeError("too long"));
  await assert.rejects(waiting, RangeError);

  const after = new AbortController();
  const { body } = await two.hub.request(1, "streams", NO_BYTES, after.signal);
  const reader = body?.getReader();
  await reader?.read();
  after.abort(new RangeError("enough"));
  await assert.rejects(async () => {
    for (;;) await reader?.read();
  }, RangeError);

  const cancelled = await two.hub.request(1, "cancelled", NO_BYTES, wanted);
  await cancelled.body?.cancel();
  await Promise.all(sources.map(({ ended }) => ended));
  await until(() => aborted.length === 3);
  assert.deepEqual(aborted, ["waits", "streams", "cancelled"]);
  await assert.rejects(two.hub.request(1, "late", NO_BYTES, AbortSignal.abort(new RangeError())), RangeError);
  assert.ok(two.hub.isOpen(1));
  await closeAll(one, two);
});

Deno.test("an answer that fails at its source breaks off only for its reader", async () => {
  const [one, two] = await pairServing((head) => {
    if (head === "no answer") return Promise.reject(new Error("Not today"));
    let pulls = 0;
    return Promise.resolve({
      head,
      body: new ReadableStream({
        pull: (controller) => {
          if (pulls++ === 3) controller.error(new Error("Broken"));
          else controller.enqueue(new Uint8Array(100));
        },
      }),
    });
  });
  assert.equal(await endOf(two.hub.request(1, "no answer", NO_BYTES, wanted)), "ChannelLost");
  const reply = await two.hub.request(1, "breaks", NO_BYTES, wanted);
  await assert.rejects(bytesOf(reply), ChannelLost);
  assert.equal((await two.hub.call(1, "still")).head, "still");
  await closeAll(one, two);
});

Deno.test("a lost channel breaks off its answers and aborts their sources", async () => {
  const network = new MemoryNetwork();
  const source = endless();
  const signals: AbortSignal[] = [];
  const [one, two] = await pairServing((head, _body, _from, signal) => {
    signals.push(signal);
    return head === "waits" ? new Promise(() => {}) : Promise.resolve({ head, body: source.body });
  }, network);
  const waiting = endOf(two.hub.request(1, "waits", NO_BYTES, wanted));
  const reply = await two.hub.request(1, "streams", NO_BYTES, wanted);
  network.lines[0]?.close();
  assert.equal(await waiting, "ChannelLost");
  await assert.rejects(bytesOf(reply), ChannelLost);
  await source.ended;
  assert.deepEqual(signals.map(({ aborted }) => aborted), [true, true]);
  await closeAll(one, two);
});

Deno.test("requests are bounded in number and bytes, and room comes back when they are over", async () => {
  const { promise: go, resolve } = Promise.withResolvers<void>();
  const [one, two] = await pairServing(async (head) => {
    await go;
    return { head, body: null };
  }, new MemoryNetwork());
  const ask = (body = NO_BYTES) => two.hub.request(1, "x", body, wanted);
  const all = Array.from({ length: CHANNEL_LIMITS.requestsMax }, () => ask());
  await assert.rejects(ask(), ChannelFull);
  resolve();
  await Promise.all(all);
  await ask();
  await assert.rejects(ask(new Uint8Array(CHANNEL_LIMITS.frameBytesMax)), ChannelFull);
  await closeAll(one, two);
});
