// Compose and its limits: who is asked nothing, in which order calls are refused, the AI budget under parallel calls,
// and calls that take long.

import assert from "node:assert/strict";
import {
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
import { startTestService, type TestApp } from "../support/test_service.ts";

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
  const without = await startTestService();
  try {
    const caps = { operationCap: 0, aiBudgetCents: 0 };
    const withKey = await composeApp(service, undefined, caps);
    const withoutKey = await composeApp(without, undefined, caps);
    for (const app of [withKey, withoutKey]) {
      await dataOf(app.call("POST", "/opt-out", { distinctId: "out", scope: "ai_personalization" }));
      const unknown = await composeRecap(app, { type: "none", userId: "out" });
      assertRefused(unknown, 404, "not_found");
      const out = await dataOf(composeRecap(app, { userId: "out", vars: {} }));
      assert.equal(out.status, "opted_out");
      assertRefused(await composeRecap(app, { vars: {} }), 400, "invalid_request");
    }
    assertRefused(await composeRecap(withoutKey), 501, "not_implemented");
    assertRefused(await composeRecap(withKey), 429, "workspace_limit_reached");
    await setWorkspace(withKey, { operationCap: null });
    assertRefused(await composeRecap(withKey), 429, "ai_budget_exceeded");
    await setWorkspace(withKey, { aiBudgetCents: null, testOperationCap: 0 });
    assertRefused(await composeRecap(withKey, {}, { key: withKey.secretTest }), 429, "test_quota_exceeded");
    assertRefused(await composeRecap(withKey, {}, { key: withKey.publicLive }), 403, "requires_secret_key");
    assert.equal(model.requests.length, 0);
    assert.deepEqual(await rowsOf(service, withKey, "generations"), []);
    await dataOf(composeRecap(withKey));
  } finally {
    await without.close();
  }
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
