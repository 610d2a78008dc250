// The model's own mechanics: its decimals, invalid requests, caps, pages, and what it learns from answers. The rules of
// the service are in the scenes of `tests/domain`, which run against the model too.

import assert from "node:assert/strict";
import { catalogs } from "./catalogs.ts";
import { fromNumber, multiply, toNumber } from "./decimal.ts";
import type { ModelOptions } from "./document.ts";
import { Model } from "./model.ts";
import { catalogOf, limit, pack, Scene } from "./support.ts";
import { Workload } from "./workload.ts";

const X = { event: "x.make" };
const CATALOG = {
  ...catalogOf({ id: "plan_a", limits: [limit("lg", 10)] }),
  packs: [
    pack("wallet"),
    pack("narrow", { matches: [{ event: "x.make", metadata: { size: "5" } }, { event: "z" }] }),
  ],
};

/** A user on a plan of 10 counts of `x.*`. */
function subscribed(options: ModelOptions = {}): Scene {
  const scene = new Scene(CATALOG, undefined, options);
  scene.data("subscribe", { planId: "plan_a" });
  return scene;
}

Deno.test("decimals keep six places exactly and round the rest half up by magnitude", () => {
  assert.equal(fromNumber(0.1), 100_000n);
  assert.equal(fromNumber(1e-7), 0n);
  assert.equal(fromNumber(5e-7), 1n);
  assert.equal(fromNumber(-5e-7), -1n);
  assert.equal(fromNumber(1e12), 1_000_000_000_000_000_000n);
  assert.equal(fromNumber(1.0000015), 1_000_002n);
  assert.equal(multiply(fromNumber(0.333333), fromNumber(1.5)), 500_000n);
  assert.equal(toNumber(-1_500_000n), -1.5);
  assert.equal(toNumber(999_999_999_999_999_999n), 999999999999.999999);
});

Deno.test("extra and actual of one unit, and costCents with cents, are invalid", () => {
  const scene = subscribed();
  const reservationId = scene.hold(X);
  for (
    const wrong of [
      { extra: { count: 1 }, actual: { count: 1 } },
      { extra: { outputTokens: 1 }, actual: { tokens: 1 } },
      { extra: { tokens: 1, outputTokens: 1 } },
      { costCents: 1, extra: { outputCostCents: 1 } },
      { costCents: 1, actual: { cents: 1 } },
    ]
  ) assert.equal(scene.ask("commit", { reservationId, ...wrong }).code, "invalid_request");
  assert.equal(scene.ask("commit", { reservationId, extra: { count: null }, costCents: null }).status, 200);
});

Deno.test("a grant's quantity and source are checked, and an amount is kept to six places", () => {
  const scene = subscribed();
  const code = (input: Record<string, unknown>) => scene.ask("grant", { packId: "wallet", ...input }).code;
  for (const quantity of [undefined, null, 0, -1, 0.0000004]) {
    assert.equal(code({ quantity }), "invalid_quantity");
  }
  for (const quantity of ["1", 1e12 + 1]) assert.equal(code({ quantity }), "invalid_request");
  assert.equal(code({ quantity: 1, source: "gift" }), "invalid_request");
  assert.equal(scene.data("grant", { packId: "wallet", quantity: 0.0000005 }).remaining, 0.000001);
});

Deno.test("at the operation cap track and reserve are refused, commit and release work", () => {
  const scene = new Scene(CATALOG, "2026-03-31T23:00:00.000Z", { operationCap: 1 });
  scene.data("subscribe", { planId: "plan_a" });
  const [first, second] = [scene.hold(X), scene.hold(X)];
  scene.data("commit", { reservationId: first });
  assert.equal(scene.ask("reserve", X).code, "workspace_limit_reached");
  assert.equal(scene.ask("track", X).status, 429);
  assert.equal(scene.data("canUse", X).allowed, true);
  scene.data("commit", { reservationId: second });
  assert.equal(scene.model.operationsUsed(scene.now), 2);
  scene.at("2026-04-01T00:00:00.000Z").hold(X);
  const test = new Scene(CATALOG, undefined, { operationCap: 0, mode: "test" });
  assert.equal(test.ask("track", X).code, "test_quota_exceeded");
});

Deno.test("test mode issues no more balances than its cap, to all users and ever", () => {
  const scene = subscribed({ mode: "test", testCreditBalanceCap: 2 });
  const one = { packId: "wallet", quantity: 1 };
  scene.data("revoke", { balanceId: scene.grant("wallet", { quantity: 1, userId: "v" })[0] });
  scene.data("grant", { ...one, externalRef: "r" });
  const reply = scene.ask("grant", one);
  assert.deepEqual([reply.status, reply.code], [429, "test_quota_exceeded"]);
  assert.equal(scene.ask("grant", { ...one, expiresAt: "2001-01-01T00:00:00.000Z" }).code, "invalid_request");
  scene.data("grant", { ...one, externalRef: "r" });
  assert.equal(
    subscribed({ mode: "live", testCreditBalanceCap: 0 }).grant("wallet", { quantity: 1 }).length,
    1,
  );
});

Deno.test("the feed shows newest first, filters, and pages", () => {
  const scene = subscribed();
  for (const event of ["x.a", "x.b", "x.a"]) scene.data("track", { event });
  const types = (input: Record<string, unknown>) =>
    scene.data("events", input).events.map((row: { eventType: string }) => row.eventType);
  assert.deepEqual(types({}), ["x.a", "x.b", "x.a"]);
  assert.deepEqual(types({ limit: 1, offset: 1 }), ["x.b"]);
  assert.deepEqual(types({ eventType: "x.a", userId: "u" }), ["x.a", "x.a"]);
  assert.deepEqual(types({ userId: "U" }), []);
  assert.equal(scene.ask("event", { eventId: "evt_none" }).code, "not_found");
});

