// The gateway, by OpenAI's own client: calls are answered as the model server answers them, and metered.

import assert from "node:assert/strict";
import { SAMPLE } from "../support/model_server.ts";
import { countsOf } from "./compose_support.ts";
import { eventsOf, gatewayApp, gatewayOfFile } from "./gateway_support.ts";

const { service, model, client } = gatewayOfFile();

const MESSAGES = [{ role: "user" as const, content: "Hello" }];

Deno.test("a chat is answered by the server and metered by its report", async () => {
  const app = await gatewayApp(service);
  const { data, response } = await client(app).chat.completions.create({ model: "mini", messages: MESSAGES })
    .withResponse();
  assert.equal(data.choices[0]?.message.content, "A sample of text");
  assert.deepEqual(data.usage, { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 });
  const reservationId = response.headers.get("x-holdfast-reservation");
  const [event] = await eventsOf(app);
  assert.deepEqual(
    { type: event.eventType, cost: event.costCents, metadata: event.metadata, hold: event.reservationId },
    { type: "openai.chat", cost: 0.045, metadata: { model: "mini" }, hold: reservationId },
  );
  assert.deepEqual(await countsOf(app), { lg_tokens: 1500, lg_cents: 0.045, lg_tagged: 0 });
  assert.equal(model.requests[0]?.authorization, "Bearer sk-model-0123456789");
});

Deno.test("a stream passes through, and the report that its caller did not ask for stays here", async () => {
  const app = await gatewayApp(service);
  const stream = await client(app).chat.completions.create({
    model: "mini",
    messages: MESSAGES,
    stream: true,
  });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  assert.equal(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""), SAMPLE.join(""));
  assert.ok(chunks.every(({ choices }) => choices.length === 1));
  assert.deepEqual(model.requests[0]?.body.stream_options, { include_usage: true });
  assert.deepEqual(await countsOf(app), { lg_tokens: 1500, lg_cents: 0.045, lg_tagged: 0 });
});
