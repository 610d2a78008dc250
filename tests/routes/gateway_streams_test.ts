// Streams through the gateway: how they end, how slow readers hold the server back, and what holds do meanwhile.

import assert from "node:assert/strict";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { chatChunk, eventOf } from "../support/model_server.ts";
import { startTestService, type TestApp } from "../support/test_service.ts";
import { countsOf, MODEL_KEY } from "./compose_support.ts";
import { CATALOG, eventsOf, gatewayApp, gatewayOfFile } from "./gateway_support.ts";
import { dataOf } from "./support.ts";
import { until } from "../support/until.ts";

const { service, model, client, baseUrl } = gatewayOfFile();

const MESSAGES = [{ role: "user" as const, content: "Hello" }];
const CHAT = { model: "mini", messages: MESSAGES, stream: true as const };
const INPUT = Math.ceil(JSON.stringify(MESSAGES).length / 4);

/** A stream of chunks that a test ends, and that reports its position. */
function openStream(piece: string | object = "four") {
  const goOn = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const sent = { chunks: 0, left: Promise.resolve() };
  const events = async function* () {
    try {
      yield eventOf(typeof piece === "string" ? chatChunk(piece) : piece);
      sent.chunks += 1;
      await goOn.promise;
      yield eventOf(chatChunk({}, { choices: [], usage: { prompt_tokens: INPUT, completion_tokens: 10 } }));
      yield eventOf("[DONE]");
    } finally {
      done.resolve();
    }
  };
  model.reply = (request) => {
    sent.left = request.left;
    return { events: events() };
  };
  return { sent, finish: () => goOn.resolve(), done: done.promise };
}

Deno.test("a caller who leaves a stream is charged what was streamed, by estimate, and the server is left", async () => {
  const app = await gatewayApp(service);
  // The runtime has to notice it also where the request came in many pieces, and while the server says nothing.
  const messages = [{ role: "user" as const, content: "Hello".repeat(4_000) }];
  const { sent, finish } = openStream("four and more");
  const stream = await client(app).chat.completions.create({ ...CHAT, messages });
  for await (const chunk of stream) {
    assert.equal(chunk.choices[0]?.delta.content, "four and more");
    break;
  }
  await sent.left;
  finish();
  await until(async () => (await eventsOf(app)).length === 1);
  const [event] = await eventsOf(app);
  assert.deepEqual(event.metadata, { model: "mini", estimated: true });
  const input = Math.ceil(JSON.stringify(messages).length / 4);
  assert.equal((await countsOf(app)).lg_tokens, input + Math.ceil("four and more".length / 4));
});

/** Leaves a stream after its first piece; returns the event and the tokens that are charged. */
async function leaveAfter(app: TestApp, body: object) {
  const response = await post(app.secretLive, "/chat/completions", { ...CHAT, ...body });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await reader.cancel();
  await until(async () => (await eventsOf(app)).length === 1);
  const [{ metadata }] = await eventsOf(app);
  return { metadata, tokens: (await countsOf(app)).lg_tokens };
}

Deno.test("a stream is read on after its caller has left, and charged by its report", async () => {
  const app = await gatewayApp(service);
  const { readOnMs } = GATEWAY_LIMITS;
  Object.assign(GATEWAY_LIMITS, { readOnMs: 60_000 });
  try {
    const { sent, finish } = openStream();
    const left = leaveAfter(app, {});
    await until(() => service.service.counts.gateway.readingOn === 1);
    assert.deepEqual(await eventsOf(app), [], "the hold stays until the report comes");
    finish();
    assert.deepEqual(await left, { metadata: { model: "mini" }, tokens: INPUT + 10 });
    await sent.left;
    assert.equal(service.service.counts.gateway.readingOn, 0);
  } finally {
    Object.assign(GATEWAY_LIMITS, { readOnMs });
  }
});

