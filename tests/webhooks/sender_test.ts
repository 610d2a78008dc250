// The sender on a whole service, with attempts that the test answers: what is sent when, what is written of it, and what
// survives a restart.

import assert from "node:assert/strict";
import { SENDER_LIMITS } from "../../src/process/webhook_limits.ts";
import { limitsOfFile } from "../support/limits.ts";
import { BROKEN, grant, OK, ScriptedTransport, startSending, until } from "./support.ts";
import type { AttemptResult } from "../../src/webhooks/transport.ts";

const MINUTE = 60_000;

// Counts are made whenever a caller asks.
limitsOfFile(SENDER_LIMITS, { countEveryMs: 0 });

Deno.test("what a turn records is sent soon, once, and is then delivered", async () => {
  const transport = new ScriptedTransport();
  await using sending = await startSending(transport);
  await sending.put("whk_1");
  await grant(sending.app, "u1", "ref_1");
  await until(async () => (await sending.messages()).every(({ status }) => status === "delivered"));
  const rows = await sending.messages();
  assert.deepEqual(transport.attempts.map(({ messageId }) => messageId), rows.map(({ id }) => id));
  assert.deepEqual(transport.attempts.map(({ body }) => body), rows.map(({ body }) => body));
  const granted = rows.find(({ type }) => type === "credits.granted");
  assert.deepEqual([granted?.attempts, granted?.last_status, granted?.last_error], [1, 200, null]);
  const { data } = JSON.parse(granted?.body ?? "");
  assert.deepEqual([data.userId, data.externalRef, data.appId], ["u1", "ref_1", sending.app.appId]);
  const [health] = await sending.store.database.query("select * from webhooks");
  assert.deepEqual([health?.last_success_at_ms, health?.failing_since_ms], [sending.clock.now(), null]);
});

Deno.test("a message that fails keeps its user's later ones waiting and no other user's, and is given up after eight attempts", async () => {
  const transport = new ScriptedTransport();
  transport.answer = ({ body }) => body.includes('"bad"') ? BROKEN : OK;
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.granted"] });
  await grant(sending.app, "u1", "bad");
  await grant(sending.app, "u1", "good");
  await grant(sending.app, "u2", "other");
  const bad = async () => (await sending.messages()).find(({ body }) => body.includes('"bad"'));
  await until(() => transport.idsOf('"other"').length === 1);
  const seen: [attempts: number, delay: number][] = [];
  for (let attempt = 1; attempt <= 8; attempt++) {
    await until(async () => (await bad())?.attempts === attempt);
    const row = await bad();
    if (row === undefined || row.status !== "pending") break;
    assert.deepEqual([row.last_status, row.last_error], [500, "answered 500"]);
    seen.push([attempt, row.next_attempt_at_ms - sending.clock.now()]);
    assert.equal(transport.idsOf('"good"').length, 0);
    sending.clock.set(row.next_attempt_at_ms - 1);
    sending.serving().sender.wake();
    sending.clock.set(row.next_attempt_at_ms);
    sending.serving().sender.wake();
  }
  const meant = [5_000, 5 * MINUTE, 30 * MINUTE, 120 * MINUTE, 300 * MINUTE, 600 * MINUTE, 600 * MINUTE];
  assert.deepEqual(seen.map(([attempt]) => attempt), [1, 2, 3, 4, 5, 6, 7]);
  seen.forEach(([, delay], index) => {
    const ratio = delay / (meant[index] as number);
    assert.ok(ratio >= 0.8 && ratio <= 1.2, `delay ${index} is ${delay}`);
  });
  assert.equal((await bad())?.status, "failed");
  await until(() => transport.idsOf('"good"').length === 1);
  assert.equal(transport.idsOf('"bad"').length, 8);
});

Deno.test("an endpoint that never answers delays no other", async () => {
  const transport = new ScriptedTransport();
  transport.answer = ({ url }) => url.includes("slow") ? new Promise(() => {}) : OK;
  await using sending = await startSending(transport);
  await sending.put("whk_slow", { url: "https://slow.test/", events: ["credits.*"] });
  await sending.put("whk_fast", { url: "https://fast.test/", events: ["credits.*"] });
  for (let user = 0; user < 20; user++) await grant(sending.app, `u${user}`, `ref_${user}`);
  const to = (name: string) => transport.attempts.filter(({ url }) => url.includes(name)).length;
  await until(() => to("fast") === 20);
  assert.equal(to("slow"), 8);
});

