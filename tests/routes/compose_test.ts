// Compose and its limits: in which order calls are refused, the AI budget under parallel calls, and calls that take long;
// and the books: what a generation counts, and its result in a merge, an erasure, a retry and a restart.

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

const ANSWER = { content: '{"headline":"x","score":1}' };

function setWorkspace(app: TestApp, members: Record<string, number | null>) {
  return service.admin("PATCH", `/workspaces/${app.workspaceId}`, members);
}

/** Holds every answer back until it is let go; `asked` resolves when so many calls have come. */
function holdAnswers(calls: number): { asked: Promise<void>; letGo: () => void } {
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  model.reply = async (_, place) => {
    if (place + 1 === calls) asked.resolve();
    await gate.promise;
    return ANSWER;
  };
  return { asked: asked.promise, letGo: gate.resolve };
}

Deno.test("calls are refused in the decided order, and none of them reaches the model", async () => {
  const app = await composeApp(service, undefined, { operationCap: 0, aiBudgetCents: 0 });
  await dataOf(app.call("POST", "/opt-out", { distinctId: "out", scope: "ai_personalization" }));
  assertRefused(await composeRecap(app, { type: "none", userId: "out" }), 404, "not_found");
  const out = await dataOf(composeRecap(app, { userId: "out", vars: {} }));
  assert.equal(out.status, "opted_out");
  assertRefused(await composeRecap(app, { vars: {} }), 400, "invalid_request");
  assertRefused(await composeRecap(app), 429, "workspace_limit_reached");
  await setWorkspace(app, { operationCap: null });
  assertRefused(await composeRecap(app), 429, "ai_budget_exceeded");
  await setWorkspace(app, { aiBudgetCents: null, testOperationCap: 0 });
  assertRefused(await composeRecap(app, {}, { key: app.secretTest }), 429, "test_quota_exceeded");
  assertRefused(await composeRecap(app, {}, { key: app.publicLive }), 403, "requires_secret_key");
  assert.equal(model.requests.length, 0);
  const { refusals } = await dataOf(app.call("GET", "/refusals?event=compose.recap&userId=u"));
  const reasons = refusals.flatMap((row: { reasons: readonly string[] }) => row.reasons);
  assert.deepEqual(reasons.sort(), ["ai_budget_exceeded", "workspace_limit_reached"]);
  assert.deepEqual(await rowsOf(service, app, "generations"), []);
  await dataOf(composeRecap(app));
});

Deno.test("a user who opted out of ai_personalization or of all is asked nothing about, and nothing is stored", async () => {
  for (const [scope, isOut] of [["ai_personalization", true], ["all", true], ["analytics", false]] as const) {
    model.reset();
    const app = await service.newApp(catalogOf([typeOf("recap", "Recap for {name}.")]));
    await dataOf(app.call("POST", "/opt-out", { distinctId: "u", scope }));
    const before = await rowsOf(service, app, "users");
    const data = await dataOf(composeRecap(app));
    assert.equal(model.requests.length, isOut ? 0 : 1, scope);
    assert.equal(data.status, isOut ? "opted_out" : "generated");
    if (!isOut) continue;
    assert.deepEqual(data, { status: "opted_out", generationId: null, output: null, usage: null });
    assert.deepEqual(await rowsOf(service, app, "generations"), []);
    assert.deepEqual(await rowsOf(service, app, "events"), []);
    assert.deepEqual(await rowsOf(service, app, "users"), before);
    assert.equal(await spentOf(service, app), 0);
    await dataOf(app.call("POST", "/opt-in", { distinctId: "u", scope }));
    assert.equal((await dataOf(composeRecap(app))).status, "generated");
  }
});

Deno.test("an alias of a user who opted out is that user, from the merge's answer on", async () => {
  const app = await composeApp(service);
  await dataOf(app.call("POST", "/opt-out", { distinctId: "u" }));
  assert.equal((await dataOf(composeRecap(app, { userId: "guest" }))).status, "generated");
  await dataOf(app.call("POST", "/customers/alias", { from: "guest", to: "u" }));
  assert.equal((await dataOf(composeRecap(app, { userId: "guest" }))).status, "opted_out");
  assert.equal(model.requests.length, 1);
});

Deno.test("a call that finds the spend at the budget is refused, and not the one before", async () => {
  const app = await composeApp(service, undefined, { aiBudgetCents: 2 * COST });
  await dataOf(composeRecap(app));
  await dataOf(composeRecap(app, {}, { key: app.secretTest }));
  assertRefused(await composeRecap(app), 429, "ai_budget_exceeded");
  assertRefused(await composeRecap(app, {}, { key: app.secretTest }), 429, "ai_budget_exceeded");
  await service.restart();
  assertRefused(await composeRecap(app), 429, "ai_budget_exceeded");
  assert.equal(model.requests.length, 2);
  await setWorkspace(app, { aiBudgetCents: 2 * COST + 0.000001 });
  await dataOf(composeRecap(app));
  assert.equal(await spentOf(service, app), 3 * COST);
});

