// The page of what an app may want to sell: each catalog on it is applied, and does what its row promises.

import assert from "node:assert/strict";
import type { CatalogDocument } from "../../src/domain/catalog/catalog.ts";
import { checkCatalog } from "../../src/tenant/catalog/check.ts";
import { type Call, Scene, type Size, subscription } from "../domain/scene.ts";
import { TreeScene } from "../domain/tree_scene.ts";

const PAGE = new URL("../../src/tenant/catalog/SELLING.md", import.meta.url);
const START = "2026-03-10T12:00:00.000Z";
const HOUR = 3_600;
const DAY = 24 * HOUR;

/** Tracks calls one after another: "matched", "blocked" and so on. */
function tracks(scene: Scene, calls: readonly (Size | number)[], call: Call): string {
  return calls.map((size) => scene.track(size, call)).join(" ");
}

const subscribed = (document: CatalogDocument): Scene => {
  const { plans = [], packs = [], ...more } = document;
  const scene = new Scene(plans, START, packs, { ...more, isCompared: false });
  if (plans[0] !== undefined) scene.subscribe(plans[0].id);
  return scene;
};

const image = { event: "image.square" };
const chat = { event: "chat" };

/** What each section promises, by its heading. */
const PROMISES: Readonly<Record<string, (document: CatalogDocument) => void>> = {
  "Images by the day": (document) => {
    const scene = subscribed(document);
    assert.equal(tracks(scene, [1, 1, 1, 1], image), "matched matched matched blocked");
    assert.equal(scene.at("2026-03-11T00:00:00.000Z").track(1, image), "matched");
  },
  "Two periods in one plan": (document) => {
    const scene = subscribed(document);
    assert.equal(tracks(scene, [20, 1], image), "matched blocked");
    assert.equal(tracks(scene, [{ inputTokens: 50_000 }, { inputTokens: 1 }], chat), "matched blocked");
    scene.wait(DAY);
    assert.deepEqual([scene.track(20, image), scene.track({ inputTokens: 1 }, chat)], ["matched", "blocked"]);
  },
  "Five hours and a week": (document) => {
    const scene = subscribed(document).wait(HOUR);
    assert.equal(tracks(scene, [45, 1], chat), "matched blocked");
    assert.equal(scene.wait(5 * HOUR - 1).track(1, chat), "blocked");
    assert.equal(tracks(scene.wait(1), [45], chat), "matched");
    assert.equal(tracks(scene.wait(5 * HOUR), [10, 1], chat), "matched blocked", "the week is used up");
    assert.equal(scene.at("2026-03-17T12:00:00.000Z").track(45, chat), "matched");
  },
  "Messages to the best model": (document) => {
    const scene = subscribed(document);
    const best = { ...chat, metadata: { model: "best" } };
    assert.equal(tracks(scene, [80, 1], best), "matched blocked");
    assert.equal(scene.track(1, { ...chat, metadata: { model: "small" } }), "matched");
    assert.equal(scene.wait(3 * HOUR).track(1, best), "matched");
  },
  "Requests and tokens a minute": (document) => {
    const scene = subscribed(document);
    const calls = [30_000, 20_000, 5_000, 5_000, 1].map((inputTokens) => ({ inputTokens }));
    assert.equal(tracks(scene, calls, chat), "matched blocked matched matched blocked");
    assert.equal(scene.reason({ inputTokens: 1 }, chat), "rate_limit_reached");
    assert.equal(scene.wait(61).reason({ inputTokens: 40_000 }, chat), "ok");
  },
  "Renders at a time": (document) => {
    const scene = subscribed(document);
    const video = { event: "video" };
    const first = scene.hold({ quantity: 20, count: 1 }, video);
    scene.hold({ quantity: 20, count: 1 }, video);
    assert.equal(scene.reason({ quantity: 20, count: 1 }, video), "concurrency_limit_reached");
    scene.commit(first);
    assert.equal(scene.reason({ quantity: 20, count: 1 }, video), "ok");
  },
  "Fair use": (document) => {
    const scene = subscribed(document);
    assert.equal(tracks(scene, [5, 1], chat), "matched blocked");
    assert.equal(scene.wait(HOUR + 60).track(5, chat), "matched");
  },
  "A first taste": (document) => {
    const scene = subscribed(document);
    assert.equal(tracks(scene, [2, 1], { event: "song" }), "matched blocked");
    scene.wait(DAY).cancel();
    scene.subscribe("plan_taste");
    assert.equal(scene.track(1, { event: "song" }), "blocked");
  },
  "A year in advance": (document) => {
    const scene = subscribed(document);
    const page = { event: "page" };
    assert.equal(tracks(scene, [1200, 1], page), "matched blocked");
    assert.equal(scene.at("2027-03-10T11:59:59.999Z").track(1, page), "blocked");
    assert.equal(scene.at("2027-03-10T12:00:00.000Z").track(1200, page), "matched");
  },
  "Calls by the hour": (document) => {
    const scene = subscribed(document).wait(HOUR / 2);
    assert.equal(tracks(scene, [100, 1], chat), "matched blocked");
    assert.equal(scene.wait(HOUR / 2).track(100, chat), "matched");
  },
  "A budget in cents": (document) => {
    const scene = subscribed(document);
    const small = { ...chat, metadata: { model: "small" } };
    assert.equal(
      tracks(scene, [{ inputTokens: 4_000_000 }, { inputTokens: 1_000_001 }], small),
      "matched blocked",
    );
  },
  "A margin below the limit": (document) => {
    const scene = subscribed(document);
    assert.equal(scene.reason({ inputTokens: 901 }, chat), "reservation_headroom_exceeded");
    const held = scene.hold({ inputTokens: 900 }, chat);
    assert.deepEqual(scene.commit(held, { extra: { tokens: 100 } }).overflow, []);
  },
  "A pack beside the plan": (document) => {
    const scene = subscribed(document);
    scene.grant("cpk_images");
    assert.equal(tracks(scene, [3, 50, 1], image), "matched matched blocked");
  },
  "Prepaid only": (document) => {
    const scene = subscribed(document);
    scene.fund("cpk_wallet", 100);
    const cents = (cost: number) => ({ inputCostCents: cost });
    assert.equal(scene.reason(cents(60), chat), "ok");
    scene.commit(scene.hold(cents(60), chat));
    assert.equal(scene.reason(cents(60), chat), "no_subscription");
  },
  "A pool with a share for each": (document) => {
    const scene = new TreeScene(document.plans ?? []);
    scene.subscribe("acme", "plan_org");
    for (const user of ["ada", "bob"]) scene.put(user, "acme");
    assert.equal(scene.reserve("ada", 50).reasons, "");
    assert.match(scene.reserve("ada", 1).reasons, /^member_limit_reached/);
    assert.equal(scene.reserve("bob", 50).reasons, "");
  },
  "Options by plan": (document) => {
    const scene = subscribed(document);
    const values = () =>
      [...Object.entries(scene.ask("features", { key: null }).features)].map((
        [key, { value }],
      ) => [key, value]);
    assert.deepEqual(values(), [["export", true], ["models", ["small", "large"]]]);
    scene.cancel();
    assert.deepEqual(values(), [["export", false], ["models", ["small"]]]);
  },
  "Seats of a team": (document) => {
    const scene = subscribed(document);
    scene.subscribe("plan_team", { quantity: 3 });
    assert.equal(tracks(scene, [300, 1], { event: "doc" }), "matched blocked");
  },
  "A free trial": (document) => {
    const scene = new Scene(document.plans ?? [], START, [], { isCompared: false });
    scene.subscribe("plan_pro", { trial: true });
    const picture = { event: "image" };
    assert.equal(scene.wait(14 * DAY - 1).track(50, picture), "matched");
    assert.equal(tracks(scene.wait(1), [3, 1], picture), "matched blocked");
    assert.equal(scene.code("subscribe", subscription("plan_pro", { trial: true })), "trial_used");
  },
  "Credits with the plan": (document) => {
    const scene = subscribed(document);
    const picture = { event: "image" };
    assert.equal(tracks(scene, [100], picture), "matched");
    scene.at("2026-05-01T00:00:00.000Z");
    // 400 of March, 400 of April, and the 500 of May.
    assert.equal(tracks(scene, [1300, 1], picture), "matched blocked");
  },
  "An add-on": (document) => {
    const scene = subscribed(document);
    scene.pay("plan_more", "sub_more");
    assert.equal(tracks(scene, [600, 1], { event: "image" }), "matched blocked");
  },
  "A smaller plan from next month": (document) => {
    const scene = subscribed(document);
    const change = { plan: "plan_small", at: "period_end" } as const;
    assert.equal(scene.code("schedule", { provider: null, externalId: null, change }), "ok");
    assert.equal(tracks(scene, [100, 1], { event: "image" }), "matched blocked");
    scene.at("2026-04-01T00:00:00.000Z");
    assert.equal(tracks(scene, [10, 1], { event: "image" }), "matched blocked");
  },
};

const page = await Deno.readTextFile(PAGE);
const sections = page.split("\n## ").slice(1).map((text) => ({
  heading: text.slice(0, text.indexOf("\n")),
  json: /```json\n([\s\S]*?)```/.exec(text)?.[1] ?? "",
}));

Deno.test("each row of the page has a section, and each section a promise", () => {
  const rows = [...page.matchAll(/^\| \[([^\]]+)\]/gm)].map(([, name = ""]) => name);
  const headings = sections.map(({ heading }) => heading);
  assert.deepEqual(rows.map((name) => name.charAt(0).toUpperCase() + name.slice(1)), headings);
  assert.deepEqual(Object.keys(PROMISES), headings);
});

for (const { heading, json } of sections) {
  Deno.test(`to sell: ${heading.toLowerCase()}`, async () => {
    const document = JSON.parse(json);
    const checked = await checkCatalog(document, null);
    assert.deepEqual("faults" in checked ? checked.faults : [], []);
    PROMISES[heading]?.(document);
  });
}
