// How the document and the reference page are served: no key, no store, nothing from another host.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { makeApp } from "../../../routes/app.ts";
import { SCALAR_PATH } from "../../../routes/reference/serve.ts";
import { Counts } from "../../../src/cluster/counts.ts";
import type { Spans } from "../../../src/process/counts/spans.ts";
import type { Service } from "../../../src/cluster/service.ts";
import { respond } from "../../../routes/http/respond.ts";
import { DOWNLOAD_LIMITS } from "../../../src/process/limits.ts";
import { changedLimits } from "../../support/limits.ts";
import { document } from "./document.ts";

// A process that does not serve answers with its reference all the same.
const waiting = {
  serving: null,
  state: "standby",
  counts: new Counts(),
  spans: null as Spans | null,
  handlePassed: () => {},
};
const app = makeApp(waiting as unknown as Service, null);

async function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return await app.fetch(new Request(`http://service.test${path}`, { headers }));
}

Deno.test("the document is served without a key and again only when it has changed", async () => {
  const response = await get("/api/openapi.json");
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "application/json; charset=UTF-8");
  assert.equal(response.headers.get("x-content-type-options"), "nosniff");
  assert.deepEqual(await response.json(), document);
  const etag = response.headers.get("etag") as string;
  for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
    const again = await get("/api/openapi.json", { "if-none-match": tag });
    assert.equal(again.status, 304, tag);
    assert.equal(await again.text(), "");
  }
  const other = await get("/api/openapi.json", { "if-none-match": '"other"' });
  assert.equal(other.status, 200);
  await other.body?.cancel();
});

Deno.test("the page loads its scripts from the service alone, and its policy allows nothing else", async () => {
  const page = await get("/docs");
  assert.equal(page.headers.get("content-type"), "text/html; charset=UTF-8");
  assert.equal(page.headers.get("x-frame-options"), "DENY");
  const policy = page.headers.get("content-security-policy") ?? "";
  assert.ok(policy.includes("default-src 'none'") && policy.includes("frame-ancestors 'none'"));
  assert.doesNotMatch(policy, /https?:|\*|'unsafe-eval'|script-src[^;]*'unsafe-inline'/);
  const html = await page.text();
  assert.doesNotMatch(html, /https?:|\/\/\w/);
  const scripts = [...html.matchAll(/<script src="([^"]+)">/g)].map(([, path]) => path as string);
  assert.equal(scripts.length, 2);
  for (const path of scripts) {
    const script = await get(path);
    assert.equal(script.status, 200, path);
    assert.equal(script.headers.get("content-type"), "text/javascript; charset=UTF-8");
    await script.body?.cancel();
  }
});

Deno.test("Scalar is the file of its package, with and without compression", async () => {
  const sum = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
  const plain = await get(SCALAR_PATH);
  assert.equal(plain.headers.get("content-encoding"), null);
  const bytes = await plain.bytes();
  // sha256 of dist/browser/standalone.js in @scalar/api-reference 1.72.1.
  assert.equal(sum(bytes), "bf091006bdc3af6067af77c2f534812e3e633e94a94e87138069f570f33b762c");
  const packed = await get(SCALAR_PATH, { "accept-encoding": "gzip, br" });
  assert.equal(packed.headers.get("content-encoding"), "gzip");
  assert.match(packed.headers.get("cache-control") ?? "", /immutable/);
  const body = packed.body as ReadableStream<Uint8Array<ArrayBuffer>>;
  const unpacked = new Response(body.pipeThrough(new DecompressionStream("gzip")));
  assert.equal(sum(await unpacked.bytes()), sum(bytes));
});

Deno.test("a caller who reads none of a long answer is given up", async () => {
  using _limits = changedLimits(DOWNLOAD_LIMITS, { readerGoneMs: 5 });
  const text = "x".repeat(DOWNLOAD_LIMITS.longBytes + 1);
  for (
    const answer of [
      await get("/api/openapi.json"),
      await get(SCALAR_PATH),
      await get(SCALAR_PATH, { "accept-encoding": "gzip" }),
      respond(new Request("http://service.test"), { status: 200, body: text }),
    ]
  ) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    await assert.rejects(answer.text(), (line) => /its reader takes nothing/.test(line as string));
  }
});

Deno.test("a long answer of a call has its length, and comes whole", async () => {
  const body = "ä".repeat(DOWNLOAD_LIMITS.longBytes + 1);
  const answer = respond(new Request("http://service.test"), { status: 404, body });
  assert.deepEqual([answer.status, answer.headers.get("content-length")], [404, String(2 * body.length)]);
  assert.equal(await answer.text(), body);
});
