// Bodies that never end: given up after a while, and bounded in memory, while small bodies of others are read.

import assert from "node:assert/strict";
import { BODY_LIMITS } from "../../src/process/limits.ts";
import { appWithUser, assertRefused, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
// Nothing in a test depends on how long it takes; the sum of large bodies is small enough to be reached.
Object.assign(BODY_LIMITS, { tickMs: 300, largeBytesMax: 100_000 });

/** Sends a body of which only the first bytes arrive. */
async function sendPart(key: string, bytes: number, headers: Record<string, string> = {}) {
  const cancelled = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode(" ".repeat(bytes))),
    cancel: () => cancelled.resolve(),
  });
  const init = { method: "POST", headers: { authorization: `Bearer ${key}`, ...headers }, body };
  const response = await service.http.fetch(new Request("http://service.test/api/v1/track", init));
  const answer = { status: response.status, headers: response.headers, body: await response.json() };
  return { answer, cancelled: cancelled.promise };
}

Deno.test("a body that does not arrive in time is refused, declared or in chunks, and changes nothing", async () => {
  const app = await appWithUser(service);
  const lengths = [{}, { "content-length": "100" }, { "content-length": "100000" }];
  const parts = await Promise.all(lengths.map((headers) => sendPart(app.secretLive, 10, headers)));
  for (const [at, headers] of lengths.entries()) {
    const { answer, cancelled } = parts[at] as (typeof parts)[number];
    const { message } = assertRefused(answer, 400, "invalid_request", JSON.stringify(headers));
    assert.equal(message, "The body did not arrive in time");
    // A small body of known length is read in one piece, which nothing can cancel.
    if (headers["content-length"] !== "100") await cancelled;
  }
  const { body } = await app.call("GET", "/usage?userId=u");
  assert.deepEqual(body.data.counters.map(({ count }: { count: number }) => count), [0, 0, 0, 0, 0]);
});

Deno.test("large bodies on their way hold a bounded memory; small ones pass beside them", async () => {
  const app = await appWithUser(service);
  const first = sendPart(app.secretLive, 60_000);
  const { answer } = await sendPart(app.secretLive, 60_000);
  assertRefused(answer, 503, "unavailable");
  assert.match(answer.headers.get("retry-after") ?? "", /^[1-9]/);
  const small = await app.call("POST", "/track", { userId: "u", event: "image.x" });
  assert.equal(small.status, 200);
  assertRefused((await first).answer, 400, "invalid_request");
  const pad = "x".repeat(90_000);
  const large = await app.call("POST", "/track", { userId: "u", event: "image.x", pad });
  assert.equal(large.status, 200, "what was given up is given back");
});
