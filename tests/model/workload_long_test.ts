// The workload and its driver, tried on the model itself behind made-up ids: the same seed gives the
// same stream, every interesting outcome is reached, and a system that errs is found out.

import assert from "node:assert/strict";
import { catalogs } from "./catalogs.ts";
import type { ModelRequest } from "./document.ts";
import { drive, unmetBy } from "./drive.ts";
import { compare, Model } from "./model.ts";
import { seedsFrom } from "../support/depth.ts";
import { shadow } from "./shadow.ts";

Deno.test("a workload over each catalog meets every outcome, and equals itself by seed", async () => {
  const runs = function* () {
    for (const seed of [1, 2]) {
      for (const catalog of Object.values(catalogs)) {
        yield { catalog, seed, steps: 2500, invalid: true, send: shadow(catalog) };
      }
    }
  };
  const catalog = catalogs.tiny;
  const again = () => drive({ catalog, seed: 1, steps: 500, invalid: true, send: shadow(catalog) });
  assert.deepEqual(await again(), await again());
  const wanted = [
    "reserve no_subscription",
    "reserve unmatched_event",
    "reserve limit_reached",
    "reserve reservation_headroom_exceeded",
    "reserve invalid_request",
    "commit 200",
    "commit recharged",
    "commit overflow",
    "commit reservation_not_pending",
    "commit not_found",
    "commit invalid_request",
    "release 200",
    "release reservation_not_pending",
    "release not_found",
    "track matched",
    "track unmatched",
    "track no_subscription",
    "track limit_reached",
    "subscribe not_found",
    "subscribe invalid_request",
    "cancel already_canceled",
    "cancel not_found",
    "cancel invalid_request",
    "users created",
    "users plan_changed",
    "users canceled",
    "users reactivated",
    "users ended",
    "users promoted",
    "users duplicates",
    "event 200",
    "event not_found",
    "event matched_credits_only",
    "track matched_credits_only",
    "grant credit_pack_not_found",
    "grant invalid_quantity",
    "grant invalid_request",
    "extend 200",
    "extend credit_balance_not_found",
    "extend invalid_request",
    "revoke credit_balance_not_found",
    "revoke invalid_request",
    "credits active",
    "credits depleted",
    "credits expired",
    "credits revoked",
    "credits invalid_request",
    "ledger grant",
    "ledger admin_adjust",
    "ledger event_committed",
    "ledger reservation_held",
    "ledger reservation_released",
    "ledger reservation_expired",
    "ledger nextCursor",
    "ledger credit_balance_not_found",
    "ledger invalid_request",
    "users depleted",
    "usage active",
    "explain: metadata",
  ];
  assert.deepEqual(await unmetBy(runs(), wanted), []);
});

/** Cases of credits, with how often a run of 2,000 steps over all catalogs must meet each. */
const CREDIT_CASES = {
  "known externalRef": 5,
  "alone, no subscription": 20,
  "alone, no group matches": 40,
  "the whole need where the plan is full": 40,
  "plan and credits share a need": 15,
  "needs of several units": 2,
  "a need of 0 on a full plan": 2,
  "headroom leaves a fraction of a count": 1,
  "part of a balance taken": 100,
  "several balances drained for one need": 20,
  "a held balance settled exactly": 20,
  "extra paid by balances": 8,
  "extra from a balance of the hold": 4,
  "extra shared by plan and balances": 1,
  "extra past all balances": 3,
  "extra uncovered": 2,
  "recharge paid by balances": 30,
  "recharge shared by plan and balances": 2,
  "recharge past all balances": 5,
  "recharge uncovered": 4,
  "refund to a balance that is active": 40,
  "refund to a balance that is depleted": 10,
  "refund to a balance that is expired": 4,
  "refund to a balance that is revoked": 2,
  "revoke of a balance that is active": 15,
  "revoke of a balance that is depleted": 1,
  "revoke of a balance that is expired": 8,
  "revoke of a balance that is revoked": 2,
  "revoke of a partly used balance": 4,
  "revoke of a held balance": 3,
  "extension of a balance that is active": 4,
  "extension of a balance that is expired": 0.3,
};

