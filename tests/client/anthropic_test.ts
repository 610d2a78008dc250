// The real `@anthropic-ai/sdk` package, metered, with a model server in place of `fetch` and the real service.

import assert from "node:assert/strict";
import Anthropic from "npm:@anthropic-ai/sdk@1.14.0";
import Anthropic0 from "npm:@anthropic-ai/sdk@0.99.0";
import { meterAnthropic, type MeterAnthropicOptions } from "../../src/client/anthropic.ts";
import { HoldfastError } from "../../src/client/client.ts";
import { messageEvents, namedEvent, textDeltas } from "../support/anthropic_replies.ts";
import {
  answerWell,
  meteredUser,
  Model,
  type ModelRequest,
  NOTHING,
  PIECES,
  streamOf,
  TEXT,
  textEvents,
  untilShown,
} from "./model.ts";

const asked = {
  model: "mini",
  max_tokens: 100,
  messages: [{ role: "user" as const, content: "Write a text." }],
};
const ASKED_TOKENS = Math.ceil(JSON.stringify(asked.messages).length / 4);

/** 600 fresh tokens and 100 written ones at the price of input, 300 cached ones, and 500 of output. */
const REPORTED = { tokens: 1500, cents: (700 * 1000 + 300 * 100 + 500 * 4000) / 1e6, calls: 1 };

function answer(request: ModelRequest): Response {
  return request.path.endsWith("/count_tokens") ? Response.json({ input_tokens: 12 }) : answerWell(request);
}

async function setUp(options: Partial<MeterAnthropicOptions> = {}, model = new Model(answer)) {
  const { client, shown } = await meteredUser();
  const settings = { apiKey: "sk-x", baseURL: "http://model.test", fetch: model.fetch, maxRetries: 0 };
  const plain = new Anthropic(settings);
  const anthropic: Anthropic = meterAnthropic(plain, { client, userId: "u", ...options });
  return { client, shown, model, plain, anthropic, settings };
}

Deno.test("messages and their streams are charged what the server reports, in each version of the package", async () => {
  const calls: Record<string, (anthropic: Anthropic) => Promise<unknown>> = {
    message: (anthropic) => anthropic.messages.create(asked),
    "raw message": (anthropic) => anthropic.messages.create(asked).withResponse(),
    stream: async (anthropic) =>
      await Array.fromAsync(await anthropic.messages.create({ ...asked, stream: true })),
    "helper of streams": async (anthropic) =>
      assert.equal(await anthropic.messages.stream(asked).finalText(), TEXT),
    beta: (anthropic) => anthropic.beta.messages.create({ ...asked, betas: ["some-beta"] }),
  };
  for (const [name, call] of Object.entries(calls)) {
    const { anthropic, client, settings, shown } = await setUp();
    assert.ok(anthropic instanceof Anthropic);
    await call(anthropic);
    assert.deepEqual(await shown(), REPORTED, name);
    const [event] = (await client.events.list({ userId: "u" })).events;
    assert.equal(event?.eventType, "anthropic.messages");
    const older = meterAnthropic(new Anthropic0(settings), { client, userId: "u" });
    await call(older as unknown as Anthropic);
    assert.equal((await shown()).calls, 2, name);
    assert.equal((await shown()).tokens, 2 * REPORTED.tokens, name);
  }
});

Deno.test("tools and thoughts are work; a message that failed inside a 200 is released", async () => {
  const error = namedEvent("error", { error: { type: "overloaded_error", message: "Overloaded" } });
  const begun = [...messageEvents([], undefined, null)].slice(0, 2);
  const blocks: Record<string, [events: string[], tokens: number]> = {
    tool: [[
      ...messageEvents([{ type: "input_json_delta", partial_json: "12345678" }], {
        type: "tool_use",
        name: "pick",
        id: "t",
        input: {},
      }, null),
    ], 3],
    thoughts: [[
      ...messageEvents(
        [{ type: "thinking_delta", thinking: "12345678" }],
        { type: "thinking", thinking: "" },
        null,
      ),
    ], 2],
    failure: [[...begun, error], 0],
  };
  for (const [name, [events, tokens]] of Object.entries(blocks)) {
    const { anthropic, shown, model } = await setUp();
    model.reply = () => textEvents(events.join(""));
    await Array.fromAsync(await anthropic.messages.create({ ...asked, stream: true })).catch(() => {});
    // The input is as the beginning of the stream reports it.
    const wanted = tokens === 0 ? 0 : 1_000 + tokens;
    assert.equal((await untilShown(shown, (now) => now.tokens === wanted)).tokens, wanted, name);
  }
});

