// Fit at the gateway, by the providers' own clients: what the model server is asked for, what is held, and what is refused.

import assert from "node:assert/strict";
import Anthropic from "npm:@anthropic-ai/sdk@1.14.0";
import { chatChunk, eventOf, type ModelRequest } from "../support/model_server.ts";
import type { TestApp } from "../support/test_service.ts";
import { countsOf } from "./compose_support.ts";
import { CATALOG, eventsOf, gatewayApp, gatewayOfFile } from "./gateway_support.ts";
import { dataOf } from "./support.ts";
import { until } from "../support/until.ts";

const { service, model, client, baseUrl } = gatewayOfFile();

const rowOf = (id: string, outputCents: number) => ({
  id,
  modality: "text",
  amountMode: "per_token",
  inputCentsPerMillionTokens: 0,
  outputCentsPerMillionTokens: outputCents,
});

/** A cent is 100 tokens of "dear" and 1,000 of "mini"; "plain" has no price. */
function appWith(gateway?: object, limits: object[] = [cents(1)]): Promise<TestApp> {
  const models = [rowOf("dear", 10_000), rowOf("mini", 1_000), rowOf("ünï", 1_000)];
  const plans = [{ ...CATALOG.plans[0], limits }];
  return gatewayApp(service, { models, plans, ...gateway === undefined ? {} : { gateway } });
}

const MATCHES = [{ event: "openai.*" }, { event: "anthropic.*" }];
const cents = (quota: number) => ({ id: "lg_cents", label: "Cents", unit: "cents", quota, matches: MATCHES });

const MESSAGES = [{ role: "user" as const, content: "Hello" }];
const CHAT = { model: "dear", messages: MESSAGES, max_completion_tokens: 400 };
const FITTED = "x-holdfast-fitted";

/** A text as headers have it: its bytes in UTF-8. */
const latin = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));

