// From a call of the API to a customer's server: real servers on this machine, the real thread, and verification by the
// official library.

import assert from "node:assert/strict";
import { Webhook } from "npm:standardwebhooks@1.1.1";
import { grant, type MessageRow, type SendingService, startSending, until } from "./support.ts";

/** A server that answers as its test asks, and what it was sent. */
interface Endpoint extends AsyncDisposable {
  readonly url: string;
  readonly sent: { readonly id: string; readonly body: string; readonly headers: Record<string, string> }[];
  answer: (times: number) => Response | Promise<Response>;
}

function endpointOf(answer: Endpoint["answer"]): Endpoint {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const headers = Object.fromEntries(request.headers);
    endpoint.sent.push({ id: headers["webhook-id"] ?? "", body: await request.text(), headers });
    return await endpoint.answer(endpoint.sent.length);
  });
  const endpoint: Endpoint = {
    url: `http://127.0.0.1:${(server.addr as Deno.NetAddr).port}/hooks`,
    sent: [],
    answer,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  return endpoint;
}

/** Makes a webhook over the admin API; answers its id and secret. */
async function subscribe(sending: SendingService, { url }: Endpoint, events: string[]) {
  const path = `/apps/${sending.app.appId}/webhooks`;
  const answer = await sending.admin("POST", path, { url, mode: "live", events });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.data as { readonly webhookId: string; readonly secret: string };
}

async function messagesOf(sending: SendingService, webhookId: string): Promise<MessageRow[]> {
  return (await sending.messages()).filter(({ webhook_id: id }) => id === webhookId);
}

Deno.test("an endpoint that answers well gets everything in order, signed with the secret that was shown", async () => {
  await using endpoint = endpointOf(() => new Response("thanks"));
  await using sending = await startSending();
  const { webhookId, secret } = await subscribe(sending, endpoint, ["*"]);
  for (let time = 0; time < 5; time++) await grant(sending.app, "käthe", `ref_${time}`);
  await until(async () => (await sending.messages()).every(({ status }) => status === "delivered"));
  const rows = await messagesOf(sending, webhookId);
  assert.deepEqual(endpoint.sent.map(({ id }) => id), rows.map(({ id }) => id));
  for (const [index, { body, headers }] of endpoint.sent.entries()) {
    assert.equal(body, rows[index]?.body);
    const verified = new Webhook(secret).verify(body, headers) as Record<string, unknown>;
    assert.deepEqual(Object.keys(verified), ["type", "timestamp", "data"]);
  }
  assert.throws(() =>
    new Webhook(secret).verify(`${endpoint.sent[0]?.body} `, endpoint.sent[0]?.headers ?? {})
  );
});

Deno.test("endpoints that answer wrongly, elsewhere, too much or not at all are reported, and delay no other endpoint", async () => {
  const silent = Promise.withResolvers<Response>();
  await using well = endpointOf(() => new Response("thanks"));
  await using wrong = endpointOf((times) => new Response("later", { status: times < 3 ? 503 : 200 }));
  await using elsewhere = endpointOf(() => Response.redirect(well.url));
  await using much = endpointOf(() => new Response("x".repeat(1024 * 1024)));
  await using never = endpointOf(() => silent.promise);
  await using sending = await startSending();
  const ids: string[] = [];
  for (const endpoint of [well, wrong, elsewhere, much, never]) {
    ids.push((await subscribe(sending, endpoint, ["credits.granted"])).webhookId);
  }
  await grant(sending.app, "u1", "ref_1");
  const states = async () =>
    await Promise.all(ids.map(async (id) => {
      const [row] = await messagesOf(sending, id);
      return [row?.status, row?.attempts, row?.last_status, row?.last_error];
    }));
  await until(async () => (await states()).filter(([, attempts]) => attempts === 1).length === 4);
  assert.deepEqual(await states(), [
    ["delivered", 1, 200, null],
    ["pending", 1, 503, "answered 503"],
    ["pending", 1, 302, "answered 302; redirects are not followed"],
    ["delivered", 1, 200, null],
    ["pending", 0, null, null],
  ]);
  for (const attempt of [2, 3]) {
    sending.clock.advance(6 * 60_000);
    sending.serving().sender.wake();
    await until(async () => (await states())[1]?.[1] === attempt);
  }
  assert.deepEqual((await states())[1], ["delivered", 3, 200, null]);
  assert.equal(new Set(wrong.sent.map(({ id, body }) => `${id} ${body}`)).size, 1);
  const times = wrong.sent.map(({ headers }) => Number(headers["webhook-timestamp"]));
  assert.deepEqual(times.map((time) => time - (times[0] as number)), [0, 360, 720]);
  assert.equal(well.sent.length, 1, "the redirect led nowhere");
  silent.resolve(new Response("at last"));
});

Deno.test("an erased person is reported once, outside every order, and what named the person is not sent", async () => {
  await using endpoint = endpointOf((times) => new Response("x", { status: times === 1 ? 500 : 200 }));
  await using sending = await startSending();
  await subscribe(sending, endpoint, ["credits.granted", "person.erased"]);
  await grant(sending.app, "u1", "ref_1");
  await until(async () => (await sending.messages())[0]?.attempts === 1);
  await grant(sending.app, "u1", "ref_2");
  const { jobId } = (await sending.app.call("POST", "/delete-person", { distinctId: "u1" })).body.data;
  await until(() => endpoint.sent.length === 2);
  const { type, data } = JSON.parse(endpoint.sent[1]?.body ?? "");
  assert.deepEqual([type, data], ["person.erased", { appId: sending.app.appId, mode: "live", jobId }]);
  sending.clock.advance(60_000);
  sending.serving().sender.wake();
  await until(async () => (await sending.messages())[0]?.status === "delivered");
  await sending.admin("POST", "/sweep");
  assert.deepEqual((await sending.messages()).map(({ body }) => JSON.parse(body).type), ["person.erased"]);
  assert.equal(endpoint.sent.length, 2);
});
