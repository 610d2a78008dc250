// The actions on a user: the preview, effect and errors of each. The steps of all actions are in console_actions_test.ts.

import assert from "node:assert/strict";
import { consoleOf, Visitor } from "./console_support.ts";
import { dataOf, serviceOfFile } from "./support.ts";
import { groupOf, planOf } from "../domain/short_catalog.ts";
import { startTestService, type TestApp, type TestService } from "../support/test_service.ts";

const service = serviceOfFile();
const PREVIEW = "Continue";
const DAY_MS = 24 * 3_600_000;

class Desk {
  readonly app: TestApp;
  readonly visitor: Visitor;
  readonly base: string;

  constructor(app: TestApp, visitor: Visitor, mode = "live") {
    this.app = app;
    this.visitor = visitor;
    this.base = `/console/apps/${app.appId}/${mode}`;
  }

  static async open(at: TestService = service, mode = "live"): Promise<Desk> {
    return new Desk(await at.newApp(), await Visitor.signedIn(consoleOf(at)), mode);
  }

  // deno-lint-ignore no-explicit-any -- tests read any member
  post(path: string, body: object): Promise<any> {
    return dataOf(this.app.call("POST", path, body));
  }

  // deno-lint-ignore no-explicit-any -- tests read any member
  get(path: string): Promise<any> {
    return dataOf(this.app.call("GET", path));
  }

  /** Opens the form of an action on user "u" and continues to its preview. */
  async preview(action: string, filled: Record<string, string>) {
    return await this.visitor.press(
      await this.visitor.get(`${this.base}/users/u/${action}`),
      PREVIEW,
      filled,
    );
  }
}

Deno.test("a plan change shows its policy and removes custom limits; a scheduled end can be kept", async () => {
  const desk = await Desk.open();
  const endsAt = new Date(service.clock.now() + 9 * DAY_MS).toISOString();
  const customLimits = { lg_free_images: { quota: 44 } };
  await desk.post("/subscriptions", { userId: "u", planId: "plan_free", endsAt, customLimits });
  const preview = await desk.preview("plan", { planId: "plan_pro" });
  assert.match(
    preview.text,
    /u changes to Pro at once. Usage of limits that both plans have is carried/,
  );
  assert.match(preview.text, /The custom limits are removed/);
  const end = `${endsAt.slice(0, 10)} ${endsAt.slice(11, 16)} UTC`;
  assert.ok(preview.text.includes(`Plan Free Pro Ends ${end} ${end}`), preview.text);
  const done = await desk.visitor.press(preview, "Change plan");
  assert.match(done.text, /u is now on Pro\./);
  const { subscription } = await desk.get("/users/u");
  assert.deepEqual([subscription.planId, subscription.endsAt], ["plan_pro", endsAt]);
  assert.equal(subscription.customLimits, null);
});

Deno.test("a user without a plan gets one, and a paid subscription that ranks higher stays in force", async () => {
  const desk = await Desk.open();
  const first = await desk.preview("plan", { planId: "plan_pro" });
  assert.match(first.text, /Usage starts at 0/);
  await desk.visitor.press(first, "Change plan");
  const paid = { userId: "u", planId: "plan_team", provider: "stripe", externalId: "si_1" };
  const { subscriptionId } = await desk.post("/subscriptions", paid);
  const form = await desk.visitor.get(`${desk.base}/users/u/plan`);
  const rows = [...form.html.matchAll(/<option value="(sub_[^"]*)"[^>]*>([^<]*)/g)];
  assert.deepEqual(rows.map(([, , text]) => text), ["Team (stripe si_1)", "Pro (no provider)"]);
  const row = rows.find(([, id]) => id !== subscriptionId)?.[1] ?? "";
  const preview = await desk.visitor.press(form, PREVIEW, { row, planId: "plan_free" });
  assert.match(
    preview.text,
    /Team \(stripe si_1\) stays active and ranks higher, so its plan stays in force/,
  );
  await desk.visitor.press(preview, "Change plan");
  const { subscription, duplicateActiveSubscriptions } = await desk.get("/users/u");
  assert.equal(subscription.planId, "plan_team");
  assert.equal(duplicateActiveSubscriptions.duplicates[0].planId, "plan_free");
});

