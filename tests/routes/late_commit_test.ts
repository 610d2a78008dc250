// A late commit charges once, also while the row it settles is on its way to the tables.

import assert from "node:assert/strict";
import { startTestService } from "../support/test_service.ts";

const CATALOG = {
  plans: [{
    id: "plan_a",
    name: "A",
    rank: 1,
    period: { type: "monthly", anchor: "calendar" },
    limits: [{ id: "lg_a", label: "Images", unit: "count", quota: 5, matches: [{ event: "image.*" }] }],
  }],
};

Deno.test("a lapsed hold is recharged once, however soon the commit is repeated", async () => {
  const service = await startTestService();
  try {
    const app = await service.newApp(CATALOG);
    await app.call("POST", "/subscriptions", { userId: "u", planId: "plan_a" });
    const reserve = { userId: "u", event: "image.x", count: 2, ttlSeconds: 10 };
    const { reservationId } = (await app.call("POST", "/reserve", reserve)).body.data;
    service.clock.advance(20_000);
    assert.equal((await app.call("GET", "/usage?userId=u")).body.data.counters[0].count, 0);
    // The tables now have the lapsed hold; the commit's own row is on its way when the second one comes.
    await service.serving().term.flush();
    const first = await app.call("POST", "/commit", { reservationId });
    const second = await app.call("POST", "/commit", { reservationId });
    assert.deepEqual([first.status, first.body.data.recharged], [200, true]);
    assert.deepEqual([second.status, second.body.error.code], [409, "reservation_not_pending"]);
    assert.equal((await app.call("GET", "/usage?userId=u")).body.data.counters[0].count, 2);
    assert.equal((await app.call("GET", "/events")).body.data.events.length, 1);
  } finally {
    await service.close();
  }
});
