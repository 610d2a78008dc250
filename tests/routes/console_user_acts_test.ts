// Everything that is done to a user through the console: what each act previews, does, and says when it cannot. How acts go
// step by step is in console_acts_test.ts.

import assert from "node:assert/strict";
import { consoleOf, Visitor } from "./console_support.ts";
import { dataOf, serviceOfFile } from "./support.ts";
import { startTestService, type TestApp, type TestService } from "../support/test_service.ts";

const service = serviceOfFile();
const PREVIEW = "Show what it will do";
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

  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  post(path: string, body: object): Promise<any> {
    return dataOf(this.app.call("POST", path, body));
  }

  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  get(path: string): Promise<any> {
    return dataOf(this.app.call("GET", path));
  }

  /** Opens the form of an act on user "u", and asks what it will do. */
  async preview(act: string, filled: Record<string, string>) {
    return await this.visitor.press(await this.visitor.get(`${this.base}/users/u/${act}`), PREVIEW, filled);
  }
}

Deno.test("another plan: the policy is told, and custom limits that go; an end that is set can be kept", async () => {
  const desk = await Desk.open();
  const endsAt = new Date(service.clock.now() + 9 * DAY_MS).toISOString();
  const customLimits = { lg_free_images: { quota: 44 } };
  await desk.post("/subscriptions", { userId: "u", planId: "plan_free", endsAt, customLimits });
  const preview = await desk.preview("plan", { planId: "plan_pro" });
  assert.match(
    preview.text,
    /u is on Pro from now on. What they used of limits that both plans have is carried/,
  );
  assert.match(preview.text, /Their custom limits go/);
  const end = `${endsAt.slice(0, 10)} ${endsAt.slice(11, 16)} UTC`;
  assert.ok(preview.text.includes(`Plan Free Pro Ends ${end} ${end}`), preview.text);
  const done = await desk.visitor.press(preview, "Change the plan");
  assert.match(done.text, /u is on Pro\./);
  const { subscription } = await desk.get("/users/u");
  assert.deepEqual([subscription.planId, subscription.endsAt], ["plan_pro", endsAt]);
  assert.equal(subscription.customLimits, null);
});

Deno.test("somebody without a plan gets one, and a paid row that ranks higher goes on deciding", async () => {
  const desk = await Desk.open();
  const first = await desk.preview("plan", { planId: "plan_pro" });
  assert.match(first.text, /Usage begins at 0/);
  await desk.visitor.press(first, "Change the plan");
  const paid = { userId: "u", planId: "plan_team", provider: "stripe", externalId: "si_1" };
  const { subscriptionId } = await desk.post("/subscriptions", paid);
  const form = await desk.visitor.get(`${desk.base}/users/u/plan`);
  const rows = [...form.html.matchAll(/<option value="(sub_[^"]*)"[^>]*>([^<]*)/g)];
  assert.deepEqual(rows.map(([, , text]) => text), ["Team (stripe si_1)", "Pro (default)"]);
  const row = rows.find(([, id]) => id !== subscriptionId)?.[1] ?? "";
  const preview = await desk.visitor.press(form, PREVIEW, { row, planId: "plan_free" });
  assert.match(preview.text, /Team \(stripe si_1\) stays active and ranks higher, so it goes on deciding/);
  await desk.visitor.press(preview, "Change the plan");
  const { subscription, duplicateActiveSubscriptions } = await desk.get("/users/u");
  assert.equal(subscription.planId, "plan_team");
  assert.equal(duplicateActiveSubscriptions.duplicates[0].planId, "plan_free");
});

