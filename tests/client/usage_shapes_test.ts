// Each usage object of the table means the same through the modules for AI SDKs, whatever form their SDK gives it.

import assert from "node:assert/strict";
import OpenAI from "npm:openai@6.49.0";
import { holdfastMiddleware, type ModelParams } from "../../src/client/ai.ts";
import { meterOpenAI } from "../../src/client/openai.ts";
import { ANSWERS, SHAPE_PRICES, USAGE_SHAPES, type UsageShape } from "../support/usage_shapes.ts";
import { events, Model, MODEL_URL } from "./model.ts";
import { service } from "./service.ts";
import { clientOf } from "./support.ts";

const MATCHES = [{ event: "*" }];
const CATALOG = {
  models: [SHAPE_PRICES],
  plans: [{
    id: "plan_pro",
    name: "Pro",
    rank: 10,
    period: { type: "monthly", anchor: "calendar" },
    limits: [
      { id: "tokens", label: "Tokens", unit: "tokens", quota: 1_000_000, matches: MATCHES },
      { id: "cents", label: "Cents", unit: "cents", quota: 1_000_000, matches: MATCHES },
    ],
  }],
};

/** A client, and what its user has used since the last look: tokens and cents. */
async function user() {
  const client = clientOf(service, await service.newApp(CATALOG));
  await client.subscriptions.upsert({ userId: "u", planId: "plan_pro" });
  let before = [0, 0];
  const used = async () => {
    const { counters } = await client.usage("u");
    const now = counters.map(({ count }) => count);
    const since = now.map((count, place) => Number((count - (before[place] ?? 0)).toFixed(6)));
    before = now;
    return since;
  };
  return { client, used };
}

function expected({ tokens: [input, , , , output], cents }: UsageShape): number[] {
  return [input + output, cents];
}

Deno.test("every shape that the openai package can meet costs what it must", async () => {
  const { client, used } = await user();
  const model = new Model();
  const plain = new OpenAI({ apiKey: "sk-x", baseURL: MODEL_URL, fetch: model.fetch, maxRetries: 0 });
  const openai = meterOpenAI(plain, { client, userId: "u" });
  for (const shape of USAGE_SHAPES) {
    const { form, usage, name } = shape;
    if (form === undefined) continue;
    model.reply = () => Response.json({ ...ANSWERS[form], usage });
    const messages = [{ role: "user" as const, content: "Hi" }];
    if (form === "chat") await openai.chat.completions.create({ model: "priced", messages });
    else if (form === "responses") await openai.responses.create({ model: "priced", input: "Hi" });
    else await openai.embeddings.create({ model: "priced", input: "Hi", encoding_format: "float" });
    assert.deepEqual(await used(), expected(shape), name);
    if (form !== "chat") continue;
    model.reply = () => events({ object: "chat.completion.chunk", choices: [], usage }, "[DONE]");
    const stream = await openai.chat.completions.create({ model: "priced", messages, stream: true });
    for await (const _ of stream);
    assert.deepEqual(await used(), expected(shape), `${name}, streamed`);
  }
});

Deno.test("of a report with a faulty detail the openai package is charged the totals, as in the gateway", async () => {
  const { client, used } = await user();
  const usage = { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: "x" } };
  const model = new Model(() => Response.json({ ...ANSWERS.chat, usage }));
  const plain = new OpenAI({ apiKey: "sk-x", baseURL: MODEL_URL, fetch: model.fetch, maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "Hi" }];
  await meterOpenAI(plain, { client, userId: "u" }).chat.completions.create({ model: "priced", messages });
  assert.deepEqual(await used(), [15, 0.003]);
});

interface Answer {
  readonly usage: unknown;
  readonly providerMetadata?: unknown;
}

/** Runs one call of a model of the AI SDK through the middleware, whole and streamed. */
async function runs(
  provider: string,
  answer: Answer,
  look: () => Promise<unknown>,
  params: Partial<ModelParams> = {},
) {
  const middleware = holdfastMiddleware({ client: clients.client, userId: "u", event: "chat.reply" });
  const options = { params: { prompt: [], ...params }, model: { modelId: "priced", provider } };
  await middleware.wrapGenerate({
    ...options,
    doGenerate: () => Promise.resolve({ content: [], ...answer }),
  });
  const whole = await look();
  const stream = ReadableStream.from([{ type: "finish", ...answer }]);
  const streamed = await middleware.wrapStream({ ...options, doStream: () => Promise.resolve({ stream }) });
  for await (const _ of streamed.stream);
  return [whole, await look()];
}