Deno.test("credits take includeExpired as a text or not, beside an event", () => {
  const scene = subscribed();
  const [used, revoked] = [1, 2].map((quantity) => scene.grant("wallet", { quantity })[0]);
  const [expired] = scene.grant("narrow", { quantity: 4, expiresAt: "2026-03-11T00:00:00.000Z" });
  scene.data("revoke", { balanceId: revoked });
  scene.wait(86_400);
  const ids = (input = {}) =>
    scene.data("credits", input).credits.map((each: { balanceId: string }) => each.balanceId);
  assert.deepEqual(ids({ includeExpired: "false" }), [used]);
  assert.deepEqual(ids({ includeExpired: true }), [expired, used, revoked]);
  assert.deepEqual(ids({ includeExpired: "true", event: "z" }), [expired]);
  assert.equal(scene.ask("credits", { includeExpired: "yes" }).code, "invalid_request");
});

Deno.test("the ledger is newest first, in pages that new rows do not move", () => {
  const at = subscribed();
  const [first] = at.grant("wallet", { quantity: 1 });
  const [second] = at.grant("wallet", { quantity: 2 });
  at.grant("wallet", { quantity: 3, userId: "v" });
  at.grant("wallet", { quantity: 4 });
  const page = at.data("ledger", { limit: 2 });
  assert.deepEqual(page.entries.map((row: { delta: number }) => row.delta), [4, 2]);
  at.wait(1).grant("wallet", { quantity: 5 });
  const last = at.data("ledger", { limit: 2, cursor: page.nextCursor });
  assert.deepEqual(last.entries.map((row: { delta: number }) => row.delta), [1]);
  assert.deepEqual([last.nextCursor, at.data("ledger", { limit: 4 }).nextCursor], [null, null]);
  assert.deepEqual(at.ledger({ balanceId: second }), ["grant 2"]);
  assert.deepEqual(at.data("ledger", { userId: "unknown" }), { entries: [], nextCursor: null });
  assert.equal(at.ask("ledger", { userId: "v", balanceId: first }).code, "credit_balance_not_found");
  assert.equal(at.ask("ledger", { balanceId: "crb_none" }).status, 404);
  assert.equal(at.ask("revoke", { balanceId: "crb_none" }).code, "credit_balance_not_found");
  assert.equal(at.ask("ledger", { cursor: "none" }).code, "invalid_request");
  assert.equal(at.ask("ledger", { limit: 501 }).code, "invalid_request");
});

Deno.test("a cursor is learnt from each answer, also when the same one comes again", () => {
  const at = subscribed();
  for (const quantity of [1, 2, 3]) at.grant("wallet", { quantity });
  for (const nextCursor of ["page", "page", "other"]) {
    const request = { op: "ledger", input: { userId: "u", limit: 1 } } as const;
    const predicted = at.model.handle(request, at.now, { status: 200, data: { nextCursor } });
    assert.equal(predicted.data?.["nextCursor"], nextCursor);
    assert.equal(at.data("ledger", { limit: 1, cursor: nextCursor }).entries[0].delta, 2);
  }
});

Deno.test("a threshold that no webhook listens for is not reported later, and a dry run reports nothing", () => {
  const at = subscribed();
  const plan = { ...CATALOG.plans[0]!, limits: [limit("lg", 10, { alerts: [50] })] };
  at.model.apply({ ...CATALOG, plans: [plan] });
  at.model.listen([{ webhookId: "hook", events: ["user.merged", "reservation.*"] }]);
  at.hold({ ...X, count: 6 });
  at.model.listen([{ webhookId: "hook", events: ["*"] }]);
  at.hold({ ...X, count: 1 });
  at.data("alias", { from: "v", to: "u", dryRun: true });
  assert.deepEqual(at.model.waiting("hook", "u", at.now), []);
});

Deno.test("over a workload each balance has left what its ledger adds up to", () => {
  for (const catalog of Object.values(catalogs)) {
    const model = new Model(catalog);
    const workload = new Workload({ catalog, seed: 7 });
    const users = new Set<string>();
    for (let index = 0; index < 2000; index++) {
      const step = workload.next();
      workload.observe(step, model.handle(step.request, workload.nowMs));
      const { userId } = step.request.input;
      if (typeof userId === "string") users.add(userId);
    }
    const ask = (op: "credits" | "ledger", input: Record<string, unknown>) =>
      model.handle({ op, input }, workload.nowMs).data ?? {};
    for (const userId of users) {
      const sums = new Map<string, bigint>();
      let input: Record<string, unknown> | null = { userId, limit: 100 };
      while (input) {
        const page = ask("ledger", input);
        for (const { balanceId, delta } of page["entries"] as { balanceId: string; delta: number }[]) {
          sums.set(balanceId, (sums.get(balanceId) ?? 0n) + fromNumber(delta));
        }
        const cursor = page["nextCursor"];
        input = cursor === null ? null : { ...input, cursor };
      }
      const { credits } = ask("credits", { userId, includeExpired: true });
      const shown = credits as { balanceId: string; remaining: number; status: string }[];
      assert.equal(shown.length, sums.size);
      for (const { balanceId, remaining, status } of shown) {
        assert.equal(fromNumber(remaining), sums.get(balanceId));
        assert.ok(remaining >= 0 && (status !== "revoked" || remaining === 0));
      }
    }
  }
});
