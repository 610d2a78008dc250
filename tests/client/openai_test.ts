// The real `openai` package, metered, with a model server in place of `fetch` and the real service.

import assert from "node:assert/strict";
import OpenAI from "openai";
import OpenAI5 from "npm:openai@5.23.2";
import OpenAI6 from "npm:openai@6.49.0";
import { HoldfastError } from "../../src/client/client.ts";
import { meterOpenAI, type MeterOpenAIOptions } from "../../src/client/openai.ts";
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
  streamOf,
  TEXT,
  untilShown,
} from "./model.ts";
import { bodyOf, FAILED_ANSWERS, inputOf } from "../support/failed_answers.ts";
import { service } from "./service.ts";

const messages = [{ role: "user", content: "Write a text." }] as const;
const asked = { model: "mini", messages: [...messages], max_completion_tokens: 100 };

function settingsOf({ fetch }: Model) {
  return { apiKey: "sk-x", baseURL: MODEL_URL, fetch, maxRetries: 0 };
}

async function setUp(options: Partial<MeterOpenAIOptions> = {}, model = new Model()) {
  const { client, shown } = await meteredUser();
  const plain = new OpenAI(settingsOf(model));
  const openai: OpenAI = meterOpenAI(plain, { client, userId: "u", ...options });
  return { client, shown, model, plain, openai };
}

/** The tokens of the input of `asked`, by its size. */
const ASKED_TOKENS = Math.ceil(JSON.stringify(messages).length / 4);

function isRefused(code: string) {
  return (error: unknown) => error instanceof HoldfastError && error.status === 429 && error.code === code;
}

Deno.test("a chat, a response and their streams are charged what the model reports, cached tokens too", async () => {
  const { openai } = await setUp();
  const calls: Record<string, (openai: OpenAI) => Promise<string | null | undefined>> = {
    chat: async (openai) => (await openai.chat.completions.create(asked)).choices[0]?.message.content,
    "parsed chat": async (openai) => (await openai.chat.completions.parse(asked)).choices[0]?.message.content,
    response: async (openai) =>
      (await openai.responses.create({ model: "mini", input: "Write a text." })).output_text,
    "raw chat": async (openai) => {
      const { data, response } = await openai.chat.completions.create(asked).withResponse();
      assert.equal(response.status, 200);
      return data.choices[0]?.message.content;
    },
    "chat stream": async (openai) => {
      let text = "";
      for await (const { choices } of await openai.chat.completions.create({ ...asked, stream: true })) {
        assert.equal(choices.length, 1, "the report of the usage is hidden");
        text += choices[0]?.delta.content ?? "";
      }
      return text;
    },
    "helper of chat streams": async (openai) => {
      return await openai.chat.completions.stream(asked).finalContent();
    },
    "response stream": async (openai) => {
      let text = "";
      for await (
        const event of await openai.responses.create({ model: "mini", input: "Write a text.", stream: true })
      ) if (event.type === "response.output_text.delta") text += event.delta;
      return text;
    },
  };
  assert.ok(openai instanceof OpenAI);
  for (const [name, call] of Object.entries(calls)) {
    const { openai, shown } = await setUp();
    assert.equal(await call(openai), TEXT, name);
    assert.deepEqual(await shown(), REPORTED, name);
  }
});

Deno.test("a caller who asked for the usage in a stream sees it", async () => {
  const { openai, shown } = await setUp();
  const stream = await openai.chat.completions.create({
    ...asked,
    stream: true,
    stream_options: { include_usage: true },
  });
  const usages = (await Array.fromAsync(stream)).flatMap(({ usage }) => usage ?? []);
  assert.deepEqual(usages.map(({ total_tokens }) => total_tokens), [1500]);
  assert.deepEqual(await shown(), REPORTED);
});

Deno.test("embeddings are charged their input, and other calls pass", async () => {
  const { openai, shown, client, model } = await setUp({ metadata: { feature: "search" } });
  const { data } = await openai.embeddings.create({
    model: "mini",
    input: [1, 2, 3],
    encoding_format: "float",
  });
  assert.deepEqual(data[0]?.embedding, [0.5, -0.25]);
  assert.deepEqual(await shown(), { tokens: 8, cents: 0.008, calls: 1 });
  const [first] = (await client.events.list({ userId: "u" })).events;
  const { eventType, metadata } = await client.events.get(first?.id ?? "");
  assert.deepEqual({ eventType, metadata }, {
    eventType: "openai.embeddings",
    metadata: { feature: "search", model: "mini" },
  });
  await openai.moderations.create({ input: "x" });
  assert.equal(model.requests.at(-1)?.path, "/moderations");
  assert.equal((await shown()).calls, 1);
});