Deno.test("410 disables a webhook at once; what waits goes out when it is enabled", async () => {
  const transport = new ScriptedTransport();
  transport.answer = () => ({ status: 410, fault: "answered 410" });
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.*"] });
  const isDisabled = () =>
    sending.serving().registry.apps.get(sending.app.appId)?.webhooks.get("whk_1")?.disabled;
  await grant(sending.app, "u1", "one");
  await until(() => isDisabled() === true);
  const [stored] = await sending.store.database.query("select disabled from webhooks");
  assert.equal(stored?.disabled, true);
  await grant(sending.app, "u1", "unheard");
  sending.clock.advance(MINUTE);
  sending.serving().sender.wake();
  const rows = (await sending.messages()).map(({ status, attempts }) => [status, attempts]);
  assert.deepEqual(rows, [["pending", 1]]);
  transport.answer = () => OK;
  await sending.put("whk_1", { disabled: false });
  await until(async () => (await sending.messages())[0]?.status === "delivered");
  assert.equal(transport.attempts.length, 2);
});

Deno.test("an attempt that began before a webhook was enabled again does not disable it", async () => {
  const transport = new ScriptedTransport();
  const held = Promise.withResolvers<AttemptResult>();
  transport.answer = () => held.promise;
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.*"] });
  await grant(sending.app, "u1", "ref_1");
  await until(() => transport.attempts.length === 1);
  await sending.put("whk_1", { disabled: true });
  await sending.put("whk_1", { disabled: false });
  held.resolve({ status: 410, fault: "answered 410" });
  await until(async () => (await sending.messages())[0]?.attempts === 1);
  transport.answer = () => OK;
  await grant(sending.app, "u2", "ref_2");
  await until(() => transport.attempts.length === 2);
  assert.equal(
    sending.serving().registry.apps.get(sending.app.appId)?.webhooks.get("whk_1")?.disabled,
    false,
  );
});

Deno.test("what waits for another attempt is not waited for once its webhook is enabled", async () => {
  const transport = new ScriptedTransport();
  transport.answer = () => BROKEN;
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.*"] });
  await grant(sending.app, "u1", "one");
  await until(async () => (await sending.messages())[0]?.attempts === 1);
  await sending.put("whk_1", { disabled: true });
  transport.answer = () => OK;
  await sending.put("whk_1", { disabled: false });
  await until(async () => (await sending.messages())[0]?.status === "delivered");
});

Deno.test("five days of nothing but failures disable a webhook, and a success between begins them anew", async () => {
  const transport = new ScriptedTransport();
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.*"] });
  const webhook = () => sending.serving().registry.apps.get(sending.app.appId)?.webhooks.get("whk_1");
  let sent = 0;
  const tell = async (answer: AttemptResult) => {
    transport.answer = () => answer;
    await grant(sending.app, `u${sent += 1}`, `ref_${sent}`);
    await until(async () => (await sending.messages()).every(({ attempts }) => attempts > 0));
  };
  const days = (count: number) => sending.clock.advance(count * 24 * 60 * MINUTE);
  await tell(BROKEN);
  days(4);
  await tell(OK);
  days(2);
  await tell({ status: null, fault: "no answer within 15 s" });
  days(4);
  await tell(BROKEN);
  assert.equal(webhook()?.disabled, false);
  days(1);
  sending.serving().sender.wake();
  await until(() => webhook()?.disabled === true);
  await sending.put("whk_1", { disabled: false });
  await tell(BROKEN);
  assert.equal(webhook()?.disabled, false);
});

Deno.test("both secrets sign for a day after a rotation, then the new one alone", async () => {
  const transport = new ScriptedTransport();
  await using sending = await startSending(transport);
  const validUntil = sending.clock.now() + 24 * 60 * MINUTE;
  const secrets = [{ secret: "new", validUntil: null }, { secret: "old", validUntil }];
  await sending.put("whk_1", { events: ["credits.*"], secrets });
  await grant(sending.app, "u1", "one");
  await until(() => transport.attempts.length === 1);
  sending.clock.set(validUntil);
  await grant(sending.app, "u1", "two");
  await until(() => transport.attempts.length === 2);
  assert.deepEqual(transport.attempts.map(({ secrets }) => secrets), [["new", "old"], ["new"]]);
  assert.equal(transport.attempts[1]?.at, validUntil);
});

