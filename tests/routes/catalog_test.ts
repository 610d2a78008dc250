// Applying a catalog: dry runs, changes, the exact place of every fault, what is in use, the order of plans, and times.

import assert from "node:assert/strict";
import example from "../../src/tenant/demo/catalog.json" with { type: "json" };
import type { TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, CATALOG, countOf, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

function put(app: TestApp, document: unknown, query = "") {
  return service.admin("PUT", `/apps/${app.appId}/catalog${query}`, document);
}

async function documentOf(app: TestApp) {
  return await dataOf(service.admin("GET", `/apps/${app.appId}/catalog`));
}

function plan(id: string, members: object = {}) {
  const limits = [{ id: "lg_a", label: "A", unit: "count", quota: 5, matches: [{ event: "a" }] }];
  return { id, name: id, rank: 1, period: { type: "daily", anchor: "calendar" }, limits, ...members };
}

/** The paths of the faults of a document, in any order. */
async function faultsOf(app: TestApp, document: unknown): Promise<string[]> {
  const error = assertRefused(await put(app, document), 400, "invalid_request");
  for (const fault of error.details) assert.deepEqual(Object.keys(fault), ["path", "message"]);
  return error.details.map(({ path }: { path: string }) => path).sort();
}

Deno.test("an app starts without a catalog, and what is put is what is got, by version", async () => {
  const made = await dataOf(service.admin("POST", "/apps", { name: "A" }));
  const path = `/apps/${made.appId}/catalog`;
  assert.deepEqual(await dataOf(service.admin("GET", path)), { version: 0 });
  const first = await dataOf(service.admin("PUT", path, example));
  assert.equal(first.version, 1);
  assert.ok(first.changes.every(({ change }: { change: string }) => change === "added"));
  assert.deepEqual(await dataOf(service.admin("GET", path)), { version: 1, ...example });
  assert.deepEqual(await dataOf(service.admin("PUT", path, example)), { version: 1, changes: [] });
  await service.restart();
  assert.deepEqual(await dataOf(service.admin("GET", path)), { version: 1, ...example });
});

Deno.test("a dry run shows the changes and refusals of the real run and changes nothing", async () => {
  const app = await appWithUser(service);
  const before = await documentOf(app);
  const next = {
    ...CATALOG,
    plans: [{ ...CATALOG.plans[0], name: "Max" }, CATALOG.plans[1], plan("plan_new")],
  };
  const dry = await dataOf(put(app, next, "?dryRun=true"));
  assert.deepEqual(await documentOf(app), before);
  assert.equal((await dataOf(app.call("GET", "/plans"))).length, 2);
  const real = await dataOf(put(app, next, "?dryRun=false"));
  assert.deepEqual(real.changes, dry.changes);
  assert.deepEqual([dry.version, real.version], [1, 2], "a dry run names the version that stays in force");
  for (const document of [{ plans: [plan("a", { rank: "x" })] }, { plans: [CATALOG.plans[1]] }]) {
    const refused = await put(app, document, "?dryRun=true");
    assert.deepEqual(refused.body, (await put(app, document)).body);
    assert.equal(refused.body.ok, false);
  }
  for (const query of ["?dryRun=", "?dryRun=1", "?dryRun=yes", "?dryRun=TRUE"]) {
    assertRefused(await put(app, example, query), 400, "invalid_request", query);
  }
  assert.equal((await documentOf(app)).version, 2);
});

Deno.test("changes name what was added, changed and removed by its path", async () => {
  const app = await service.newApp({ ...CATALOG, plans: [plan("a"), plan("b")] });
  const [a, b] = [plan("a"), plan("b")];
  const group = a.limits[0] as (typeof a.limits)[number];
  const changesOf = async (document: unknown) => {
    const { changes } = await dataOf(put(app, { ...CATALOG, ...document as object }, "?dryRun=true"));
    return changes.map(({ path, change }: { path: string; change: string }) => `${change} ${path}`).sort();
  };
  assert.deepEqual(await changesOf({ plans: [a, b] }), []);
  assert.deepEqual(await changesOf({ plans: [a, b, plan("c")] }), ["added plans[2]"]);
  assert.deepEqual(await changesOf({ plans: [b] }), ["removed plans[0]"]);
  assert.deepEqual(await changesOf({ plans: [{ ...a, rank: 5 }, b] }), ["changed plans[0].rank"]);
  assert.deepEqual(await changesOf({ plans: [{ ...a, archived: true }, b] }), ["added plans[0].archived"]);
  const raised = { ...a, limits: [{ ...group, quota: 6 }, { ...group, id: "lg_b" }] };
  assert.deepEqual(await changesOf({ plans: [raised, b] }), [
    "added plans[0].limits[1]",
    "changed plans[0].limits[0].quota",
  ]);
  const rules = { ...a, limits: [{ ...group, matches: [{ event: "b" }] }] };
  assert.deepEqual(await changesOf({ plans: [rules, b] }), ["changed plans[0].limits[0].matches"]);
  assert.deepEqual(await changesOf({ plans: [a, b], settings: {} }), [
    "removed settings.promptLogging",
    "removed settings.reservationTtlSeconds",
  ]);
  assert.deepEqual(await changesOf({ plans: [a, b], models: undefined }), ["removed models"]);
});

Deno.test("another order of limit groups is a change, and usage shows it", async () => {
  const app = await appWithUser(service);
  const [pro, team] = CATALOG.plans as [typeof CATALOG.plans[number], typeof CATALOG.plans[number]];
  const limits = pro.limits.toReversed();
  const { version, changes } = await dataOf(put(app, { ...CATALOG, plans: [{ ...pro, limits }, team] }));
  assert.deepEqual([version, changes], [2, [{ path: "plans[0].limits", id: "plan_pro", change: "changed" }]]);
  const { counters } = await dataOf(app.call("GET", "/usage?userId=u"));
  assert.deepEqual(
    counters.map((row: { groupId: string }) => row.groupId),
    limits.map(({ id }) => id),
  );
});

Deno.test("every fault of a document is named by its path at once, and nothing of it is applied", async () => {
  const app = await appWithUser(service);
  const before = await documentOf(app);
  const rule = { event: "a" };
  const document = {
    settings: {
      promptLogging: "yes",
      reservationTtlSeconds: 5,
      corsOrigins: "x",
      rateLimit: { perSecond: 0 },
    },
    models: [
      { id: "m", modality: "text", amountMode: "per_token" },
      { id: "m", modality: "smell", amountMode: "per_unit" },
    ],
    plans: [
      plan("a", { name: "Free", headroom: { mode: "percent", value: 101 } }),
      plan("a", { name: "FREE", rank: "1", period: { type: "minutely", anchor: "calendar" } }),
      plan("", { onPlanChange: "keep", archived: 1 }),
      plan("b", {
        limits: [
          { id: "lg", label: "", unit: "bytes", quota: -1, matches: [] },
          { id: "lg", label: "L", unit: "count", quota: 1e13, matches: [{ event: "a*b" }] },
          {
            id: "lg2",
            label: "L",
            unit: "count",
            quota: 1,
            matches: [rule],
            headroom: { mode: "multiplier", value: 0.5 },
          },
          { id: "lg3", label: "L", unit: "count", quota: 1, matches: [{ event: "a", metadata: { m: 5 } }] },
        ],
      }),
      5,
    ],
    packs: [
      {
        id: "p",
        name: "Top",
        kind: "per_type",
        items: [{ id: "i", label: "I", unit: "count", amount: 0, matches: [rule] }],
      },
      {
        id: "p",
        name: "top",
        kind: "other",
        items: [{ id: "i", label: "I", unit: "count", amount: 1, matches: [rule] }],
      },
      { id: "q", name: "Q", kind: "generic", items: [] },
    ],
    composeTypes: [
      { name: "Not Kebab", model: "none", prompt: "{user_usage} {", outputSchema: {} },
      { name: "ok", model: "m", prompt: "{credits}", outputSchema: [], dataSources: ["user_usage", "all"] },
    ],
  };
  assert.deepEqual(await faultsOf(app, document), [
    "composeTypes[0].model",
    "composeTypes[0].name",
    "composeTypes[0].prompt",
    "composeTypes[1].dataSources[1]",
    "composeTypes[1].outputSchema",
    "composeTypes[1].prompt",
    "models[0].inputCentsPerMillionTokens",
    "models[1].centsPerSecond",
    "models[1].id",
    "models[1].modality",
    "packs[0].items[0].amount",
    "packs[1].id",
    "packs[1].items[0].id",
    "packs[1].kind",
    "packs[1].name",
    "packs[2].matches",
    "packs[2].unit",
    "plans[0].headroom.value",
    "plans[1].id",
    "plans[1].name",
    "plans[1].period.type",
    "plans[1].rank",
    "plans[2].archived",
    "plans[2].id",
    "plans[2].name",
    "plans[2].onPlanChange",
    "plans[3].limits[0].label",
    "plans[3].limits[0].matches",
    "plans[3].limits[0].quota",
    "plans[3].limits[0].unit",
    "plans[3].limits[1].id",
    "plans[3].limits[1].matches[0].event",
    "plans[3].limits[1].quota",
    "plans[3].limits[2].headroom.value",
    "plans[3].limits[3].matches[0].metadata.m",
    "plans[4]",
    "settings.corsOrigins",
    "settings.promptLogging",
    "settings.rateLimit.burst",
    "settings.rateLimit.perSecond",
    "settings.reservationTtlSeconds",
  ]);
  assert.deepEqual(await documentOf(app), before);
});

Deno.test("parts that are no lists, and members that are missing, are faults of their own paths", async () => {
  const app = await service.newApp({});
  for (const part of ["models", "plans", "packs", "composeTypes"]) {
    for (const value of [5, "x", {}, true]) assert.deepEqual(await faultsOf(app, { [part]: value }), [part]);
    assert.deepEqual(await faultsOf(app, { [part]: [null] }), [`${part}[0]`]);
  }
  assert.deepEqual(await faultsOf(app, { settings: [] }), ["settings"]);
  assert.deepEqual(await faultsOf(app, { plans: [{}] }), [
    "plans[0].id",
    "plans[0].limits",
    "plans[0].name",
    "plans[0].period",
    "plans[0].rank",
  ]);
  assertRefused(await put(app, "[]"), 400, "invalid_request");
  assertRefused(await put(app, "{"), 400, "invalid_request");
  assert.equal((await documentOf(app)).version, 0);
});

Deno.test("ids are unique exactly, names without regard to case, limit groups in their plan", async () => {
  const app = await service.newApp({});
  assert.deepEqual(await faultsOf(app, { plans: [plan("a"), plan("a", { name: "b" })] }), ["plans[1].id"]);
  assert.deepEqual(await faultsOf(app, { plans: [plan("a"), plan("b", { name: "A" })] }), ["plans[1].name"]);
  const accents = [plan("a", { name: "CAF\u00c9" }), plan("b", { name: "cafe\u0301" })];
  assert.deepEqual(await faultsOf(app, { plans: accents }), ["plans[1].name"]);
  const three = [plan("a", { name: "x" }), plan("a", { name: "X" }), plan("a", { name: "y" })];
  assert.deepEqual(await faultsOf(app, { plans: three }), ["plans[1].id", "plans[1].name", "plans[2].id"]);
  await dataOf(put(app, { plans: [plan("a", { name: "x" }), plan("A", { name: "y" })] }));
});

Deno.test("hostile documents are faults or kept as data: __proto__, forbidden text, great depth", async () => {
  const app = await service.newApp({});
  const group = '"id":"lg","label":"L","unit":"count","quota":1';
  const planText = (matches: string) =>
    `{"plans":[{"id":"a","name":"a","rank":1,"period":{"type":"daily","anchor":"calendar"},"limits":[{${group},"matches":${matches}}]}]}`;
  const metadata = planText('[{"event":"*","metadata":{"__proto__":"x"}}]');
  assert.deepEqual(await faultsOf(app, metadata), ["plans[0].limits[0].matches[0].metadata"]);
  await dataOf(put(app, planText('[{"event":"*","metadata":{"constructor":"x"}}]')));
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "a" }));
  const canUse = async (members: object) =>
    (await dataOf(app.call("POST", "/can-use", { userId: "u", event: "e", ...members }))).matched;
  assert.equal(await canUse({}), false);
  assert.equal(await canUse({ metadata: { constructor: "x" } }), true);
  assertRefused(await put(app, planText('[{"event":"a\\u0000"}]')), 400, "invalid_request");
  assertRefused(await put(app, planText('[{"event":"a\\ud800"}]')), 400, "invalid_request");
  assert.deepEqual(await faultsOf(app, planText('[{"event":"a\\n"}]')), [
    "plans[0].limits[0].matches[0].event",
  ]);
  for (const depth of [101, 10_000, 49_000]) {
    const schema = '{"a":'.repeat(depth) + "1" + "}".repeat(depth);
    const document =
      `{"models":[{"id":"m","modality":"text","amountMode":"per_token","inputCentsPerMillionTokens":1}],` +
      `"composeTypes":[{"name":"x","model":"m","prompt":"p","outputSchema":${schema}}]}`;
    assert.deepEqual(await faultsOf(app, document), ["composeTypes[0].outputSchema"]);
  }
  assertRefused(await put(app, "x".repeat(2 ** 20 + 1)), 413, "payload_too_large");
});

