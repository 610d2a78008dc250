// Metering operations: exact under the cap, by mode and UTC month, and kept over a crash.

import assert from "node:assert/strict";
import { Budget, monthOf } from "../../actors/budget.ts";
import type { Realm } from "../../actors/call.ts";
import { barrier, startRuntime } from "./runtime.ts";
import { compileCatalog } from "../../src/domain/catalog/catalog.ts";
import { amountOf } from "../../src/domain/values/amount.ts";
import { sizeOf } from "../domain/scene.ts";
import { RUNTIME_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";
import { MemoryStore } from "../support/memory_store.ts";

const CAPS = {
  workspaceId: "ws_1",
  operationCap: 3,
  testOperationCap: 1,
  testCreditBalanceCap: 2,
  aiBudgetCents: 0.3,
};

Deno.test("only a workspace that has used its cap is refused, each mode by its own", () => {
  const budget = new Budget(() => Date.UTC(2026, 0, 31, 23, 59));
  assert.equal(budget.refusal(CAPS, "live"), null);
  budget.take("ws_1", "live", 2);
  assert.equal(budget.refusal(CAPS, "live"), null);
  budget.take("ws_1", "live", 5);
  assert.equal(budget.refusal(CAPS, "live")?.code, "workspace_limit_reached");
  assert.equal(budget.refusal(CAPS, "test"), null);
  budget.take("ws_1", "test", 1);
  assert.equal(budget.refusal(CAPS, "test")?.code, "test_quota_exceeded");
  assert.equal(budget.refusal({ ...CAPS, workspaceId: "ws_2" }, "live"), null);
  assert.equal(budget.refusal({ ...CAPS, operationCap: null }, "live"), null);
  assert.equal(
    budget.refusal({ ...CAPS, workspaceId: "ws_3", operationCap: 0 }, "live")?.code,
    "workspace_limit_reached",
  );
});

Deno.test("a new UTC month starts at nothing", () => {
  let now = Date.UTC(2026, 11, 31, 23, 59, 59, 999);
  const budget = new Budget(() => now);
  budget.admit({
    operations: [{ workspaceId: "ws_1", mode: "live", month: "2026-12", used: 3 }],
    issues: [],
    aiSpend: [{ workspaceId: "ws_1", month: "2026-12", cents: amountOf(0.2) }],
    gatewaySpend: [],
  });
  assert.equal(budget.refusal(CAPS, "live")?.code, "workspace_limit_reached");
  now += 1;
  assert.equal(monthOf(now), "2027-01");
  assert.equal(budget.refusal(CAPS, "live"), null);
  assert.deepEqual(budget.take("ws_1", "live", 1), {
    workspaceId: "ws_1",
    mode: "live",
    month: "2027-01",
    used: 1,
  });
});

Deno.test("spend on models is an exact sum over both modes, and refuses once it is at the budget", () => {
  let now = Date.UTC(2026, 11, 31, 23, 59, 59, 999);
  const rows = [{ workspaceId: "ws_1", month: "2026-12", cents: amountOf(0.1) }];
  const budget = new Budget(() => now);
  budget.admit({ operations: [], issues: [], aiSpend: rows, gatewaySpend: [] });
  const batch = { totals: new Map() };
  budget.spendInto(batch, "ws_1", amountOf(0.1));
  assert.equal(budget.aiRefusal(CAPS), null);
  budget.spendInto(batch, "ws_2", amountOf(7));
  budget.spendInto(batch, "ws_1", amountOf(0.1));
  assert.equal(budget.aiRefusal(CAPS)?.code, "ai_budget_exceeded");
  assert.equal(budget.aiRefusal({ ...CAPS, aiBudgetCents: null }), null);
  assert.equal(
    budget.aiRefusal({ ...CAPS, workspaceId: "ws_3", aiBudgetCents: 0 })?.code,
    "ai_budget_exceeded",
  );
  assert.deepEqual([...batch.totals.values()].map(({ row }) => row), [
    { workspaceId: "ws_1", month: "2026-12", cents: amountOf(0.3) },
    { workspaceId: "ws_2", month: "2026-12", cents: amountOf(7) },
  ]);
  now += 1;
  assert.equal(budget.aiRefusal(CAPS), null);
  budget.spendInto(batch, "ws_1", amountOf(0.05));
  assert.equal(budget.aiSpent("ws_1"), amountOf(0.05));
});

Deno.test("spend at the gateway is an exact sum of an app, which leaves with its workspace", () => {
  let now = Date.UTC(2026, 11, 31, 23, 59, 59, 999);
  const budget = new Budget(() => now);
  const row = { workspaceId: "ws_1", appId: "app_1", month: "2026-12", cents: amountOf(0.1) };
  budget.admit({ operations: [], issues: [], aiSpend: [], gatewaySpend: [row] });
  const batch = { totals: new Map() };
  const refused = (appId: string, cents: number) =>
    budget.gatewayRefusal("ws_1", appId, amountOf(cents))?.code ?? null;
  assert.equal(refused("app_1", 0.3), null);
  budget.spendAtGatewayInto(batch, "ws_1", { appId: "app_1", cents: amountOf(0.2) });
  budget.spendAtGatewayInto(batch, "ws_1", { appId: "app_2", cents: amountOf(7) });
  assert.deepEqual([refused("app_1", 0.3), refused("app_2", 7.1)], ["ai_budget_exceeded", null]);
  assert.equal(budget.gatewayRefusal("ws_1", "app_1", null), null, "no budget");
  assert.equal(budget.aiSpent("ws_1"), 0n, "the budget of compose is another one");
  assert.deepEqual([...batch.totals.values()].map(({ row }) => row), [
    { ...row, cents: amountOf(0.3) },
    { ...row, appId: "app_2", cents: amountOf(7) },
  ]);
  now += 1;
  assert.equal(refused("app_1", 0.3), null, "another month");
  assert.equal(budget.sizeOf("ws_1"), 2);
  budget.drop("ws_1");
  assert.equal(budget.sizeOf("ws_1"), 0);
});

Deno.test("spend is kept by a crash, with a turn and without one", async () => {
  const store = new MemoryStore();
  const first = await startRuntime(store);
  await first.subscribe("u");
  await first.term.spend("ws_1", amountOf(0.1));
  const event = { event: "x.make", metadata: null, size: sizeOf(), costCents: null };
  await Promise.all([
    first.call("u", "track", event, { aiCents: amountOf(0.2) }),
    first.term.spend("ws_1", amountOf(0.4)),
    first.call("u", "track", event, { aiCents: amountOf(0.8) }),
  ]);
  first.term.fail(new Error("a crash"));
  using second = await startRuntime(store);
  assert.equal(second.term.budget.aiSpent("ws_1"), amountOf(1.5));
});

Deno.test("parallel calls of many users share one cap exactly, and a crash keeps the count", async () => {
  const store = new MemoryStore();
  const cap = { operationCap: 7 };
  const first = await startRuntime(store, cap);
  const users = [...Array(5).keys()].map((index) => `u${index}`);
  await Promise.all(users.map((user) => first.subscribe(user)));
  const track = { event: "x.make", metadata: null, size: sizeOf({ count: 1 }), costCents: null };
  const results = await Promise.all(
    users.flatMap((user) => [1, 2, 3].map(() => first.call(user, "track", track, { isCapped: true }))),
  );
  assert.equal(results.filter(({ ok }) => ok).length, 7);
  assert.equal(first.term.budget.used("ws_1", "live"), 7);
  first.term.fail(new Error("a crash"));
  using second = await startRuntime(store, cap);
  assert.equal(second.term.budget.used("ws_1", "live"), 7);
  const refused = await second.call("u0", "track", track, { isCapped: true });
  assert.equal(refused.ok ? "ok" : refused.refusal.code, "workspace_limit_reached");
});

Deno.test("a grant refused because of another user's is refused when that one is durable, and fails where it is lost", async () => {
  const store = new MemoryStore();
  const runtime = await startRuntime(store, { testCreditBalanceCap: 1 });
  const pack = { id: "cpk_a", name: "A", kind: "generic", unit: "count", matches: [], items: [] } as const;
  const catalog = compileCatalog({ packs: [pack] }, 1);
  const realm: Realm = { ...runtime.realm, mode: "test", catalog };
  const input = { pack: "cpk_a", quantity: amountOf(1), externalRef: null, expiresAt: null, notes: null };
  const grant = (user: string) => runtime.call(user, "grant", { ...input, source: "manual" }, { realm });
  await runtime.call("u2", "usage", { event: null });
  const { wait, fail } = barrier();
  store.hooks.append = () => wait;
  const [issued, refused] = [grant("u1"), grant("u2")].map((answer) =>
    answer.then(() => "told", () => "lost")
  );
  fail(new Error("The journal is gone"));
  assert.deepEqual([await issued, await refused], ["lost", "lost"]);
});

Deno.test("an unmatched event costs nothing", async () => {
  using runtime = await startRuntime(new MemoryStore(), { operationCap: 1 });
  await runtime.subscribe("u");
  const track = { event: "y", metadata: null, size: sizeOf(), costCents: null };
  for (let times = 0; times < 3; times++) {
    assert.equal((await runtime.call("u", "track", track, { isCapped: true })).ok, true);
  }
  assert.equal(runtime.term.budget.used("ws_1", "live"), 0);
});

Deno.test("a dropped cell leaves nothing in memory, and other work of the event loop runs meanwhile", async () => {
  using _limits = changedLimits(RUNTIME_LIMITS, { stepMs: 0 });
  const store = new MemoryStore();
  const { term, call, subscribe } = await startRuntime(store);
  await subscribe("u");
  await call("u", "track", { event: "x.make", metadata: null, size: sizeOf({ count: 1 }), costCents: null });
  await term.keepAnswer({ realm: 1, key: "k", requestHash: "h", status: 200, body: "{}" }, null);
  await term.spend("ws_1", amountOf(1));
  await term.spend("ws_2", amountOf(1));
  await term.flush();
  assert.deepEqual([term.idempotency.sizeOf(1), term.directory.sizeOf(1), term.budget.sizeOf("ws_1")], [
    1,
    1,
    2,
  ]);
  let turns = 0;
  setImmediate(() => turns++);
  await term.drop({ workspaces: new Set(["ws_1"]), realms: new Set([1]) });
  assert.ok(turns > 0);
  assert.deepEqual([term.idempotency.sizeOf(1), term.directory.sizeOf(1), term.budget.sizeOf("ws_1")], [
    0,
    0,
    0,
  ]);
  assert.equal(term.budget.aiSpent("ws_2"), amountOf(1));
  term.fail(new Error("end"));
});