async function post(app: TestApp, path: string, body: unknown, fit: string | null) {
  const headers = { authorization: `Bearer ${app.secretLive}`, "x-holdfast-user": "u" };
  const response = await fetch(baseUrl().replace("/openai/v1", "") + path, {
    method: "POST",
    headers: { ...headers, ...fit === null ? {} : { "x-holdfast-fit": fit } },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, text, fitted: response.headers.get(FITTED), headers: response.headers };
}

const PATHS = {
  chat: "/openai/v1/chat/completions",
  responses: "/openai/v1/responses",
  messages: "/anthropic/v1/messages",
};

/** Notes what the user's counters are while the model works. */
function heldBy(app: TestApp): () => unknown {
  let held: unknown = null;
  const sample = model.reply;
  model.reply = async (request: ModelRequest, place) => {
    held = await countsOf(app);
    return await sample(request, place);
  };
  return () => held;
}

Deno.test("calls of every kind are sent with the fitted model and limit, all other bytes unchanged", async () => {
  const odd = String.raw`"seed":12345678901234567890 , "note":"\"model\":\"dear\",\"max_tokens\":1"`;
  const rows: readonly (readonly [path: string, limit: string, input: string])[] = [
    [PATHS.chat, "max_tokens", `"messages":[]`],
    [PATHS.chat, "max_completion_tokens", `"messages":[]`],
    [PATHS.responses, "max_output_tokens", `"store":false,"input":""`],
    [PATHS.messages, "max_tokens", `"messages":[]`],
  ];
  for (const [path, limit, input] of rows) {
    for (const [fit, name, most] of [["50", "dear", 100], ["101;other,mini", "mini", 400]] as const) {
      const app = await appWith();
      const bodyOf = (model: string, tokens: number) =>
        `{ "${limit}" :${tokens},${odd},${input}, "model": "${model}"}`;
      const { status, fitted } = await post(app, path, bodyOf("dear", 400), fit);
      assert.deepEqual([status, fitted], [200, `${name};${most}`], path);
      assert.equal(model.requests.at(-1)?.text, bodyOf(name, most));
      const [event] = await eventsOf(app);
      assert.equal(event.metadata.model, name);
    }
  }
});

Deno.test("a call that fits at its whole limit passes byte for byte", async () => {
  const app = await appWith();
  const body = String.raw`{"model":"d\u0065ar","max_tokens":1e2,"messages":[]}`;
  const { status, fitted } = await post(app, PATHS.chat, body, " 100 ; mini , dear ");
  assert.deepEqual([status, fitted], [200, "dear;100"]);
  assert.equal(model.requests.at(-1)?.text, body);
  assert.equal((await post(app, PATHS.chat, { ...CHAT, max_completion_tokens: 1 }, null)).fitted, null);
});

Deno.test("OpenAI's client gets a fitted answer and fitted streams, counted by the report", async () => {
  const options = { headers: { "X-Holdfast-Fit": "50;mini" } };
  const app = await appWith();
  const held = heldBy(app);
  const { data, response } = await client(app).chat.completions.create(CHAT, options).withResponse();
  assert.equal(data.choices[0]?.message.content, "A sample of text");
  assert.equal(response.headers.get(FITTED), "dear;100");
  assert.deepEqual(held(), { lg_cents: 1 });
  // 500 tokens of "dear" came, so nothing is left.
  assert.deepEqual(await countsOf(app), { lg_cents: 5 });

  const chats = await appWith();
  const asked = { ...CHAT, stream: true as const, max_tokens: 60 };
  const stream = await client(chats).chat.completions.create(asked, options).withResponse();
  assert.equal(stream.response.headers.get(FITTED), "dear;100");
  assert.equal((await Array.fromAsync(stream.data)).length, 6);
  const { body } = model.requests.at(-1) as ModelRequest;
  assert.deepEqual([body.max_completion_tokens, body.max_tokens, body.stream_options], [100, 60, {
    include_usage: true,
  }], "the smaller limit stays");
  assert.deepEqual(await countsOf(chats), { lg_cents: 5 });

  const responses = await appWith({});
  const input = { model: "dear", input: "Hello", max_output_tokens: 4_000, stream: true as const };
  const other = { headers: { "X-Holdfast-Fit": "200;mini" } };
  const events = await client(responses).responses.create(input, other).withResponse();
  assert.equal(events.response.headers.get(FITTED), "mini;1000");
  await Array.fromAsync(events.data);
  const sent = model.requests.at(-1)?.body;
  assert.deepEqual([sent.model, sent.max_output_tokens, sent.store], ["mini", 1_000, false]);
  assert.deepEqual(await countsOf(responses), { lg_cents: 0.5 });
});

Deno.test("Anthropic's client gets a fitted message and a fitted stream", async () => {
  const asked = { model: "dear", max_tokens: 4_000, messages: MESSAGES };
  const options = { headers: { "X-Holdfast-Fit": "200;mini" } };
  for (const stream of [false, true]) {
    const app = await appWith();
    const anthropic = new Anthropic({
      apiKey: app.secretLive,
      baseURL: baseUrl().replace("/openai/v1", "/anthropic"),
      maxRetries: 0,
      logLevel: "off",
      defaultHeaders: { "X-Holdfast-User": "u" },
    });
    const { data, response } = await anthropic.messages.create({ ...asked, stream }, options).withResponse();
    if (Symbol.asyncIterator in data) await Array.fromAsync(data);
    assert.equal(response.headers.get(FITTED), "mini;1000");
    const { body } = model.requests.at(-1) as ModelRequest;
    assert.deepEqual([body.model, body.max_tokens], ["mini", 1_000]);
    assert.deepEqual(await countsOf(app), { lg_cents: 0.5 });
  }
});

Deno.test("with several answers the limit of each is rounded down, and never more than what is held", async () => {
  for (const [n, least, limit] of [[3, 33, 33], [3, 1, 33], [7, 14, 14], [100, 1, 1]] as const) {
    const app = await appWith();
    const held = heldBy(app);
    const { status, fitted } = await post(app, PATHS.chat, { ...CHAT, n }, String(least));
    assert.deepEqual([status, fitted], [200, `dear;${limit}`], String(n));
    const { body } = model.requests.at(-1) as ModelRequest;
    assert.deepEqual([body.max_completion_tokens, body.n], [limit, n]);
    const { lg_cents = 0 } = held() as Record<string, number>;
    assert.ok(lg_cents <= 1 && limit * n <= lg_cents * 100, `${lg_cents} cents are held`);
    model.reset();
  }
  const app = await appWith();
  const { status } = await post(app, PATHS.chat, { ...CHAT, n: 3 }, "34");
  assert.equal(status, 429);
});

Deno.test("a model of the header is asked only where a call of its own could ask it, at its own server", async () => {
  const upstreams = [
    { models: ["gone"], upstream: "gone" },
    { models: ["min*"], upstream: "eu" },
  ];
  const app = await appWith({ models: ["dear", "gone", "mini"], upstreams }, [cents(1_000), {
    ...cents(0),
    id: "lg_dear",
    matches: [{ event: "openai.*", metadata: { model: "dear" } }],
  }]);
  const { status, fitted } = await post(app, PATHS.chat, CHAT, latin("100;ünï,gone,mini"));
  assert.deepEqual([status, fitted], [200, "mini;400"]);
  assert.deepEqual(
    [model.requests.at(-1)?.authorization, model.requests.at(-1)?.body.model],
    ["Bearer sk-eu", "mini"],
  );
  assert.equal((await post(app, PATHS.chat, CHAT, latin("100;ünï,gone"))).status, 429);
  const own = await post(app, PATHS.chat, { ...CHAT, model: "ünï" }, "100;mini");
  assert.equal(own.status, 404);
  // A budget needs a price.
  const ofDear = { ...cents(0), unit: "tokens", matches: [{ event: "*", metadata: { model: "dear" } }] };
  const others = { ...cents(1e6), id: "lg_tokens", unit: "tokens" };
  const unbound = await appWith({}, [ofDear, others]);
  assert.equal((await post(unbound, PATHS.chat, CHAT, "100;plain")).fitted, "plain;400");
  const bound = await appWith({ budgetCents: 100 }, [ofDear, others]);
  assert.equal((await post(bound, PATHS.chat, CHAT, "100;plain")).status, 429);
  assert.equal(model.requests.length, 2);
});

Deno.test("names beyond ASCII are UTF-8 in both headers", async () => {
  const app = await appWith();
  const { fitted } = await post(app, PATHS.chat, CHAT, latin("200;ünï"));
  assert.equal(fitted, latin("ünï;400"));
  assert.equal(model.requests.at(-1)?.body.model, "ünï");
});

Deno.test("a call that fits in no way is refused as the body's model at the fewest tokens", async () => {
  const app = await appWith();
  for (const [path, more] of [[PATHS.chat, {}], [PATHS.messages, { max_tokens: 400 }]] as const) {
    const body = { ...CHAT, ...more };
    const refused = await post(app, path, body, "101");
    const plain = await post(app, path, { ...body, max_completion_tokens: 101, max_tokens: 101 }, null);
    const withoutId = ({ text }: typeof plain) => text.replace(/"request_id":"[^"]*"/, "");
    assert.equal(refused.status, 429);
    assert.equal(withoutId(refused), withoutId(plain));
    assert.deepEqual([refused.fitted, refused.headers.get("x-should-retry")], [null, "false"]);
    assert.equal((await post(app, path, { ...body, model: "plain" }, "1")).status, 400, "without a price");
  }
  assert.deepEqual([model.requests.length, await countsOf(app)], [0, { lg_cents: 0 }]);
  const { refusals } = await dataOf(app.call("GET", "/refusals"));
  assert.deepEqual(refusals.map(({ count }: { count: number }) => count), [2, 2]);
});

Deno.test("what the header cannot mean is refused in the shape of the dialect, and no model is asked", async () => {
  const app = await appWith();
  const openai = (fit: string, body: object = CHAT, path = PATHS.chat) => [path, body, fit] as const;
  const message = { model: "dear", messages: MESSAGES };
  // deno-fmt-ignore: a row a case
  const rows = [
    openai(""), openai("x"), openai("-1"), openai("0"), openai("1.5"), openai("1e2"), openai(";mini"), openai("9".repeat(30)),
    openai("401"), openai("100;"), openai("100;mini,"), openai("100;mini,mini"), openai("100 mini"), openai(`100;${"x".repeat(201)}`),
    openai(`100;${Array.from({ length: 21 }, (_, place) => `m${place}`)}`), openai("100;\xff"),
    openai("100", { ...CHAT, max_completion_tokens: undefined }), openai("100", { ...CHAT, max_completion_tokens: null }),
    openai("100", { model: "dear", input: "x" }, PATHS.responses),
    openai("100", { model: "dear", input: "x", max_tokens: 200 }, "/openai/v1/embeddings"),
    openai("100", { model: "dear", prompt: "x", max_tokens: 200 }, "/openai/v1/images/generations"),
    openai("100", message, PATHS.messages), openai("1", { ...message, max_tokens: 0 }, PATHS.messages),
    openai("x", { ...message, max_tokens: 200 }, PATHS.messages),
    openai("100", { ...message, max_tokens: 200, max_completion_tokens: 50, model: "a\nb" }),
  ];
  for (const [path, body, fit] of rows) {
    const { status, text } = await post(app, path, body, fit);
    const { type, error } = JSON.parse(text);
    const param = "model" in body && body.model === "a\nb" ? "model" : "X-Holdfast-Fit";
    assert.deepEqual([status, error.code, error.param], [400, "invalid_request", param], `${path} ${fit}`);
    assert.equal(error.type, "invalid_request_error");
    assert.equal(type, path === PATHS.messages ? "error" : undefined);
  }
  const invalid = await post(app, PATHS.chat, { ...CHAT, max_completion_tokens: { a: [1] } }, "100");
  assert.equal(JSON.parse(invalid.text).error.param, "max_completion_tokens");
  assert.equal(model.requests.length, 0);
  const counted = await post(app, `${PATHS.messages}/count_tokens`, message, "x");
  assert.equal(counted.status, 200, "a call that holds nothing needs no fit");
});

Deno.test("a large body, which is read in a thread, is fitted too", async () => {
  const app = await appWith();
  const note = "x".repeat(2 * 1024 * 1024);
  const bodyOf = (tokens: number) => `{"note":"${note}","max_tokens":${tokens},"model":"dear","messages":[]}`;
  assert.equal((await post(app, PATHS.chat, bodyOf(400), "1")).fitted, "dear;100");
  assert.equal(model.requests.at(-1)?.text, bodyOf(100));
});

Deno.test("a caller who leaves a model that reasons pays for the answer that was held, of the model that was asked", async () => {
  const app = await appWith();
  const going = Promise.withResolvers<void>();
  model.reply = () => ({
    events: (async function* () {
      yield eventOf(chatChunk("Well"));
      await going.promise;
    })(),
  });
  const asked = {
    ...CHAT,
    max_completion_tokens: 4_000,
    reasoning_effort: "high" as const,
    stream: true as const,
  };
  const options = { headers: { "X-Holdfast-Fit": "500;mini" } };
  for await (const _ of await client(app).chat.completions.create(asked, options)) break;
  await until(async () => (await eventsOf(app)).some(({ metadata }) => metadata.estimated === true));
  going.resolve();
  const [event] = await eventsOf(app);
  assert.deepEqual([event.metadata.model, await countsOf(app)], ["mini", { lg_cents: 1 }]);
});