Deno.test("workloads of 2,000 steps meet every case of credits, and meet them often", async () => {
  const met = new Map<string, number>();
  const seeds = seedsFrom(1, 1);
  for (const seed of seeds) {
    for (const catalog of Object.values(catalogs)) {
      const outcomes = await drive({ catalog, seed, steps: 2000, send: shadow(catalog) });
      for (const name of Object.keys(CREDIT_CASES)) {
        met.set(name, (met.get(name) ?? 0) + (outcomes.get(`credits: ${name}`) ?? 0));
      }
    }
  }
  for (const [name, times] of Object.entries(CREDIT_CASES)) {
    const found = met.get(name) ?? 0;
    assert.ok(found >= times * seeds.length, `"${name}" ${found} times of ${times * seeds.length}`);
  }
});

Deno.test("at the cap of test mode grants are refused, and known ones are not", async () => {
  const options = { mode: "test", testCreditBalanceCap: 20 } as const;
  const catalog = catalogs.tiny;
  const outcomes = await drive({
    catalog,
    seed: 4,
    steps: 1500,
    ...options,
    send: shadow(catalog, options),
  });
  assert.ok((outcomes.get("grant test_quota_exceeded") ?? 0) > 20);
  assert.ok((outcomes.get("credits: known externalRef") ?? 0) > 0);
});

Deno.test("a system that drains the wrong balance is found out", async () => {
  const honest = shadow(catalogs.tiny);
  const send = (request: ModelRequest, nowMs: number) => {
    const reply = honest(request, nowMs);
    const entries = (reply.data?.["entries"] ?? []) as { balanceId: string; reason: string }[];
    const [a, b] = entries.filter((each) => each.reason === "reservation_held");
    if (a && b) [a.balanceId, b.balanceId] = [b.balanceId, a.balanceId];
    return reply;
  };
  await assert.rejects(drive({ catalog: catalogs.tiny, seed: 3, steps: 2000, send }), /balanceId: expected/);
});

Deno.test("a system that counts a fraction too much is found out", async () => {
  const honest = shadow(catalogs.tiny);
  const send = (request: ModelRequest, nowMs: number) => {
    const reply = honest(request, nowMs);
    const counter = (reply.data?.["counters"] as { count: number }[] | undefined)?.[0];
    if (counter && counter.count > 1) counter.count += 0.000001;
    return reply;
  };
  await assert.rejects(drive({ catalog: catalogs.tiny, seed: 3, steps: 2000, send }), /step \d+.*differ/);
});

Deno.test("compare ignores the order of groups and messages, and says where replies differ", () => {
  const groups = [{ groupId: "a", current: 1 }, { groupId: "b", current: 2 }];
  const predicted = { status: 200, data: { reservationId: "«rsv_ 1»", groups } };
  const turned = {
    status: 200,
    data: { reservationId: "rsv_9", groups: groups.toReversed(), recharged: false },
  };
  assert.deepEqual(compare(predicted, turned), []);
  const wrong = { status: 200, data: { reservationId: "evt_9", groups: [groups[0]] } };
  assert.deepEqual(compare(predicted, wrong), [
    'data.reservationId: expected «rsv_ 1», observed "evt_9"',
    'data.groups[1]: expected {"groupId":"b","current":2}, observed nothing',
  ]);
  const refused = { status: 409, code: "reservation_not_pending" };
  const told = { ...refused, details: { hint: "any" } };
  assert.deepEqual(compare(refused, told), []);
});

Deno.test("an id that is handed out twice is found out", () => {
  const model = new Model(catalogs.ladder);
  const ask = (userId: string, observed: string) => {
    const reply = { status: 200, data: { eventId: observed } };
    const request = { op: "track" as const, input: { userId, event: "a.x" } };
    return model.handle(request, 0, reply).data?.["eventId"];
  };
  assert.equal(ask("u", "evt_1"), "evt_1");
  assert.match(String(ask("v", "evt_1")), /a fresh id/);
});
