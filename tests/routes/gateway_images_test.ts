// Images at the gateway, by OpenAI's own client: held by their number, counted by what came.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { headerOf, imagesOf } from "../support/model_server.ts";
import type { TestApp } from "../support/test_service.ts";
import { countsOf } from "./compose_support.ts";
import { CATALOG, eventsOf, gatewayApp, gatewayOfFile } from "./gateway_support.ts";
import { until } from "../support/until.ts";

const { service, model, client, baseUrl } = gatewayOfFile();

const row = (id: string, prices: object) => ({ id, modality: "image", ...prices });
const CATALOG_OF_IMAGES = {
  models: [
    row("drawn", { amountMode: "per_call", centsPerCall: 4 }),
    row("counted", {
      amountMode: "per_token",
      inputCentsPerMillionTokens: 1_000,
      outputCentsPerMillionTokens: 4_000,
    }),
  ],
  plans: [{
    ...CATALOG.plans[0],
    limits: ["count", "tokens", "cents"].map((unit) => (
      {
        id: unit,
        label: unit,
        unit,
        quota: unit === "count" ? 10 : 100_000,
        matches: [{ event: "openai.images" }],
      }
    )),
  }],
};
const app = () => gatewayApp(service, CATALOG_OF_IMAGES);
const ASKED = { model: "drawn", prompt: "A cat" };
const NOTHING = { count: 0, tokens: 0, cents: 0 };

/** What is held while the server works, and what is charged afterwards. */
async function metered(
  app: TestApp,
  asked: { readonly model: string; readonly n?: number },
  answer: unknown,
) {
  let held: unknown = null;
  model.reply = async () => {
    held = await countsOf(app);
    return { answer };
  };
  await client(app).images.generate({ prompt: "A cat", ...asked });
  return [held, await countsOf(app)];
}

Deno.test("images are held by their number and charged by what came, by usage where there is one", async () => {
  const input = Math.ceil('"A cat"'.length / 4);
  const cents = (tokens: number, out: number) => (tokens * 1_000 + out * 4_000) / 1e6;
  // Fewer came than were asked for; no token is held for a model that is paid by the image.
  assert.deepEqual(await metered(await app(), { model: "drawn", n: 3 }, imagesOf(2, null)), [
    { count: 3, tokens: 0, cents: 12 },
    { count: 2, tokens: 0, cents: 8 },
  ]);
  assert.deepEqual(await metered(await app(), { model: "drawn" }, imagesOf(1)), [
    { count: 1, tokens: 0, cents: 4 },
    { count: 1, tokens: 850, cents: 4 },
  ]);
  const held = { count: 2, tokens: input + 2_048, cents: cents(input, 2_048) };
  assert.deepEqual(await metered(await app(), { model: "counted", n: 2 }, imagesOf(2)), [
    held,
    { count: 2, tokens: 850, cents: cents(50, 800) },
  ]);
  const estimated = await app();
  assert.deepEqual(await metered(estimated, { model: "counted", n: 2 }, imagesOf(1, null)), [
    held,
    { count: 1, tokens: input + 1_024, cents: cents(input, 1_024) },
  ]);
  const [event] = await eventsOf(estimated);
  assert.deepEqual(event.metadata, { model: "counted", estimated: true });
});

Deno.test("an answer without images, and a server that fails, are released", async () => {
  const failed = await app();
  await metered(failed, { model: "drawn", n: 2 }, { created: 0, data: [] });
  model.reply = () => ({ status: 500, body: "{}" });
  await assert.rejects(client(failed).images.generate(ASKED), { status: 500 });
  assert.deepEqual(await countsOf(failed), NOTHING);
});

Deno.test("the images of a long answer are counted as they pass, whatever the pieces", async () => {
  const image = (member: string) =>
    `{"${member}":"${"a".repeat(700_000)}","revised_prompt":"\\"b64_json\\": x"}`;
  for (const member of ["b64_json", "url"]) {
    const text = `{"data":[${
      [1, 2, 3].map(() => image(member)).join(", ")
    }],"usage":{"input_tokens":1,"output_tokens":2}}`;
    const bytes = Buffer.from(text);
    const pieces = Array.from(
      { length: Math.ceil(bytes.length / 65_521) },
      (_, place) => bytes.subarray(place * 65_521, (place + 1) * 65_521),
    );
    // A mark that is cut in two.
    const at = bytes.indexOf(`"${member}"`, 1_300_000) + 4;
    const cut = [bytes.subarray(0, at), bytes.subarray(at)];
    for (const events of [pieces, cut]) {
      const drawn = await app();
      model.reply = () => ({ events, type: "application/json" });
      const { data } = await client(drawn).images.generate({ ...ASKED, n: 4 });
      assert.equal(data?.length, 3);
      assert.deepEqual(await countsOf(drawn), { count: 3, tokens: 3, cents: 12 }, member);
    }
  }
});

