// Times that a catalog leads to: settings in fractions and packs that expire past all years make times that the tables
// and the wire can hold. One that they cannot would stop every drain, and with it the service.

import assert from "node:assert/strict";
import { dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const MATCHES = [{ event: "*" }];

function catalogOf(settings: Record<string, unknown>, pack: Record<string, unknown> = {}) {
  return {
    settings,
    plans: [{
      id: "plan_a",
      name: "A",
      rank: 1,
      period: { type: "monthly", anchor: "calendar" },
      limits: [{ id: "lg_a", label: "A", unit: "count", quota: 10, matches: MATCHES }],
    }],
    packs: [{ id: "cpk_a", name: "A", kind: "generic", items: [], unit: "count", matches: MATCHES, ...pack }],
  };
}

Deno.test("holds and retention of a fraction of a millisecond are kept as whole ones", async () => {
  const settings = {
    promptLogging: true,
    reservationTtlSeconds: 10.00051,
    promptLogRetentionDays: 99.999999,
  };
  const app = await service.newApp(catalogOf(settings));
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_a" }));
  const hold = await dataOf(app.call("POST", "/reserve", { userId: "u", event: "x", prompt: "p" }));
  assert.equal(Date.parse(hold.expiresAt) - service.clock.now(), 10_001);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "x", prompt: "p" }));
  assert.equal((await dataOf(app.call("GET", "/events"))).events.length, 1);
  await dataOf(service.admin("POST", "/sweep"));
  assert.equal((await dataOf(app.call("GET", "/usage?userId=u"))).counters[0].count, 2);
});

Deno.test("credits of a pack that expires past the year 9999 expire at its end", async () => {
  for (const defaultExpiryDays of [1e7, 1e12, 1e300]) {
    const app = await service.newApp(catalogOf({}, { defaultExpiryDays }));
    const body = { userId: "u", packId: "cpk_a", quantity: 5 };
    const { expiresAt } = await dataOf(app.call("POST", "/credits/grant", body));
    assert.equal(expiresAt, "9999-12-31T23:59:59.999Z");
    const { credits } = await dataOf(app.call("GET", "/credits?userId=u&includeExpired=true"));
    assert.deepEqual(credits.map((row: { remaining: number }) => row.remaining), [5]);
  }
});