let clients: Awaited<ReturnType<typeof user>>;

Deno.test("every shape that a model of the AI SDK reports costs what it must", async () => {
  clients = await user();
  let met = 0;
  for (const shape of USAGE_SHAPES) {
    if (shape.sdk === undefined) continue;
    met += 1;
    const both = await runs("test.chat", { usage: shape.usage }, clients.used);
    assert.deepEqual(both, [expected(shape), expected(shape)], shape.name);
  }
  assert.ok(met > 5);
});

const ANTHROPIC = {
  input_tokens: 21,
  cache_creation_input_tokens: 1556,
  cache_read_input_tokens: 1000,
  cache_creation: { ephemeral_5m_input_tokens: 456, ephemeral_1h_input_tokens: 1100 },
  output_tokens: 393,
};
/** Version 5 leaves out the tokens of tool use, which only the total has. */
const GEMINI = {
  promptTokenCount: 1000,
  candidatesTokenCount: 50,
  thoughtsTokenCount: 30,
  totalTokenCount: 1100,
};

Deno.test("in version 5 the server's own object is in the metadata, and is the one that counts", async () => {
  clients = await user();
  const rows: [provider: string, answer: Answer, expected: number[]][] = [
    ["anthropic.messages", {
      usage: { inputTokens: 21, outputTokens: 393, totalTokens: 414, cachedInputTokens: 1000 },
      providerMetadata: { anthropic: { usage: ANTHROPIC, cacheCreationInputTokens: 1556 } },
    }, [2970, 0.4463]],
    ["google.generative-ai", {
      usage: { inputTokens: 1000, outputTokens: 50, totalTokens: 1100, reasoningTokens: 30 },
      providerMetadata: { google: { usageMetadata: GEMINI } },
    }, [1100, 0.146]],
    // Without such an object: Bedrock counts the cache beside the input, and has the writes in its metadata.
    ["amazon-bedrock", {
      usage: { inputTokens: 4, outputTokens: 100, totalTokens: 2104, cachedInputTokens: 800 },
      providerMetadata: { bedrock: { usage: { cacheWriteInputTokens: 1200 } } },
    }, [2104, 0.1984]],
  ];
  for (const [provider, answer, wanted] of rows) {
    assert.deepEqual(await runs(provider, answer, clients.used), [wanted, wanted], provider);
  }
});

const refuse = () =>
  Promise.resolve({ allowed: false, matched: true, reasons: ["limit_reached"], groups: [] });

Deno.test("a call that asks for caching holds the price of the writes", async () => {
  const asked: unknown[] = [];
  const spy = {
    reserve: (...args: unknown[]) => (asked.push(args[4]), refuse()),
    commit: refuse,
    release: refuse,
  };
  const middleware = holdfastMiddleware({ client: spy as never, userId: "u", event: "chat.reply" });
  const model = { modelId: "priced", provider: "anthropic" };
  const hour = { anthropic: { cacheControl: { type: "ephemeral", ttl: "1h" } } };
  const part = { type: "text", text: "x".repeat(400), providerOptions: { anthropic: { cacheControl: {} } } };
  const all: ModelParams[] = [
    { prompt: "x".repeat(398) },
    { prompt: [{ role: "user", content: [part] }] },
    { prompt: "x".repeat(398), providerOptions: hour },
  ];
  for (const params of all) {
    const options = { params, model, doGenerate: () => Promise.reject(new Error("not called")) };
    await middleware.wrapGenerate(options).catch(() => {});
  }
  const sizes = asked as { inputTokens: number; cacheWriteTokens?: number; cacheWrite1hTokens?: number }[];
  assert.deepEqual(sizes.map((size) => [size.cacheWriteTokens, size.cacheWrite1hTokens]), [
    [undefined, undefined],
    [sizes[1]?.inputTokens, undefined],
    [100, 100],
  ]);
});