Deno.test("the hold has the input by its size and the longest answer, and the user comes from the call", async () => {
  let held = NOTHING;
  const { openai, shown, model } = await setUp({
    userId: async (call) => await String(call.user),
    event: "chat.reply",
  });
  model.reply = async (request) => {
    held = await shown();
    return answerWell(request);
  };
  const image = {
    type: "image_url",
    image_url: { url: `data:image/png;base64,${"A".repeat(8000)}` },
  } as const;
  const media: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: [image] }];
  const mediaTokens = 1024 + Math.ceil(JSON.stringify(media).length / 4 - 8022 / 4);
  const sizes = [
    [{ ...asked, n: 2 }, ASKED_TOKENS + 200],
    [{ ...asked, max_completion_tokens: null }, ASKED_TOKENS + 1024],
    [{ ...asked, messages: media }, mediaTokens + 100],
  ] satisfies [OpenAI.ChatCompletionCreateParamsNonStreaming, number][];
  for (const [call, tokens] of sizes) {
    const before = await shown();
    await openai.chat.completions.create({ ...call, user: "u" });
    assert.equal(held.tokens - before.tokens, tokens);
  }
});

Deno.test("a hold lasts as long as the app says, or as the options say", async () => {
  const { client, plain } = await setUp();
  const lasted: number[] = [];
  const watched = {
    reserve: async (...given: Parameters<typeof client.reserve>) => {
      const answer = await client.reserve(...given);
      lasted.push((Date.parse(answer.expiresAt ?? "") - service.clock.now()) / 1000);
      return answer;
    },
    commit: client.commit.bind(client),
    release: client.release.bind(client),
  };
  for (const ttlSeconds of [undefined, 7200]) {
    await meterOpenAI(plain, { client: watched, userId: "u", ttlSeconds }).chat.completions.create(asked);
  }
  assert.deepEqual(lasted, [600, 7200]);
});

Deno.test("a refused call rejects with its first reason, and the model is not asked", async () => {
  const { openai, model, shown, plain, client } = await setUp();
  await assert.rejects(
    openai.chat.completions.create({ ...asked, max_completion_tokens: 20_000 }),
    isRefused("limit_reached"),
  );
  const stranger = meterOpenAI(plain, { client, userId: "stranger" }).withOptions({ timeout: 1000 });
  await assert.rejects(
    stranger.responses.create({ model: "mini", input: "x" }),
    isRefused("no_subscription"),
  );
  await assert.rejects(
    openai.responses.create({ model: "mini", input: "x", background: true }),
    (error) => error instanceof HoldfastError && error.code === "invalid_request",
  );
  assert.deepEqual([model.requests.length, await shown()], [0, NOTHING]);
});

Deno.test("a call that fails is released, and retries of one call share its hold", async () => {
  const { openai, model, shown } = await setUp();
  model.reply = () => Response.json({ error: { message: "overloaded" } }, { status: 503 });
  await assert.rejects(
    openai.chat.completions.create(asked),
    (error) => error instanceof OpenAI.APIError && error.status === 503,
  );
  await untilShown(shown, ({ tokens }) => tokens === 0);
  model.reply = () => {
    throw new TypeError("connection reset");
  };
  await assert.rejects(openai.chat.completions.create(asked), OpenAI.APIConnectionError);
  await untilShown(shown, ({ tokens }) => tokens === 0);

  model.requests.length = 0;
  model.reply = (request) =>
    model.requests.length === 1 ? new Response("", { status: 500 }) : answerWell(request);
  await openai.chat.completions.create(asked, { maxRetries: 1 });
  assert.deepEqual([model.requests.length, await shown()], [2, REPORTED]);
});

