// Answers of the gateway's model server in an odd form: compressed, of another type, without a body, with an odd status.

import assert from "node:assert/strict";
import { chatChunk, eventOf, type ModelReply, USAGE } from "../support/model_server.ts";
import { countsOf } from "./compose_support.ts";
import { eventsOf, gatewayApp, gatewayOfFile } from "./gateway_support.ts";

const { service, model, baseUrl } = gatewayOfFile();

const ANSWER = JSON.stringify({ choices: [{ message: { content: "Hello" } }], usage: USAGE });
const EVENTS = [eventOf(chatChunk("Hello")), eventOf({ choices: [], usage: USAGE }), eventOf("[DONE]")].join(
  "",
);
const TOKENS = USAGE.prompt_tokens + USAGE.completion_tokens;

/** Makes a call of a new app whose server answers so; returns what the caller gets and what is charged. */
async function callOf(reply: ModelReply, stream = false) {
  const app = await gatewayApp(service);
  model.reply = () => reply;
  const response = await fetch(`${baseUrl()}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${app.secretLive}` },
    body: JSON.stringify({
      model: "mini",
      user: "u",
      stream,
      messages: [{ role: "user", content: "Hello" }],
    }),
  });
  const text = await response.text();
  const [{ matchStatus }] = await eventsOf(app);
  return { status: response.status, text, matchStatus, tokens: (await countsOf(app)).lg_tokens };
}

async function packed(text: string, format: CompressionFormat): Promise<Uint8Array> {
  const pieces = new Blob([text]).stream().pipeThrough(new CompressionStream(format));
  return new Uint8Array(await new Response(pieces).arrayBuffer());
}

const ofType = (type: string) => ({ "content-type": type });

Deno.test("an answer that comes compressed, though none was asked for, is decompressed and charged", async () => {
  for (const [encoding, format] of [["gzip", "gzip"], ["Deflate", "deflate"], ["br", "brotli"]] as const) {
    const headers = { "content-encoding": encoding };
    const body = await packed(ANSWER, format);
    const whole = await callOf({ status: 200, body, headers });
    assert.deepEqual(whole, { status: 200, text: ANSWER, matchStatus: "matched", tokens: TOKENS }, encoding);
    const events = await packed(EVENTS, format);
    const ofStream = { ...headers, ...ofType("text/event-stream") };
    const stream = await callOf({ status: 200, body: events, headers: ofStream }, true);
    assert.equal(stream.tokens, TOKENS, encoding);
    assert.match(stream.text, /Hello.*\[DONE\]\n\n$/s);
    const refused = await callOf({ status: 429, body: await packed("{}", format), headers });
    assert.deepEqual(refused, { status: 429, text: "{}", matchStatus: "released", tokens: 0 }, encoding);
  }
});

Deno.test("a stream is charged by its report, whatever type it was sent as", async () => {
  for (const type of ["Text/Event-Stream; charset=utf-8", "text/plain", "application/json"]) {
    const { text, tokens } = await callOf({ status: 200, body: EVENTS, headers: ofType(type) }, true);
    assert.equal(tokens, TOKENS, type);
    assert.match(text, /Hello.*\[DONE\]\n\n$/s);
  }
});

Deno.test("an answer without a body passes, and one that can't be passed on is a failure of the server", async () => {
  const released = { matchStatus: "released", tokens: 0 };
  for (const status of [204, 205, 304]) {
    assert.deepEqual(await callOf({ status, body: "" }), { status, text: "", ...released });
  }
  const odd: ModelReply[] = [101, 600, 999].map((status) => ({ status, body: "" }));
  for (const reply of [...odd, { status: 200, body: ANSWER, headers: { "content-encoding": "zstd" } }]) {
    const { text, ...rest } = await callOf(reply);
    assert.deepEqual(rest, { status: 502, ...released });
    assert.equal(JSON.parse(text).error.code, "generation_failed");
  }
});