Deno.test("custom limits keep the end of the subscription, clear what is left empty, and name a bad quota", async () => {
  const desk = await Desk.open();
  const endsAt = new Date(service.clock.now() + 9 * DAY_MS).toISOString();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro", endsAt });
  const bad = await desk.preview("limits", { "customLimits.lg_pro_images": "-1" });
  assert.match(bad.html, /id="customLimits\.lg_pro_images-fault"/);
  const none = await desk.preview("limits", {});
  assert.match(none.text, /Nothing changes: these quotas hold already/);
  const preview = await desk.preview("limits", { "customLimits.lg_pro_images": "250" });
  assert.match(preview.text, /Images a month 100, as the plan says 250/);
  await desk.visitor.press(preview, "Set the limits");
  const { subscription } = await desk.get("/users/u");
  assert.deepEqual([subscription.customLimits, subscription.endsAt], [
    { lg_pro_images: { quota: 250 } },
    endsAt,
  ]);
  const back = await desk.preview("limits", { "customLimits.lg_pro_images": "" });
  assert.match(back.text, /Images a month 250 100, as the plan says/);
  await desk.visitor.press(back, "Set the limits");
  assert.equal((await desk.get("/users/u")).subscription.customLimits, null);
});

Deno.test("a cancel now or later says what is left, and a subscription that ended meanwhile is told", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  const past = await desk.preview("cancel", { endsAt: "2020-01-01T00:00" });
  const refused = await desk.visitor.press(past, "Cancel the subscription");
  assert.match(refused.html, /id="endsAt-fault"[^>]*>must not be in the past/);
  const later = new Date(service.clock.now() + DAY_MS).toISOString().slice(0, 19);
  await desk.visitor.press(await desk.preview("cancel", { endsAt: later }), "Cancel the subscription");
  assert.equal((await desk.get("/users/u")).subscription.endsAt.slice(0, 19), later);
  const preview = await desk.preview("cancel", { reason: "moved away" });
  assert.match(preview.text, /\(default\) of u ends now. No other one is active: then credits alone pay/);
  const done = await desk.visitor.press(preview, "Cancel the subscription");
  assert.match(done.text, /Pro \(default\) is canceled/);
  const { subscription, history } = await desk.get("/users/u");
  assert.deepEqual([subscription, history[0].reason], [null, "moved away"]);
  assert.equal((await desk.visitor.get(`${desk.base}/users/u/cancel`)).status, 404);
});

Deno.test("a hold is released after its consequence was understood, and one that is settled is none", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  const { reservationId } = await desk.post("/reserve", { userId: "u", event: "image.x", count: 7 });
  const preview = await desk.preview(`holds/${reservationId}/release`, { reason: "stuck" });
  assert.match(preview.text, /Held of lg_pro_images 7 0/);
  assert.match(preview.text, /its commit will be refused and its use never counted/);
  assert.equal((await desk.visitor.press(preview, "Release the hold")).status, 400);
  const done = await desk.visitor.press(preview, "Release the hold", { typed: "yes" });
  assert.match(done.text, /The hold of image.x is released/);
  assert.equal((await desk.visitor.get(`${desk.base}/users/u/holds/${reservationId}/release`)).status, 409);
});

Deno.test("an expiry is extended to later or to never, and an earlier one is refused at its field", async () => {
  const desk = await Desk.open();
  const at = (days: number) => new Date(service.clock.now() + days * DAY_MS + 123).toISOString();
  const grant = { userId: "u", packId: "cpk_wallet", quantity: 5, expiresAt: at(5) };
  const { balanceId } = await desk.post("/credits/grant", grant);
  const act = `balances/${balanceId}/extend`;
  const expiry = async () => (await desk.get("/credits?userId=u")).credits[0].expiresAt;
  const same = await desk.preview(act, {});
  assert.match(same.html, /id="expiresAt-fault"[^>]*>This is the expiry that it has/);
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
  assert.match(never.text, /The balance of Wallet expires never/);
  assert.equal(await expiry(), null);
});

Deno.test("a merge previews its dry run, is stopped when either user changed since, and leads to both ids", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  await desk.post("/credits/grant", { userId: "v", packId: "cpk_wallet", quantity: 5 });
  const self = await desk.preview("merge", { other: "u" });
  assert.match(self.html, /id="other-fault"/);
  const preview = await desk.preview("merge", { other: "v" });
  assert.match(preview.text, /v becomes an alias of u. From then on both ids are the same user/);
  assert.match(preview.text, /Credit balances v u \(1\)/);
  await desk.post("/credits/grant", { userId: "v", packId: "cpk_wallet", quantity: 6 });
  const again = await desk.visitor.press(preview, "Merge", { typed: "v" });
  assert.equal(again.status, 409);
  assert.match(again.text, /Something changed since this was shown.* Credit balances v u \(2\)/);
  assert.deepEqual((await desk.get("/users/u")).aliases, []);
  const done = await desk.visitor.press(again, "Merge", { typed: "v" });
  assert.match(done.text, /v is an alias of u now/);
  assert.deepEqual((await desk.get("/users/u")).aliases, ["v"]);
  assert.match((await desk.preview("merge", { other: "v" })).text, /These two ids are one user already/);
});