Deno.test("an answer that failed inside a 200 is released, and one with any work of the model is charged", async () => {
  for (const failed of FAILED_ANSWERS) {
    const { name, path, answer, output } = failed;
    const { openai, model, client, shown } = await setUp();
    model.reply = () =>
      "json" in answer ? Response.json(answer.json) : streamOf(async function* () {
        for (const event of answer.events) yield await new TextEncoder().encode(event);
      });
    const response = await openai.post(path, { body: bodyOf(failed) }).asResponse();
    await response.text();
    const { tokens } = await untilShown(shown, ({ tokens }) => tokens < 1_000);
    assert.equal(tokens, output === null ? 0 : inputOf(failed) + output, name);
    const [event] = (await client.events.list({ userId: "u" })).events;
    assert.equal(event?.matchStatus, output === null ? "released" : "matched", name);
  }
});

Deno.test("a stream that its reader leaves, or that breaks, is charged what came of it", async () => {
  const estimated = { tokens: ASKED_TOKENS + TEXT.length / 4, calls: 1 };
  const ends: Record<string, (openai: OpenAI, model: Model) => Promise<void>> = {
    "the reader breaks": async (openai) => {
      let seen = 0;
      for await (const _ of await openai.chat.completions.create({ ...asked, stream: true })) {
        if (++seen === PIECES.length) break;
      }
    },
    "the reader aborts": async (openai) => {
      const stop = new AbortController();
      let seen = 0;
      const stream = await openai.chat.completions.create({ ...asked, stream: true }, {
        signal: stop.signal,
      });
      for await (const _ of stream) if (++seen === PIECES.length) stop.abort();
    },
    "the server breaks off": async (openai, model) => {
      model.reply = ({ body }) =>
        hangingStream(chatChunks(body, PIECES).slice(0, PIECES.length), AbortSignal.timeout(50));
      const stream = await openai.chat.completions.create({ ...asked, stream: true });
      await assert.rejects(Array.fromAsync(stream));
    },
    "the server does not report": async (openai, model) => {
      model.reply = () => events(...chatChunks({}, PIECES));
      await Array.fromAsync(await openai.chat.completions.create({ ...asked, stream: true }));
    },
    "the report makes no sense": async (openai, model) => {
      const report = { ...chatChunks({}, [])[0] as object, choices: [], usage: { prompt_tokens: "many" } };
      model.reply = () => events(...chatChunks({}, PIECES).slice(0, -1), report, "[DONE]");
      await Array.fromAsync(await openai.chat.completions.create({ ...asked, stream: true }));
    },
  };
  for (const [name, end] of Object.entries(ends)) {
    const { openai, model, shown } = await setUp();
    model.reply = ({ body, signal }) =>
      hangingStream(chatChunks(body, PIECES).slice(0, PIECES.length), signal);
    await end(openai, model);
    const { cents: _, ...now } = await untilShown(shown, ({ tokens }) => tokens < 100);
    assert.deepEqual(now, estimated, name);
  }
});

Deno.test("a caller who leaves before an answer is charged the input", async () => {
  const { openai, model, shown } = await setUp();
  const stop = new AbortController();
  model.reply = ({ signal }) =>
    new Promise((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
      stop.abort();
    });
  await assert.rejects(
    openai.chat.completions.create(asked, { signal: stop.signal }),
    OpenAI.APIUserAbortError,
  );
  const { tokens, calls } = await untilShown(shown, ({ tokens }) => tokens < 100);
  assert.deepEqual({ tokens, calls }, { tokens: ASKED_TOKENS, calls: 1 });
});

Deno.test("an answer with a refused commit is not passed on as counted", async () => {
  const { client, plain } = await setUp();
  const failing = {
    reserve: client.reserve.bind(client),
    release: client.release.bind(client),
    commit: () => Promise.reject(new HoldfastError({ code: "unavailable", status: 503, message: "down" })),
  };
  const openai = meterOpenAI(plain, { client: failing, userId: "u" });
  await assert.rejects(
    openai.chat.completions.create(asked),
    (error) => error instanceof HoldfastError && error.code === "unavailable",
  );
});