Deno.test("parallel calls pass the budget by what was in flight, and their sum is exact", async () => {
  const app = await composeApp(service, undefined, { aiBudgetCents: COST });
  const calls = 20;
  const { asked, letGo } = holdAnswers(calls);
  const composing = Array.from(
    { length: calls },
    (_, place) => composeRecap(app, { userId: `u${place % 7}` }),
  );
  await asked;
  letGo();
  for (const answer of await Promise.all(composing)) assert.equal(answer.status, 200);
  assertRefused(await composeRecap(app), 429, "ai_budget_exceeded");
  assert.equal(await spentOf(service, app), 0.9, "20 x 0.045");
  assert.equal(model.requests.length, calls);
  assert.equal((await rowsOf(service, app, "generations")).length, calls);
});

Deno.test("mismatches spend the budget too", async () => {
  const app = await composeApp(service, undefined, { aiBudgetCents: 2 * COST });
  model.reply = () => ({ content: "{}" });
  assertRefused(await composeRecap(app), 502, "generation_failed");
  assertRefused(await composeRecap(app), 429, "ai_budget_exceeded");
  assert.deepEqual(await countsOf(app), { lg_tokens: 0, lg_calls: 0 });
});

Deno.test("a new UTC month has its whole budget again, and the old one's spend stays in the table", async () => {
  const app = await composeApp(service, undefined, { aiBudgetCents: COST });
  await dataOf(composeRecap(app));
  assertRefused(await composeRecap(app), 429, "ai_budget_exceeded");
  const now = new Date(service.clock.now());
  service.clock.set(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
  assert.equal(await spentOf(service, app), 0);
  await dataOf(composeRecap(app));
  await service.serving().term.flush();
  const rows = await service.store.database.query<{ cents: string }>(
    "select cents from ai_spend where workspace_id = $1 order by month",
    [app.workspaceId],
  );
  assert.deepEqual(rows.map(({ cents }) => Number(cents)), [COST, COST]);
});

Deno.test("a hundred reserves of the same user go through while a generation is under way", async () => {
  const app = await composeApp(service);
  const { asked, letGo } = holdAnswers(1);
  let isDone = false;
  const composing = composeRecap(app).finally(() => isDone = true);
  await asked;
  const reserves = await Promise.all(
    Array.from({ length: 100 }, () => app.call("POST", "/reserve", { userId: "u", event: "x" })),
  );
  assert.ok(reserves.every(({ body }) => body.data.allowed === true));
  assert.equal((await countsOf(app)).lg_calls, 100);
  assert.equal(isDone, false);
  letGo();
  await dataOf(composing);
  assert.deepEqual(await countsOf(app), { lg_tokens: 1500, lg_calls: 101 });
});

Deno.test("a call under way ends as unavailable with its term, and meters nothing", async () => {
  const app = await composeApp(service);
  const { asked, letGo } = holdAnswers(1);
  const composing = composeRecap(app);
  await asked;
  await service.restart();
  const answer = await composing;
  assertRefused(answer, 503, "unavailable");
  letGo();
  assert.deepEqual(await countsOf(app), { lg_tokens: 0, lg_calls: 0 });
  model.reset();
  await dataOf(composeRecap(app));
});

async function operationsOf(app: TestApp): Promise<[live: number, test: number]> {
  const { body } = await service.admin("GET", "/workspaces");
  const row = body.data.find((each: { workspaceId: string }) => each.workspaceId === app.workspaceId);
  return [row.operationsUsed, row.testOperationsUsed];
}

Deno.test("each generation counts one operation, and goes past the quota where the plan has no room", async () => {
  const app = await composeApp(service);
  for (const [times, tokens] of [[1, 1500], [2, 3000], [3, 4500]] as const) {
    await dataOf(composeRecap(app));
    assert.deepEqual(await countsOf(app), { lg_tokens: tokens, lg_calls: times });
    assert.deepEqual(await operationsOf(app), [times, 0]);
  }
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

Deno.test("a generation counts in its run; with an ended run the model is not asked", async () => {
  const app = await composeApp(service);
  const body = { userId: "u", limits: [{ unit: "count", quota: 0 }] };
  const { runId } = await dataOf(app.call("POST", "/runs", body));
  model.reply = () => Promise.resolve(ANSWER);
  const composed = await dataOf(composeRecap(app, { runId }));
  const [{ limits: [{ count }] }] = composed.runs;
  assert.equal(count, 1, "a full run does not refuse a compose, like any limit");
  await dataOf(app.call("POST", `/runs/${runId}/end`, {}));
  const asked = model.requests.length;
  assertRefused(await composeRecap(app, { runId }), 409, "run_ended");
  assertRefused(await composeRecap(app, { runId: "run_none" }), 404, "not_found");
  assert.equal(model.requests.length, asked);
});
