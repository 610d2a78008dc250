// What the client refuses before it sends anything: calls that the key may not make, and input that would silently be
// sent as something else. And how ids and times are sent.

import assert from "node:assert/strict";
import { createClient, type HoldfastClient, HoldfastError } from "../../src/client/client.ts";
import { BASE_URL, scriptedFetch, succeed } from "./support.ts";

function clientWith(apiKey: string) {
  const { fetch, sent } = scriptedFetch(succeed());
  return { client: createClient({ apiKey, baseUrl: BASE_URL, fetch, retries: { maxRetries: 0 } }), sent };
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(() => null, (thrown) => thrown);
  assert.ok(error instanceof HoldfastError, String(error));
  return error.code;
}

/** Every call that needs a secret key. */
const SECRET_CALLS: ((client: HoldfastClient) => Promise<unknown>)[] = [
  (client) => client.reserve("u", "e"),
  (client) => client.commit("rsv_1"),
  (client) => client.release("rsv_1"),
  (client) => client.track("u", "e"),
  (client) => client.canUse("u", "e"),
  (client) => client.explain("u", "e"),
  (client) => client.compose("recap", "u"),
  (client) => client.withReservation({ userId: "u", event: "e" }, () => ({ value: 1 })),
  (client) => client.subscriptions.upsert({ userId: "u", planId: "p" }),
  (client) => client.subscriptions.cancel({ userId: "u" }),
  (client) => client.users.get("u"),
  (client) => client.customers.alias({ from: "a", to: "b" }),
  (client) => client.customers.aliasMany([{ from: "a", to: "b" }]),
  (client) => client.customers.get("u"),
  (client) => client.credits.history({ userId: "u" }),
  (client) => client.credits.historyAll({ userId: "u" }).next(),
  (client) => client.events.list(),
  (client) => client.events.all().next(),
  (client) => client.events.get("evt_1"),
  (client) => client.refusals.list(),
  (client) => client.analytics.alias({ distinctId: "a", alias: "b" }),
  (client) => client.analytics.optOut("u"),
  (client) => client.analytics.optIn("u"),
  (client) => client.analytics.isOptedOut("u"),
  (client) => client.analytics.exportPerson("u"),
  (client) => client.analytics.deletePerson("u"),
  (client) => client.analytics.deletionStatus("job_1"),
  (client) => client.testClock.read(),
  (client) => client.testClock.move({ advanceSeconds: 1 }),
];

Deno.test("with a public key, a call that needs a secret key is refused and not sent", async () => {
  const { client, sent } = clientWith("pk_live_x");
  for (const call of SECRET_CALLS) {
    assert.equal(await codeOf(call(client)), "requires_secret_key", String(call));
  }
  for (
    const call of [
      client.credits.grant({ userId: "u", packId: "p" }),
      client.credits.revoke({ balanceId: "crb_1" }),
    ]
  ) assert.equal(await codeOf(call), "forbidden");
  assert.equal(sent.length, 0);
});

Deno.test("with a public key, the other calls are sent with the key and the end-user token", async () => {
  const { fetch, sent } = scriptedFetch(succeed([]));
  let tokens = 0;
  const endUserToken = () => `token_${++tokens}`;
  const client = createClient({ apiKey: "pk_live_x", baseUrl: `${BASE_URL}/`, fetch, endUserToken });
  await client.plans.list();
  await client.usage(undefined, "image.*");
  await client.usageMe();
  await client.credits.list({ userId: "u" }, { endUserToken: "own" });
  await client.analytics.capture({ event: "e" });
  await client.analytics.identify({ distinctId: "u" });
  assert.deepEqual(
    sent.map(({ method, path, headers }) => [method, path, headers.get("x-end-user-token")]),
    [
      ["GET", "/api/v1/plans", "token_1"],
      ["GET", "/api/v1/usage?event=image.*", "token_2"],
      ["GET", "/api/v1/usage/me", "token_3"],
      ["GET", "/api/v1/credits?userId=u", "own"],
      ["POST", "/api/v1/capture", "token_4"],
      ["POST", "/api/v1/identify", "token_5"],
    ],
  );
  assert.ok(sent.every(({ headers }) => headers.get("authorization") === "Bearer pk_live_x"));
});

Deno.test("a client needs a key and an address, and no error message holds the key", () => {
  const secret = "live_0123456789";
  for (
    const [apiKey, baseUrl] of [[secret, BASE_URL], ["sk_live_x", "holdfast.example.com"], ["", BASE_URL]]
  ) {
    const make = () => createClient({ apiKey: apiKey as string, baseUrl: baseUrl as string });
    assert.throws(make, (error: Error) => error instanceof TypeError && !error.message.includes(secret));
  }
});

Deno.test("input that would silently be sent as something else is refused and not sent", async () => {
  const { client, sent } = clientWith("sk_live_x");
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const calls = [
    client.track("u", "e", NaN),
    client.track("u", "e", 1, {}, { costCents: Infinity }),
    client.track("u", "e", 1, { deep: [{ score: -Infinity }] }),
    client.track("u", "e", 1, circle),
    client.users.get(".."),
    client.users.get("."),
    client.customers.get(""),
    client.users.get("\ud800"),
    client.usage("\udc00x"),
    client.credits.list({ userId: "a\ud800b" }),
    client.subscriptions.cancel({ userId: "u", endsAt: new Date(NaN) }),
    client.subscriptions.upsert({ userId: "u", planId: "p", startsAt: new Date(NaN) }),
    client.subscriptions.upsert({ userId: "u", planId: "p" }, { idempotencyKey: "työ 世界" }),
    client.customers.aliasMany([], { chunkSize: 501 }),
    client.customers.aliasMany([], { chunkSize: 0 }),
    client.events.all({ limit: 101 }).next(),
  ];
  for (const [place, call] of calls.entries()) {
    assert.equal(await codeOf(call), "invalid_request", `case ${place}`);
  }
  assert.equal(sent.length, 0);
});

Deno.test("ids and times are sent exactly as given", async () => {
  const { client, sent } = clientWith("sk_live_x");
  await client.users.get("a/b c?d#e%2f&ü😀");
  await client.usage("a+b&c=d ü😀");
  await client.subscriptions.cancel({ userId: "u", endsAt: new Date(0) });
  await client.subscriptions.upsert({ userId: "u", planId: "p", cycleStart: null, startsAt: new Date(0) });
  const [user, read, cancel, upsert] = sent;
  assert.equal(decodeURIComponent((user as { path: string }).path), "/api/v1/users/a/b c?d#e%2f&ü😀");
  const query = (path = "") => Object.fromEntries(new URLSearchParams(path.slice(path.indexOf("?"))));
  assert.deepEqual(query(read?.path), { userId: "a+b&c=d ü😀" });
  assert.deepEqual(query(cancel?.path), { userId: "u", endsAt: "1970-01-01T00:00:00.000Z" });
  assert.deepEqual(JSON.parse(upsert?.body ?? ""), {
    userId: "u",
    planId: "p",
    cycleStart: null,
    startsAt: "1970-01-01T00:00:00.000Z",
  });
});
