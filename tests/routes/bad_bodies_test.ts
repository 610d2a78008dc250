// Bodies and addresses that are wrong as a whole: not JSON, too large, forbidden characters, hostile members and
// depths, wrong methods and paths. Each has its exact code and changes nothing.

import assert from "node:assert/strict";
import { BODY_LIMITS } from "../../src/process/sent_limits.ts";
import { send, type TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, dataOf, pictureOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const MIB = 1024 * 1024;
const POSTS = ["/reserve", "/commit", "/release", "/track", "/can-use", "/explain", "/subscriptions"];

/** Sends bytes unchanged, with a declared length or in chunks. */
async function sendBytes(app: TestApp, path: string, bytes: Uint8Array<ArrayBuffer>, isChunked: boolean) {
  const headers: Record<string, string> = { authorization: `Bearer ${app.secretLive}` };
  if (!isChunked) headers["content-length"] = String(bytes.byteLength);
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  for (let at = 0; at < bytes.byteLength; at += 60_000) pieces.push(bytes.subarray(at, at + 60_000));
  const body = isChunked ? ReadableStream.from(pieces) : bytes;
  const init = { method: "POST", headers, body };
  const response = await service.http.fetch(new Request(`http://service.test/api/v1${path}`, init));
  return { status: response.status, headers: response.headers, body: await response.json() };
}

Deno.test("a body that is not JSON, or no object, is refused by every operation and changes nothing", async () => {
  const app = await appWithUser(service);
  const before = await pictureOf(app);
  const bodies = [
    "",
    " ",
    "{",
    '{"userId":',
    "{'userId':1}",
    "undefined",
    "NaN",
    '{"a":1,}',
    "{}x",
    '{"a":01}',
  ];
  const values = ["null", "5", '"x"', "true", "[]", '[{"userId":"u","event":"image.x"}]'];
  for (const path of POSTS) {
    for (const text of [...bodies, ...values]) {
      assertRefused(await app.call("POST", path, text), 400, "invalid_request", `${path}: ${text}`);
    }
    assertRefused(await app.call("POST", path), 400, "invalid_request", `${path} without a body`);
    assertRefused(await app.call("POST", path, {}), 400, "invalid_request", `${path} with an empty body`);
  }
  for (const text of ["{", "null", "[]", " "]) {
    assertRefused(await app.call("DELETE", "/subscriptions?userId=u", text), 400, "invalid_request", text);
  }
  assertRefused(await app.call("DELETE", "/subscriptions"), 400, "invalid_request");
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("the refusal of a body that is not JSON says where, without its text", async () => {
  const app = await service.newApp();
  const rows = [
    ["", ": it is empty or incomplete"],
    ['{"userId":"u', ": see line 1 column 13"],
    ['{"userId":"u",\n "event":"x",}', ": see line 2 column 14"],
    ['{"count":NaN,"secret":"s3cret"}', ": unexpected N"],
    ['{"count":\u{1f98a}}', ""],
  ] as const;
  for (const [text, place] of rows) {
    const { body } = await app.call("POST", "/reserve", text);
    assert.equal(body.error.message, `The body is not JSON${place}`, text);
  }
});

Deno.test("a body of 1 MiB is read, one byte more is refused, declared and in chunks", async () => {
  const app = await appWithUser(service);
  const body = (bytes: number) => {
    const open = '{"userId":"u","event":"image.x","pad":"';
    return new TextEncoder().encode(`${open}${"x".repeat(bytes - open.length - 2)}"}`);
  };
  for (const isChunked of [false, true]) {
    assert.equal((await sendBytes(app, "/track", body(MIB), isChunked)).status, 200);
  }
  const before = await pictureOf(app);
  for (const isChunked of [false, true]) {
    for (const size of [MIB + 1, 2 * MIB, 5 * MIB]) {
      for (const path of POSTS) {
        const note = `${path}: ${size} bytes, ${isChunked}`;
        assertRefused(await sendBytes(app, path, body(size), isChunked), 413, "payload_too_large", note);
      }
    }
  }
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("chunks are counted also where a small length is declared beside them", async () => {
  const app = await appWithUser(service);
  const headers = {
    authorization: `Bearer ${app.secretLive}`,
    "content-length": "10",
    "transfer-encoding": "chunked",
  };
  const body = ReadableStream.from([new Uint8Array(MIB), new Uint8Array(1)]);
  const request = new Request("http://service.test/api/v1/track", { method: "POST", headers, body });
  assert.equal((await service.http.fetch(request)).status, 413);
});

const encode = (text: string) => new TextEncoder().encode(text);

/** Bytes that no UTF-8 text has. */
const FOREIGN = [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98]];

Deno.test("an id or name with bytes that are no UTF-8 is refused, and so is one with U+FFFD itself", async () => {
  const app = await appWithUser(service);
  const before = await pictureOf(app);
  const calls: [string, string, string][] = [
    ["/track", '{"event":"image.x","userId":"u', '"}'],
    ["/track", '{"userId":"u","event":"image.x', '"}'],
    ["/reserve", '{"userId":"u","event":"image.x', '"}'],
    ["/credits/grant", '{"userId":"u","packId":"pack', '"}'],
    ["/credits/grant", '{"userId":"u","packId":"p","externalRef":"r', '"}'],
    ["/subscriptions", '{"userId":"u","planId":"plan_pro","externalId":"s', '"}'],
  ];
  for (const [path, head, tail] of calls) {
    for (const bytes of [...FOREIGN, [0xef, 0xbf, 0xbd]]) {
      const body = new Uint8Array([...encode(head), ...bytes, ...encode(tail)]);
      for (const isChunked of [false, true]) {
        const note = `${path} ${head} ${bytes}`;
        assertRefused(await sendBytes(app, path, body, isChunked), 400, "invalid_request", note);
      }
    }
  }
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("bytes that are no UTF-8 are U+FFFD in free text, however the body comes", async () => {
  const app = await appWithUser(service);
  for (const isChunked of [false, true]) {
    for (const bytes of [...FOREIGN, [0xef, 0xbf, 0xbd]]) {
      const body = new Uint8Array([
        ...encode('{"userId":"u","event":"image.x","metadata":{"a":"x'),
        ...bytes,
        ...encode('y"}}'),
      ]);
      const { eventId } = await dataOf(sendBytes(app, "/track", body, isChunked));
      const { metadata } = await dataOf(app.call("GET", `/events/${eventId}`));
      assert.match(metadata.a, /^x\uFFFD{1,3}y$/, `${bytes} ${isChunked}`);
    }
  }
});

Deno.test("a body that ends early is refused", async () => {
  const app = await appWithUser(service);
  const before = await pictureOf(app);
  const open = encode('{"userId":"u","event":"image.x","metadata":{"a":"');
  const broken = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(open),
    pull: (controller) => controller.error(new Error("The peer is gone")),
  });
  const headers = { authorization: `Bearer ${app.secretLive}` };
  const request = new Request("http://service.test/api/v1/track", { method: "POST", headers, body: broken });
  assert.equal((await service.http.fetch(request)).status, 400);
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("U+0000 and lone surrogates are refused in any text and name at any depth", async () => {
  const app = await appWithUser(service);
  const { reservationId } = await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x" }));
  const before = await pictureOf(app);
  for (const text of ["\\u0000", "\\ud800", "\\udc00", "a\\udbffb", "\\udc00\\ud800", "x\\u0000"]) {
    const bodies: [string, string][] = [
      ["/reserve", `{"userId":"${text}","event":"image.x"}`],
      ["/reserve", `{"userId":"u","event":"image.${text}"}`],
      ["/reserve", `{"userId":"u","event":"image.x","metadata":{"a":"${text}"}}`],
      ["/track", `{"userId":"u","event":"image.x","metadata":{"${text}":1}}`],
      ["/track", `{"userId":"u","event":"image.x","metadata":{"a":[[{"b":["${text}"]}]]}}`],
      ["/track", `{"userId":"u","event":"image.x","unknown":{"a":[{"${text}":1}]}}`],
      ["/track", `{"userId":"u","event":"image.x","prompt":"${text}"}`],
      ["/commit", `{"reservationId":"${reservationId}","response":"${text}"}`],
      ["/commit", `{"reservationId":"${text}"}`],
      ["/release", `{"reservationId":"${reservationId}","reason":"${text}"}`],
      ["/release", `{"reservationId":"${reservationId}","options":{"errorCode":"${text}"}}`],
      ["/subscriptions", `{"userId":"u","planId":"${text}"}`],
      ["/subscriptions", `{"userId":"u","planId":"plan_pro","provider":"${text}","externalId":"x"}`],
      ["/subscriptions", `{"userId":"u","planId":"plan_pro","customLimits":{"${text}":{"quota":1}}}`],
      ["/can-use", `{"userId":"u","event":"${text}"}`],
      ["/batch", `{"calls":[{"call":"can-use"}],"unknown":"${text}"}`],
    ];
    for (const [path, body] of bodies) {
      assertRefused(await app.call("POST", path, body), 400, "invalid_request", `${path} ${body}`);
    }
    assertRefused(
      await app.call("DELETE", "/subscriptions", `{"userId":"u","reason":"${text}"}`),
      400,
      "invalid_request",
    );
  }
  const escapes = ["%00", "a%00", "%ED%A0%80", "%ff", "%C3", "%zz", "%"];
  for (const escape of escapes) {
    const paths = [
      `/usage?userId=${escape}`,
      `/usage?userId=u&event=${escape}`,
      `/usage?userId=u&${escape}=1`,
      `/users/${escape}`,
      `/events?userId=${escape}`,
      `/events?eventType=${escape}`,
      `/refusals?userId=${escape}`,
      `/refusals?event=${escape}`,
      `/events/${escape}`,
    ];
    for (const path of paths) assertRefused(await app.call("GET", path), 400, "invalid_request", path);
    assertRefused(
      await app.call("DELETE", `/subscriptions?userId=${escape}`),
      400,
      "invalid_request",
      escape,
    );
  }
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("text in pairs of surrogates, escaped or not, and every other character is kept as it came", async () => {
  const app = await appWithUser(service);
  for (
    const id of ["😀", "é", "e\u0301", "‮x", "a/b?c#d%20", " ", "' or 1=1 --", "\u0001", "\uffff", "__proto__"]
  ) {
    const userId = JSON.stringify(id).replaceAll(/[^\x20-\x7e]/g, (unit) => {
      return [...Array(unit.length).keys()].map((at) =>
        `\\u${unit.charCodeAt(at).toString(16).padStart(4, "0")}`
      ).join("");
    });
    await dataOf(app.call("POST", "/subscriptions", `{"userId":${userId},"planId":"plan_pro"}`));
    await dataOf(app.call("POST", "/track", { userId: id, event: "image.x", metadata: { [id]: id } }));
    const usage = await dataOf(app.call("GET", `/usage?userId=${encodeURIComponent(id)}`));
    assert.deepEqual([usage.userId, usage.counters[0].count], [id, 1]);
    assert.equal((await dataOf(app.call("GET", `/users/${encodeURIComponent(id)}`))).userId, id);
    const { events } = await dataOf(app.call("GET", `/events?userId=${encodeURIComponent(id)}`));
    assert.equal(events.length, 1);
    assert.deepEqual((await dataOf(app.call("GET", `/events/${events[0].id}`))).metadata, { [id]: id });
  }
});

Deno.test("members named __proto__ and constructor are data: they set nothing and are kept in metadata", async () => {
  const app = await appWithUser(service);
  const hostile = '"__proto__":{"count":50,"userId":"v"},"constructor":{"prototype":{"count":50}}';
  const first = await app.call("POST", "/track", `{"userId":"u","event":"image.x",${hostile}}`);
  assert.equal(first.body.data.counters[0].count, 1);
  assertRefused(await app.call("POST", "/track", `{"event":"image.x",${hostile}}`), 400, "invalid_request");
  const nested = `{"userId":"u","event":"image.x","options":{${hostile}}}`;
  assert.equal((await app.call("POST", "/reserve", nested)).body.data.groups[0].current, 2);
  const metadata = `{${hostile},"toString":"x","a":1}`;
  const tracked = await app.call("POST", "/track", `{"userId":"u","event":"image.x","metadata":${metadata}}`);
  const event = await app.call("GET", `/events/${tracked.body.data.eventId}`);
  assert.equal(JSON.stringify(event.body.data.metadata), metadata);
  assert.equal(({} as Record<string, unknown>).count, undefined);
  const odd = "/subscriptions?userId=u&constructor=1&__proto__=2&toString=3";
  await dataOf(app.call("DELETE", odd, {}));
});

Deno.test("nesting of 10,000 levels and more is no fault: refused in metadata, ignored elsewhere", async () => {
  const app = await appWithUser(service);
  const before = await pictureOf(app);
  // The deepest that the limit of a body's structure lets through.
  const shapes = [10_000, BODY_LIMITS.structureMax - 10].flatMap((depth) => [
    "[".repeat(depth) + "]".repeat(depth),
    '{"a":'.repeat(depth) + "1" + "}".repeat(depth),
    "[".repeat(depth) + '"\\u0041"' + "]".repeat(depth),
  ]);
  for (const nested of shapes) {
    const metadata = `{"userId":"u","event":"image.x","metadata":{"a":${nested}}}`;
    assertRefused(await app.call("POST", "/track", metadata), 400, "invalid_request");
    const extra = `{"reservationId":"rsv_x","extra":${nested}}`;
    assert.ok([400, 404].includes((await app.call("POST", "/commit", extra)).status));
    const unknown = `{"userId":"u","event":"image.x","unknown":${nested}}`;
    assert.equal((await app.call("POST", "/can-use", unknown)).status, 200);
    // Time for the lease's beat: a row of such requests in one process would keep it out.
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("metadata has at most 16 KiB as JSON, counted in bytes", async () => {
  const app = await appWithUser(service);
  const track = (metadata: unknown) =>
    app.call("POST", "/track", { userId: "u", event: "image.x", metadata });
  const fill = (char: string, bytes: number) => {
    const size = new TextEncoder().encode(char).byteLength;
    const count = Math.floor((bytes - 8) / size);
    return { a: char.repeat(count) + "x".repeat(bytes - 8 - count * size) };
  };
  for (const char of ["x", "é", "€", "😀"]) {
    const exact = fill(char, 16 * 1024);
    assert.equal(new TextEncoder().encode(JSON.stringify(exact)).byteLength, 16 * 1024);
    const { eventId } = await dataOf(track(exact));
    assert.deepEqual((await dataOf(app.call("GET", `/events/${eventId}`))).metadata, exact);
    const before = await pictureOf(app);
    assertRefused(await track(fill(char, 16 * 1024 + 1)), 400, "invalid_request", char);
    for (const path of ["/reserve", "/can-use", "/explain"]) {
      const body = { userId: "u", event: "image.x", metadata: fill(char, 16 * 1024 + 1) };
      assertRefused(await app.call("POST", path, body), 400, "invalid_request", path);
    }
    assert.deepEqual(await pictureOf(app), before);
  }
});

Deno.test("a known path answers other methods 405, an unknown one 404, both only to a known key", async () => {
  const app = await appWithUser(service);
  const known: Record<string, string[]> = {
    "/reserve": ["POST"],
    "/commit": ["POST"],
    "/release": ["POST"],
    "/track": ["POST"],
    "/can-use": ["POST"],
    "/explain": ["POST"],
    "/subscriptions": ["POST", "DELETE"],
    "/usage": ["GET"],
    "/usage/me": ["GET"],
    "/users/u": ["GET"],
    "/plans": ["GET"],
    "/events": ["GET"],
    "/refusals": ["GET"],
    "/events/evt_x": ["GET"],
    "/test-clock": ["GET", "POST"],
  };
  const before = await pictureOf(app);
  const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
  for (const [path, own] of Object.entries(known)) {
    for (const method of methods.filter((name) => !own.includes(name))) {
      for (const key of [app.secretLive, app.publicTest]) {
        assertRefused(await app.call(method, path, undefined, { key }), 405, "method_not_allowed", path);
      }
      assertRefused(await send(service.http, method, `/api/v1${path}`, undefined, {}), 401, "invalid_key");
    }
  }
  const unknown = [
    "/nothing",
    "/reserve/x",
    "/usage/",
    "/users",
    "/users/",
    "/users/a/b",
    "//plans",
    "/Plans",
  ];
  for (const path of unknown) {
    for (const method of methods) {
      assertRefused(await app.call(method, path), 404, "not_found", `${method} ${path}`);
      assertRefused(await app.call(method, path, undefined, { key: "x" }), 401, "invalid_key", path);
    }
  }
  assert.deepEqual(await pictureOf(app), before);
});
