// Watching usage: what a watch shows, when it connects again, and when it is over. With a service that does what a test
// says, and with the real one.

import assert from "node:assert/strict";
import {
  type ClientOptions,
  createClient,
  HoldfastError,
  signEndUserToken,
} from "../../src/client/client.ts";
import { eventsOf } from "../../src/client/event_stream.ts";
import type { WatchConnection, WatchOptions } from "../../src/client/usage_calls.ts";
import { appWithUser, dataOf } from "../routes/support.ts";
import { inTime } from "../support/in_time.ts";
import { service } from "./service.ts";
import { BASE_URL, breakOff, clientOf, fail, scriptedFetch } from "./support.ts";

const SOON = { baseDelayMs: 1, maxDelayMs: 5 };

const state = (userId: string) => `event: usage\ndata: ${JSON.stringify({ userId })}\n\n`;
const end = (reason: string) => `event: end\ndata: ${JSON.stringify({ reason })}\n\n`;

/** A stream that says something and then ends. */
function says(...pieces: string[]) {
  return () => streamOf(ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece))));
}

/** A stream that says something and goes on. */
function staysWith(text: string) {
  return () =>
    streamOf(
      new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode(text)),
      }),
    );
}

/** A stream that says something and breaks. */
function breaksAfter(text: string) {
  return () =>
    streamOf(
      new ReadableStream({
        pull(controller) {
          if (text === "") return controller.error(new TypeError("connection reset"));
          controller.enqueue(new TextEncoder().encode(text));
          text = "";
        },
      }, { highWaterMark: 0 }),
    );
}

const streamOf = (body: ReadableStream) =>
  new Response(body, { headers: { "content-type": "text/event-stream" } });

/** Watches by a script; answers what was seen, and how it ended. */
async function watched(
  replies: readonly (() => Response | Promise<Response>)[],
  until: string | null,
  options: Partial<ClientOptions> = {},
  own: Pick<WatchOptions, "endUserToken"> = {},
) {
  const { fetch, sent } = scriptedFetch(...replies);
  const client = createClient({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch, retries: SOON, ...options });
  const stop = new AbortController();
  const seen: string[] = [];
  const connections: WatchConnection[] = [];
  const over = client.usage.watch("u", ({ userId }) => {
    seen.push(userId);
    if (userId === until) stop.abort();
  }, { signal: stop.signal, ...own, event: "image.*", onConnection: (one) => connections.push(one) });
  const ended = await over.then(({ reason }) => reason, (error) => error);
  const told = connections.map(({ isLive, error }) => isLive ? "live" : error?.code ?? "lost");
  return { seen, ended, told, sent };
}

Deno.test("events are read whatever pieces they come in, and comments and unknown fields are not events", async () => {
  const text =
    ':\n\nevent: usage\ndata: {"a":\ndata: 1}\n\nid: 7\nretry: 5\n\n: hello\r\n\r\ndata:x\r\n\r\nevent: end\rdata\r\rdata: cut';
  const expected = [
    { name: "usage", data: '{"a":\n1}' },
    { name: "message", data: "x" },
    { name: "end", data: "" },
  ];
  const { signal } = new AbortController();
  for (const size of [1, 2, 3, 7, 1000]) {
    const bytes = new TextEncoder().encode(text);
    const pieces = Array.from(
      { length: Math.ceil(bytes.length / size) },
      (_, place) => bytes.slice(place * size, (place + 1) * size),
    );
    const found = await Array.fromAsync(eventsOf(ReadableStream.from(pieces), signal, () => {}));
    assert.deepEqual(found, expected, `in pieces of ${size}`);
  }
});

Deno.test("an event is complete with its last carriage return, and only a stream begins with a byte order mark", async () => {
  const stop = new AbortController();
  let write: (text: string) => void = () => {};
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      write = (text) => controller.enqueue(new TextEncoder().encode(text));
    },
  });
  const events = eventsOf(body, stop.signal, () => {});
  for (const [text, data] of [["\uFEFFdata:a\r\r", "a"], ["\ndata:b\r\n\r", "b"]]) {
    write(text!);
    assert.equal((await inTime(events.next())).value?.data, data);
  }
  write("\n\uFEFFdata:c\ndata:d\n\n");
  assert.equal((await inTime(events.next())).value?.data, "d");
  stop.abort();
});

Deno.test("a watch connects again after a break, a refusal that passes, a stop and a merge", async () => {
  const { seen, ended, told, sent } = await watched([
    fail(503, "unavailable", { "retry-after": "0" }),
    breakOff,
    breaksAfter(state("a")),
    says(":\n\n", state("b"), end("stopping")),
    says(state("c"), end("merged")),
    says(state("d")),
    staysWith(state("last")),
  ], "last");
  assert.deepEqual(seen, ["a", "b", "c", "d", "last"]);
  assert.equal(ended, "aborted");
  const live = ["live"];
  assert.deepEqual(told, [
    "unavailable",
    "network_error",
    ...[...live, "network_error"],
    ...[...live, "lost"],
    ...[...live, "lost"],
    ...[...live, "lost"],
    ...live,
  ]);
  assert.deepEqual(
    new Set(sent.map(({ path }) => path)),
    new Set(["/api/v1/usage/stream?userId=u&event=image.*"]),
  );
});

Deno.test("an erasure, a revoked key, newer streams and a token without another one end a watch for good", async () => {
  for (const reason of ["erased", "key_revoked", "replaced", "token_expired"]) {
    const { ended, sent } = await watched([says(state("a"), end(reason))], null);
    assert.deepEqual([ended, sent.length], [reason, 1]);
  }
});

