// Compose and the books: what a generation counts, what is recorded of it, and what becomes of it in a merge, an
// erasure, a retry and a restart.

import assert from "node:assert/strict";
import {
  CATALOG,
  catalogOf,
  composeApp,
  composeRecap,
  composeServiceOfFile,
  COST,
  countsOf,
  rowsOf,
  spentOf,
  typeOf,
} from "./compose_support.ts";
import { assertRefused, dataOf } from "./support.ts";
import type { TestApp } from "../support/test_service.ts";

const { service, model } = composeServiceOfFile();

async function operationsOf(app: TestApp): Promise<[live: number, test: number]> {
  const { body } = await service.admin("GET", "/workspaces");
  const row = body.data.find((each: { workspaceId: string }) => each.workspaceId === app.workspaceId);
  return [row.operationsUsed, row.testOperationsUsed];
}

function grantTokens(app: TestApp, quantity: number, userId = "u") {
  return dataOf(app.call("POST", "/credits/grant", { userId, packId: "cpk_tokens", quantity }));
}

Deno.test("each generation counts one operation, and goes past the quota where the plan has no room", async () => {
  const app = await composeApp(service);
  for (const [times, tokens] of [[1, 1500], [2, 3000], [3, 4500]] as const) {
    await dataOf(composeRecap(app));
    assert.deepEqual(await countsOf(app), { lg_tokens: tokens, lg_calls: times });
    assert.deepEqual(await operationsOf(app), [times, 0]);
  }
});

Deno.test("credits pay what the plan has no room for, before anything goes past the quota", async () => {
  const app = await composeApp(service);
  await grantTokens(app, 1200);
  await dataOf(composeRecap(app));
  const { usage } = await dataOf(composeRecap(app));
  assert.equal((await countsOf(app)).lg_tokens, 2000);
  const { entries } = await dataOf(app.call("GET", "/credits/history?userId=u&limit=1"));
  assert.deepEqual(
    [entries[0].delta, entries[0].reason, entries[0].eventId],
    [-1000, "event_committed", usage.eventId],
  );
  await dataOf(composeRecap(app));
  assert.equal((await countsOf(app)).lg_tokens, 3300);
});

Deno.test("without a plan credits that cover all of it pay, else nothing counts and all is recorded", async () => {
  const app = await service.newApp(CATALOG);
  await grantTokens(app, 1500, "v");
  for (const [times, matchStatus] of [[1, "matched_credits_only"], [1, "no_subscription"]] as const) {
    const { usage } = await dataOf(composeRecap(app, { userId: "v" }));
    const event = await dataOf(app.call("GET", `/events/${usage.eventId}`));
    assert.deepEqual([event.matchStatus, event.costCents, event.uncovered], [matchStatus, COST, {}]);
    assert.deepEqual(await operationsOf(app), [times, 0]);
  }
  assert.equal((await rowsOf(service, app, "generations")).length, 2);
  assert.equal(await spentOf(service, app), 2 * COST);
});

Deno.test("the feed shows one event with type and model, and the texts under the rules of prompt logs", async () => {
  const app = await composeApp(service);
  const { output, usage } = await dataOf(composeRecap(app));
  const { events } = await dataOf(app.call("GET", "/events"));
  assert.equal(events.length, 1);
  const event = await dataOf(app.call("GET", `/events/${usage.eventId}`));
  const { eventType, quantity, costCents, matchStatus, metadata, matchedGroupIds, reservationId } = event;
  assert.deepEqual(
    { eventType, quantity, costCents, matchStatus, metadata, matchedGroupIds, reservationId },
    {
      eventType: "compose.recap",
      quantity: 1,
      costCents: COST,
      matchStatus: "matched",
      metadata: { type: "recap", model: "mini" },
      matchedGroupIds: ["lg_tokens", "lg_calls"],
      reservationId: null,
    },
  );
  assert.deepEqual([event.hasLog, event.prompt], [true, model.prompts()[0]]);
  assert.deepEqual(JSON.parse(event.response), output);
});

Deno.test("nothing of prompt and output is stored where the app does not log, or the user opted out of it", async () => {
  const silent = await composeApp(service, catalogOf(CATALOG.composeTypes, { settings: {} }));
  await dataOf(composeRecap(silent));
  assert.deepEqual(await rowsOf(service, silent, "event_logs"), []);
  const app = await composeApp(service);
  await dataOf(app.call("POST", "/opt-out", { distinctId: "u", scope: "prompt_logging" }));
  await dataOf(composeRecap(app));
  assert.deepEqual(await rowsOf(service, app, "event_logs"), []);
  for (const each of [silent, app]) {
    const [row] = await rowsOf(service, each, "generations");
    assert.doesNotMatch(JSON.stringify(row), /Ada|sample/);
  }
});

Deno.test("a long prompt and a long answer are cut in the log and nowhere else", async () => {
  const app = await composeApp(service);
  const name = "é".repeat(40_000);
  model.reply = () => ({ content: JSON.stringify({ headline: name, score: 1 }) });
  const { output, usage } = await dataOf(composeRecap(app, { vars: { name } }));
  assert.equal(output.headline, name);
  assert.ok(model.prompts()[0]?.includes(name));
  const { prompt, response } = await dataOf(app.call("GET", `/events/${usage.eventId}`));
  for (const text of [prompt, response]) {
    assert.ok(text.endsWith("…[truncated]"));
    assert.ok(new TextEncoder().encode(text).byteLength < 33_000);
  }
});