Deno.test("a stream that its reader leaves is charged the reported input and the text that came", async () => {
  const { anthropic, shown, model } = await setUp();
  const events = [...messageEvents(textDeltas(PIECES), undefined, null)].join("");
  model.reply = ({ signal }) =>
    streamOf(async function* () {
      yield new TextEncoder().encode(events);
      const broken = Promise.withResolvers<never>();
      signal?.addEventListener("abort", () => broken.reject(signal.reason));
      await broken.promise;
    });
  let seen = "";
  for await (const event of await anthropic.messages.create({ ...asked, stream: true })) {
    if (event.type === "content_block_delta" && event.delta.type === "text_delta") seen += event.delta.text;
    if (seen === TEXT) break;
  }
  const { tokens } = await untilShown(shown, (now) => now.tokens !== ASKED_TOKENS + 100);
  assert.equal(tokens, 1_000 + TEXT.length / 4);
});

Deno.test("the hold has the input by its size, media flat and a PDF by its own, and the longest answer", async () => {
  let held = NOTHING;
  const { anthropic, shown, model } = await setUp({ event: "chat.reply" });
  model.reply = async (request) => {
    held = await shown();
    return answer(request);
  };
  for (const [media_type, size] of [["image/png", 1_024], ["application/pdf", 1_500]] as const) {
    const before = await shown();
    const source = { type: "base64" as const, media_type, data: "A".repeat(60_000) };
    const messages = (source: object) => [{ role: "user", content: [{ type: "image", source }] }];
    await anthropic.messages.create({ ...asked, messages: messages(source) as Anthropic.MessageParam[] });
    const text = Math.ceil(JSON.stringify(messages({ ...source, data: "" })).length / 4);
    assert.equal(held.tokens - before.tokens, text + size + 100, media_type);
  }
});

Deno.test("a refused call rejects with its first reason, a failed one is released, and retries share a hold", async () => {
  const { anthropic, model, shown } = await setUp();
  await assert.rejects(
    anthropic.messages.create({ ...asked, max_tokens: 20_000 }),
    (error) => error instanceof HoldfastError && error.status === 429 && error.code === "limit_reached",
  );
  assert.equal(model.requests.length, 0);
  model.reply = () =>
    Response.json({ type: "error", error: { type: "overloaded_error", message: "" } }, { status: 529 });
  await assert.rejects(anthropic.messages.create(asked), { status: 529 });
  await untilShown(shown, ({ tokens }) => tokens === 0);
  model.requests.length = 0;
  model.reply = (request) =>
    model.requests.length === 1 ? new Response("", { status: 500 }) : answer(request);
  await anthropic.messages.create(asked, { maxRetries: 1 });
  assert.deepEqual([model.requests.length, await shown()], [2, REPORTED]);
});

Deno.test("counting tokens costs nothing, and other calls pass with one warning for each kind", async () => {
  const warned: string[] = [];
  const { anthropic, shown } = await setUp({ onUnmetered: (kind) => warned.push(kind) });
  assert.equal(
    (await anthropic.messages.countTokens({ model: "mini", messages: asked.messages })).input_tokens,
    12,
  );
  for (let times = 0; times < 2; times++) {
    await anthropic.messages.batches.create({ requests: [] });
    await anthropic.withOptions({ timeout: 5_000 }).messages.batches.create({ requests: [] });
  }
  assert.deepEqual([warned, await shown()], [["/messages/batches"], NOTHING]);
});