Deno.test("custom limits keep the end of the subscription, clear empty fields, and show an invalid quota", async () => {
  const desk = await Desk.open();
  const endsAt = new Date(service.clock.now() + 9 * DAY_MS).toISOString();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro", endsAt });
  const bad = await desk.preview("limits", { "customLimits.lg_pro_images": "-1" });
  assert.match(bad.html, /id="customLimits\.lg_pro_images-fault"/);
  const none = await desk.preview("limits", {});
  assert.match(none.text, /No changes: these quotas are already set/);
  const preview = await desk.preview("limits", { "customLimits.lg_pro_images": "250" });
  assert.match(preview.text, /Images a month 100 \(plan\) 250/);
  await desk.visitor.press(preview, "Set limits");
  const { subscription } = await desk.get("/users/u");
  assert.deepEqual([subscription.customLimits, subscription.endsAt], [
    { lg_pro_images: { quota: 250 } },
    endsAt,
  ]);
  const back = await desk.preview("limits", { "customLimits.lg_pro_images": "" });
  assert.match(back.text, /Images a month 250 100 \(plan\)/);
  await desk.visitor.press(back, "Set limits");
  assert.equal((await desk.get("/users/u")).subscription.customLimits, null);
});

Deno.test("a cancellation now or later shows what stays active, and detects a subscription that ended meanwhile", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  const past = await desk.preview("cancel", { endsAt: "2020-01-01T00:00" });
  const refused = await desk.visitor.press(past, "Cancel subscription");
  assert.match(refused.html, /id="endsAt-fault"[^>]*>must not be in the past/);
  const later = new Date(service.clock.now() + DAY_MS).toISOString().slice(0, 19);
  await desk.visitor.press(await desk.preview("cancel", { endsAt: later }), "Cancel subscription");
  assert.equal((await desk.get("/users/u")).subscription.endsAt.slice(0, 19), later);
  const preview = await desk.preview("cancel", { reason: "moved away" });
  assert.match(
    preview.text,
    /\(no provider\) of u ends now. No other subscription is active: only credits can be used then/,
  );
  const done = await desk.visitor.press(preview, "Cancel subscription");
  assert.match(done.text, /Pro \(no provider\) is canceled/);
  const { subscription, history } = await desk.get("/users/u");
  assert.deepEqual([subscription, history[0].reason], [null, "moved away"]);
  assert.equal((await desk.visitor.get(`${desk.base}/users/u/cancel`)).status, 404);
});

Deno.test("a hold is released after a confirmation, and a settled hold has nothing to release", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  const { reservationId } = await desk.post("/reserve", { userId: "u", event: "image.x", count: 7 });
  const preview = await desk.preview(`holds/${reservationId}/release`, { reason: "stuck" });
  assert.match(preview.text, /Held from lg_pro_images 7 0/);
  assert.match(preview.text, /its commit will be refused and its usage will not be counted/);
  assert.equal((await desk.visitor.press(preview, "Release hold")).status, 400);
  const done = await desk.visitor.press(preview, "Release hold", { typed: "yes" });
  assert.match(done.text, /The hold for image.x is released/);
  assert.equal((await desk.visitor.get(`${desk.base}/users/u/holds/${reservationId}/release`)).status, 409);
});

Deno.test("an expiry is extended to later or to never, and an earlier expiry is refused at its field", async () => {
  const desk = await Desk.open();
  const at = (days: number) => new Date(service.clock.now() + days * DAY_MS + 123).toISOString();
  const grant = { userId: "u", packId: "cpk_wallet", quantity: 5, expiresAt: at(5) };
  const { balanceId } = await desk.post("/credits/grant", grant);
  const act = `balances/${balanceId}/extend`;
  const expiry = async () => (await desk.get("/credits?userId=u")).credits[0].expiresAt;
  const same = await desk.preview(act, {});
  assert.match(same.html, /id="expiresAt-fault"[^>]*>This is the current expiry/);
  const early = await desk.preview(act, { expiresAt: at(4).slice(0, 19) });
  const refused = await desk.visitor.press(early, "Extend", { typed: "yes" });
  assert.match(
    refused.html,
    /id="expiresAt-fault"[^>]*>must not be before the present expiry of the balance/,
  );
  await desk.visitor.press(await desk.preview(act, { expiresAt: at(9).slice(0, 19) }), "Extend", {
    typed: "yes",
  });
  assert.equal(await expiry(), `${at(9).slice(0, 19)}.000Z`);
  const never = await desk.visitor.press(await desk.preview(act, { never: "yes" }), "Extend", {
    typed: "yes",
  });
  assert.match(never.text, /Expiry of the balance of Wallet: never/);
  assert.equal(await expiry(), null);
});

