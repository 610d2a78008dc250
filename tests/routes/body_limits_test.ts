// What holds before a body is parsed: size and structure by who sends it, memory by pot and app, and a least rate.

import assert from "node:assert/strict";
import { makeApp } from "../../routes/app.ts";
import { BODY_COUNTS } from "../../src/process/counts/sent_counts.ts";
import { STRIPE_LIMITS } from "../../src/process/limits.ts";
import { BODY_LIMITS } from "../../src/process/sent_limits.ts";
import { changedLimits } from "../support/limits.ts";
import { ADMIN_TOKEN, type TestApp } from "../support/test_service.ts";
import { consoleOf } from "./console_support.ts";
import { SECRET } from "./stripe_support.ts";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { until } from "../support/until.ts";

const service = serviceOfFile();
const encode = (text: string) => new TextEncoder().encode(text);

/** A body with bytes that a test sends, and whether the service has read any. */
class Sent {
  readonly cancelled = Promise.withResolvers<void>();
  wasRead = false;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  readonly stream = new ReadableStream<Uint8Array>({
    start: (controller) => void (this.#controller = controller),
    pull: () => void (this.wasRead = true),
    cancel: () => this.cancelled.resolve(),
  }, { highWaterMark: 0 });

  bytes(count: number): this {
    this.#controller?.enqueue(encode(" ".repeat(count)));
    return this;
  }

  end(text: string): this {
    this.#controller?.enqueue(encode(text));
    this.#controller?.close();
    return this;
  }
}

async function post(
  path: string,
  body: ReadableStream<Uint8Array> | string,
  headers: Record<string, string> = {},
  http = service.http,
) {
  const response = await http.fetch(
    new Request(`http://service.test${path}`, { method: "POST", headers, body }),
  );
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

function track(key: string, body: ReadableStream<Uint8Array> | string) {
  return post("/api/v1/track", body, { authorization: `Bearer ${key}` });
}

/** A text in pieces of odd lengths, so that texts and escapes end within some. */
function inPieces(text: string): ReadableStream<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < text.length; at += 101) pieces.push(encode(text.slice(at, at + 101)));
  return ReadableStream.from(pieces);
}

Deno.test("a body with 50,000 values is read, one with more is refused before it is parsed, wherever its pieces end", async () => {
  const app = await appWithUser(service);
  const body = (commas: number) =>
    `{"userId":"u","event":"image.x","pad":[${"1,".repeat(commas - 4)}1],"text":"[{,\\"[[,,"}`;
  assert.equal((await track(app.secretLive, body(50_000 - 1))).status, 200);
  const before = BODY_COUNTS.refused.structure;
  const rest = body(50_000);
  // Not JSON: the refusal shows that nobody parsed it.
  for (const text of [rest, `${rest}}`]) {
    const { message } = assertRefused(await track(app.secretLive, text), 400, "invalid_request");
    assert.match(message, /more than 50000 arrays, objects and commas/);
  }
  assert.equal((await track(app.secretLive, inPieces(rest))).status, 400);
  assert.equal(BODY_COUNTS.refused.structure, before + 3);
  // Quotes, escapes and brackets within a text are no structure.
  const quoted = `{"userId":"u","event":"image.x","pad":"${'\\\\\\"[{,'.repeat(60_000)}"}`;
  assert.equal((await track(app.secretLive, inPieces(quoted))).status, 200);
  const deep = `{"events":${"[".repeat(60_000)}`;
  const batch = await post("/api/v1/track/batch", deep, { authorization: `Bearer ${app.secretLive}` });
  assertRefused(batch, 400, "invalid_request");
  const tools = await post("/mcp", deep, { authorization: `Bearer ${app.secretLive}` });
  assert.equal(tools.status, 400);
  assert.match(tools.body.error.message, /more than 50000/);
});

Deno.test("a public key sends at most 64 KiB, a secret one 1 MiB", async () => {
  const app = await appWithUser(service);
  for (const path of ["/api/v1/capture", "/api/v1/identify"]) {
    const body = `{"distinctId":"anon_x","event":"seen","pad":"${"x".repeat(64 * 1024)}"}`;
    const length = { "content-length": String(body.length) };
    for (const declared of [{}, length]) {
      const sent = (key: string) => post(path, body, { authorization: `Bearer ${key}`, ...declared });
      assertRefused(await sent(app.publicLive), 413, "payload_too_large");
      assert.equal((await sent(app.secretLive)).status, 200);
    }
  }
});

