// The gateway, by OpenAI's own client: calls are answered as the model server answers them, and metered by its report.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { rest } from "../../src/process/rest.ts";
import { chatChunk, eventOf, responseEvents, responseOf, SAMPLE } from "../support/model_server.ts";
import { countsOf } from "./compose_support.ts";
import { CATALOG, eventsOf, gatewayApp, gatewayOfFile } from "./gateway_support.ts";
import { dataOf } from "./support.ts";

const { service, model, client, baseUrl } = gatewayOfFile();

const MESSAGES = [{ role: "user" as const, content: "Hello" }];
const CHAT = { model: "mini", messages: MESSAGES };

/** The cost of the default report of a chat: 1000 x 15 + 500 x 60 cents a million. */
const CHAT_COUNTS = { lg_tokens: 1500, lg_cents: 0.045, lg_tagged: 0 };
/** The same of responses: 600 x 15 + 400 cached x 5 + 500 x 60. */
const RESPONSE_COUNTS = { lg_tokens: 1500, lg_cents: 0.041, lg_tagged: 0 };

Deno.test("a chat is answered by the server and metered by its report", async () => {
  const app = await gatewayApp(service);
  const { data, response } = await client(app).chat.completions.create(CHAT).withResponse();
  assert.equal(data.choices[0]?.message.content, "A sample of text");
  assert.deepEqual(data.usage, { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 });
  assert.equal(response.headers.get("cache-control"), "no-store");
  const [event] = await eventsOf(app);
  assert.deepEqual(
    { type: event.eventType, cost: event.costCents, metadata: event.metadata, hold: event.reservationId },
    {
      type: "openai.chat",
      cost: 0.045,
      metadata: { model: "mini" },
      hold: response.headers.get("x-holdfast-reservation"),
    },
  );
  assert.deepEqual(await countsOf(app), CHAT_COUNTS);
  assert.equal(model.requests[0]?.authorization, "Bearer sk-model-0123456789");
});

