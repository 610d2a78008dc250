// Webhooks from end to end: something happens, a server of the customer gets a message, the client's `verifyWebhook` takes the
// message, and the admin API shows its status. A ping, one more attempt, and two secrets at a time.

import assert from "node:assert/strict";
import { verifyWebhook, type WebhookMessage } from "../../src/client/client.ts";
import type { TestApp } from "../support/test_service.ts";
import { linesOf } from "../observability/log_lines.ts";
import { serve } from "../tasks/support.ts";
import { assertRefused, CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile({ allowsPrivateWebhooks: true });
const [PRO] = CATALOG.plans;
const [IMAGES] = PRO?.limits ?? [];
/** Images alert at half of their quota and at all of it. */
const ALERTING = { ...CATALOG, plans: [{ ...PRO, limits: [{ ...IMAGES, quota: 10, alerts: [50, 100] }] }] };

/** A server of a customer's. It keeps what it is sent and answers a status. */
class Receiver implements AsyncDisposable {
  readonly got: { readonly headers: Headers; readonly body: string }[] = [];
  status = 204;
  readonly url: string;
  readonly #close: () => Promise<void>;

  constructor() {
    const { url, close } = serve(async (request) => {
      this.got.push({ headers: request.headers, body: await request.text() });
      return new Response(null, { status: this.status });
    });
    this.url = `${url}/hooks`;
    this.#close = close;
  }

  /** The messages as a customer's program sees them. */
  messages(secret: string): Promise<WebhookMessage[]> {
    return Promise.all(this.got.map(({ headers, body }) => verifyWebhook({ secret, headers, body })));
  }

  /** How often it was sent each message. */
  countOf(messageId: string): number {
    return this.got.filter(({ headers }) => headers.get("webhook-id") === messageId).length;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#close();
  }
}

/** A webhook with the calls about it. */
async function webhookOf(app: TestApp, receiver: Receiver, members: object = {}) {
  // Receivers compare the time of a message with their own clock.
  service.clock.set(Date.now());
  const path = `/apps/${app.appId}/webhooks`;
  const input = { url: receiver.url, mode: "live", events: ["*"], ...members };
  const { webhookId, secret } = await dataOf(service.admin("POST", path, input));
  const call = (method: string, suffix = "", body?: unknown) =>
    service.admin(method, `${path}/${webhookId}${suffix}`, body);
  const messages = async () => (await dataOf(call("GET", "/messages"))).messages;
  return {
    secret: secret as string,
    call,
    messages,
    show: async () => (await dataOf(service.admin("GET", path)))[0],
    /** Resolves when nothing is pending. */
    quiet: async () => {
      while ((await messages()).some(({ status }: { status: string }) => status === "pending")) await pause();
    },
  };
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}

function reserve(app: TestApp, count: number) {
  return dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x", count }));
}

Deno.test("what happens in a turn arrives signed and in order, and the list shows it delivered", async () => {
  await using receiver = new Receiver();
  const app = await service.newApp(ALERTING);
  const { secret, messages, quiet, show } = await webhookOf(app, receiver, {
    events: ["usage.*", "user.merged"],
  });
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  await reserve(app, 4);
  await reserve(app, 6);
  await dataOf(app.call("POST", "/customers/alias", { from: "v", to: "u" }));
  await quiet();
  const told = await receiver.messages(secret);
  assert.deepEqual(told.map(({ type }) => type), [
    "usage.threshold_reached",
    "usage.threshold_reached",
    "user.merged",
  ]);
  const [half, full] = told as WebhookMessage<"usage.threshold_reached">[];
  assert.deepEqual([half?.data.thresholdPercent, full?.data.thresholdPercent], [50, 100]);
  assert.deepEqual([full?.data.userId, full?.data.groupId, full?.data.current], ["u", "lg_images", 10]);
  const listed = await messages();
  assert.deepEqual(
    listed.map(({ data }: { data: unknown }) => data),
    told.map(({ data }) => data).toReversed(),
  );
  for (const { status, attempts, nextAttemptAt, lastStatus, lastError } of listed) {
    assert.deepEqual([status, attempts, nextAttemptAt, lastStatus, lastError], [
      "delivered",
      1,
      null,
      204,
      null,
    ]);
  }
  const ids = listed.map(({ messageId }: { messageId: string }) => messageId).toReversed();
  assert.deepEqual(receiver.got.map(({ headers }) => headers.get("webhook-id")), ids);
  const { pending, failingSince, lastSuccessAt } = await show();
  assert.deepEqual([pending, failingSince, typeof lastSuccessAt], [0, null, "string"]);
});

Deno.test("a message that fails says why and when it comes again, and one more attempt now delivers it", async () => {
  await using receiver = new Receiver();
  receiver.status = 500;
  const app = await service.newApp(ALERTING);
  const { secret, call, messages, show } = await webhookOf(app, receiver, {
    events: ["subscription.created"],
  });
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  const failedOnce = async () =>
    (await messages()).find(({ attempts }: { attempts: number }) => attempts > 0);
  while (await failedOnce() === undefined) await pause();
  const failed = await failedOnce();
  assert.deepEqual([failed.status, failed.attempts, failed.lastStatus], ["pending", 1, 500]);
  assert.equal(typeof failed.lastError, "string");
  assert.ok(Date.parse(failed.nextAttemptAt) > service.clock.now());
  const standing = await show();
  assert.deepEqual([standing.pending, typeof standing.failingSince], [1, "string"]);

  const again = () => dataOf(call("POST", `/messages/${failed.messageId}/redeliver`));
  const second = await again();
  assert.deepEqual([second.status, second.attempts, second.lastStatus], ["pending", 2, 500]);
  assert.equal(second.nextAttemptAt, failed.nextAttemptAt, "the schedule stays");
  receiver.status = 200;
  const third = await again();
  assert.deepEqual([third.status, third.attempts, third.lastError], ["delivered", 3, null]);
  assert.equal((await again()).status, "delivered", "of any status");
  assert.equal(receiver.countOf(failed.messageId), 4);
  assert.equal(new Set(receiver.got.map(({ body }) => body)).size, 1, "the same bytes each time");
  assert.equal((await receiver.messages(secret))[0]?.type, "subscription.created");
  assert.deepEqual([(await show()).pending, (await show()).failingSince], [0, null]);
});

Deno.test("a ping goes to a webhook that wants other types, and not to a disabled one", async () => {
  await using receiver = new Receiver();
  const app = await service.newApp(ALERTING);
  const { secret, call, quiet, messages } = await webhookOf(app, receiver, {
    mode: "test",
    events: ["user.merged"],
  });
  const { messageId } = await dataOf(call("POST", "/ping"));
  await quiet();
  assert.equal(receiver.countOf(messageId), 1);
  const [told] = await receiver.messages(secret);
  assert.deepEqual([told?.type, told?.data], ["ping", { appId: app.appId, mode: "test" }]);
  await dataOf(call("PATCH", "", { disabled: true }));
  assertRefused(await call("POST", "/ping"), 400, "invalid_request");
  assert.equal((await messages()).length, 1);
  // A ping shows whether the address works, before the endpoint is enabled.
  await dataOf(call("POST", `/messages/${messageId}/redeliver`));
  assert.equal(receiver.countOf(messageId), 2);
});

Deno.test("an answer of 410 disables the webhook, and no log line has its secret or its messages", async () => {
  await using receiver = new Receiver();
  receiver.status = 410;
  const app = await service.newApp(ALERTING);
  let secret = "";
  const lines = await linesOf(async () => {
    const webhook = await webhookOf(app, receiver);
    secret = webhook.secret;
    await dataOf(webhook.call("POST", "/rotate"));
    await dataOf(webhook.call("POST", "/ping"));
    while ((await webhook.show()).disabled === false) await pause();
    const { pending, failingSince } = await webhook.show();
    assert.deepEqual([pending, typeof failingSince], [1, "string"]);
    const [waiting] = await webhook.messages();
    assert.deepEqual([waiting.status, waiting.lastStatus, waiting.nextAttemptAt], ["pending", 410, null]);
    receiver.status = 200;
    await dataOf(webhook.call("PATCH", "", { disabled: false }));
    await webhook.quiet();
    assert.equal((await webhook.messages())[0].status, "delivered");
  });
  const text = JSON.stringify(lines);
  assert.ok(lines.length > 0, "that a webhook was disabled is logged");
  for (const told of ["whsec_", secret.slice(-20), receiver.url]) assert.ok(!text.includes(told), told);
});

Deno.test("for a day after a rotation a message has a signature of both secrets", async () => {
  await using receiver = new Receiver();
  const app = await service.newApp(ALERTING);
  const { secret, call, quiet } = await webhookOf(app, receiver);
  const { secret: second } = await dataOf(call("POST", "/rotate"));
  const signatures = async () => {
    await dataOf(call("POST", "/ping"));
    await quiet();
    return receiver.got.at(-1)?.headers.get("webhook-signature")?.split(" ").length;
  };
  assert.equal(await signatures(), 2);
  for (const each of [secret, second]) assert.equal((await receiver.messages(each))[0]?.type, "ping");
  service.clock.advance(24 * 3_600_000);
  assert.equal(await signatures(), 1);
});