Deno.test("who leaves before the images have come pays for all that were asked for", async () => {
  const left = await app();
  const stalled = Promise.withResolvers<void>();
  model.reply = () => ({ stall: stalled.promise });
  const leaving = new AbortController();
  const call = client(left).images.generate({ ...ASKED, n: 2 }, { signal: leaving.signal });
  const ended = assert.rejects(call);
  await until(() => model.requests.length === 1);
  leaving.abort();
  await ended;
  await until(async () => (await countsOf(left)).cents === 8);
  stalled.resolve();
});

Deno.test("an edit with its files passes as it came, and is metered by its fields", async () => {
  const edited = await app();
  const file = new File([new Uint8Array(2 * 1024 * 1024).fill(0x7b)], "a \u00e4.png", { type: "image/png" });
  const { data } = await client(edited).images.edit({ ...ASKED, n: 2, image: [file, file], user: "ignored" });
  assert.equal(data?.length, 1);
  const [request] = model.requests;
  assert.equal(request?.path, "/v1/images/edits");
  assert.match(headerOf(request?.top ?? "", "content-type") ?? "", /^multipart\/form-data; boundary=/);
  assert.ok((request?.text.length ?? 0) > 4 * 1024 * 1024);
  assert.deepEqual(await countsOf(edited), { count: 1, tokens: 850, cents: 4 });
  const [event] = await eventsOf(edited);
  assert.deepEqual(event.metadata, { model: "drawn" });
});

/** A form with these parts: a head and a body each. */
function formOf(parts: readonly (readonly [head: string, body: string])[]): string {
  const all = parts.map(([head, body]) =>
    `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${body}\r\n`
  );
  return `${all.join("")}--b--\r\n`;
}

const FIELDS: readonly (readonly [string, string])[] = [
  ['name="model"', "drawn"],
  ['name="user"', "u"],
  ['name="prompt"', "A cat"],
  ['name="image[]"; filename="a.png"', "x"],
];

Deno.test("a form or a body that two servers could read in two ways is refused, and no model is asked", async () => {
  const drawn = await app();
  const plus = (...more: [string, string][]) => formOf([...FIELDS, ...more]);
  const post = async (path: string, body: string, type: string) => {
    const headers = { authorization: `Bearer ${drawn.secretLive}`, "content-type": type };
    const response = await fetch(baseUrl() + path, { method: "POST", headers, body });
    const { error } = await response.json();
    return [response.status, error?.code, error?.param];
  };
  const form = (body: string, type = "multipart/form-data; boundary=b") => post("/images/edits", body, type);
  const rows: readonly (readonly [body: string, param: string | null])[] = [
    [plus(['name="model"', "dear"]), "model"],
    [plus(['name="Model"', "dear"]), "Model"],
    [plus(['name="n[]"', "9"]), "n[]"],
    [plus(['name="n"', "2"], ['name="n"', "9"]), "n"],
    [plus(['name="n"', "two"]), "n"],
    [plus(['name="n"; filename="n"', "2"]), "n"],
    [plus(['name="stream"', "true"]), "stream"],
    [plus(['name="stream"', "1"]), "stream"],
    [plus(['name="prompt"; name="x"', "y"]), null],
    [plus(["name=x", "y"]), null],
    [plus(['name="x"\r\nContent-Disposition: form-data; name="model"', "y"]), null],
    [plus(['name="x"\r\nContent-Transfer-Encoding: base64', "y"]), null],
    [`preamble\r\n${plus()}`, null],
    [plus().slice(0, -6), null],
    [plus().replaceAll("\r\n", "\n"), null],
  ];
  for (const [body, param] of rows) assert.deepEqual(await form(body), [400, "invalid_request", param], body);
  assert.deepEqual(await form(plus(), "multipart/form-data"), [400, "invalid_request", "Content-Type"]);
  const json = (more: object) =>
    post("/images/generations", JSON.stringify({ ...ASKED, user: "u", ...more }), "application/json");
  assert.deepEqual(await json({ stream: true }), [400, "invalid_request", "stream"]);
  assert.deepEqual(await json({ N: 2 }), [400, "invalid_request", "N"]);
  assert.deepEqual(await json({ n: 11 }), [429, "limit_reached", null]);
  assert.equal(model.requests.length, 0);
  assert.deepEqual(await form(plus(['name="n"', "02"])), [200, undefined, undefined]);
});