Deno.test("a public key has a rate limit where the catalog sets none", async () => {
  const app = await service.newApp({ plans: [] });
  const plans = (key: string) => app.call("GET", "/plans", undefined, { key });
  const answers = await Promise.all(Array.from({ length: 1_010 }, () => plans(app.publicLive)));
  assert.equal(answers.filter(({ status }) => status === 429).length, 10);
  assert.equal((await plans(app.secretLive)).status, 200);
  service.clock.advance(1_000);
  assert.equal((await plans(app.publicLive)).status, 200);
});

Deno.test("half a body that stays is refused once it is too slow, large or small", async () => {
  using _limits = changedLimits(BODY_LIMITS, { tickMs: 20, slowAfterMs: 40 });
  const app = await appWithUser(service);
  const before = BODY_COUNTS.refused.slow;
  const slow = new Sent().bytes(100);
  const { message } = assertRefused(await track(app.secretLive, slow.stream), 400, "invalid_request");
  assert.equal(message, "The body did not arrive in time");
  await slow.cancelled.promise;
  assert.equal(BODY_COUNTS.refused.slow, before + 1);
  // At the least rate a body has all its time.
  using _fast = changedLimits(BODY_LIMITS, { bytesPerSecondMin: 1 });
  const steady = new Sent().bytes(20_000);
  const answer = track(app.secretLive, steady.stream);
  await new Promise((resolve) => setTimeout(resolve, 200));
  steady.end('{"userId":"u","event":"image.x"}');
  assert.equal((await answer).status, 200);
});

/** A tenth of the usual memory, and bodies that have a rate at once. */
const SMALL = { largeBytesMax: 160_000, appBytesMax: 60_000, keylessBytesMax: 8_000, youngMs: 0 };

/** Opens bodies that stay; each is in memory when this returns. */
async function hold(app: TestApp, count: number, bytes: number) {
  const held = BODY_COUNTS.heldBytes.keyed;
  const sent = Array.from({ length: count }, () => new Sent().bytes(bytes));
  const answers = sent.map(({ stream }) => track(app.secretLive, stream));
  await until(() => BODY_COUNTS.heldBytes.keyed === held + count * bytes);
  return { sent, answers };
}

Deno.test("an app has its share of the memory for large bodies, and above it its slowest body ends", async () => {
  using _limits = changedLimits(BODY_LIMITS, SMALL);
  const [app, other] = [await appWithUser(service), await appWithUser(service)];
  const before = BODY_COUNTS.full.keyed;
  const { sent: [first], answers: [ended] } = await hold(app, 1, 30_000);
  // A body that has come later and brought as much is faster.
  const { sent: [second], answers: [kept] } = await hold(app, 1, 30_000);
  const elsewhere = await hold(other, 1, 30_000);
  const third = track(app.secretLive, `{"userId":"u","event":"image.x","pad":"${"x".repeat(25_000)}"}`);
  const refused = assertRefused(await (ended as typeof third), 503, "unavailable");
  assert.match(refused.message, /of this app/);
  await first?.cancelled.promise;
  assert.equal((await third).status, 200);
  assert.equal(BODY_COUNTS.full.keyed, before + 1);
  second?.end('{"userId":"u","event":"image.x"}');
  assert.equal((await (kept as typeof third)).status, 200);
  elsewhere.sent[0]?.end('{"userId":"u","event":"image.x"}');
  assert.equal((await (elsewhere.answers[0] as typeof third)).status, 200);
  // One body alone may be larger than the share.
  const large = `{"userId":"u","event":"image.x","pad":"${"x".repeat(90_000)}"}`;
  assert.equal((await track(app.secretLive, large)).status, 200);
  assert.equal(BODY_COUNTS.heldBytes.keyed, 0);
});