Deno.test("the README's lines run as printed on the demo app", async () => {
  const readme = await Deno.readTextFile(new URL("../../routes/gateway/README.md", import.meta.url));
  const [, code = ""] = /```ts\n([^`]+)```/.exec(readme) ?? [];
  const app = await service.newApp();
  await dataOf(app.call("POST", "/subscriptions", { userId: "user_demo", planId: "plan_pro" }));
  const here = code.replace("http://127.0.0.1:8000/openai/v1", baseUrl()).replace(
    "sk_live_...",
    app.secretLive,
  );
  const program = here.replace('import OpenAI from "openai";', "").replace("console.log", "return ");
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
  assert.equal(await AsyncFunction("OpenAI", program)(OpenAI), "A sample of text");
  const { counters } = await dataOf(app.call("GET", "/usage?userId=user_demo&event=openai.chat"));
  assert.deepEqual(counters.map(({ count }: { count: number }) => count), [1500, 0.045]);
});

Deno.test("a stream passes through, and the report that its caller did not ask for stays here", async () => {
  const app = await gatewayApp(service);
  const chunks = await all(await client(app).chat.completions.create({ ...CHAT, stream: true }));
  assert.equal(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""), SAMPLE.join(""));
  assert.ok(chunks.every(({ choices }) => choices.length === 1));
  assert.deepEqual(model.requests[0]?.body.stream_options, { include_usage: true });
  assert.deepEqual(await countsOf(app), CHAT_COUNTS);
});

Deno.test("a report that was asked for is passed on, and other options of a stream stay", async () => {
  const app = await gatewayApp(service);
  const asked = { ...CHAT, stream: true as const };
  const options = { include_usage: true, include_obfuscation: false };
  const chunks = await all(await client(app).chat.completions.create({ ...asked, stream_options: options }));
  assert.equal(chunks.at(-1)?.usage?.total_tokens, 1500);
  assert.deepEqual(model.requests[0]?.body.stream_options, options);
  await all(
    await client(app).chat.completions.create({ ...asked, stream_options: { include_obfuscation: false } }),
  );
  assert.deepEqual(model.requests[1]?.body.stream_options, options);
});

Deno.test("a chunk with choices is passed on, whatever it reports, and the last report counts", async () => {
  const app = await gatewayApp(service);
  const usage = (tokens: number) => ({ usage: { prompt_tokens: 10, completion_tokens: tokens } });
  model.reply = () => ({
    events: [1, 2].map((tokens) => eventOf(chatChunk("x", usage(tokens)))).concat(eventOf("[DONE]")),
  });
  const chunks = await all(await client(app).chat.completions.create({ ...CHAT, stream: true }));
  assert.equal(chunks.length, 2);
  assert.equal((await countsOf(app)).lg_tokens, 12);
});

Deno.test("the caller's bytes go to the server unchanged, except for the report of a stream", async () => {
  const app = await gatewayApp(service);
  const odd =
    `\n{ "model":"mini", "seed": 12345678901234567890, "temperature": 1.0,"messages": [], "user": "u"`;
  const options = `"stream_options" : { "include_obfuscation": false,"more": ["}"] }`;
  for (const end of [" }", `, "stream": true }`, `, "stream": true, ${options}, "end":{} }`]) {
    const response = await post(app.secretLive, odd + end);
    assert.equal(response.status, 200);
    await response.text();
  }
  assert.equal(model.requests[0]?.text, `${odd} }`);
  assert.equal(
    model.requests[1]?.text,
    `${odd.replace("{", `{"stream_options":{"include_usage":true},`)}, "stream": true }`,
  );
  const asked = `"stream_options" : {"include_obfuscation":false,"more":["}"],"include_usage":true}`;
  assert.equal(model.requests[2]?.text, `${odd}, "stream": true, ${asked}, "end":{} }`);
});

Deno.test("responses are metered, cached tokens at their own price, streamed or not", async () => {
  for (const stream of [false, true]) {
    const app = await gatewayApp(service);
    const { responses } = client(app);
    if (stream) {
      const events = await all(await responses.create({ model: "mini", input: "Hello", stream: true }));
      assert.deepEqual(events.map(({ type }) => type), [
        "response.created",
        ...SAMPLE.map(() => "response.output_text.delta"),
        "response.completed",
      ]);
    } else {
      const { output_text } = await responses.create({ model: "mini", input: "Hello" });
      assert.equal(output_text, SAMPLE.join(""));
    }
    assert.deepEqual(await countsOf(app), RESPONSE_COUNTS);
    assert.equal((await eventsOf(app))[0].eventType, "openai.responses");
  }
});

Deno.test("embeddings hold their input alone and are metered by their report", async () => {
  const app = await gatewayApp(service, {
    ...CATALOG,
    plans: CATALOG.plans.map((plan) => ({
      ...plan,
      limits: plan.limits.map((limit) => ({ ...limit, quota: 20 })),
    })),
  });
  const { data } = await client(app).embeddings.create({ model: "mini", input: ["Hello", "you"] });
  assert.deepEqual(data.map(({ embedding }) => embedding), [[0.5, -0.25], [0.5, -0.25]]);
  assert.deepEqual(await countsOf(app), { lg_tokens: 8, lg_cents: 0.00012, lg_tagged: 0 });
  const tokens = Array.from({ length: 13 }, (_, index) => index);
  await assert.rejects(client(app).embeddings.create({ model: "mini", input: tokens }), { status: 429 });
  await client(app).embeddings.create({ model: "mini", input: tokens.slice(1) });
});

Deno.test("an answer too long to be kept passes through; its report at the end counts, or the input alone", async () => {
  const embedding = Array.from({ length: 200_000 }, (_, index) => index / 7);
  const data = [{ object: "embedding", index: 0, embedding }];
  const rows: [usage: object, tokens: number, metadata: object][] = [
    [{ usage: { prompt_tokens: 7, total_tokens: 7 } }, 7, { model: "mini" }],
    [{}, 1, { model: "mini", estimated: true }],
  ];
  for (const [usage, tokens, metadata] of rows) {
    const app = await gatewayApp(service);
    const answer = { object: "list", data, model: "mini", ...usage };
    assert.ok(JSON.stringify(answer).length > 2 * 1024 * 1024);
    model.reply = () => ({ answer });
    const body = JSON.stringify({ model: "mini", input: "x", user: "u" });
    const response = await post(app.secretLive, body, "/embeddings");
    assert.deepEqual(await response.json(), answer);
    assert.equal((await countsOf(app)).lg_tokens, tokens);
    assert.deepEqual((await eventsOf(app))[0].metadata, metadata);
  }
});

Deno.test("an event too long to be kept passes through in pieces, and its report counts", async () => {
  const app = await gatewayApp(service);
  const long = [`"usage":{"input_tokens":9} `.repeat(20_000)];
  const sent = [...responseEvents(long)];
  model.reply = () => ({ events: sent });
  const body = JSON.stringify({ model: "mini", input: "x", user: "u", stream: true });
  const response = await post(app.secretLive, body, "/responses");
  assert.equal(await response.text(), sent.join(""));
  assert.deepEqual(await countsOf(app), RESPONSE_COUNTS);
});

Deno.test("calls of tools pass through, and what they are given counts where no report comes", async () => {
  const app = await gatewayApp(service);
  const tools = [{ type: "function" as const, function: { name: "weather", parameters: {} } }];
  const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"at":"Köln"}' } };
  const message = { role: "assistant", content: null, tool_calls: [call] };
  const choices = [{ index: 0, message, finish_reason: "tool_calls" }];
  model.reply = () => ({
    answer: { id: "1", object: "chat.completion", created: 0, model: "mini", choices },
  });
  const { choices: [choice] } = await client(app).chat.completions.create({ ...CHAT, tools });
  assert.deepEqual(choice?.message.tool_calls, [call]);
  const input = Math.ceil(JSON.stringify(MESSAGES).length / 4 + JSON.stringify(tools).length / 4);
  assert.equal((await countsOf(app)).lg_tokens, input + Math.ceil(('weather{"at":"Köln"}'.length + 1) / 4));
  assert.deepEqual((await eventsOf(app))[0].metadata, { model: "mini", estimated: true });

  const piece = (part: object) => eventOf(chatChunk({ tool_calls: [{ index: 0, ...part }] }));
  const { id, type } = call;
  model.reply = () => ({
    events: [
      piece({ id, type, function: { name: "weather", arguments: '{"at":' } }),
      piece({
        function: { arguments: '"Köln"}' },
      }),
      eventOf("[DONE]"),
    ],
  });
  const chunks = await all(await client(app).chat.completions.create({ ...CHAT, tools, stream: true }));
  const written = chunks.map(({ choices: [choice] }) => choice?.delta.tool_calls?.[0]?.function?.arguments);
  assert.equal(written.join(""), '{"at":"Köln"}');
  assert.equal(
    (await countsOf(app)).lg_tokens,
    2 * (input + Math.ceil(('weather{"at":"Köln"}'.length + 1) / 4)),
  );
});

Deno.test("responses pass calls of tools through, and what they are given counts where no report comes", async () => {
  const app = await gatewayApp(service);
  const tools = [{ type: "function" as const, name: "weather", parameters: {}, strict: false }];
  const written = '{"at":"here"}';
  const item = { id: "fc_1", type: "function_call", call_id: "call_1", name: "weather", arguments: written };
  const completed = responseOf([], { output: [item], usage: null });
  const asked = { model: "mini", input: "Hello", tools };
  model.reply = () => ({ answer: completed });
  const { output } = await client(app).responses.create(asked);
  assert.deepEqual(output, [item]);
  const once = Math.ceil((JSON.stringify("Hello").length + JSON.stringify(tools).length) / 4) +
    Math.ceil(written.length / 4);
  assert.equal((await countsOf(app)).lg_tokens, once);

  const sent = [
    ...['{"at":', '"here"}'].map((delta) => ({ type: "response.function_call_arguments.delta", delta })),
    { type: "response.completed", response: completed },
  ];
  model.reply = () => ({ events: sent.map((event) => eventOf(event, event.type)) });
  const events = await all(await client(app).responses.create({ ...asked, stream: true }));
  assert.deepEqual(events, sent);
  assert.equal((await countsOf(app)).lg_tokens, 2 * once);
});

Deno.test("the list of models is the server's, for any secret key and without a user", async () => {
  const app = await gatewayApp(service);
  const { data } = await client(app, { defaultHeaders: {} }).models.list();
  assert.deepEqual(data.map(({ id }) => id), ["mini"]);
  assert.deepEqual(await eventsOf(app), []);
});

Deno.test("header or body name the user, and headers the event and its metadata, but not the model", async () => {
  const app = await gatewayApp(service);
  const openai = client(app, { defaultHeaders: {} });
  await dataOf(app.call("POST", "/subscriptions", { userId: "jörg", planId: "plan_pro" }));
  await openai.chat.completions.create({ ...CHAT, user: "jörg" });
  const utf8 = String.fromCharCode(...new TextEncoder().encode("jörg"));
  await openai.chat.completions.create({ ...CHAT, user: "u" }, { headers: { "X-Holdfast-User": utf8 } });
  const headers = {
    "X-Holdfast-User": "u",
    "X-Holdfast-Event": "my.chat",
    "X-Holdfast-Metadata": JSON.stringify({ model: "other", team: "a" }),
  };
  await openai.chat.completions.create(CHAT, { headers });
  const events = await eventsOf(app);
  assert.deepEqual(events.map(({ endUserId, eventType, metadata }) => [endUserId, eventType, metadata]), [
    ["u", "my.chat", { model: "mini", team: "a" }],
    ["jörg", "openai.chat", { model: "mini" }],
    ["jörg", "openai.chat", { model: "mini" }],
  ]);
  assert.equal(events[0].costCents, 0.045);
  assert.deepEqual(await countsOf(app), { lg_tokens: 0, lg_cents: 0, lg_tagged: 1 });
});

Deno.test("a call counts in the run that a header names, and a full or ended run asks no model", async () => {
  const app = await gatewayApp(service);
  const limits = [{ unit: "count", quota: 1 }];
  const { runId } = await dataOf(app.call("POST", "/runs", { userId: "u", limits }));
  const { chat } = client(app);
  const call = (id: string) => chat.completions.create(CHAT, { headers: { "X-Holdfast-Run": id } });
  await call(runId);
  const run = await dataOf(app.call("GET", `/runs/${runId}`));
  assert.equal(run.limits[0].count, 1);
  const asked = model.requests.length;
  const codeOf = (id: string) => call(id).then(() => "ok", (error) => `${error.status} ${error.code}`);
  assert.equal(await codeOf(runId), "429 run_limit_reached");
  await dataOf(app.call("POST", `/runs/${runId}/end`, {}));
  assert.equal(await codeOf(runId), "409 run_ended");
  assert.equal(await codeOf("run_none"), "404 not_found");
  assert.equal(model.requests.length, asked);
  const [event] = await eventsOf(app);
  assert.equal(event.runId, runId);
});

Deno.test("prompts and answers are logged only where the app logs them and the user has not opted out", async () => {
  const secret = "a most secret question";
  const asked = [{ role: "user" as const, content: secret }];
  const logsOf = async (settings: object, optOut: boolean) => {
    const app = await gatewayApp(service, { ...CATALOG, settings });
    if (optOut) await dataOf(app.call("POST", "/opt-out", { distinctId: "u", scope: "prompt_logging" }));
    const { chat, responses } = client(app);
    await chat.completions.create({ model: "mini", messages: asked });
    await all(await chat.completions.create({ model: "mini", messages: asked, stream: true }));
    await responses.create({ model: "mini", input: secret });
    await all(await responses.create({ model: "mini", input: secret, stream: true }));
    return (await eventsOf(app)).map(({ prompt, response }) => [prompt, response]);
  };
  const chat = [JSON.stringify(asked), SAMPLE.join("")];
  const response = [secret, SAMPLE.join("")];
  assert.deepEqual(await logsOf({ promptLogging: true }, false), [response, response, chat, chat]);
  const none = Array(4).fill([null, null]);
  assert.deepEqual(await logsOf({ promptLogging: false }, false), none);
  assert.deepEqual(await logsOf({ promptLogging: true }, true), none);
});

Deno.test("bodies may have up to 32 MiB, and pictures count flat", async () => {
  const app = await gatewayApp(service);
  const image = (bytes: number) => ({
    model: "mini",
    max_tokens: 10,
    user: "u",
    messages: [{
      role: "user",
      content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(bytes)}` } }],
    }],
  });
  const large = await post(app.secretLive, JSON.stringify(image(20 * 1024 * 1024)));
  assert.equal(large.status, 200);
  await large.body?.cancel();
  const text = JSON.stringify(image(33 * 1024 * 1024));
  let larger = await post(app.secretLive, text);
  // Bodies of this size may keep the thread that they share with the service from its lease.
  for (let tries = 0; larger.status === 503 && tries < 5; tries++) {
    await larger.body?.cancel();
    await rest(1_000);
    larger = await post(app.secretLive, text);
  }
  assert.equal(larger.status, 413);
  assert.equal((await larger.json()).error.code, "payload_too_large");
});

async function all<Of>(stream: AsyncIterable<Of>): Promise<Of[]> {
  const items: Of[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

function post(key: string, body: string, path = "/chat/completions"): Promise<Response> {
  return fetch(baseUrl() + path, { method: "POST", headers: { authorization: `Bearer ${key}` }, body });
}

Deno.test("a chat is held and charged in credits by the rate of its event", async () => {
  const [plan] = CATALOG.plans;
  const credits = { ...plan?.limits[0], id: "lg_credits", unit: "credits", quota: 10 };
  const rates = [{ event: "openai.chat", perMillionInputTokens: 200, perMillionOutputTokens: 800 }];
  const app = await gatewayApp(service, { ...CATALOG, rates, plans: [{ ...plan, limits: [credits] }] });
  await client(app).chat.completions.create(CHAT);
  const [event] = await eventsOf(app);
  assert.deepEqual([event.costCredits, await countsOf(app)], [0.6, { lg_credits: 0.6 }]);
  const long = client(app).chat.completions.create({ ...CHAT, max_completion_tokens: 20_000 });
  await assert.rejects(long, /insufficient_quota|limit/);
});
