// The providers of the AI SDK, versions 5 and 6, each with the usage object of its model server: what the middleware hands
// on costs what the server's own object costs. Each package leaves out other members of it.

import assert from "node:assert/strict";
import { createAmazonBedrock as bedrock5 } from "npm:@ai-sdk/amazon-bedrock@3.0.137";
import { createAmazonBedrock as bedrock6 } from "npm:@ai-sdk/amazon-bedrock@4.0.186";
import { createAnthropic as anthropic5 } from "npm:@ai-sdk/anthropic@2.0.112";
import { createAnthropic as anthropic6 } from "npm:@ai-sdk/anthropic@3.0.140";
import { createDeepSeek as deepseek5 } from "npm:@ai-sdk/deepseek@1.0.60";
import { createDeepSeek as deepseek6 } from "npm:@ai-sdk/deepseek@2.0.69";
import { createGoogleGenerativeAI as google5 } from "npm:@ai-sdk/google@2.0.108";
import { createGoogleGenerativeAI as google6 } from "npm:@ai-sdk/google@3.0.141";
import { createGroq as groq5 } from "npm:@ai-sdk/groq@2.0.56";
import { createGroq as groq6 } from "npm:@ai-sdk/groq@3.0.71";
import { createMistral as mistral5 } from "npm:@ai-sdk/mistral@2.0.51";
import { createMistral as mistral6 } from "npm:@ai-sdk/mistral@3.0.69";
import { createOpenAI as openai5 } from "npm:@ai-sdk/openai@2.0.131";
import { createOpenAI as openai6 } from "npm:@ai-sdk/openai@3.0.141";
import { createXai as xai5 } from "npm:@ai-sdk/xai@2.0.98";
import { createXai as xai6 } from "npm:@ai-sdk/xai@3.0.138";
import * as ai5 from "npm:ai@5.0.277";
import * as ai6 from "npm:ai@6.0.326";
import { holdfastMiddleware } from "../../src/client/ai.ts";
import { type ProviderUsage, readProviderUsage } from "../../src/domain/pricing/provider_usage.ts";
import { numberOf } from "../../src/domain/values/amount.ts";

interface Provider {
  /** The model in version 5 and in version 6. */
  readonly models: readonly ((settings: Settings) => unknown)[];
  readonly usage: ProviderUsage;
  readonly answer: object;
  /** The same as the data of events; missing where they are binary. */
  readonly events?: readonly object[];
}

interface Settings {
  readonly apiKey: string;
  readonly fetch: typeof fetch;
}

const chatOf = (usage: ProviderUsage) => {
  const head = { id: "1", created: 0, model: "m" };
  const choice = { index: 0, finish_reason: "stop" };
  const message = { role: "assistant", content: "Hi" };
  return {
    usage,
    answer: { ...head, object: "chat.completion", choices: [{ ...choice, message }], usage },
    events: [
      {
        ...head,
        object: "chat.completion.chunk",
        choices: [{ index: 0, delta: message, finish_reason: null }],
      },
      // Groq has its report in a member of its own, too.
      {
        ...head,
        object: "chat.completion.chunk",
        choices: [{ ...choice, delta: {} }],
        usage,
        x_groq: { usage },
      },
    ],
  };
};

const CHAT_USAGE = {
  prompt_tokens: 1000,
  completion_tokens: 500,
  total_tokens: 1500,
  prompt_tokens_details: { cached_tokens: 400 },
  completion_tokens_details: { reasoning_tokens: 100 },
};

const RESPONSE_USAGE = {
  input_tokens: 328,
  input_tokens_details: { cached_tokens: 128 },
  output_tokens: 52,
  output_tokens_details: { reasoning_tokens: 32 },
  total_tokens: 380,
};
const RESPONSE = {
  id: "resp_1",
  object: "response",
  created_at: 1,
  model: "m",
  status: "completed",
  error: null,
  incomplete_details: null,
  output: [{
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "Hi", annotations: [] }],
  }],
  usage: RESPONSE_USAGE,
};

const ANTHROPIC_USAGE = {
  input_tokens: 21,
  cache_creation_input_tokens: 1556,
  cache_read_input_tokens: 1000,
  cache_creation: { ephemeral_5m_input_tokens: 456, ephemeral_1h_input_tokens: 1100 },
  output_tokens: 393,
  service_tier: "standard",
};
const ANTHROPIC = { id: "msg_1", type: "message", role: "assistant", model: "m", stop_sequence: null };

const GEMINI_USAGE = {
  promptTokenCount: 100,
  cachedContentTokenCount: 40,
  candidatesTokenCount: 10,
  thoughtsTokenCount: 300,
  totalTokenCount: 410,
};
const GEMINI = {
  candidates: [{ content: { role: "model", parts: [{ text: "Hi" }] }, finishReason: "STOP", index: 0 }],
  usageMetadata: GEMINI_USAGE,
};

const BEDROCK_USAGE = {
  inputTokens: 4,
  outputTokens: 100,
  totalTokens: 2104,
  cacheReadInputTokens: 800,
  cacheWriteInputTokens: 1200,
};

