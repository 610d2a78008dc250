// Explain over HTTP: the whole answer, by either id of a merged user, free of charge and past every cap.

import assert from "node:assert/strict";
import { CATALOG, dataOf, holdImages, pictureOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const HD = {
  id: "lg_hd",
  label: "HD images",
  unit: "count",
  quota: 5,
  matches: [{ event: "image.*", metadata: { style: "hd", size: "5" } }],
  headroom: { mode: "percent", value: 60 },
};
const [PRO] = CATALOG.plans;
const DOCUMENT = {
  ...CATALOG,
  plans: [{ ...PRO, limits: [HD, ...PRO?.limits.slice(0, 2) ?? []] }],
  packs: [
    { id: "cpk_any", name: "Any", kind: "generic", unit: "count", matches: [{ event: "*" }], items: [] },
    {
      id: "cpk_chat",
      name: "Talk",
      kind: "generic",
      unit: "tokens",
      matches: [{ event: "chat.*" }],
      items: [],
    },
  ],
};

/** An app with the catalog above and a user "u", whose plan allows them four images. */
async function explained(workspace: Record<string, unknown> = {}) {
  const app = await service.newApp(DOCUMENT, workspace);
  const customLimits = { lg_images: { quota: 4 } };
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "Pro", customLimits }));
  return app;
}

Deno.test("explain shows subscription, groups and credits as they bear on the call, by either id of the user", async () => {
  const app = await explained();
  const expiresAt = "2027-01-01T00:00:00.000Z";
  const any = await dataOf(
    app.call("POST", "/credits/grant", { userId: "u", packId: "Any", quantity: 2, expiresAt }),
  );
  const talk = await dataOf(app.call("POST", "/credits/grant", { userId: "u", packId: "Talk", quantity: 9 }));
  await holdImages(app, 1);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x", count: 2 }));
  await dataOf(app.call("POST", "/customers/alias", { from: "old", to: "u" }));
  const before = await pictureOf(app);
  const call = { event: "image.x", count: 3, metadata: { style: "sd", size: [5], key: "sk_live_1" } };
  const answer = await dataOf(app.call("POST", "/explain", { userId: "old", ...call }));
  const { subscription } = before.user;
  assert.deepEqual(answer, {
    allowed: true,
    matched: true,
    reasons: [],
    text: 'Allowed with credits: the limit "Images" has room for 1, with 3 of 4 used, and the call ' +
      'needs 3. Credits from "Any" cover 2.',
    subscription: { subscriptionId: subscription.subscriptionId, planId: "plan_pro", planName: "Pro" },
    groups: [
      {
        groupId: "lg_hd",
        label: "HD images",
        unit: "count",
        covers: false,
        why: "metadata",
        metadata: { style: { wanted: "hd", given: "sd" }, size: { wanted: "5", given: null } },
        quota: 5,
        isCustom: false,
        headroom: { mode: "percent", value: 60 },
        gate: 3,
        current: 0,
        held: 0,
        need: null,
        room: null,
        fits: null,
      },
      {
        groupId: "lg_images",
        label: "Images",
        unit: "count",
        covers: true,
        why: "matched",
        quota: 4,
        isCustom: true,
        headroom: null,
        gate: 4,
        current: 3,
        held: 1,
        need: 3,
        room: 1,
        fits: false,
      },
      {
        groupId: "lg_chat",
        label: "Chat",
        unit: "tokens",
        covers: false,
        why: "event",
        quota: 1000,
        isCustom: false,
        headroom: null,
        gate: 1000,
        current: 0,
        held: 0,
        need: null,
        room: null,
        fits: null,
      },
    ],
    credits: [
      {
        balanceId: any.balanceId,
        packId: "cpk_any",
        packName: "Any",
        unit: "count",
        remaining: 2,
        expiresAt,
        matches: true,
        wouldPay: 2,
      },
      {
        balanceId: talk.balanceId,
        packId: "cpk_chat",
        packName: "Talk",
        unit: "tokens",
        remaining: 9,
        expiresAt: null,
        matches: false,
        wouldPay: 0,
      },
    ],
  });
  assert.deepEqual(await dataOf(app.call("POST", "/explain", { userId: "u", ...call })), answer);
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("a user who was never heard of is explained, and stays unknown", async () => {
  const app = await explained();
  const { text, ...answer } = await dataOf(
    app.call("POST", "/explain", { userId: "nobody", event: "image.x" }),
  );
  assert.deepEqual(answer, {
    allowed: false,
    matched: false,
    reasons: ["no_subscription"],
    subscription: null,
    groups: [],
    credits: [],
  });
  assert.match(text, /no active subscription/);
});

Deno.test("explain costs no operation and answers past the workspace's cap", async () => {
  const app = await explained({ operationCap: 1 });
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  assert.equal((await app.call("POST", "/reserve", { userId: "u", event: "image.x" })).status, 429);
  const { allowed } = await dataOf(app.call("POST", "/explain", { userId: "u", event: "image.x" }));
  assert.equal(allowed, true);
  const { body } = await service.admin("GET", "/workspaces");
  const { operationsUsed } = body.data.find((each: { workspaceId: string }) =>
    each.workspaceId === app.workspaceId
  );
  assert.equal(operationsUsed, 1);
});