Deno.test("a plan with an active subscription in either mode cannot be removed, a plan with an ended one can", async () => {
  const [pro, team] = CATALOG.plans;
  const without = { ...CATALOG, plans: [team] };
  for (const key of ["secretLive", "secretTest"] as const) {
    const app = await appWithUser(service, {}, key);
    const options = { key: app[key] };
    for (const isRestarted of [false, true]) {
      if (isRestarted) await service.restart();
      const error = assertRefused(await put(app, without), 409, "catalog_in_use");
      assert.deepEqual(error.details, [{ planId: "plan_pro" }]);
      assert.match(error.message, /plan_pro/);
    }
    assert.equal((await documentOf(app)).version, 1);
    await dataOf(app.call("POST", "/subscriptions", { userId: "v", planId: "plan_pro" }, options));
    await dataOf(app.call("DELETE", "/subscriptions?userId=v", undefined, options));
    const endsAt = "2026-12-01T00:00:00Z";
    await dataOf(app.call("DELETE", "/subscriptions", { userId: "u", endsAt }, options));
    assertRefused(await put(app, without), 409, "catalog_in_use", "an end that is to come");
    await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_team" }, options));
    await dataOf(put(app, without));
    assertRefused(
      await app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }, options),
      404,
      "not_found",
    );
    await dataOf(put(app, { ...CATALOG, plans: [team, pro] }));
  }
});