Deno.test("reading on has bounds: its time, its bytes, and the number of such calls", async () => {
  const bounds = [{ readOnMs: 0 }, { readOnBytesMax: 100_000 }, { readOnCallsMax: 0 }];
  for (const bound of bounds) {
    const before = { ...GATEWAY_LIMITS };
    Object.assign(GATEWAY_LIMITS, { readOnMs: 60_000, ...bound });
    const refused = service.service.counts.gateway.readOnRefused;
    try {
      const app = await gatewayApp(service);
      const chunk = eventOf(chatChunk("x".repeat(1_024)));
      const sent = endlessPieces(chunk, chunk, eventOf("[DONE]"));
      const { metadata } = await leaveAfter(app, {});
      await sent.left;
      assert.deepEqual(metadata, { model: "mini", estimated: true }, JSON.stringify(bound));
      assert.equal(service.service.counts.gateway.readingOn, 0);
      assert.equal(service.service.counts.gateway.readOnRefused - refused, "readOnCallsMax" in bound ? 1 : 0);
    } finally {
      Object.assign(GATEWAY_LIMITS, before);
    }
  }
});

Deno.test("without a report, leaving costs the longest answer for media and reasoning, and media by their size", async () => {
  const file = (length: number) => [{ type: "file", file: { file_data: "A".repeat(length) } }];
  const messages = [{ role: "user", content: file(64_000) }];
  const sizeOf = (value: unknown) => Math.ceil(JSON.stringify(value).length / 4);
  const thought = { choices: [{ index: 0, delta: { reasoning_content: "Hmm," } }] };
  const rows: readonly (readonly [name: string, body: object, piece: object, tokens: number])[] = [
    ["a text", {}, chatChunk("four"), INPUT + 1],
    ["asked for", { reasoning_effort: "low", max_tokens: 700 }, chatChunk("four"), INPUT + 700],
    ["shown", { max_tokens: 700 }, chatChunk("", thought), INPUT + 700],
    ["by its price", { model: "thinker", max_tokens: 700 }, chatChunk("four"), INPUT + 700],
    ["a file", { messages }, chatChunk("four"), sizeOf([{ role: "user", content: file(0) }]) + 2_000 + 1_024],
  ];
  const mini = CATALOG.models[0];
  const models = [mini, { ...mini, id: "thinker", reasoningCentsPerMillionTokens: 90 }];
  for (const [name, body, piece, tokens] of rows) {
    const app = await gatewayApp(service, { ...CATALOG, models });
    const { finish } = openStream(piece);
    assert.equal((await leaveAfter(app, body)).tokens, tokens, name);
    finish();
  }
});

Deno.test("a stream that is cut off writes a line of JSON to the log, and no stack", async () => {
  const app = await gatewayApp(service);
  model.reply = () => ({ events: [eventOf(chatChunk("12345")), "cut"], cutsOff: true });
  const { body } = await service.http.fetch(
    new Request("http://service.test/openai/v1/chat/completions", {
      method: "POST",
      headers: { authorization: `Bearer ${app.secretLive}` },
      body: JSON.stringify({ ...CHAT, user: "u" }),
    }),
  );
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  // The runtime writes the error of a body to standard error.
  const error = await reader.read().then(() => reader.read()).then(() => null, (error) => error);
  assert.equal(typeof error, "string");
  const { level, message, reservationId } = JSON.parse(error);
  assert.deepEqual([level, message], ["warn", "The model server ended the connection within its answer"]);
  assert.match(reservationId, /^rsv_/);
});

Deno.test("events that come in any pieces come out the same, with the report alone left out", async () => {
  const app = await gatewayApp(service);
  const events = [
    ": a comment\r\n\r\n",
    eventOf(chatChunk("Grüße 👋")),
    eventOf(chatChunk({}, { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } })).replaceAll(
      "\n",
      "\r\n",
    ),
    eventOf(chatChunk("more")),
    eventOf("[DONE]"),
  ];
  const expected = events.filter((_, index) => index !== 2).join("");
  const bytes = new TextEncoder().encode(events.join(""));
  for (const size of [1, 2, 3, 7, 64, bytes.length]) {
    model.reply = () => ({
      events: Array.from(
        { length: Math.ceil(bytes.length / size) },
        (_, index) => bytes.subarray(index * size, (index + 1) * size),
      ),
    });
    const response = await fetch(`${baseUrl()}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${app.secretLive}` },
      body: JSON.stringify({ ...CHAT, user: "u" }),
    });
    assert.equal(await response.text(), expected, `pieces of ${size}`);
  }
  assert.equal((await countsOf(app)).lg_tokens, 6 * 7);
});

