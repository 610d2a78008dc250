// The middleware on the real AI SDK, in each version that it is for, with a model server in place of `fetch` and the
// real service.

import assert from "node:assert/strict";
import { createOpenAICompatible as provider5 } from "npm:@ai-sdk/openai-compatible@1.0.61";
import { createOpenAICompatible as provider6 } from "npm:@ai-sdk/openai-compatible@2.0.91";
import { createOpenAICompatible as provider7 } from "npm:@ai-sdk/openai-compatible@3.0.92";
import * as ai5 from "npm:ai@5.0.277";
import { MockLanguageModelV2 } from "npm:ai@5.0.277/test";
import * as ai6 from "npm:ai@6.0.326";
import * as ai7 from "npm:ai@7.0.173";
import {
  holdfastEmbeddingMiddleware,
  holdfastImageMiddleware,
  type HoldfastMiddleware,
  holdfastMiddleware,
  type ModelParams,
} from "../../src/client/ai.ts";
import { type HoldfastClient, HoldfastError } from "../../src/client/client.ts";
import {
  answerWell,
  chatChunks,
  events,
  hangingStream,
  meteredUser,
  Model,
  MODEL_URL,
  NOTHING,
  PIECES,
  REPORTED,
  TEXT,
  untilShown,
} from "./model.ts";

/** What a test asks of a version of the SDK. */
interface Sdk {
  generate(asked: Asked): Promise<string>;
  /** Hands each piece of text to `onText`; rejects with what the stream reports. */
  stream(asked: Asked, onText?: (text: string) => void): Promise<string>;
}

interface Asked {
  readonly prompt: string;
  readonly maxOutputTokens?: number;
  readonly abortSignal?: AbortSignal;
  readonly maxRetries?: number;
  readonly providerOptions?: Record<string, Record<string, string>>;
}

const SETTINGS = { name: "test", baseURL: MODEL_URL, includeUsage: true };

/** Compiled against the real types: the middleware fits `wrapLanguageModel` of each version. */
const SDKS: Record<string, (fetch: typeof globalThis.fetch, middleware: HoldfastMiddleware) => Sdk> = {
  "ai 5": (fetch, middleware) => {
    const model = ai5.wrapLanguageModel({ model: provider5({ ...SETTINGS, fetch })("mini"), middleware });
    return sdkOf(
      (asked) => ai5.generateText({ model, ...asked }),
      (asked) => ai5.streamText({ model, ...asked }),
    );
  },
  "ai 6": (fetch, middleware) => {
    const model = ai6.wrapLanguageModel({ model: provider6({ ...SETTINGS, fetch })("mini"), middleware });
    return sdkOf(
      (asked) => ai6.generateText({ model, ...asked }),
      (asked) => ai6.streamText({ model, ...asked }),
    );
  },
  "ai 7": (fetch, middleware) => {
    const model = ai7.wrapLanguageModel({ model: provider7({ ...SETTINGS, fetch })("mini"), middleware });
    return sdkOf(
      (asked) => ai7.generateText({ model, ...asked }),
      (asked) => ai7.streamText({ model, ...asked }),
    );
  },
};

type Handlers = { onError: (event: { error: unknown }) => void };

function sdkOf(
  generate: (asked: Asked) => Promise<{ readonly text: string }>,
  stream: (asked: Asked & Handlers) => { readonly textStream: AsyncIterable<string> },
): Sdk {
  return {
    generate: async (asked) => (await generate({ maxRetries: 0, ...asked })).text,
    async stream(asked, onText = () => {}) {
      const errors: unknown[] = [];
      const onError = ({ error }: { error: unknown }) => void errors.push(error);
      let text = "";
      for await (const piece of stream({ maxRetries: 0, ...asked, onError }).textStream) {
        text += piece;
        onText(text);
      }
      if (errors.length > 0) throw errors[0];
      return text;
    },
  };
}

async function setUp(version: string, metering: Partial<Parameters<typeof holdfastMiddleware>[0]> = {}) {
  const { client, shown } = await meteredUser();
  const model = new Model();
  const middleware = holdfastMiddleware({ client, userId: "u", event: "chat.reply", ...metering });
  const sdk = SDKS[version]?.(model.fetch as typeof fetch, middleware) as Sdk;
  return { client, shown, model, sdk };
}

const prompt = "Write a text.";
const asked = { prompt, maxOutputTokens: 100 };
/** The tokens of the input, by the size of what the SDK makes of the prompt. */
const ASKED_TOKENS = Math.ceil(
  JSON.stringify([{ role: "user", content: [{ type: "text", text: prompt }] }]).length / 4,
);

