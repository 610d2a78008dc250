// The attempts at a message, the messages of failing endpoints, and sending all of them again.

import assert from "node:assert/strict";
import type { AttemptResult } from "../../src/webhooks/transport.ts";
import { BROKEN, grant, OK, ScriptedTransport, startSending, until } from "./support.ts";

const ANSWER: AttemptResult = { ...BROKEN, answer: 'x\u0000"y' };

Deno.test("each attempt is kept with its answer, up to 20; failing messages are listed and all sent again", async () => {
  const transport = new ScriptedTransport();
  transport.answer = () => ANSWER;
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.granted"] });
  const path = `/apps/${sending.app.appId}/webhooks/whk_1`;
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  const ask = async (method: string, rest: string, body?: unknown): Promise<any> => {
    const answer = await sending.admin(method, `${path}${rest}`, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body.data;
  };
  const ids = async (status: string): Promise<string[]> =>
    (await ask("GET", `/messages?status=${status}`)).messages.map(({ messageId }: { messageId: string }) =>
      messageId
    );
  await grant(sending.app, "u1", "first");
  await until(async () => (await ids("failing")).length === 1);
  const [id = ""] = await ids("failing");
  assert.deepEqual([await ids("failed"), await ids("pending")], [[], [id]]);
  const [attempt] = await ask("GET", `/messages/${id}/attempts`);
  assert.deepEqual(attempt, {
    at: new Date(sending.clock.now()).toISOString(),
    status: 500,
    error: "answered 500",
    tookMs: 0,
    answer: ANSWER.answer,
  });
  for (let time = 0; time < 22; time++) await ask("POST", `/messages/${id}/redeliver`);
  assert.equal((await ask("GET", `/messages/${id}/attempts`)).length, 20);
  assert.deepEqual(await ask("POST", "/redeliver", { status: "failed" }), { messages: 0 });
  transport.answer = () => OK;
  assert.deepEqual(await ask("POST", "/redeliver", { status: "failing" }), { messages: 1 });
  await until(async () => (await ids("delivered")).length === 1);
  const [last, before] = await ask("GET", `/messages/${id}/attempts`);
  assert.deepEqual([last.status, last.error, last.answer, before.status], [200, null, null, 500]);
  assert.equal((await sending.admin("GET", `${path}/messages/whm_unknown/attempts`)).status, 404);
});

Deno.test("messages that were given up are sent again in their order, with a whole schedule each", async () => {
  const transport = new ScriptedTransport();
  transport.answer = () => BROKEN;
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.granted"] });
  for (const reference of ["one", "two", "three"]) await grant(sending.app, "u1", reference);
  const rows = () => sending.messages();
  await until(async () => (await rows()).some(({ attempts }) => attempts === 1));
  await sending.store.database.query(
    "update webhook_messages set status = 'failed', ended_at_ms = 1, attempts = 8, failures = 8",
  );
  transport.attempts.length = 0;
  transport.answer = () => OK;
  const path = `/apps/${sending.app.appId}/webhooks/whk_1/redeliver`;
  assert.deepEqual((await sending.admin("POST", path, { status: "failed" })).body.data, { messages: 3 });
  await until(async () => (await rows()).every(({ status }) => status === "delivered"));
  assert.deepEqual(
    transport.attempts.map(({ body }) => JSON.parse(body).data.externalRef),
    ["one", "two", "three"],
  );
});
