// The windows that passed since the last look: what is left of them does not depend on how long nobody looked, and neither
// does the work.

import assert from "node:assert/strict";
import { packOf, planOf, Scene } from "../scene.ts";

/** A plan that includes ten in each window. Up to 25 roll over for three windows. */
const rolling = (type: "hourly" | "monthly", onRead = () => {}) => {
  const period = {
    get type() {
      onRead();
      return type;
    },
    anchor: "subscription_start",
  } as const;
  return planOf(type, { g: 0 }, {
    includes: [{ packId: "a", quantity: 10, period, rollover: { max: 25, periods: 3 } }],
  });
};

const sceneOf = (plan: ReturnType<typeof planOf>) =>
  new Scene([plan], "2026-01-31T12:00:00.000Z", [packOf("a")], { isCompared: false });

Deno.test("hours of a century and months of eight pass in one look, which writes what is live", () => {
  for (const [type, end] of [["hourly", 2126], ["monthly", 2826]] as const) {
    let reads = 0;
    const scene = sceneOf(rolling(type, () => reads += 1));
    scene.subscribe(type);
    const from = scene.changes.length;
    scene.at(`${end}-03-10T13:00:00.000Z`);
    assert.equal(scene.ask("credits", { event: null }).balances.length, 4);
    assert.ok(scene.changes.length - from < 20);
    assert.ok(reads < 500, `${type}: ${reads} looks at the period`);
  }
});

Deno.test("however long nobody looked, what rolled over is what looks in between would have left", () => {
  const hours = 20_003;
  const [once, often] = [hours, 1_000].map((step) => {
    const scene = sceneOf(rolling("hourly"));
    scene.subscribe("hourly");
    scene.track(3);
    const start = scene.now;
    for (let hour = step; hour <= hours; hour += step) scene.wait(step * 3600).ask("settle", {});
    scene.now = start + hours * 3_600_000;
    return scene.ask("credits", { event: null }).balances.map(({ row }) =>
      [row.origin, row.remaining, row.grantedAt, row.expiresAt, row.ownRef].join(" ")
    );
  });
  assert.deepEqual(once, often);
});