for (const version of Object.keys(SDKS)) {
  Deno.test(`${version}: an answer and a stream are charged what the model reports, cached tokens too`, async () => {
    for (const way of ["generate", "stream"] as const) {
      const { sdk, shown, client } = await setUp(version, { metadata: { feature: "chat" } });
      assert.equal(await sdk[way](asked), TEXT, way);
      assert.deepEqual(await shown(), REPORTED, way);
      const [first] = (await client.events.list({ userId: "u" })).events;
      const { eventType, metadata } = await client.events.get(first?.id ?? "");
      assert.deepEqual([eventType, metadata], ["chat.reply", { feature: "chat", model: "mini" }]);
    }
  });

  Deno.test(`${version}: the hold has the input and the longest answer; the user comes from the call`, async () => {
    const userId = ({ providerOptions }: ModelParams) => String(providerOptions?.holdfast?.user);
    const { sdk, shown, model } = await setUp(version, { userId });
    let held = NOTHING;
    model.reply = async (request) => {
      held = await shown();
      return answerWell(request);
    };
    const providerOptions = { holdfast: { user: "u" } };
    await sdk.generate({ ...asked, providerOptions });
    assert.ok(held.tokens >= ASKED_TOKENS + 100 && held.tokens < ASKED_TOKENS + 110, String(held.tokens));
    await sdk.stream({ prompt, providerOptions });
    const answer = held.tokens - REPORTED.tokens - ASKED_TOKENS;
    assert.ok(answer >= 1024 && answer < 1034, String(answer));
  });

  Deno.test(`${version}: a refused call rejects with its first reason, and the model is not asked`, async () => {
    for (const way of ["generate", "stream"] as const) {
      const { sdk, shown, model } = await setUp(version);
      await assert.rejects(
        sdk[way]({ prompt, maxOutputTokens: 20_000, maxRetries: 2 }),
        (error) => error instanceof HoldfastError && error.status === 429 && error.code === "limit_reached",
      );
      assert.deepEqual([model.requests.length, await shown()], [0, NOTHING], way);
    }
  });

  Deno.test(`${version}: a call that fails is released`, async () => {
    for (const way of ["generate", "stream"] as const) {
      const { sdk, shown, model } = await setUp(version);
      model.reply = () => Response.json({ error: { message: "overloaded" } }, { status: 503 });
      await assert.rejects(sdk[way](asked), way);
      assert.deepEqual(await shown(), NOTHING, way);
    }
  });

  Deno.test(`${version}: a stream that is aborted or breaks is charged what came of it`, async () => {
    const estimated = ASKED_TOKENS + TEXT.length / 4;
    const ends: Record<string, (sdk: Sdk, model: Model) => Promise<unknown>> = {
      "the reader aborts": (sdk) => {
        const stop = new AbortController();
        const onText = (text: string) => text === TEXT && stop.abort();
        return sdk.stream({ ...asked, abortSignal: stop.signal }, onText).catch(() => {});
      },
      "the server breaks off": (sdk, model) => {
        model.reply = ({ body }) =>
          hangingStream(chatChunks(body, PIECES).slice(0, PIECES.length), AbortSignal.timeout(50));
        return assert.rejects(sdk.stream(asked));
      },
    };
    for (const [name, end] of Object.entries(ends)) {
      const { sdk, model, shown } = await setUp(version);
      model.reply = ({ body, signal }) =>
        hangingStream(chatChunks(body, PIECES).slice(0, PIECES.length), signal);
      await end(sdk, model);
      const { tokens, calls } = await untilShown(shown, ({ tokens }) => tokens > 0 && tokens < 100);
      assert.ok(tokens >= estimated && tokens < estimated + 10, `${name}: ${tokens}`);
      assert.equal(calls, 1, name);
    }
  });

  Deno.test(`${version}: a caller who leaves before an answer is charged the input`, async () => {
    const { sdk, model, shown } = await setUp(version);
    const stop = new AbortController();
    model.reply = ({ signal }) =>
      new Promise((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
        stop.abort();
      });
    await assert.rejects(sdk.generate({ ...asked, abortSignal: stop.signal }));
    const { tokens, calls } = await untilShown(shown, ({ tokens }) => tokens > 0 && tokens < 100);
    assert.ok(tokens >= ASKED_TOKENS && tokens < ASKED_TOKENS + 10, String(tokens));
    assert.equal(calls, 1);
  });
}

