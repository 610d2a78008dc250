// `verifyWebhook` against messages that the official library of Standard Webhooks signs, and against requests
// that are forged, changed or replayed.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Webhook } from "standardwebhooks";
import { HoldfastError, verifyWebhook, type WebhookHeaders } from "../../src/client/client.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const OTHER = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;
const MESSAGE = {
  type: "credits.low",
  timestamp: "2026-11-22T10:00:00.000Z",
  data: {
    appId: "app_1",
    mode: "live",
    userId: "ü😀",
    balanceId: "crb_1_x",
    packId: "cpk_1",
    packItemId: null,
    remaining: 0.25,
    externalRef: null,
  },
};
const BODY = JSON.stringify(MESSAGE);

interface SignedWith {
  readonly secrets?: readonly string[];
  readonly id?: string;
  readonly agoS?: number;
  readonly body?: string;
}

/** Headers as the official library makes them, a signature of each secret. */
function signed({ secrets = [SECRET], id = "whm_1", agoS = 0, body = BODY }: SignedWith = {}) {
  const at = new Date((Math.floor(Date.now() / 1000) - agoS) * 1000);
  return {
    "webhook-id": id,
    "webhook-timestamp": String(at.getTime() / 1000),
    "webhook-signature": secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(" "),
  };
}

async function refusalOf(headers: WebhookHeaders, body: string | Uint8Array = BODY, secret = SECRET) {
  const error = await verifyWebhook({ secret, headers, body }).then(() => null, (thrown) => thrown);
  assert.ok(error instanceof HoldfastError, String(error));
  assert.equal(error.code, "invalid_webhook");
  return error.message;
}

Deno.test("a message that the official library signed is taken, in every form of headers and body", async () => {
  const headers = signed();
  const upper = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
  );
  const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
  for (const form of [headers, new Headers(headers), upper, lists, { ...headers, accept: undefined }]) {
    for (const body of [BODY, new TextEncoder().encode(BODY), Buffer.from(BODY)]) {
      assert.deepEqual(await verifyWebhook({ secret: SECRET, headers: form, body }), MESSAGE);
    }
  }
});

Deno.test("any of several signatures is enough, and any of several secrets", async () => {
  for (const secrets of [[OTHER, SECRET], [SECRET, OTHER]]) {
    const headers = signed({ secrets });
    assert.deepEqual(await verifyWebhook({ secret: SECRET, headers, body: BODY }), MESSAGE);
    assert.deepEqual(await verifyWebhook({ secret: secrets, headers: signed(), body: BODY }), MESSAGE);
  }
  const headers = signed();
  const [, signature] = headers["webhook-signature"].split(",");
  const among = {
    ...headers,
    "webhook-signature": `v1a,${signature} v1,%% v2 ${headers["webhook-signature"]}`,
  };
  assert.deepEqual(await verifyWebhook({ secret: SECRET, headers: among, body: BODY }), MESSAGE);
});

Deno.test("a message that was changed, or signed with another secret, is refused", async () => {
  const headers = signed();
  const { "webhook-signature": signature, ...rest } = headers;
  const text = signature.slice("v1,".length);
  const cases: [string, WebhookHeaders, (string | Uint8Array)?, string?][] = [
    ["another secret", headers, BODY, OTHER],
    ["another body", headers, `${BODY} `],
    ["an empty body", headers, ""],
    ["another id", { ...headers, "webhook-id": "whm_2" }],
    ["another time", { ...headers, "webhook-timestamp": String(Number(headers["webhook-timestamp"]) + 1) }],
    ["a dot moved", { ...headers, "webhook-id": `whm_1.${headers["webhook-timestamp"]}` }],
    ["a changed signature", {
      ...rest,
      "webhook-signature": `v1,${text.startsWith("A") ? "B" : "A"}${text.slice(1)}`,
    }],
    ["half a signature", { ...rest, "webhook-signature": `v1,${text.slice(0, 20)}` }],
    ["no signature of v1", { ...rest, "webhook-signature": `v2,${text}` }],
    ["no comma", { ...rest, "webhook-signature": text }],
    ["a signature that is no base64", { ...rest, "webhook-signature": "v1,***" }],
    ["an empty signature", { ...rest, "webhook-signature": "v1," }],
    ["none", rest],
    ["no header at all", new Headers()],
    ["an empty id", { ...headers, "webhook-id": "" }],
  ];
  for (const [note, given, body, secret] of cases) {
    assert.notEqual(await refusalOf(given, body, secret), "", note);
  }
  assert.match(await refusalOf(signed({ body: "[" }), "["), /not JSON/);
});

Deno.test("a time more than five minutes off, either way, or an invalid time is refused", async () => {
  for (const agoS of [290, -290]) {
    assert.deepEqual(await verifyWebhook({ secret: SECRET, headers: signed({ agoS }), body: BODY }), MESSAGE);
  }
  for (const agoS of [310, -310, 1e6]) {
    assert.match(await refusalOf(signed({ agoS })), /outside the tolerance/);
  }
  for (const time of ["", "x", "1e9", "-5", " 1", "99999999999999999999", new Date().toISOString()]) {
    await refusalOf({ ...signed(), "webhook-timestamp": time });
  }
});

Deno.test("a secret or a body that the caller got wrong is an error of another kind", async () => {
  const headers = signed();
  for (const secret of ["", "whsec_", "whsec_***", SECRET.slice("whsec_".length), [] as string[]]) {
    const isList = typeof secret !== "string";
    await assert.rejects(verifyWebhook({ secret, headers, body: BODY }), isList ? HoldfastError : TypeError);
  }
  await assert.rejects(verifyWebhook({ secret: SECRET, headers, body: MESSAGE as never }), TypeError);
});