Deno.test("an attempt that was under way when the process died is made again, with the same id and bytes", async () => {
  const transport = new ScriptedTransport();
  transport.answer = () => new Promise(() => {});
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.*"] });
  await grant(sending.app, "u1", "one");
  await grant(sending.app, "u1", "two");
  await until(() => transport.attempts.length === 1);
  transport.answer = () => OK;
  await sending.crash();
  await until(async () => (await sending.messages()).every(({ status }) => status === "delivered"));
  const [first, again, last] = transport.attempts;
  assert.deepEqual([first?.messageId, first?.body], [again?.messageId, again?.body]);
  assert.ok(last?.body.includes('"two"'));
  assert.equal(transport.attempts.length, 3);
});

Deno.test("an attempt that was asked for is made out of order, and leaves the schedule where it stood", async () => {
  const transport = new ScriptedTransport();
  transport.answer = () => BROKEN;
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.*"] });
  await grant(sending.app, "u1", "one");
  await grant(sending.app, "u1", "two");
  const rows = async () =>
    (await sending.messages()).map(({ status, attempts, failures }) => [status, attempts, failures]);
  await until(async () => (await sending.messages())[0]?.attempts === 1);
  const [one, two] = (await sending.messages()).map(({ id }) => id) as [string, string];
  const { sender } = sending.serving();
  const nextAt = (await sending.messages())[0]?.next_attempt_at_ms;
  await sender.attemptNow(two);
  await sender.attemptNow(one);
  assert.deepEqual(await rows(), [["pending", 2, 1], ["pending", 1, 0]]);
  assert.equal((await sending.messages())[0]?.next_attempt_at_ms, nextAt);
  transport.answer = () => OK;
  await sender.attemptNow(two);
  assert.deepEqual(await rows(), [["pending", 2, 1], ["delivered", 2, 0]]);
  sending.clock.set(nextAt as number);
  sender.wake();
  await until(async () => (await sending.messages())[0]?.status === "delivered");
  transport.answer = () => BROKEN;
  await sender.attemptNow(one);
  assert.deepEqual(await rows(), [["delivered", 4, 1], ["delivered", 2, 0]]);
  await sender.attemptNow("whm_unknown");
});

Deno.test("a message that was given up is delivered when a caller asks for it", async () => {
  const transport = new ScriptedTransport();
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.*"] });
  await grant(sending.app, "u1", "one");
  await until(async () => (await sending.messages())[0]?.status === "delivered");
  const [message] = await sending.messages();
  await sending.store.database.query("update webhook_messages set status = 'failed'");
  await sending.serving().sender.attemptNow(message?.id as string);
  assert.equal((await sending.messages())[0]?.status, "delivered");
});

Deno.test("what waits is counted with its age, and nothing of it once it is delivered", async () => {
  const transport = new ScriptedTransport();
  transport.answer = () => BROKEN;
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.*"] });
  await sending.put("whk_2", { events: ["credits.*"] });
  await grant(sending.app, "u1", "one");
  await until(async () => (await sending.messages()).every(({ attempts }) => attempts === 1));
  sending.clock.advance(4_000);
  const counted = () => sending.serving().sender.backlog;
  await until(() => counted()?.oldestSeconds === 4);
  assert.deepEqual(counted(), { pending: 2, oldestSeconds: 4 });
  transport.answer = () => OK;
  sending.clock.advance(4_000);
  sending.serving().sender.wake();
  await until(() => counted()?.pending === 0);
  assert.deepEqual(counted(), { pending: 0, oldestSeconds: 0 });
});

Deno.test("a webhook that is removed is sent nothing more", async () => {
  const transport = new ScriptedTransport();
  transport.answer = () => BROKEN;
  await using sending = await startSending(transport);
  await sending.put("whk_1", { events: ["credits.*"] });
  await grant(sending.app, "u1", "one");
  await until(async () => (await sending.messages())[0]?.attempts === 1);
  await sending.put("whk_1", { removed: true, url: "", secrets: [] });
  sending.clock.advance(MINUTE);
  sending.serving().sender.wake();
  await sending.crash();
  await sending.messages();
  assert.equal(transport.attempts.length, 1);
});
