// The workload and its driver, tried on the model itself behind made-up ids: the same seed gives the
// same stream, every interesting outcome is reached, and a system that errs is found out.

import assert from "node:assert/strict";
import { catalogs } from "./catalogs.ts";
import type { CatalogDocument, ModelReply, ModelRequest } from "./document.ts";
import { drive } from "./drive.ts";
import { compare, Model } from "./model.ts";

/** A model dressed up as a system: its placeholders become ids of the real form and back. */
function shadow(catalog: CatalogDocument): (request: ModelRequest, nowMs: number) => ModelReply {
  const model = new Model(catalog);
  return (request, nowMs) => {
    const text = JSON.stringify(request).replaceAll(/"(rsv|evt|sub)_(\d+)"/g, '"«$1_ $2»"');
    const reply = JSON.stringify(model.handle(JSON.parse(text), nowMs));
    return JSON.parse(reply.replaceAll(/«(\w*) (\d+)»/g, "$1$2"));
  };
}

Deno.test("a workload over each catalog meets every outcome, and equals itself by seed", async () => {
  const seen = new Set<string>();
  for (const [name, catalog] of Object.entries(catalogs)) {
    for (const seed of [1, 2]) {
      const run = () => drive({ catalog, seed, steps: 2500, invalid: true, send: shadow(catalog) });
      const outcomes = await run();
      assert.deepEqual(await run(), outcomes, name);
      for (const outcome of outcomes.keys()) seen.add(outcome);
    }
  }
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
  ];
  assert.deepEqual(wanted.filter((outcome) => !seen.has(outcome)), []);
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
