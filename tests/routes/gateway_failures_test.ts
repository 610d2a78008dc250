// Answers of the gateway's model server that fail, within a 200 too: what is released, and what is charged by estimate.

import assert from "node:assert/strict";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { bodyOf, FAILED_ANSWERS, inputOf } from "../support/failed_answers.ts";
import { chatChunk, eventOf, responseEvents, SAMPLE } from "../support/model_server.ts";
import { countsOf } from "./compose_support.ts";
import { eventsOf, gatewayApp, gatewayOfFile } from "./gateway_support.ts";
import { until } from "../support/until.ts";

const { service, model, client, baseUrl } = gatewayOfFile();

const MESSAGES = [{ role: "user" as const, content: "Hello" }];
const CHAT = { model: "mini", messages: MESSAGES, stream: true as const };
const INPUT = Math.ceil(JSON.stringify(MESSAGES).length / 4);

function post(key: string, path: string, body: object): Promise<Response> {
  return fetch(baseUrl() + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ user: "u", ...body }),
  });
}

Deno.test("a server that fails within a stream: charged by estimate, and released where no text had come", async () => {
  const rows: [events: string[], tokens: number, status: string][] = [
    [[], 0, "released"],
    [[eventOf(chatChunk({ role: "assistant" }))], 0, "released"],
    [[eventOf(chatChunk("12345"))], INPUT + 2, "matched"],
  ];
  for (const [events, tokens, status] of rows) {
    const app = await gatewayApp(service);
    model.reply = () => ({
      // A server that fails ends its connection within a chunk of HTTP.
      events: events.concat("cut"),
      cutsOff: true,
    });
    const response = await fetch(`${baseUrl()}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${app.secretLive}` },
      body: JSON.stringify({ ...CHAT, user: "u" }),
    });
    await assert.rejects(response.text());
    await until(async () => (await eventsOf(app)).length === 1);
    const [event] = await eventsOf(app);
    assert.equal(event.matchStatus, status);
    assert.equal((await countsOf(app)).lg_tokens, tokens);
  }
});

Deno.test("a stream that ends without a report is charged by estimate", async () => {
  const app = await gatewayApp(service);
  model.reply = () => ({ events: [eventOf(chatChunk("12345678")), eventOf("[DONE]")] });
  for await (const _ of await client(app).chat.completions.create(CHAT));
  assert.deepEqual((await eventsOf(app))[0].metadata, { model: "mini", estimated: true });
  assert.equal((await countsOf(app)).lg_tokens, INPUT + 2);
});

Deno.test("an answer that failed inside a 200 is released, and one with any work of the model is charged", async () => {
  for (const failed of FAILED_ANSWERS) {
    const { name, path, answer, output } = failed;
    const app = await gatewayApp(service);
    model.reply = () => "json" in answer ? { answer: answer.json } : { events: answer.events };
    const response = await post(app.secretLive, path, bodyOf(failed));
    assert.equal(response.status, 200, name);
    await response.text();
    const [{ matchStatus, metadata }] = await eventsOf(app);
    const { lg_tokens } = await countsOf(app);
    if (output === null) {
      assert.deepEqual([matchStatus, lg_tokens], ["released", 0], name);
    } else {
      const expected = ["matched", true, inputOf(failed) + output];
      assert.deepEqual([matchStatus, metadata.estimated, lg_tokens], expected, name);
    }
  }
});

Deno.test("a failed answer is released too when its caller has left", async () => {
  const app = await gatewayApp(service);
  const { readOnMs } = GATEWAY_LIMITS;
  Object.assign(GATEWAY_LIMITS, { readOnMs: 60_000 });
  try {
    const goOn = Promise.withResolvers<void>();
    model.reply = () => ({
      events: (async function* () {
        yield eventOf(chatChunk({ role: "assistant", content: "" }));
        await goOn.promise;
        yield eventOf({ error: { message: "overloaded" } });
      })(),
    });
    const response = await post(app.secretLive, "/chat/completions", CHAT);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await reader.cancel();
    await until(() => service.service.counts.gateway.readingOn === 1);
    goOn.resolve();
    await until(async () => (await eventsOf(app)).length === 1);
    assert.equal((await countsOf(app)).lg_tokens, 0);
  } finally {
    Object.assign(GATEWAY_LIMITS, { readOnMs });
  }
});

Deno.test("every end of responses has its report; a failed response without a report is charged by estimate", async () => {
  for (
    const [end, usage, tokens] of [
      ["response.incomplete", {}, 1500],
      ["response.failed", {}, 1500],
      ["response.failed", { usage: null }, 2 + Math.ceil(SAMPLE.join("").length / 4)],
    ] as const
  ) {
    const app = await gatewayApp(service);
    const sent = [...responseEvents(SAMPLE, end, usage)].join("");
    model.reply = () => ({ events: [sent] });
    const response = await fetch(`${baseUrl()}/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${app.secretLive}` },
      body: JSON.stringify({ model: "mini", input: "Hello", stream: true, user: "u" }),
    });
    assert.equal(await response.text(), sent);
    assert.equal((await countsOf(app)).lg_tokens, tokens);
  }
});