Deno.test("parallel streams of one user never pass the quota, also while they are open", async () => {
  const app = await gatewayApp(service);
  const answered = Promise.withResolvers<void>();
  let asked = 0;
  model.reply = () => {
    asked += 1;
    return {
      events: (async function* () {
        yield eventOf(chatChunk("x"));
        await answered.promise;
        yield eventOf(
          chatChunk({}, { choices: [], usage: { prompt_tokens: INPUT, completion_tokens: 1_500 } }),
        );
        yield eventOf("[DONE]");
      })(),
    };
  };
  // 10,000 tokens have room for six of them.
  const calls = Array.from({ length: 30 }, async () => {
    const stream = await client(app).chat.completions.create({ ...CHAT, max_completion_tokens: 1_500 });
    for await (const _ of stream);
  });
  const settled = Promise.allSettled(calls);
  const refusals = () => dataOf(app.call("GET", "/refusals")).then(({ refusals: [row] }) => row?.count ?? 0);
  await until(async () => asked === 6 && await refusals() === 24);
  assert.equal((await countsOf(app)).lg_tokens, 6 * (INPUT + 1_500));
  answered.resolve();
  const results = await settled;
  assert.equal(results.filter(({ status }) => status === "fulfilled").length, 6);
  assert.equal((await countsOf(app)).lg_tokens, 6 * (INPUT + 1_500));
  assert.equal(asked, 6);
});

Deno.test("the hold of an open stream is prolonged, and its commit is no recharge", async () => {
  (GATEWAY_LIMITS as { prolongEveryMs: number }).prolongEveryMs = 20;
  const app = await gatewayApp(service, { ...CATALOG, settings: { reservationTtlSeconds: 60 } });
  const { finish } = openStream();
  const { data, response } = await client(app).chat.completions.create(CHAT).withResponse();
  const id = response.headers.get("x-holdfast-reservation");
  const expiry = async () => {
    await service.serving().term.flush();
    const rows = await service.store.database.query("select * from reservations where id = $1", [id]);
    return (rows[0] as { expires_at_ms: number }).expires_at_ms;
  };
  for (let round = 0; round < 3; round++) {
    service.clock.advance(50_000);
    await until(async () => await expiry() === service.clock.now() + 60_000);
  }
  assert.ok(((await countsOf(app)).lg_tokens ?? 0) > 1_000);
  finish();
  for await (const _ of data);
  const [row] = await service.store.database.query("select settled_at_ms from reservations where id = $1", [
    id,
  ]);
  assert.ok(row !== undefined);
  assert.equal((await countsOf(app)).lg_tokens, INPUT + 10);
  const { deliveries: _, ...events } = { events: await eventsOf(app), deliveries: null };
  assert.deepEqual(events.events.map(({ matchStatus }) => matchStatus), ["matched"]);
  (GATEWAY_LIMITS as { prolongEveryMs: number }).prolongEveryMs = 60_000;
});

Deno.test("a stream outlives the term that it began in and is committed in the next, once", async () => {
  const app = await gatewayApp(service);
  const { finish } = openStream();
  const stream = await client(app).chat.completions.create(CHAT);
  await service.restart();
  finish();
  for await (const _ of stream);
  await until(async () => (await eventsOf(app)).length === 1);
  assert.equal((await countsOf(app)).lg_tokens, INPUT + 10);
});

const PIECES = 4_000;