Deno.test("a merge previews its dry run, stops when either user changed since, and leads to both IDs", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  await desk.post("/credits/grant", { userId: "v", packId: "cpk_wallet", quantity: 5 });
  const self = await desk.preview("merge", { other: "u" });
  assert.match(self.html, /id="other-fault"/);
  const preview = await desk.preview("merge", { other: "v" });
  assert.match(preview.text, /v becomes an alias of u. Both IDs will be the same user/);
  assert.match(preview.text, /Credit balances v u \(1\)/);
  await desk.post("/credits/grant", { userId: "v", packId: "cpk_wallet", quantity: 6 });
  const again = await desk.visitor.press(preview, "Merge", { typed: "v" });
  assert.equal(again.status, 409);
  assert.match(again.text, /Something changed since this preview.* Credit balances v u \(2\)/);
  assert.deepEqual((await desk.get("/users/u")).aliases, []);
  const done = await desk.visitor.press(again, "Merge", { typed: "v" });
  assert.match(done.text, /v is now an alias of u/);
  assert.deepEqual((await desk.get("/users/u")).aliases, ["v"]);
  assert.match((await desk.preview("merge", { other: "v" })).text, /These two IDs are already one user/);
});

Deno.test("consent is withdrawn and given by scope, and an unchanged scope is refused", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  const preview = await desk.preview("opt-out", { scope: "all" });
  assert.match(preview.text, /analytics opted in opted out ai personalization opted in opted out/);
  await desk.visitor.press(preview, "Opt out");
  const isOut = async (scope: string) => (await desk.get(`/opted-out?distinctId=u&scope=${scope}`)).optedOut;
  assert.deepEqual([await isOut("analytics"), await isOut("prompt_logging")], [true, false]);
  assert.match((await desk.preview("opt-out", { scope: "analytics" })).text, /already opted out/);
  await desk.visitor.press(await desk.preview("opt-in", { scope: "analytics" }), "Opt in");
  assert.deepEqual([await isOut("analytics"), await isOut("ai_personalization")], [false, true]);
});

Deno.test("an export is a link to the person's document, shown once", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  await desk.post("/track", { userId: "u", event: "image.x" });
  const preview = await desk.visitor.get(`${desk.base}/users/u/export`);
  assert.match(preview.text, /The link is valid for 24 hours, for everyone who has it/);
  const done = await desk.visitor.press(preview, "Create link");
  const link = /<pre>([^<]*)<\/pre>/.exec(done.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
  const download = await service.http.fetch(new Request(link));
  assert.equal(download.status, 200);
  assert.equal((await download.json()).events.metering.length, 1);
});

Deno.test("a deletion names every ID that is deleted, and requires the typed ID", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  await desk.post("/subscriptions", { userId: "v", planId: "plan_free" });
  await desk.post("/customers/alias", { from: "v", to: "u" });
  const preview = await desk.visitor.get(`${desk.base}/users/u/erase`);
  assert.match(preview.text, /These IDs are deleted with it: v\./);
  assert.equal((await desk.visitor.press(preview, "Delete user data", { typed: "v" })).status, 400);
  const done = await desk.visitor.press(preview, "Delete user data", { typed: "u" });
  assert.match(done.text, /The deletion of u is queued as job_/);
  await service.admin("POST", "/sweep");
  assert.match((await desk.visitor.get(`${desk.base}/users/u`)).text, /No user with this ID/);
});

Deno.test("without their secrets, export and deletion show that they are off", async () => {
  const bare = await startTestService(undefined, { privacySecret: null, exportSecret: null });
  try {
    const desk = await Desk.open(bare);
    for (
      const [action, button, typed, setting] of [
        ["export", "Create link", "", "ANALYTICS_EXPORT_SECRET"],
        ["erase", "Delete user data", "u", "HOLDFAST_PRIVACY_SECRET"],
      ] as const
    ) {
      const preview = await desk.visitor.get(`${desk.base}/users/u/${action}`);
      const refused = await desk.visitor.press(preview, button, { typed });
      assert.equal(refused.status, 501);
      assert.match(refused.text, new RegExp(`${setting} is not set`));
    }
  } finally {
    await bare.close();
  }
});

Deno.test("the test clock moves forward, never back, and live mode has none", async () => {
  const desk = await Desk.open(service, "test");
  const path = `${desk.base}/clock`;
  const preview = await desk.visitor.press(await desk.visitor.get(path), PREVIEW, {
    advanceSeconds: "3",
    unit: "days",
  });
  assert.match(preview.text, /moves forward by 3 days/);
  const now = async () => {
    const { app } = desk;
    return Date.parse((await dataOf(app.call("GET", "/test-clock", undefined, { key: app.secretTest }))).now);
  };
  const before = await now();
  const done = await desk.visitor.press(preview, "Move test clock", { typed: "yes" });
  assert.match(done.text, /The test clock shows/);
  assert.equal(await now(), before + 3 * DAY_MS);
  const back = await desk.visitor.press(await desk.visitor.get(path), PREVIEW, { now: "2020-01-01T00:00" });
  const refused = await desk.visitor.press(back, "Move test clock", { typed: "yes" });
  assert.match(refused.html, /id="now-fault"/);
  assert.equal((await desk.visitor.get(`/console/apps/${desk.app.appId}/live/clock`)).status, 403);
});

