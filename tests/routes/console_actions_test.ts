// Actions: form, preview and confirmation; state that changed in between, forms that are sent twice or filled in wrongly.

import assert from "node:assert/strict";
import { consoleOf, hasButton, SUPPORT_TOKEN, Visitor } from "./console_support.ts";
import { dataOf, serviceOfFile } from "./support.ts";
import type { TestApp } from "../support/test_service.ts";

const service = serviceOfFile();

const PREVIEW = "Continue";

async function visitorAndApp(token?: string): Promise<{ visitor: Visitor; app: TestApp; user: string }> {
  const app = await service.newApp();
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  const visitor = await Visitor.signedIn(consoleOf(service), token);
  return { visitor, app, user: `/console/apps/${app.appId}/live/users/u` };
}

async function leftOf(app: TestApp): Promise<number> {
  const { credits } = await dataOf(app.call("GET", "/credits?userId=u"));
  return credits.reduce((sum: number, { remaining }: { remaining: number }) => sum + remaining, 0);
}

const TOPUP = { packId: "cpk_image_topup" };

Deno.test("a grant is previewed with its changes, done once when confirmed, and noted once on the user's page", async () => {
  const { visitor, app, user } = await visitorAndApp();
  const form = await visitor.get(`${user}/grant`);
  const preview = await visitor.press(form, PREVIEW, { ...TOPUP, externalRef: "order-7" });
  assert.equal(preview.status, 200);
  assert.match(preview.text, /u receives 50 \(50 images\) of the pack Image Top-Up/);
  assert.match(preview.text, /50 images, left in this pack 0 50/);
  assert.equal(await leftOf(app), 0);
  const done = await visitor.press(preview, "Grant");
  assert.equal(done.path, user);
  assert.match(done.text, /Granted Image Top-Up to u/);
  assert.equal(await leftOf(app), 50);
  assert.doesNotMatch((await visitor.get(user)).text, /Granted Image Top-Up to u/);
});

Deno.test("a reference that granted the pack before is refused with its balance: a grant would give nothing", async () => {
  const { visitor, app, user } = await visitorAndApp();
  const paid = { ...TOPUP, externalRef: "order-8" };
  const form = await visitor.get(`${user}/grant`);
  const early = await visitor.press(form, PREVIEW, paid);
  const { balanceId } = await dataOf(app.call("POST", "/credits/grant", { userId: "u", ...paid }));
  for (const page of [await visitor.press(form, PREVIEW, paid), await visitor.press(early, "Grant")]) {
    assert.match(page.text, new RegExp(`already granted this pack: ${balanceId}\\. Enter another one`));
  }
  assert.match((await visitor.press(form, PREVIEW, { ...TOPUP, externalRef: "order-9" })).text, /50 100/);
});

Deno.test("a confirmation that is sent twice, also at once, grants once and gets the same answer", async () => {
  const { visitor, app, user } = await visitorAndApp();
  const preview = await visitor.press(await visitor.get(`${user}/grant`), PREVIEW, TOPUP);
  const [one, other] = await Promise.all([
    visitor.press(preview, "Grant", {}, false),
    visitor.press(preview, "Grant", {}, false),
  ]);
  const late = await visitor.press(preview, "Grant", {}, false);
  for (const answer of [one, other, late]) {
    assert.deepEqual([answer.status, answer.headers.get("location")], [303, user]);
  }
  assert.equal(await leftOf(app), 50);
});

Deno.test("a confirmation does nothing after the state has changed, and shows the effect now", async () => {
  const { visitor, app, user } = await visitorAndApp();
  const preview = await visitor.press(await visitor.get(`${user}/grant`), PREVIEW, TOPUP);
  await dataOf(app.call("POST", "/credits/grant", { userId: "u", ...TOPUP }));
  const again = await visitor.press(preview, "Grant");
  assert.equal(again.status, 409);
  assert.match(again.text, /Something changed since this preview, so nothing was done/);
  assert.match(again.text, /left in this pack 50 100/);
  assert.equal(await leftOf(app), 50);
  await visitor.press(again, "Grant");
  assert.equal(await leftOf(app), 100);
});

Deno.test("values that were changed after the preview are previewed again", async () => {
  const { visitor, app, user } = await visitorAndApp();
  const filled = { packId: "cpk_wallet", quantity: "5" };
  const preview = await visitor.press(await visitor.get(`${user}/grant`), PREVIEW, filled);
  const again = await visitor.press(preview, "Grant", { quantity: "5000" });
  assert.equal(again.status, 409);
  assert.equal(await leftOf(app), 0);
});

Deno.test("errors are shown at their fields, and the values are kept", async () => {
  const { visitor, user } = await visitorAndApp();
  const form = await visitor.get(`${user}/grant`);
  const cases: [Record<string, string>, string, RegExp][] = [
    [{ packId: "cpk_wallet", quantity: "none" }, "quantity", /Enter a number greater than 0, such as 1\.5/],
    [{ ...TOPUP, notes: "n".repeat(501) }, "notes", /must have at most 500 characters/],
    [{ ...TOPUP, expiry: "at", expiresAt: "" }, "expiresAt", /Enter the expiry time/],
  ];
  for (const [filled, field, message] of cases) {
    const refused = await visitor.press(form, PREVIEW, { ...filled, externalRef: "kept-7" });
    assert.equal(refused.status, 400);
    const fault = new RegExp(`<p id="${field}-fault"[^>]*>([^<]*)`).exec(refused.html)?.[1] ?? "";
    assert.match(fault, message);
    assert.match(refused.html, /value="kept-7"/);
  }
  const past = { ...TOPUP, expiry: "at", expiresAt: "2020-01-01T00:00" };
  const preview = await visitor.press(form, PREVIEW, past);
  const refused = await visitor.press(preview, "Grant");
  assert.equal(refused.status, 400);
  assert.match(refused.html, /<p id="expiresAt-fault"[^>]*>must be in the future/);
});

Deno.test("an action that cannot be undone names its consequence and requires a typed confirmation", async () => {
  const { visitor, app, user } = await visitorAndApp();
  const { balanceId } = await dataOf(app.call("POST", "/credits/grant", { userId: "u", ...TOPUP }));
  const form = await visitor.get(`${user}/balances/${balanceId}/revoke`);
  const preview = await visitor.press(form, PREVIEW, { reason: "chargeback" });
  assert.match(preview.text, /This cannot be undone. The balance cannot be restored/);
  const untyped = await visitor.press(preview, "Revoke", { typed: "U" });
  assert.equal(untyped.status, 400);
  assert.equal(await leftOf(app), 50);
  const done = await visitor.press(untyped, "Revoke", { typed: "u" });
  assert.match(done.text, /The balance of Image Top-Up is revoked/);
  assert.equal(await leftOf(app), 0);
});

Deno.test("support neither sees nor may do an action", async () => {
  const { visitor, app, user } = await visitorAndApp(SUPPORT_TOKEN);
  const form = await visitor.get(`${user}/grant`);
  assert.equal(form.status, 403);
  assert.equal(hasButton(form.html, PREVIEW), false);
  assert.doesNotMatch((await visitor.get(user)).html, /\/grant"/);
  const admin = await visitorAndApp();
  const theirs = await admin.visitor.press(await admin.visitor.get(`${admin.user}/grant`), PREVIEW, TOPUP);
  assert.equal((await visitor.press(theirs, "Grant")).status, 403);
  assert.equal(await leftOf(app), 0);
});
