// Bodies of the gateway: large ones are read in a thread, and nothing about their call differs.

import assert from "node:assert/strict";
import { BODY_COUNTS } from "../../src/process/counts/sent_counts.ts";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { BODY_LIMITS } from "../../src/process/sent_limits.ts";
import { changedLimits } from "../support/limits.ts";
import { CATALOG, eventsOf, gatewayApp, gatewayOfFile } from "./gateway_support.ts";

const { service, model, baseUrl } = gatewayOfFile();

async function ask(key: string, body: string) {
  const headers = { authorization: `Bearer ${key}`, "x-holdfast-user": "u" };
  const response = await fetch(`${baseUrl()}/chat/completions`, { method: "POST", headers, body });
  return { status: response.status, text: await response.text() };
}

/** A chat with an image of so many bytes. */
function chat(bytes: number, more: object = {}): string {
  const url = `data:image/png;base64,${"A".repeat(bytes)}`;
  const content = [{ type: "text", text: "Grüße \u0041" }, { type: "image_url", image_url: { url } }];
  return JSON.stringify({ model: "mini", messages: [{ role: "user", content }], ...more });
}

Deno.test("reading a body in the thread changes nothing: estimate, prompt, bytes and refusals are the same", async () => {
  const app = await gatewayApp(service, {
    ...CATALOG,
    settings: { promptLogging: true },
  });
  const bodies: [body: string, status: number][] = [
    [chat(50_000), 200],
    [chat(50_000, { stream: true }), 200],
    [chat(50_000, { stream: true, stream_options: { include_obfuscation: false } }), 200],
    [chat(50_000, { background: true }), 400],
    [chat(50_000, { n: 0 }), 400],
    [chat(50_000).replace("AAAA", "\\u0000"), 400],
    [chat(50_000).slice(0, -1), 400],
    [`[${chat(50_000)}]`, 400],
  ];
  for (const [body, status] of bodies) {
    const results = [];
    for (const readHereBytesMax of [BODY_LIMITS.readHereBytesMax, 1_000]) {
      using _limits = changedLimits(BODY_LIMITS, { readHereBytesMax });
      model.reset();
      const answer = await ask(app.secretLive, body);
      const [sent] = model.requests;
      const [event] = await eventsOf(app);
      const refusal = status === 200 ? null : answer.text;
      results.push({ status: answer.status, refusal, sent: sent?.text, prompt: event?.promptPreview });
    }
    const [here, there] = results;
    assert.equal(here?.status, status, body.slice(-80));
    assert.deepEqual(there, here);
  }
  assert.equal(BODY_COUNTS.inThread, 0);
  assert.equal(BODY_COUNTS.heldBytes.keyed, 0);
});

Deno.test("a body of 4 MiB passes unchanged, and calls are answered meanwhile", async () => {
  const app = await gatewayApp(service);
  const body = chat(4 * 1024 * 1024);
  const large = ask(app.secretLive, body);
  let isDone = false;
  void large.then(() => isDone = true);
  let answered = 0;
  while (!isDone) {
    assert.equal((await app.call("GET", "/plans")).status, 200);
    answered += 1;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.equal((await large).status, 200);
  assert.equal(model.requests[0]?.text, body);
  assert.ok(answered > 1);
});

Deno.test("a body of too many values is refused in OpenAI's shape before it is parsed, and takes no memory", async () => {
  const app = await gatewayApp(service);
  const parts = (count: number) => `{"model":"mini","messages":[${"[],".repeat(count / 2)}`;
  const { status, text } = await ask(app.secretLive, parts(GATEWAY_LIMITS.structureMax + 2));
  assert.equal(status, 400);
  const { error } = JSON.parse(text);
  assert.deepEqual([error.type, error.code], ["invalid_request_error", "invalid_request"]);
  assert.match(error.message, /more than 200000 arrays, objects and commas/);
  const allowed = await ask(app.secretLive, parts(GATEWAY_LIMITS.structureMax - 10));
  assert.match(JSON.parse(allowed.text).error.message, /not JSON/);
  const large = await ask(app.secretLive, `"${"x".repeat(GATEWAY_LIMITS.bodyBytesMax)}"`);
  assert.deepEqual([large.status, JSON.parse(large.text).error.code], [413, "payload_too_large"]);
  assert.equal(BODY_COUNTS.heldBytes.keyed, 0);
});