Deno.test("a key of a user is shown once, made once for a form that is sent twice, and revoked", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_free" });
  const preview = await desk.preview("keys/new", { name: "CI" });
  assert.match(preview.text, /u gets a key. It is valid at once\./);
  const done = await desk.visitor.press(preview, "Create key");
  const [key = ""] = /uk_live_[0-9A-Za-z]{32}_[0-9a-z_]+/.exec(done.html) ?? [];
  const own = await desk.app.call("GET", "/usage", undefined, { key });
  assert.deepEqual([own.status, own.body.data?.userId], [200, "u"]);
  await desk.visitor.press(preview, "Create key");
  const { keys: [made, ...others] } = await desk.get("/users/u/keys");
  assert.deepEqual(others, []);
  const page = await desk.visitor.get(`${desk.base}/users/u/privacy`);
  assert.ok(page.text.includes(`${key.slice(0, 12)}… CI`) && !page.html.includes(key), page.text);
  const asked = await desk.visitor.get(`${desk.base}/users/u/keys/${made.userKeyId}/revoke`);
  assert.match((await desk.visitor.press(asked, "Revoke", { typed: "yes" })).text, /is revoked/);
  assert.equal((await desk.app.call("GET", "/usage", undefined, { key })).status, 401);
  const { entries } = await dataOf(service.admin("GET", `/audit?appId=${desk.app.appId}&limit=10`));
  const logged = entries.filter(({ what }: { what: string }) => what.endsWith("UserKey"));
  assert.deepEqual(logged.map(({ via, what }: Record<string, string>) => [via, what]), [
    ["console", "revokeUserKey"],
    ["console", "createUserKey"],
  ]);
  assert.ok(!JSON.stringify(entries).includes(key));
});

Deno.test("seats, a trial and the next plan are set in the console, and shown where usage is explained", async () => {
  const speed = { ...groupOf("speed", 9), period: { type: "rolling", seconds: 60 } } as const;
  const plans = [
    planOf("plan_free", {}, {
      limits: [groupOf("images", 5), speed],
      trial: { days: 2, thenPlanId: "plan_pro" },
    }),
    planOf("plan_pro", { images: 9 }),
  ];
  const desk = new Desk(await service.newApp({ plans }), await Visitor.signedIn(consoleOf(service)));
  const endsAt = new Date(service.clock.now() + 9 * DAY_MS).toISOString();
  const begun = await desk.preview("plan", {
    planId: "plan_free",
    endsAt: endsAt.slice(0, 16),
    trial: "yes",
  });
  assert.match(begun.text, /Trial none 2 days/);
  await desk.visitor.press(begun, "Change plan");
  assert.match((await desk.preview("seats", { quantity: "1" })).text, /No changes/);
  assert.match((await desk.preview("seats", { quantity: "0" })).html, /id="quantity-fault"/);
  const preview = await desk.preview("seats", { quantity: "3" });
  assert.match(preview.text, /Seats 1 3/);
  await desk.visitor.press(preview, "Save");
  const read = async () => (await desk.get("/users/u")).subscription;
  const { quantity, trialEndsAt, endsAt: end } = await read();
  assert.deepEqual([quantity, typeof trialEndsAt, end.slice(0, 16)], [3, "string", endsAt.slice(0, 16)]);
  await desk.visitor.press(await desk.preview("seats", { quantity: "3", paid: "yes" }), "Save");
  assert.equal((await read()).trialEndsAt, null);
  const later = await desk.preview("next-plan", { planId: "plan_pro" });
  assert.match(later.text, /changes to plan_pro at the end of the running period/);
  await desk.visitor.press(later, "Schedule the change");
  assert.equal((await read()).scheduled.planId, "plan_pro");
  const dropping = await desk.visitor.get(`${desk.base}/users/u/next-plan/drop`);
  await desk.visitor.press(dropping, "Drop the change");
  assert.equal((await read()).scheduled ?? null, null);
  assert.equal((await desk.visitor.get(`${desk.base}/users/u/next-plan/drop`)).status, 404);
  const explained = await desk.visitor.get(`${desk.base}/users/u/explain?event=x.y`);
  assert.match(explained.text, /Counts .* in the last 60 s/);
});
