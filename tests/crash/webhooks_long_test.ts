// A process that is killed in the middle of deliveries: no recorded message is lost, none is changed, each user's arrive
// in order, and everything that a call was answered for has its messages.

import assert from "node:assert/strict";
import { pause, until } from "./program.ts";
import { roundsOf } from "../support/depth.ts";
import { ADMIN_TOKEN, Stage } from "./stage.ts";

const ROUNDS = roundsOf(1);
const USERS = Array.from({ length: 6 }, (_, index) => `w${index}`);
const SETTINGS = { HOLDFAST_WEBHOOKS_ALLOW_PRIVATE: "true" };
const DELIVERED_MS = 60_000;

/** A message as the endpoint got it. */
interface Got {
  readonly id: string;
  readonly body: string;
}

Deno.test("kills in the middle of deliveries lose no message, change none and mix no order up", async () => {
  const got: Got[] = [];
  let isSlow = true;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    got.push({ id: request.headers.get("webhook-id") ?? "", body: await request.text() });
    // Some attempt is always under way, before or after it was counted here.
    if (isSlow) await pause(Math.random() * 60);
    return new Response("thanks");
  });
  const url = `http://127.0.0.1:${(server.addr as Deno.NetAddr).port}/`;
  await using stage = await Stage.open();
  let { program, origin } = await stage.startReady(SETTINGS);
  await stage.populate(origin);
  const ask = async (method: string, path: string, body: unknown, token = stage.secretKey) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const response = await fetch(`${origin}/api${path}`, { method, headers, body: JSON.stringify(body) });
    return await response.json();
  };
  const apps = await (await fetch(`${origin}/api/admin/v1/apps`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  })).json();
  const { appId } = apps.data.find(({ workspaceId }: { workspaceId: string }) =>
    workspaceId === stage.workspaceId
  );
  const made = await ask(
    "POST",
    `/admin/v1/apps/${appId}/webhooks`,
    { url, mode: "live", events: ["subscription.*"] },
    ADMIN_TOKEN,
  );
  assert.ok(made.ok, JSON.stringify(made));
  const answered = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    let isOver = false;
    const clients = USERS.map(async (userId) => {
      for (let time = 0; !isOver; time++) {
        const externalId = `${userId}-${round}-${time}`;
        const call = { userId, planId: "plan_wide", provider: "p", externalId };
        const answer = await ask("POST", "/v1/subscriptions", call).catch(() => ({ ok: false }));
        if (answer.ok) answered.add(answer.data.subscriptionId);
        await pause(20);
      }
    });
    const before = got.length;
    await until("messages arrive", DELIVERED_MS, () => got.length > before + 20 ? true : null);
    await program.kill();
    isOver = true;
    await Promise.all(clients);
    ({ program, origin } = await stage.startReady(SETTINGS));
  }
  isSlow = false;
  const waiting = () =>
    fetch(`${origin}/api/admin/v1/apps/${appId}/webhooks`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    }).then((response) => response.json()).then(({ data }) => data[0].pending as number);
  const until0 = performance.now() + DELIVERED_MS;
  while (await waiting() > 0) {
    assert.ok(performance.now() < until0, `${await waiting()} messages stay pending`);
    await pause(50);
  }
  program.signal("SIGTERM");
  await program.ended;
  await server.shutdown();

  const bodies = new Map<string, string>();
  const first: Got[] = [];
  for (const message of got) {
    const known = bodies.get(message.id);
    if (known === undefined) first.push(message);
    else assert.equal(message.body, known, `${message.id} has changed`);
    bodies.set(message.id, message.body);
  }
  const userOf = ({ body }: Got): string => JSON.parse(body).data.userId;
  for (const userId of USERS) {
    const ids = first.filter((message) => userOf(message) === userId).map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted(), `${userId}'s messages came in another order`);
  }
  const rows = await stage.withDatabase((database) =>
    database.query<{ id: string; body: string; status: string }>(
      "select id, body, status from webhook_messages",
    )
  );
  assert.deepEqual(new Set(rows.map(({ status }) => status)), new Set(["delivered"]));
  assert.deepEqual(
    new Map(rows.map(({ id, body }) => [id, body])),
    bodies,
    "none is missing and none invented",
  );
  const told = new Set(first.map(({ body }) => JSON.parse(body).data.subscriptionId));
  assert.deepEqual([...answered].filter((id) => !told.has(id)), []);
  console.log(`${ROUNDS} kills: ${first.length} messages, ${got.length - first.length} sent again`);
});
