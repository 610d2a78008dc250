// Hand-computed scenes for what can be read of credits: lists, usage, can-use and the pages of the ledger;
// the sandbox cap; and that the ledger of a whole workload adds up.

import assert from "node:assert/strict";
import { catalogs } from "./catalogs.ts";
import { fromNumber } from "./decimal.ts";
import type { ModelOptions, Pack } from "./document.ts";
import { Model } from "./model.ts";
import { catalogOf, item, limit, pack, Scene } from "./support.ts";
import { Workload } from "./workload.ts";

const X = { event: "x.make" };
const SIZED = [{ event: "x.make", metadata: { size: "5" } }, { event: "z" }];
const PACKS: Pack[] = [
  pack("wallet"),
  pack("narrow", { kind: "per_type", items: [item("a", 4, { matches: SIZED })], defaultExpiryDays: 1 }),
  pack("talk", { unit: "tokens", priority: 9, matches: [{ event: "chat" }] }),
];

function scene(options: ModelOptions = {}): Scene {
  const catalog = { ...catalogOf({ id: "plan_a", limits: [limit("lg", 10)] }), packs: PACKS };
  return new Scene(catalog, undefined, options);
}

Deno.test("a balance shows its grant, and default priorities are 100 for per_type and 0 for generic", () => {
  const at = scene();
  const [wallet] = at.grant("wallet", { quantity: 2.5, notes: "hello" });
  const [narrow] = at.wait(60).grant("narrow");
  assert.deepEqual(at.data("credits").credits, [
    {
      balanceId: narrow,
      packId: "narrow",
      packName: "Pack narrow",
      packItemId: "a",
      kind: "per_type",
      unit: "count",
      remaining: 4,
      initial: 4,
      grantedAt: "2026-03-10T12:01:00.000Z",
      expiresAt: "2026-03-11T12:01:00.000Z",
      status: "active",
      matches: SIZED,
      priority: 100,
    },
    {
      balanceId: wallet,
      packId: "wallet",
      packName: "Pack wallet",
      packItemId: null,
      kind: "generic",
      unit: "count",
      remaining: 2.5,
      initial: 2.5,
      grantedAt: "2026-03-10T12:00:00.000Z",
      expiresAt: null,
      status: "active",
      matches: [{ event: "x.*" }],
      priority: 0,
    },
  ]);
  assert.equal(at.data("ledger", { balanceId: wallet }).entries[0].notes, "hello");
});

Deno.test("lists show active and depleted ones, filter by names alone, and are in usage and users too", () => {
  const at = scene();
  const [used] = at.grant("wallet", { quantity: 1 });
  const [revoked] = at.grant("wallet", { quantity: 2 });
  const [expiring] = at.grant("narrow");
  const [talk] = at.grant("talk", { quantity: 8 });
  at.hold({ ...X });
  at.data("revoke", { balanceId: revoked });
  at.wait(24 * 60 * 60 - 1);
  const ids = (input = {}) =>
    at.data("credits", input).credits.map((each: { balanceId: string }) => each.balanceId);
  assert.deepEqual(ids(), [expiring, talk, used]);
  assert.deepEqual(ids({ event: "x.make" }), [expiring, used]);
  assert.deepEqual(ids({ event: "x.*" }), [used]);
  assert.deepEqual(ids({ event: "*" }), []);
  at.wait(1);
  assert.deepEqual(ids(), [talk, used]);
  assert.deepEqual(ids({ includeExpired: true }), [expiring, talk, used, revoked]);
  assert.deepEqual(ids({ includeExpired: "true", event: "z" }), [expiring]);
  assert.deepEqual(ids({ includeExpired: "false" }), [talk, used]);
  assert.deepEqual(ids({ userId: "v" }), []);
  assert.equal(at.ask("credits", { includeExpired: "yes" }).code, "invalid_request");
  assert.deepEqual(at.data("usage").credits, at.data("credits").credits);
  assert.deepEqual(at.data("usage", { event: "x.a" }).credits, at.data("credits", { event: "x.a" }).credits);
  assert.deepEqual(at.data("users").credits, at.data("credits").credits);
});

Deno.test("can-use says what credits of each group's unit could add, by pack in consumption order", () => {
  const at = scene();
  at.data("subscribe", { planId: "plan_a" });
  at.grant("wallet", { quantity: 1 });
  at.grant("narrow");
  at.grant("wallet", { quantity: 2, expiresAt: "2026-04-01T00:00:00.000Z" });
  at.grant("talk", { quantity: 8 });
  const offer = (input = {}) => {
    const { allowed, details } = at.data("canUse", { ...X, count: 15, ...input });
    const { creditAvailable, creditPacks } = details[0];
    return [allowed, creditAvailable, creditPacks];
  };
  const wallet = { packId: "wallet", packName: "Pack wallet", available: 3 };
  const narrow = { packId: "narrow", packName: "Pack narrow", available: 4 };
  assert.deepEqual(offer(), [false, 3, [wallet]]);
  assert.deepEqual(offer({ metadata: { size: 5 } }), [true, 7, [narrow, wallet]]);
});

Deno.test("the ledger is newest first, in pages that new rows do not move", () => {
  const at = scene();
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
  assert.deepEqual(at.data("ledger", { userId: "nobody" }), { entries: [], nextCursor: null });
  assert.equal(at.ask("ledger", { userId: "v", balanceId: first }).code, "credit_balance_not_found");
  assert.equal(at.ask("ledger", { balanceId: "crb_none" }).status, 404);
  assert.equal(at.ask("revoke", { balanceId: "crb_none" }).code, "credit_balance_not_found");
  assert.equal(at.ask("ledger", { cursor: "none" }).code, "invalid_request");
  assert.equal(at.ask("ledger", { limit: 501 }).code, "invalid_request");
});

Deno.test("a cursor is learnt as it is shown, however often one is shown", () => {
  const at = scene();
  for (const quantity of [1, 2, 3]) at.grant("wallet", { quantity });
  for (const nextCursor of ["page", "page", "other"]) {
    const request = { op: "ledger", input: { userId: "u", limit: 1 } } as const;
    const predicted = at.model.handle(request, at.now, { status: 200, data: { nextCursor } });
    assert.equal(predicted.data?.["nextCursor"], nextCursor);
    assert.equal(at.data("ledger", { limit: 1, cursor: nextCursor }).entries[0].delta, 2);
  }
});

Deno.test("test mode issues no more balances than its cap, in the app as a whole and ever", () => {
  const at = scene({ mode: "test", testCreditBalanceCap: 2 });
  at.data("revoke", { balanceId: at.grant("wallet", { quantity: 1, userId: "v" })[0] });
  at.grant("narrow", { externalRef: "r" });
  const reply = at.ask("grant", { packId: "narrow" });
  assert.deepEqual([reply.status, reply.code], [429, "test_quota_exceeded"]);
  const late = { packId: "narrow", expiresAt: "2001-01-01T00:00:00.000Z" };
  assert.equal(at.ask("grant", late).code, "invalid_request");
  at.grant("narrow", { externalRef: "r" });
  const live = scene({ mode: "live", testCreditBalanceCap: 0 });
  assert.equal(live.grant("wallet", { quantity: 1 }).length, 1);
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