const PROVIDERS: Readonly<Record<string, Provider>> = {
  "OpenAI, chat": {
    models: [(settings) => openai5(settings).chat("m"), (settings) => openai6(settings).chat("m")],
    ...chatOf(CHAT_USAGE),
  },
  "OpenAI, responses": {
    models: [(settings) => openai5(settings).responses("m"), (settings) => openai6(settings).responses("m")],
    usage: RESPONSE_USAGE,
    answer: RESPONSE,
    events: [
      { type: "response.created", response: { ...RESPONSE, status: "in_progress", output: [], usage: null } },
      { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "msg_1" } },
      { type: "response.output_text.delta", item_id: "msg_1", delta: "Hi" },
      { type: "response.output_item.done", output_index: 0, item: { type: "message", id: "msg_1" } },
      { type: "response.completed", response: RESPONSE },
    ],
  },
  Anthropic: {
    models: [(settings) => anthropic5(settings)("m"), (settings) => anthropic6(settings)("m")],
    usage: ANTHROPIC_USAGE,
    answer: {
      ...ANTHROPIC,
      content: [{ type: "text", text: "Hi" }],
      stop_reason: "end_turn",
      usage: ANTHROPIC_USAGE,
    },
    events: [
      {
        type: "message_start",
        message: {
          ...ANTHROPIC,
          content: [],
          stop_reason: null,
          usage: { ...ANTHROPIC_USAGE, output_tokens: 1 },
        },
      },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi" } },
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: ANTHROPIC_USAGE.output_tokens },
      },
      { type: "message_stop" },
    ],
  },
  Gemini: {
    models: [(settings) => google5(settings)("m"), (settings) => google6(settings)("m")],
    usage: GEMINI_USAGE,
    answer: GEMINI,
    events: [GEMINI],
  },
  xAI: {
    models: [(settings) => xai5(settings)("m"), (settings) => xai6(settings)("m")],
    ...chatOf({
      prompt_tokens: 32,
      completion_tokens: 9,
      total_tokens: 135,
      prompt_tokens_details: { text_tokens: 32, audio_tokens: 0, image_tokens: 0, cached_tokens: 6 },
      completion_tokens_details: { reasoning_tokens: 94, audio_tokens: 0 },
    }),
  },
  Mistral: {
    models: [(settings) => mistral5(settings)("m"), (settings) => mistral6(settings)("m")],
    ...chatOf({ prompt_tokens: 50, completion_tokens: 30, total_tokens: 80 }),
  },
  DeepSeek: {
    models: [(settings) => deepseek5(settings)("m"), (settings) => deepseek6(settings)("m")],
    ...chatOf({
      prompt_tokens: 50,
      completion_tokens: 30,
      total_tokens: 80,
      prompt_cache_hit_tokens: 20,
      prompt_cache_miss_tokens: 30,
      completion_tokens_details: { reasoning_tokens: 12 },
    }),
  },
  Groq: {
    models: [(settings) => groq5(settings)("m"), (settings) => groq6(settings)("m")],
    ...chatOf({
      prompt_tokens: 50,
      completion_tokens: 30,
      total_tokens: 80,
      prompt_tokens_details: { cached_tokens: 16 },
    }),
  },
  "Bedrock Converse": {
    models: [
      (settings) => bedrock5({ ...settings, region: "us-east-1" })("m"),
      (settings) => bedrock6({ ...settings, region: "us-east-1" })("m"),
    ],
    usage: BEDROCK_USAGE,
    answer: {
      output: { message: { role: "assistant", content: [{ text: "Hi" }] } },
      stopReason: "end_turn",
      usage: BEDROCK_USAGE,
      metrics: { latencyMs: 1 },
    },
  },
};

/** The tokens of a usage object by their kinds. */
function tokensOf(object: ProviderUsage): Record<string, number> | string {
  const usage = readProviderUsage(object);
  if ("path" in usage) return `${usage.path} ${usage.message}`;
  const amounts = Object.entries(usage).filter(([, amount]) => typeof amount === "bigint" && amount > 0n);
  return Object.fromEntries(amounts.map(([name, amount]) => [name, numberOf(amount as bigint)]));
}

/** Runs one call of a model; returns the tokens that are committed. */
async function committed(version: 5 | 6, make: Provider["models"][number], answer: () => Response, way: Way) {
  const commits: ProviderUsage[] = [];
  const allowed = { allowed: true, matched: true, reservationId: "rsv_1", expiresAt: "" };
  const client = {
    reserve: () => Promise.resolve(allowed),
    commit: (_id: string, { providerUsage }: { readonly providerUsage: ProviderUsage }) => {
      commits.push(providerUsage);
      return Promise.resolve({});
    },
    release: () => Promise.resolve(),
  };
  const middleware = holdfastMiddleware({ client: client as never, userId: "u", event: "chat.reply" });
  const model = make({ apiKey: "x", fetch: () => Promise.resolve(answer()) }) as never;
  const { wrapLanguageModel, generateText, streamText } = version === 5 ? ai5 : ai6 as unknown as typeof ai5;
  const asked = { model: wrapLanguageModel({ model, middleware }), prompt: "Hello", maxRetries: 0 };
  if (way === "whole") await generateText(asked);
  else for await (const _ of streamText(asked).textStream);
  return commits.map(tokensOf);
}

type Way = "whole" | "streamed";

for (const [name, { models, usage, answer, events }] of Object.entries(PROVIDERS)) {
  Deno.test(`the AI SDK with ${name}: what is committed is what the server reported`, async () => {
    for (const [place, make] of models.entries()) {
      const version = place === 0 ? 5 : 6;
      const whole = await committed(version, make, () => Response.json(answer), "whole");
      assert.deepEqual(whole, [tokensOf(usage)], `version ${version}`);
      if (events === undefined) continue;
      const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
      const headers = { "content-type": "text/event-stream" };
      const streamed = await committed(version, make, () => new Response(text, { headers }), "streamed");
      assert.deepEqual(streamed, [tokensOf(usage)], `version ${version}, streamed`);
    }
  });
}