for (const version of Object.keys(SDKS)) {
  Deno.test(`${version}: an answer that failed inside a 200 is released, and a text before an error is charged`, async () => {
    const error = { error: { message: "overloaded" } };
    const [text] = chatChunks({}, ["12345678"]);
    const rows: [name: string, sent: readonly unknown[], tokens: number][] = [
      ["no byte", [], 0],
      ["an error", [error, "[DONE]"], 0],
      ["no text", [...chatChunks({}, []).slice(0, 1), "[DONE]"], 0],
      ["a text, then an error", [text, error, "[DONE]"], ASKED_TOKENS + 2],
    ];
    for (const [name, sent, tokens] of rows) {
      const { sdk, model, shown } = await setUp(version);
      model.reply = () => events(...sent);
      await sdk.stream(asked).catch(() => {});
      const now = await untilShown(shown, ({ tokens }) => tokens < 100);
      assert.ok(now.tokens >= tokens && now.tokens <= tokens * 1.5, `${name}: ${now.tokens}`);
    }
    const { sdk, model, shown } = await setUp(version);
    model.reply = () => Response.json(error);
    await sdk.generate(asked).catch(() => {});
    await untilShown(shown, ({ tokens }) => tokens === 0);
  });
}

/** Models of images and embeddings, from version 6 on; compiled against the real types. */
const OTHER_MODELS: Record<string, (fetch: typeof globalThis.fetch, client: HoldfastClient) => OtherModels> =
  {
    "ai 6": (fetch, client) => {
      const provider = provider6({ ...SETTINGS, fetch });
      const image = ai6.wrapImageModel({ model: provider.imageModel("mini"), middleware: images(client) });
      const text = ai6.wrapEmbeddingModel({
        model: provider.embeddingModel("mini"),
        middleware: embeddings(client),
      });
      return {
        draw: async (n) =>
          (await ai6.generateImage({ model: image, prompt, n, maxRetries: 0 })).images.length,
        embed: async (value) => (await ai6.embed({ model: text, value, maxRetries: 0 })).embedding,
      };
    },
    "ai 7": (fetch, client) => {
      const provider = provider7({ ...SETTINGS, fetch });
      const image = ai7.wrapImageModel({ model: provider.imageModel("mini"), middleware: images(client) });
      const text = ai7.wrapEmbeddingModel({
        model: provider.embeddingModel("mini"),
        middleware: embeddings(client),
      });
      return {
        draw: async (n) =>
          (await ai7.generateImage({ model: image, prompt, n, maxRetries: 0 })).images.length,
        embed: async (value) => (await ai7.embed({ model: text, value, maxRetries: 0 })).embedding,
      };
    },
  };

interface OtherModels {
  draw(images: number): Promise<number>;
  embed(value: string): Promise<readonly number[]>;
}

const images = (client: HoldfastClient) =>
  holdfastImageMiddleware({ client, userId: "u", event: "chat.image" });
const embeddings = (client: HoldfastClient) =>
  holdfastEmbeddingMiddleware({ client, userId: "u", event: "chat.search" });

for (const [version, make] of Object.entries(OTHER_MODELS)) {
  Deno.test(`${version}: images are charged by those that came, embeddings by their report, and failed ones released`, async () => {
    const { client, shown } = await meteredUser();
    const model = new Model(({ path, body }) =>
      path.endsWith("/images/generations")
        ? Response.json({ data: Array(body.n).fill({ b64_json: "AAAA" }) })
        : answerWell({ path, body, signal: null })
    );
    const { draw, embed } = make(model.fetch as typeof fetch, client);
    assert.equal(await draw(3), 3);
    const { calls } = await shown();
    assert.equal(calls, 3);
    assert.deepEqual(await embed("A pond."), [0.5, -0.25]);
    const before = await shown();
    assert.deepEqual([before.tokens, before.calls], [Math.ceil(JSON.stringify(prompt).length / 4) + 8, 4]);
    await assert.rejects(
      draw(20),
      (error) => error instanceof HoldfastError && error.code === "limit_reached",
    );
    model.reply = () => Response.json({ error: { message: "overloaded" } }, { status: 503 });
    await assert.rejects(draw(2));
    await assert.rejects(embed("A pond."));
    assert.deepEqual(await shown(), before);
  });
}

Deno.test("ai 5: an input that its provider counts without the cache is charged whole", async () => {
  const usages = [
    ["anthropic.messages", { anthropic: { cacheCreationInputTokens: 100 } }],
    ["amazon-bedrock", { bedrock: { usage: { cacheWriteInputTokens: 100 } } }],
  ] as const;
  for (const [provider, providerMetadata] of usages) {
    const { client, shown } = await meteredUser();
    const model = new MockLanguageModelV2({
      provider,
      modelId: "mini",
      doGenerate: {
        content: [{ type: "text", text: TEXT }],
        finishReason: "stop",
        usage: { inputTokens: 500, outputTokens: 500, totalTokens: 1000, cachedInputTokens: 400 },
        providerMetadata,
        warnings: [],
      },
    });
    const middleware = holdfastMiddleware({ client, userId: "u", event: "chat.reply" });
    await ai5.generateText({ model: ai5.wrapLanguageModel({ model, middleware }), prompt });
    assert.equal((await shown()).tokens, 1500, provider);
  }
});
