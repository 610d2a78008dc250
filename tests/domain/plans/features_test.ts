// Features: who gives a value, where several could.

import assert from "node:assert/strict";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import { FEATURE_LIMITS, type FeatureValues, isFeatureValue } from "../../../src/domain/catalog/feature.ts";
import { planOf, Scene, type Start } from "../scene.ts";

const PLANS = [
  planOf("low", { g: 5 }, { features: { seats: 1, models: ["small"] } }),
  planOf("top", { g: 9 }, { rank: 2, features: { seats: 5, sso: true } }),
  planOf("bare", { g: 9 }),
];
const DEFAULTS = { sso: false, tier: "none" };

function sceneOf(more: Start = {}): Scene {
  return new Scene(PLANS, undefined, [], { featureDefaults: DEFAULTS, ...more });
}

/** Users of one realm: "u" below "team", and "team" below "org". */
function family() {
  const u = sceneOf();
  const [team, org] = [sceneOf({ key: 8, id: "team", beside: u }), sceneOf({ key: 9, id: "org", beside: u })];
  team.under(org);
  u.under(team);
  return { u, team, org };
}

/** The features of a scene in short: `value from of`. */
function shown(scene: Scene): Record<string, string> {
  const { features } = scene.ask("features", { key: null });
  assert.deepEqual(scene.ask("usage", { event: null }).features, features);
  return Object.fromEntries(
    Object.entries(features).map(([key, { value, from, of }]) => [key, [value, from, of].join(" ").trim()]),
  );
}

type Family = ReturnType<typeof family>;

// deno-fmt-ignore: a row a case
const TABLE: readonly [what: string, act: (users: Family) => unknown, expected: Record<string, string>][] = [
  ["no plan anywhere", () => {}, { sso: "false default", tier: "none default" }],
  ["its own plan", ({ u }) => u.subscribe("low"), { seats: "1 plan u", models: "small plan u", sso: "false default", tier: "none default" }],
  ["custom values before those of the plan", ({ u }) => u.subscribe("low", { customFeatures: { seats: 0, tier: "" } }), { seats: "0 custom u", models: "small plan u", sso: "false default", tier: "custom u" }],
  ["the primary subscription alone", ({ u }) => { u.pay("top", "a"); u.subscribe("low", { customFeatures: { tier: "x" } }); }, { seats: "5 plan u", sso: "true plan u", tier: "none default" }],
  ["an ended subscription gives nothing", ({ u }) => { u.subscribe("top", { endsAt: u.now + 1000 }); u.wait(1); }, { sso: "false default", tier: "none default" }],
  ["the user above, for the keys that the own plan lacks", ({ u, team }) => { u.subscribe("low"); team.subscribe("top"); }, { seats: "1 plan u", models: "small plan u", sso: "true plan team", tier: "none default" }],
  ["the nearest user above first", ({ team, org }) => { team.subscribe("low"); org.subscribe("top", { customFeatures: { tier: "org" } }); }, { seats: "1 plan team", models: "small plan team", sso: "true plan org", tier: "org custom org" }],
  ["custom values of the user above", ({ u, team }) => { u.subscribe("bare"); team.subscribe("top", { customFeatures: { sso: false } }); }, { seats: "5 plan team", sso: "false custom team", tier: "none default" }],
  ["a user that is no longer below", ({ u, team }) => { team.subscribe("top"); u.under(null); }, { sso: "false default", tier: "none default" }],
  ["an end above", ({ u, team }) => { team.subscribe("top", { endsAt: u.now + 1000 }); for (const each of [u, team]) each.wait(1); }, { sso: "false default", tier: "none default" }],
  ["the canonical user of a merge", ({ u, team }) => { const old = sceneOf({ key: 10, id: "old", beside: u }); old.subscribe("top", { customFeatures: { seats: 7 } }); old.mergeInto(team); }, { seats: "7 custom team", sso: "true plan team", tier: "none default" }],
];

for (const [what, act, expected] of TABLE) {
  Deno.test(`features: ${what}`, () => {
    const users = family();
    act(users);
    assert.deepEqual(shown(users.u), expected);
  });
}

Deno.test("one feature is read alone, and one that the catalog does not name is not found", () => {
  const scene = sceneOf();
  scene.subscribe("low");
  const { userId, features } = scene.ask("features", { key: "seats" });
  assert.deepEqual([userId, features], ["u", { seats: { value: 1, from: "plan", of: "u" } }]);
  scene.cancel();
  assert.deepEqual(scene.ask("features", { key: "seats" }).features, {}, "no one gives it");
  for (const key of ["seat", "toString", "__proto__"]) {
    assert.equal(scene.code("features", { key }), "not_found", key);
  }
});

Deno.test("custom values stay, are replaced, and go with a change of plan", () => {
  const scene = sceneOf();
  const row = () => [...scene.state.subscriptions.values()][0]?.customFeatures;
  scene.subscribe("low", { customFeatures: { seats: 2 } });
  scene.subscribe("low");
  assert.deepEqual(row(), { seats: 2 });
  scene.subscribe("low", { customFeatures: { sso: true } });
  assert.deepEqual(row(), { sso: true });
  scene.subscribe("top");
  assert.deepEqual(row(), {});
  scene.subscribe("low", { customFeatures: { sso: true } });
  assert.deepEqual(row(), { sso: true }, "of the call that changes the plan");
  scene.subscribe("low", { customFeatures: null });
  assert.deepEqual(row(), {});
});

