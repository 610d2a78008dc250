// Attempts in a thread of their own: they come back, they can be ended, and a thread that fails is started anew.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { AttemptThread } from "../../src/webhooks/attempt_thread.ts";

const NEVER = new AbortController().signal;

function attemptAt(url: string, secret = `whsec_${new Uint8Array(32).toBase64()}`) {
  return { messageId: "whm_1", url, body: "{}", secrets: [secret], at: 1_700_000_000_000 };
}

Deno.test("a thread makes attempts side by side, ends one, and a new one follows when it is closed", async () => {
  const open = Promise.withResolvers<void>();
  const waiting = Promise.withResolvers<void>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    if (request.url.endsWith("/slow")) {
      waiting.resolve();
      await open.promise;
    }
    return new Response("fine");
  });
  const url = `http://127.0.0.1:${(server.addr as Deno.NetAddr).port}`;
  const thread = new AttemptThread(true);
  const delivered = { status: 200, fault: null, answer: "fine" };
  const ends = new AbortController();
  const slow = assert.rejects(thread.attempt(attemptAt(`${url}/slow`), ends.signal), Unavailable);
  await waiting.promise;
  assert.deepEqual(await thread.attempt(attemptAt(url), NEVER), delivered);
  ends.abort();
  await slow;
  const late = assert.rejects(thread.attempt(attemptAt(`${url}/slow`), NEVER), Unavailable);
  thread.close();
  await late;
  assert.deepEqual(await thread.attempt(attemptAt(url), NEVER), delivered);
  thread.close();
  open.resolve();
  await server.shutdown();
});

Deno.test("a thread calls nothing of this machine unless it may", async () => {
  const thread = new AttemptThread(false);
  const fault = "the name resolves to a private address";
  assert.deepEqual(await thread.attempt(attemptAt("https://localhost:1/"), NEVER), { status: null, fault });
  thread.close();
});