/** Pieces, sent as fast as the reader takes them, and their number. */
function endlessPieces(first: string, piece: string, last: string, type?: string) {
  const sent = { pieces: 0, left: Promise.resolve() };
  const events = function* () {
    if (first !== "") yield first;
    for (; sent.pieces < PIECES; sent.pieces++) yield piece;
    yield last;
  };
  model.reply = (request) => {
    sent.left = request.left;
    return { events: events(), ...type === undefined ? {} : { type } };
  };
  return sent;
}

function post(key: string, path: string, body: object): Promise<Response> {
  return fetch(baseUrl() + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ user: "u", ...body }),
  });
}

Deno.test("a reader who takes nothing holds the server back, and gets everything in the end", async () => {
  const text = "x".repeat(16 * 1024);
  const chunk = eventOf(chatChunk(text));
  const done = eventOf("[DONE]");
  const vector = `,${"0.25,".repeat(4_000)}0`;
  const end = `]}],"usage":{"prompt_tokens":5}}`;
  const rows = [
    ["/chat/completions", CHAT, ["", chunk, done], undefined],
    ["/embeddings", { model: "mini", input: "x" }, [
      `{"data":[{"embedding":[0`,
      vector,
      end,
    ], "application/json"],
  ] as const;
  for (const [path, body, [first, piece, last], type] of rows) {
    const app = await gatewayApp(service);
    const sent = endlessPieces(first, piece, last, type);
    const response = await post(app.secretLive, path, body);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let bytes = (await reader.read()).value?.byteLength ?? 0;
    let before = -1;
    // It stands still once the buffers of the connections are full.
    await until(async () => {
      const stood = sent.pieces === before && before > 0;
      before = sent.pieces;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return stood && sent.pieces === before;
    });
    assert.ok(sent.pieces < PIECES / 2, `${sent.pieces} of ${PIECES} were sent`);
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      bytes += read.value.byteLength;
    }
    assert.equal(bytes, first.length + PIECES * piece.length + last.length);
    if (type !== undefined) assert.equal((await countsOf(app)).lg_tokens, 5);
  }
});

Deno.test("a call in which nothing moves for long ends as if its caller had left", async () => {
  const limits = GATEWAY_LIMITS as { stillMs: number };
  const { stillMs } = limits;
  const rows = [
    ["the server sends nothing", () => openStream()],
    ["the reader takes nothing", () => {
      const chunk = eventOf(chatChunk("x".repeat(16 * 1024)));
      return { sent: endlessPieces(chunk, chunk, eventOf("[DONE]")), finish: () => {} };
    }],
  ] as const;
  for (const [name, send] of rows) {
    const app = await gatewayApp(service);
    const { sent, finish } = send();
    const response = await post(app.secretLive, "/chat/completions", CHAT);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    try {
      limits.stillMs = 50;
      await sent.left;
      await until(async () => (await eventsOf(app)).length === 1);
    } finally {
      limits.stillMs = stillMs;
      finish();
    }
    assert.deepEqual((await eventsOf(app))[0].metadata, { model: "mini", estimated: true }, name);
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    });
  }
});

Deno.test("a stop ends open streams and charges them by estimate before the term ends", async () => {
  const modelServer = { apiKey: MODEL_KEY, baseUrl: model.baseUrl };
  const other = await startTestService(undefined, { modelServer });
  const app = await gatewayApp(other);
  const { finish } = openStream();
  const request = new Request("http://service.test/openai/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${app.secretLive}` },
    body: JSON.stringify({ ...CHAT, user: "u" }),
  });
  const response = await other.http.fetch(request);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await other.service.stop();
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  }, (line) => JSON.parse(line as string).message === "The call was ended before its answer was complete");
  const events = () => other.store.database.query("select metadata from events");
  await until(async () => (await events()).length > 0);
  assert.deepEqual((await events()).map(({ metadata }) => JSON.parse(metadata as string)), [
    { model: "mini", estimated: true },
  ]);
  await other.close();
  finish();
});