Deno.test("an expired token is replaced where the client can fetch another one", async () => {
  let tokens = 0;
  const endUserToken = () => `token_${++tokens}`;
  const replies = [says(state("a"), end("token_expired")), staysWith(state("last"))] as const;
  const fetched = await watched([...replies], "last", { apiKey: "pk_live_x", endUserToken });
  assert.deepEqual([fetched.ended, fetched.seen], ["aborted", ["a", "last"]]);
  assert.deepEqual(fetched.sent.map(({ headers }) => headers.get("x-end-user-token")), [
    "token_1",
    "token_2",
  ]);
  const fixed = await watched([...replies], null, { apiKey: "pk_live_x", endUserToken }, {
    endUserToken: "own",
  });
  assert.equal(fixed.ended, "token_expired");
});

Deno.test("neither a token nor an answer that never comes stops a watch or a call for ever", async () => {
  const never = () => new Promise<never>(() => {});
  const waiting = [() => "token", never, () => "token"];
  const endUserToken = () => (waiting.pop() ?? never)();
  const page = { apiKey: "pk_live_x", endUserToken, timeoutMs: 10 };
  const { ended, seen, told } = await inTime(watched([never, staysWith(state("last"))], "last", page));
  assert.deepEqual([ended, seen, told], ["aborted", ["last"], ["timeout", "timeout", "live"]]);
  const client = createClient({ ...page, baseUrl: BASE_URL, fetch: never });
  await assert.rejects(client.usage(), { code: "timeout", message: "endUserToken: no token within 10 ms" });
  const stop = new AbortController();
  const own = { signal: stop.signal, timeoutMs: Infinity };
  const over = [client.usage(undefined, undefined, own), client.usage.watch(undefined, () => {}, own)];
  stop.abort(new Error("Left"));
  const [call, watch] = await inTime(Promise.allSettled(over));
  assert.equal(call?.status === "rejected" && call.reason, stop.signal.reason);
  assert.deepEqual(watch?.status === "fulfilled" && watch.value, { reason: "aborted" });
});

Deno.test("a refusal that stays, and what a callback throws, reject", async () => {
  const { ended, sent } = await watched([fail(403, "forbidden")], null);
  assert.ok(ended instanceof HoldfastError && ended.code === "forbidden" && ended.requestId === "req_1");
  assert.equal(sent.length, 1);
  const { fetch } = scriptedFetch(staysWith(state("a")));
  const client = createClient({ apiKey: "sk_live_x", baseUrl: BASE_URL, fetch });
  const bug = new TypeError("A bug of the caller");
  await assert.rejects(
    client.usage.watch("u", () => {
      throw bug;
    }),
    bug,
  );
  const page = await watched([() => new Response("<html>", { status: 200 })], null);
  assert.equal(page.ended.code, "bad_answer");
});

Deno.test("an aborted watch ends before it is connected, while it waits, and between two connections", async () => {
  const hangs = (_: string, { signal }: RequestInit) =>
    new Promise<Response>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  for (const fetch of [hangs, scriptedFetch(breakOff).fetch, scriptedFetch(staysWith("")).fetch]) {
    const stop = new AbortController();
    const client = createClient({
      apiKey: "sk_live_x",
      baseUrl: BASE_URL,
      fetch,
      retries: { baseDelayMs: 1e6, maxDelayMs: 1e6 },
    });
    const over = client.usage.watch("u", () => {}, { signal: stop.signal });
    await new Promise((resolve) => setTimeout(resolve, 5));
    stop.abort();
    assert.deepEqual(await over, { reason: "aborted" });
    assert.deepEqual(await client.usage.watch("u", () => {}, { signal: stop.signal }), { reason: "aborted" });
  }
});

Deno.test("a watch of the running service follows every change, over restarts and merges", async () => {
  // Tokens are signed by the real clock.
  service.clock.set(Date.now());
  const app = await appWithUser(service);
  const { identitySecret } = app;
  const endUserToken = () =>
    signEndUserToken({ identitySecret, userId: "u", expiresInSeconds: 86_400 * 365 });
  const page = clientOf(service, app, { apiKey: app.publicLive, endUserToken, retries: SOON });
  const stop = new AbortController();
  const steps: [isThere: (userId: string, count: number) => boolean, then: () => Promise<unknown>][] = [
    [
      (_, count) => count === 0,
      () => dataOf(app.call("POST", "/track", { userId: "u", event: "image.x", count: 3 })),
    ],
    [
      (_, count) => count === 3,
      () => service.restart().then(() => app.call("POST", "/track", { userId: "u", event: "image.x" })),
    ],
    [(_, count) => count === 4, () => dataOf(app.call("POST", "/customers/alias", { from: "u", to: "v" }))],
    [(userId, count) => userId === "v" && count === 4, () => Promise.resolve(stop.abort())],
  ];
  const done: Promise<unknown>[] = [];
  const { reason } = await page.usage.watch(undefined, ({ userId, counters }) => {
    const [isThere, then] = steps[0] ?? [];
    if (isThere?.(userId, counters[0]?.count ?? -1) !== true) return;
    steps.shift();
    done.push((then as () => Promise<unknown>)());
  }, { signal: stop.signal, event: "image.*" });
  await Promise.all(done);
  assert.deepEqual([reason, steps.length], ["aborted", 0]);
});