Deno.test("a full pot ends its slowest body, of whichever app", async () => {
  using _limits = changedLimits(BODY_LIMITS, { ...SMALL, appBytesMax: 1_000_000 });
  const [hoarder, app] = [await appWithUser(service), await appWithUser(service)];
  const { sent, answers } = await hold(hoarder, 4, 40_000);
  const body = `{"userId":"u","event":"image.x","pad":"${"x".repeat(30_000)}"}`;
  assert.equal((await track(app.secretLive, body)).status, 200);
  assertRefused(await Promise.race(answers), 503, "unavailable");
  // What was ended is free, so the next call passes too; the rest ends as it likes.
  assert.equal((await track(app.secretLive, body)).status, 200);
  for (const each of sent) {
    try {
      each.end("{}");
    } catch {
      // The one that was ended.
    }
  }
  await Promise.all(answers);
  assert.equal(BODY_COUNTS.heldBytes.keyed, 0);
});

const FORM = { "content-type": "application/x-www-form-urlencoded" };

Deno.test("bodies without a key have a pot of their own, and an operator signs in while it is full", async () => {
  using _limits = changedLimits(BODY_LIMITS, SMALL);
  const http = consoleOf(service);
  const app = await appWithUser(service);
  const hoard = Array.from({ length: 3 }, () => new Sent().bytes(2_600));
  const answers = hoard.map(({ stream }) => post("/console/sign-in", stream, FORM, http));
  await until(() => BODY_COUNTS.heldBytes.keyless === 7_800);
  // Until then they are as fast as the form that follows, or faster.
  await new Promise((resolve) => setTimeout(resolve, 200));
  const signedIn = await post("/console/sign-in", `token=${ADMIN_TOKEN}&to=${"x".repeat(400)}`, FORM, http);
  assert.equal(signedIn.status, 303);
  assert.equal((await Promise.race(answers)).status, 503);
  const large = `{"userId":"u","event":"image.x","pad":"${"x".repeat(90_000)}"}`;
  assert.equal((await track(app.secretLive, large)).status, 200, "tenants do not notice");
  assert.equal((await post("/console/sign-in", `token=${"x".repeat(4_096)}`, FORM, http)).status, 413);
  for (const each of hoard) {
    try {
      each.end("");
    } catch {
      // The one that was ended.
    }
  }
  await Promise.all(answers);
  assert.equal(BODY_COUNTS.heldBytes.keyless, 0);
});

Deno.test("a form has at most 200 fields", async () => {
  const http = consoleOf(service);
  const before = BODY_COUNTS.refused.fields;
  const form = (fields: number) => `token=${ADMIN_TOKEN}${"&a".repeat(fields - 1)}`;
  assert.equal((await post("/console/sign-in", form(200), FORM, http)).status, 303);
  assert.equal((await post("/console/sign-in", form(201), FORM, http)).status, 400);
  assert.equal(BODY_COUNTS.refused.fields, before + 1);
});

Deno.test("a message for an app or mode without a secret of Stripe is answered, and no byte of it is read", async () => {
  const app = await service.newApp();
  await dataOf(
    service.admin("PUT", `/apps/${app.appId}/stripe`, { mode: "live", webhookSecret: SECRET }),
  );
  for (const path of ["nobody/live", `${app.appId}/test`, `${app.appId}/x`]) {
    const body = new Sent();
    const refused = await post(`/api/v1/stripe/${path}`, body.stream);
    assertRefused(refused, 401, "invalid_key");
    assert.equal(body.wasRead, false, path);
  }
  const body = "x".repeat(STRIPE_LIMITS.bodyBytesMax + 1);
  assertRefused(await post(`/api/v1/stripe/${app.appId}/live`, body), 413, "payload_too_large");
  assertRefused(await post(`/api/v1/stripe/${app.appId}/live`, body.slice(1)), 401, "invalid_key");
});

Deno.test("while the gateway is off no byte of a call is read", async () => {
  const app = await service.newApp();
  const body = new Sent();
  const http = makeApp(service.service, ADMIN_TOKEN);
  const headers = { authorization: `Bearer ${app.secretLive}` };
  const answer = await post("/openai/v1/chat/completions", body.stream, headers, http);
  assert.deepEqual([answer.status, answer.body.error.code], [501, "not_implemented"]);
  assert.equal(body.wasRead, false);
});
