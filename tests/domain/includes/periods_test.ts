// What plans include where a catalog changes the period, or a plan change leaves a window: each window has one balance, and
// open holds follow to the one that has their use.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/values/amount.ts";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import type { Period } from "../../../src/domain/values/period.ts";
import { packOf, planOf, Scene } from "../scene.ts";

const DAY_S = 86_400;
const MONTHLY = { type: "monthly", anchor: "calendar" } as const;
const DAILY = { type: "daily", anchor: "calendar" } as const;

const PACKS = [packOf("a")];
const plansOf = (period: Period, quantity = 10) => [
  planOf("day", { g: 0 }, {
    includes: [{ packId: "a", quantity, period, rollover: { max: 15, periods: 2 } }],
  }),
  planOf("pro", { g: 0 }, { includes: [{ packId: "a", quantity: 100 }] }),
];

const sceneOf = () => new Scene(plansOf(DAILY), "2026-03-10T12:00:00.000Z", PACKS, { isCompared: false });

/** The balances of windows that can be spent, without rollovers: what is left, of how much, and until when. */
function shown(scene: Scene): string[] {
  return scene.ask("credits", { event: null }).balances.filter(({ row }) => row.origin === "plan").map((
    { row },
  ) =>
    `${numberOf(row.remaining)}/${numberOf(row.initial)} ${
      new Date(row.expiresAt ?? 0).toISOString().slice(5, 10)
    }`
  );
}

/** Puts another period of what the plan "day" includes in force. */
function putPeriod(scene: Scene, period: Period, quantity?: number): void {
  const plans = plansOf(period, quantity);
  scene.catalog = compileCatalog({ plans, packs: PACKS }, scene.catalog.version + 1);
}

Deno.test("a hold that lapsed after the catalog changed the period gives back to the window that it followed to", () => {
  const scene = sceneOf();
  scene.subscribe("day");
  scene.hold(4);
  putPeriod(scene, MONTHLY);
  scene.wait(DAY_S);
  assert.deepEqual(shown(scene), ["10/10 04-01"]);
  assert.ok([...scene.state.balances.values()].every(({ held }) => held === 0n));
});

Deno.test("a longer period that begins with a window that has ended has a balance of its own", () => {
  for (const isSeen of [false, true]) {
    const scene = sceneOf().at("2026-04-01T05:00:00.000Z");
    scene.subscribe("day");
    scene.track(6);
    if (isSeen) scene.at("2026-04-03T05:00:00.000Z").ask("credits", { event: null });
    else scene.at("2026-04-02T05:00:00.000Z");
    putPeriod(scene, MONTHLY);
    scene.track(7);
    const refs = [...scene.state.balances.values()].map(({ ownRef }) => ownRef);
    assert.equal(new Set(refs).size, refs.length, "one balance a window");
    assert.equal(shown(scene).length, 1);
    assert.ok(shown(scene)[0]?.endsWith("/10 05-01"));
  }
});

Deno.test("what a window was given stays until its end, also where no plan of the catalog includes anything any more", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  scene.track(30);
  scene.catalog = compileCatalog({ plans: [planOf("pro", { g: 0 })], packs: PACKS }, 2);
  assert.deepEqual(shown(scene), ["70/100 04-01"]);
  scene.at("2026-04-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), []);
});

Deno.test("a pack that takes the place of another one in a plan goes on with its use, and no less than was given", () => {
  for (const [amount, want] of [[50, "70/100"], [100, "70/100"], [300, "270/300"]] as const) {
    const packs = [...PACKS, packOf("b")];
    const scene = sceneOf();
    scene.subscribe("pro");
    scene.track(30);
    for (const [packId, quantity] of [["b", amount], ["a", 100]] as const) {
      const plans = [planOf("pro", { g: 0 }, { includes: [{ packId, quantity }] })];
      scene.catalog = compileCatalog({ plans, packs }, scene.catalog.version + 1);
      assert.deepEqual(shown(scene), [`${want} 04-01`], `${amount} of b, then ${packId}`);
    }
  }
});

Deno.test("a hold corrects no balance that it left once the window of that has ended", () => {
  const scene = sceneOf();
  scene.subscribe("day");
  const hold = scene.hold(4, { ttlMs: 5 * DAY_S * 1000 });
  scene.subscribe("pro");
  scene.wait(2 * DAY_S);
  scene.release(hold);
  const amounts = [...scene.state.balances.values()].map(({ remaining }) => numberOf(remaining));
  assert.deepEqual(amounts, [6, 100]);
});

Deno.test("a new catalog gives the same credits, whether or not what lapsed before it was settled in time", () => {
  const without = [planOf("day", { g: 0 })];
  for (const [before, after] of [[without, DAILY], [without, MONTHLY], [plansOf(DAILY), MONTHLY]] as const) {
    const [settled, notSettled] = [true, false].map((isSettled) => {
      const scene = sceneOf().at("2026-03-31T12:00:00.000Z");
      scene.catalog = compileCatalog({ plans: before, packs: PACKS }, 2);
      scene.subscribe("day");
      scene.fund("a", 5);
      scene.hold(4);
      if (isSettled) scene.at("2026-03-31T12:10:00.000Z").ask("settle", {});
      putPeriod(scene.at("2026-04-01T12:00:00.000Z"), after, 14);
      const { balances } = scene.ask("credits", { event: null });
      return balances.map(({ row }) => [row.origin, numberOf(row.remaining), row.expiresAt]);
    });
    assert.deepEqual(notSettled, settled);
  }
});