Deno.test("images are held by their number and charged those that came, also as a stream of drafts", async () => {
  const image = { b64_json: "" };
  const usage = { input_tokens: 10, output_tokens: 200, total_tokens: 210 };
  const reply = ({ path, body }: { path: string; body: { n?: number; stream?: boolean } }) => {
    assert.equal(path, "/images/generations");
    if (body.stream !== true) {
      return Response.json({ created: 0, data: Array(body.n ?? 1).fill(image), usage });
    }
    const draft = { type: "image_generation.partial_image", b64_json: "", partial_image_index: 0 };
    return events(draft, { type: "image_generation.completed", b64_json: "", usage });
  };
  const { client, shown, openai } = await setUp({ event: "chat.image" }, new Model(reply as never));
  const { data } = await openai.images.generate({ model: "mini", prompt: "A pond.", n: 3 });
  assert.equal(data?.length, 3);
  for await (const _ of await openai.images.generate({ model: "mini", prompt: "A pond.", stream: true }));
  const { calls, tokens } = await shown();
  assert.deepEqual([calls, tokens], [4, 420]);
  const empty = meterOpenAI(
    new OpenAI(settingsOf(new Model(() => Response.json({ created: 0, data: [] })))),
    { client, userId: "u", event: "chat.image" },
  );
  await empty.images.generate({ model: "mini", prompt: "A pond." });
  assert.equal((await shown()).calls, 4, "no image, so its hold was released");
});

Deno.test("calls that pass unmetered are warned of once for each kind, over all clients made from one", async () => {
  const warned: string[] = [];
  const { openai } = await setUp({ onUnmetered: (kind) => warned.push(kind) });
  for (const each of [openai, openai.withOptions({ maxRetries: 1 })]) {
    await each.moderations.create({ input: "x" });
    await each.audio.speech.create({ model: "tts-1", voice: "alloy", input: "x" });
  }
  await openai.chat.completions.create(asked);
  assert.deepEqual(warned, ["/moderations", "/audio"]);
});

/** Versions before this one; each keeps its own type. */
const EARLIER: Record<string, (model: Model, metering: MeterOpenAIOptions) => OpenAI5 | OpenAI6> = {
  "openai 5": (model, metering): OpenAI5 => meterOpenAI(new OpenAI5(settingsOf(model)), metering),
  "openai 6": (model, metering): OpenAI6 => meterOpenAI(new OpenAI6(settingsOf(model)), metering),
};

for (const [version, make] of Object.entries(EARLIER)) {
  const setUp = async () => {
    const { client, shown } = await meteredUser();
    const model = new Model();
    return { model, shown, openai: make(model, { client, userId: "u" }) as unknown as OpenAI };
  };

  Deno.test(`${version}: answers and streams are charged what the model reports`, async () => {
    for (const stream of [false, true]) {
      const { openai, shown } = await setUp();
      const parts = stream
        ? await Array.fromAsync(await openai.chat.completions.create({ ...asked, stream }))
        : [];
      const text = stream
        ? parts.map(({ choices }) => choices[0]?.delta.content ?? "").join("")
        : (await openai.responses.create({ model: "mini", input: "Write a text." })).output_text;
      assert.deepEqual([text, await shown()], [TEXT, REPORTED]);
    }
  });

  Deno.test(`${version}: a refused call reaches no model, a failed call is released, an abandoned call is charged`, async () => {
    const { openai, model, shown } = await setUp();
    await assert.rejects(
      openai.chat.completions.create({ ...asked, max_completion_tokens: 20_000 }),
      isRefused("limit_reached"),
    );
    assert.equal(model.requests.length, 0);

    model.reply = () => Response.json({ error: { message: "overloaded" } }, { status: 503 });
    await assert.rejects(openai.chat.completions.create(asked));
    assert.deepEqual([model.requests.length, await untilShown(shown, ({ tokens }) => tokens === 0)], [
      1,
      NOTHING,
    ]);

    model.reply = ({ body, signal }) =>
      hangingStream(chatChunks(body, PIECES).slice(0, PIECES.length), signal);
    const stop = new AbortController();
    let seen = 0;
    const stream = await openai.chat.completions.create({ ...asked, stream: true }, { signal: stop.signal });
    for await (const _ of stream) if (++seen === PIECES.length) stop.abort();
    const { tokens } = await untilShown(shown, ({ tokens }) => tokens > 0 && tokens < 100);
    assert.equal(tokens, ASKED_TOKENS + TEXT.length / 4);
  });
}