Deno.test("of a removal and subscriptions that race, the plan stays or no user has it", async () => {
  for (let round = 0; round < 5; round++) {
    const app = await service.newApp(CATALOG);
    const subscribe = (index: number) =>
      app.call("POST", "/subscriptions", { userId: `u${index}`, planId: "plan_pro" });
    const early = Array.from({ length: round }, (_, index) => subscribe(index));
    const removal = put(app, { ...CATALOG, plans: [CATALOG.plans[1]] });
    const late: ReturnType<typeof subscribe>[] = [];
    for (let index = 10; index < 40; index++) {
      late.push(subscribe(index));
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    const { status } = await removal;
    const answers = await Promise.all([...early, ...late]);
    const subscribed = answers.filter((answer) => answer.status === 200).length;
    if (status === 200) assert.equal(subscribed, 0, "no user has a removed plan");
    else assert.ok(subscribed > 0);
    for (const answer of answers) if (answer.status !== 200) assertRefused(answer, 404, "not_found");
    const plans = await dataOf(app.call("GET", "/plans"));
    assert.equal(plans.length, status === 200 ? 1 : 2);
    if (status !== 200) await dataOf(subscribe(99));
  }
});

Deno.test("plans are listed as first added, whatever the order of a later document", async () => {
  const app = await service.newApp({ plans: [plan("b"), plan("a")] });
  const listed = async () => (await dataOf(app.call("GET", "/plans"))).map(({ id }: { id: string }) => id);
  assert.deepEqual(await listed(), ["b", "a"]);
  await dataOf(put(app, { plans: [plan("c"), plan("a"), plan("0"), plan("b")] }));
  assert.deepEqual(await listed(), ["b", "a", "c", "0"]);
  await dataOf(put(app, { plans: [plan("c"), plan("a", { archived: true }), plan("0"), plan("b")] }));
  assert.deepEqual(await listed(), ["b", "c", "0"]);
  await service.restart();
  assert.deepEqual(await listed(), ["b", "c", "0"]);
  await dataOf(put(app, { plans: [plan("a"), plan("0"), plan("b"), plan("c")] }));
  assert.deepEqual(await listed(), ["b", "a", "c", "0"]);
});

Deno.test("a changed quota holds from the next request on and keeps the window's usage", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x", count: 60 }));
  const withQuota = (quota: number) => {
    const document = structuredClone(CATALOG);
    (document.plans[0] as { limits: { quota: number }[] }).limits[0]!.quota = quota;
    return put(app, document);
  };
  await dataOf(withQuota(61));
  const reserve = async () =>
    (await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x" }))).allowed;
  assert.equal(await reserve(), true);
  assert.equal(await reserve(), false);
  await dataOf(withQuota(30));
  const { counters } = await dataOf(app.call("GET", "/usage?userId=u"));
  assert.deepEqual([counters[0].quota, counters[0].count, counters[0].remaining], [30, 61, 0]);
  await dataOf(withQuota(62));
  assert.equal(await reserve(), true);
  assert.equal(await countOf(app, "lg_images"), 62);
});

Deno.test("parallel catalogs are applied one after another, each as a version of its own", async () => {
  const app = await service.newApp({});
  const answers = await Promise.all(
    [1, 2, 3, 4, 5].map((rank) => put(app, { plans: [plan("a", { rank })] })),
  );
  assert.deepEqual(answers.map(({ body }) => body.data.version).sort(), [1, 2, 3, 4, 5]);
  assert.equal((await documentOf(app)).version, 5);
});

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
