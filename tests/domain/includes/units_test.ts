// What plans include where a catalog takes a pack out and puts it back in another unit: it is another pack. Amounts in one
// unit mean nothing in the other, so each unit has its own balance, and that of an earlier unit is not forgotten.

import assert from "node:assert/strict";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { numberOf } from "../../../src/domain/values/amount.ts";
import { packOf, planOf, Scene, type Size } from "../scene.ts";

const DAY_MS = 86_400_000;

/** A catalog whose pack "a" is in a unit; without one no plan includes it. */
function documentOf(unit: Unit | null) {
  const include = (quantity: number) =>
    unit === null ? [] : [{ packId: "a", quantity, rollover: { max: 50, periods: 1 } }];
  return {
    plans: [
      planOf("free", {}, { rank: 0 }),
      planOf("pro", {}, { includes: include(100) }),
      planOf("max", {}, { includes: include(300) }),
      planOf("days", {}, { period: { type: "daily", anchor: "calendar" }, includes: include(10) }),
    ],
    packs: unit === null ? [] : [packOf("a", { unit })],
  };
}

function sceneOf(key = 7, beside?: Scene): Scene {
  const { plans, packs } = documentOf("count");
  const more = beside === undefined ? {} : { beside };
  return new Scene(plans, "2026-03-10T12:00:00.000Z", packs, {
    isCompared: false,
    key,
    id: `u${key}`,
    ...more,
  });
}

/** Takes the pack out of the catalog, and puts it back in another unit. The user is seen in between, or is not. */
function putBack(scene: Scene, unit: Unit, isSeen = true): void {
  for (const each of [null, unit]) {
    scene.catalog = compileCatalog(documentOf(each), scene.catalog.version + 1);
    if (isSeen) scene.ask("settle", {});
  }
}

/** The balances that can be listed: "remaining/initial unit", rollovers with their origin. */
function shown(scene: Scene): string[] {
  return scene.ask("credits", { event: null }).balances.map(({ row }) =>
    `${numberOf(row.remaining)}/${numberOf(row.initial)} ${row.unit}${
      row.origin === "plan" ? "" : " rollover"
    }`
  ).sort();
}

const TOKENS: Size = { count: 0, inputTokens: 70 };

Deno.test("a pack that comes back in another unit is another pack, and each unit keeps its use in the window", () => {
  for (const isSeen of [true, false]) {
    const scene = sceneOf();
    scene.subscribe("pro");
    scene.track(100);
    putBack(scene, "tokens", isSeen);
    assert.deepEqual(shown(scene), ["0/100 count", "100/100 tokens"]);
    scene.track(TOKENS);
    putBack(scene, "count", isSeen);
    assert.deepEqual(shown(scene), ["0/100 count", "30/100 tokens"]);
    const refs = [...scene.state.balances.values()].map(({ ownRef }) => ownRef);
    assert.equal(new Set(refs).size, refs.length, "one balance for a window and unit");
    scene.at("2026-04-02T00:00:00.000Z");
    assert.deepEqual(shown(scene), ["100/100 count"]);
  }
});

Deno.test("a plan takes along no use of another unit", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  scene.track(80);
  const hold = scene.hold(5, { ttlMs: 9 * DAY_MS });
  scene.subscribe("days");
  assert.deepEqual(shown(scene), ["0/10 count"]);
  putBack(scene, "tokens");
  assert.deepEqual(shown(scene), ["0/10 count", "10/10 tokens"]);
  scene.subscribe("max");
  assert.deepEqual(shown(scene), ["300/300 tokens"]);
  scene.release(hold);
  assert.deepEqual(shown(scene), ["300/300 tokens"]);
  scene.track(TOKENS);
  scene.subscribe("pro");
  assert.deepEqual(shown(scene), ["30/100 tokens"]);
  putBack(scene, "count");
  assert.deepEqual(shown(scene), ["20/100 count", "30/100 tokens"]);
});

Deno.test("rollovers of another unit have a maximum of their own, and get nothing back once the pack has another unit", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  const hold = scene.hold(80, { ttlMs: 60 * DAY_MS });
  scene.at("2026-04-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["100/100 count", "20/20 count rollover"]);
  scene.track(120);
  putBack(scene, "tokens");
  scene.release(hold);
  assert.deepEqual(shown(scene), ["0/100 count", "0/20 count rollover", "100/100 tokens"]);
  scene.track(TOKENS);
  scene.at("2026-05-02T00:00:00.000Z");
  assert.deepEqual(shown(scene), ["100/100 tokens", "30/30 tokens rollover"]);
});

Deno.test("a merge adds use only to the balance of its unit", () => {
  const into = sceneOf();
  const alias = sceneOf(8, into);
  alias.subscribe("pro");
  alias.track(40);
  putBack(into, "tokens");
  into.subscribe("pro");
  into.track(TOKENS);
  alias.catalog = into.catalog;
  alias.mergeInto(into);
  assert.deepEqual(shown(into), ["30/100 tokens"]);
  putBack(into, "count");
  assert.deepEqual(shown(into), ["30/100 tokens", "60/100 count"]);
});