Deno.test("consent is taken and given by scope, and what stands already is told", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  const preview = await desk.preview("opt-out", { scope: "all" });
  assert.match(preview.text, /analytics in opted out ai personalization in opted out/);
  await desk.visitor.press(preview, "Opt out");
  const isOut = async (scope: string) => (await desk.get(`/opted-out?distinctId=u&scope=${scope}`)).optedOut;
  assert.deepEqual([await isOut("analytics"), await isOut("prompt_logging")], [true, false]);
  assert.match((await desk.preview("opt-out", { scope: "analytics" })).text, /they are opted out already/);
  await desk.visitor.press(await desk.preview("opt-in", { scope: "analytics" }), "Opt in");
  assert.deepEqual([await isOut("analytics"), await isOut("ai_personalization")], [false, true]);
});

Deno.test("an export is a link that opens the person's document, and shows once", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  await desk.post("/track", { userId: "u", event: "image.x" });
  const preview = await desk.visitor.get(`${desk.base}/users/u/export`);
  assert.match(preview.text, /It works for 24 hours, and whoever has it can open it/);
  const done = await desk.visitor.press(preview, "Make the link");
  const link = /<pre>([^<]*)<\/pre>/.exec(done.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
  const download = await service.http.fetch(new Request(link));
  assert.equal(download.status, 200);
  assert.equal((await download.json()).events.metering.length, 1);
});

Deno.test("an erasure names every id that goes, and waits for the id to be typed", async () => {
  const desk = await Desk.open();
  await desk.post("/subscriptions", { userId: "u", planId: "plan_pro" });
  await desk.post("/subscriptions", { userId: "v", planId: "plan_free" });
  await desk.post("/customers/alias", { from: "v", to: "u" });
  const preview = await desk.visitor.get(`${desk.base}/users/u/erase`);
  assert.match(preview.text, /These ids go with it: v\./);
  assert.equal((await desk.visitor.press(preview, "Erase", { typed: "v" })).status, 400);
  const done = await desk.visitor.press(preview, "Erase", { typed: "u" });
  assert.match(done.text, /The erasure of u is queued as job_/);
  await service.admin("POST", "/sweep");
  assert.match((await desk.visitor.get(`${desk.base}/users/u`)).text, /Nobody has used this id/);
});

Deno.test("without their secrets export and erasure say that they are off", async () => {
  const bare = await startTestService(undefined, { privacySecret: null, exportSecret: null });
  try {
    const desk = await Desk.open(bare);
    for (
      const [act, button, typed, setting] of [
        ["export", "Make the link", "", "ANALYTICS_EXPORT_SECRET"],
        ["erase", "Erase", "u", "HOLDFAST_PRIVACY_SECRET"],
      ] as const
    ) {
      const preview = await desk.visitor.get(`${desk.base}/users/u/${act}`);
      const refused = await desk.visitor.press(preview, button, { typed });
      assert.equal(refused.status, 501);
      assert.match(refused.text, new RegExp(`${setting} is not set`));
    }
  } finally {
    await bare.close();
  }
});

Deno.test("the test clock moves test mode forward, never back, and live mode has none", async () => {
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
  const done = await desk.visitor.press(preview, "Move the clock", { typed: "yes" });
  assert.match(done.text, /The test clock stands at/);
  assert.equal(await now(), before + 3 * DAY_MS);
  const back = await desk.visitor.press(await desk.visitor.get(path), PREVIEW, { now: "2020-01-01T00:00" });
  const refused = await desk.visitor.press(back, "Move the clock", { typed: "yes" });
  assert.match(refused.html, /id="now-fault"/);
  assert.equal((await desk.visitor.get(`/console/apps/${desk.app.appId}/live/clock`)).status, 403);
});