Deno.test("test mode counts for itself, and its models are paid from the same AI spend", async () => {
  const app = await composeApp(service);
  await dataOf(composeRecap(app));
  await dataOf(composeRecap(app, {}, { key: app.secretTest }));
  assert.deepEqual(await operationsOf(app), [1, 0], "the test user has no subscription");
  assert.equal(await spentOf(service, app), 2 * COST);
  assert.equal((await countsOf(app)).lg_calls, 1);
});

Deno.test("a retry with the same idempotency key gets the first answer without another call", async () => {
  const app = await composeApp(service);
  const headers = { "idempotency-key": "once" };
  const [first, twin] = await Promise.all([
    composeRecap(app, {}, { headers }),
    composeRecap(app, {}, { headers }),
  ]);
  await service.restart();
  const later = await composeRecap(app, {}, { headers });
  assert.deepEqual([twin.body, later.body], [first.body, first.body]);
  assert.equal(later.headers.get("idempotent-replayed"), "true");
  assert.equal(model.requests.length, 1);
  assert.equal((await rowsOf(service, app, "generations")).length, 1);
});

Deno.test("a failure is not kept under an idempotency key", async () => {
  const app = await composeApp(service);
  const headers = { "idempotency-key": "again" };
  model.reply = () => ({ status: 500, body: "{}" });
  assertRefused(await composeRecap(app, {}, { headers }), 502, "generation_failed");
  model.reset();
  await dataOf(composeRecap(app, {}, { headers }));
});

Deno.test("a restart keeps counters, generations and the AI spend, also that of mismatches", async () => {
  const app = await composeApp(service);
  model.reply = (_, place) => ({ content: place === 0 ? "{}" : '{"headline":"x","score":1}' });
  const { generationId } = await dataOf(composeRecap(app));
  await service.restart();
  assert.deepEqual(await countsOf(app), { lg_tokens: 1500, lg_calls: 1 });
  assert.deepEqual((await rowsOf(service, app, "generations")).map(({ id }) => id), [generationId]);
  assert.equal(await spentOf(service, app), 2 * COST);
  await dataOf(composeRecap(app));
  assert.equal(await spentOf(service, app), 3 * COST);
});

Deno.test("generations follow a merge, and the report counts them", async () => {
  const app = await composeApp(service);
  await dataOf(composeRecap(app, { userId: "guest" }));
  await dataOf(composeRecap(app, { userId: "guest" }));
  await dataOf(composeRecap(app));
  const dryRun = await dataOf(app.call("POST", "/customers/alias", { from: "guest", to: "u", dryRun: true }));
  const report = await dataOf(app.call("POST", "/customers/alias", { from: "guest", to: "u" }));
  assert.deepEqual([dryRun.moved.composeGenerations, report.moved.composeGenerations], [2, 2]);
  await service.admin("POST", "/sweep");
  const users = await rowsOf(service, app, "users");
  const owner = users.find(({ id }) => id === "u")?.key;
  const rows = await rowsOf(service, app, "generations");
  assert.deepEqual(rows.map(({ user_key }) => user_key), [owner, owner, owner]);
});

Deno.test("a user who is merged while the model works is metered as the canonical one", async () => {
  const app = await composeApp(service);
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  model.reply = async () => {
    asked.resolve();
    await gate.promise;
    return { content: '{"headline":"x","score":1}' };
  };
  await dataOf(app.call("POST", "/track", { userId: "guest", event: "x" }));
  const composing = composeRecap(app, { userId: "guest" });
  await asked.promise;
  await dataOf(app.call("POST", "/customers/alias", { from: "guest", to: "u" }));
  gate.resolve();
  const { usage } = await dataOf(composing);
  assert.equal((await countsOf(app)).lg_tokens, 1500);
  const event = await dataOf(app.call("GET", `/events/${usage.eventId}`));
  assert.deepEqual([event.endUserId, event.hasLog], ["u", true]);
});

Deno.test("an erasure takes a user's generations, and leaves those of others and the AI spend", async () => {
  const app = await composeApp(service);
  await dataOf(composeRecap(app));
  const { generationId } = await dataOf(composeRecap(app, { userId: "other" }));
  const { jobId } = await dataOf(app.call("POST", "/delete-person", { distinctId: "u" }));
  let status = "queued";
  while (status === "queued" || status === "in_progress") {
    ({ status } = await dataOf(app.call("GET", `/deletion-status?jobId=${jobId}`)));
  }
  assert.equal(status, "completed");
  assert.deepEqual((await rowsOf(service, app, "generations")).map(({ id }) => id), [generationId]);
  assert.equal(await spentOf(service, app), 2 * COST);
});

Deno.test("a changed price holds from the next call on, and a generation under way keeps its own", async () => {
  const app = await composeApp(service);
  const dearer = catalogOf([typeOf("recap", "Recap for {name}.")], {
    models: [{
      id: "mini",
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: 1500,
      outputCentsPerMillionTokens: 6000,
    }],
  });
  model.reply = async (_, place) => {
    if (place === 0) await service.admin("PUT", `/apps/${app.appId}/catalog`, dearer);
    return { content: '{"headline":"x","score":1}' };
  };
  assert.equal((await dataOf(composeRecap(app))).usage.costCents, COST);
  assert.equal((await dataOf(composeRecap(app))).usage.costCents, 100 * COST);
});