Deno.test("custom values have keys of the catalog, and their types", () => {
  const scene = sceneOf();
  const rows: [FeatureValues, string, string][] = [
    [{ seat: 1 }, "customFeatures.seat", "not a feature of the catalog"],
    [{ constructor: 1 }, "customFeatures.constructor", "not a feature of the catalog"],
    [{ seats: "1" }, "customFeatures.seats", "must be a number"],
    [{ models: "small" }, "customFeatures.models", "must be an array"],
    [{ sso: [] }, "customFeatures.sso", "must be a boolean"],
  ];
  for (const [customFeatures, path, message] of rows) {
    const { result } = scene.do("subscribe", {
      plan: "low",
      provider: null,
      externalId: null,
      customLimits: undefined,
      customFeatures,
      startsAt: null,
      endsAt: null,
      cycleStart: undefined,
      quantity: undefined,
      trial: undefined,
    });
    const refusal = result.ok ? null : result.refusal;
    assert.deepEqual([refusal?.code, refusal?.details], ["invalid_request", [{ path, message }]]);
  }
});

Deno.test("a custom value of a type that the key no longer has counts for nothing", () => {
  const scene = sceneOf();
  scene.subscribe("low", { customFeatures: { seats: 2, tier: "own" } });
  const plans = [planOf("low", { g: 5 }, { features: { seats: "one" } })];
  scene.catalog = compileCatalog({ plans }, 2);
  assert.deepEqual(shown(scene), { seats: "one plan u" });
  scene.catalog = compileCatalog({ plans: [planOf("low", { g: 5 })] }, 3);
  assert.equal(scene.ask("usage", { event: null }).features, null, "a catalog without features");
});

Deno.test("the message of a plan change has the features after it", () => {
  const scene = sceneOf({ listensTo: ["subscription.*"] });
  scene.subscribe("low");
  scene.subscribe("top");
  scene.ask("mirror", {
    provider: "stripe",
    externalId: "a",
    state: { planId: "bare", startsAt: null, endsAt: null, quantity: undefined },
  });
  const told = scene.messages.map(({ type, body }) => [type, JSON.parse(body).data.features]);
  assert.deepEqual(told, [
    ["subscription.created", undefined],
    ["subscription.plan_changed", {
      seats: { value: 5, from: "plan", of: "u" },
      sso: { value: true, from: "plan", of: "u" },
      tier: { value: "none", from: "default", of: null },
    }],
    ["subscription.created", undefined],
  ]);
});

Deno.test("usage names when time alone changes the features of a user below", () => {
  const { u, team } = family();
  const endsAt = u.now + 5000;
  team.subscribe("top", { endsAt });
  const { changesAt, dependsOn } = u.ask("usage", { event: null });
  assert.deepEqual([changesAt, dependsOn], [endsAt, ["team", "org"]]);
  const at = u.now + 4000;
  team.ask("schedule", { provider: null, externalId: null, change: { plan: "low", at } });
  assert.equal(
    u.ask("usage", { event: null }).changesAt,
    at,
    "also a change of plan that was asked for ahead",
  );
});

Deno.test("the message of a plan change by time has the features of the users above, also where a sweep settles it", () => {
  const told = (name: "settle" | "credits" | "usage") => {
    const u = sceneOf({ listensTo: ["subscription.plan_changed"] });
    const [team, org] = [
      sceneOf({ key: 8, id: "team", beside: u }),
      sceneOf({ key: 9, id: "org", beside: u }),
    ];
    team.under(org);
    u.under(team);
    u.subscribe("low");
    team.subscribe("low");
    org.subscribe("bare", { customFeatures: { tier: "own" } });
    const ahead = { provider: null, externalId: null };
    u.ask("schedule", { ...ahead, change: { plan: "bare", at: u.now + 2000 } });
    team.ask("schedule", { ...ahead, change: { plan: "top", at: u.now + 1000 } });
    for (const each of [u, team, org]) each.wait(3);
    u.do(name, name === "settle" ? {} : { event: null });
    return [u, team].map(({ messages }) => JSON.parse(messages.at(-1)?.body ?? "{}").data?.features);
  };
  const tier = { value: "own", from: "custom", of: "org" };
  const ofTop = {
    seats: { value: 5, from: "plan", of: "team" },
    sso: { value: true, from: "plan", of: "team" },
  };
  for (const name of ["settle", "credits", "usage"] as const) {
    assert.deepEqual(told(name), [{ ...ofTop, tier }, { ...ofTop, tier }], name);
  }
});

Deno.test("values are booleans, numbers, strings and lists of strings, of bounded size", () => {
  const { textLengthMax, listMax } = FEATURE_LIMITS;
  const most = "\u{1F600}".repeat(textLengthMax);
  for (const value of [false, -1.5, "", most, [], Array(listMax).fill(most)]) {
    assert.ok(isFeatureValue(value));
  }
  for (
    const value of [null, {}, Infinity, `${most}x`, [1], [[]], Array(listMax + 1).fill(""), [`${most}x`]]
  ) {
    assert.ok(!isFeatureValue(value));
  }
});
