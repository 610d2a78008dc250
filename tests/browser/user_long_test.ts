// Answering a customer, in a real browser from sign-in to sign-out: the user is found by the keyboard, a refusal explained,
// credits granted, and a bar moves as the customer goes on.

import assert from "node:assert/strict";
import { dataOf } from "../routes/support.ts";
import { startTestService } from "../support/test_service.ts";
import { chromium, fill, press, Stage, until, wordsOf } from "./browser.ts";

Deno.test({
  name: "a user is found, a refusal is explained, credits are granted, and the bars move while one looks",
  ignore: chromium() === null,
  sanitizeOps: false,
  sanitizeResources: false,
  fn: async () => {
    const service = await startTestService();
    const stage = await Stage.open(service);
    try {
      const app = await service.newApp();
      const post = (path: string, body: object) => app.call("POST", path, { userId: "maria", ...body });
      await dataOf(post("/subscriptions", { planId: "plan_pro" }));
      await dataOf(post("/track", { event: "image.render", count: 90 }));
      assert.equal((await dataOf(post("/reserve", { event: "image.render", count: 20 }))).allowed, false);

      const page = await stage.signedIn();
      await page.goto(`${stage.origin}/console/apps/${app.appId}/live`);
      await page.keyboard.press("/");
      await page.keyboard.type("mar");
      await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
      assert.equal(new URL(page.url()).pathname, `/console/apps/${app.appId}/live/users/maria`);
      assert.match(await wordsOf(page), /Images a month\s+90 of 100/);

      await press(page, "Would it be now?");
      await fill(page, "count", "20");
      await press(page, "Explain");
      assert.match(
        await wordsOf(page),
        /Refused by the limit "Images a month" \(count\): 90 of 100 are used/,
      );

      await press(page, "maria");
      await press(page, "Grant credits");
      await press(page, "Show what it will do");
      await press(page, "Grant");
      assert.match(await wordsOf(page), /maria has the credits of Image Top-Up/);
      assert.match(await wordsOf(page), /Image Top-Up[\s\S]*50\s+of 50/);

      assert.equal((await dataOf(post("/reserve", { event: "image.render", count: 20 }))).allowed, true);
      await until(page, /Images a month\s+100 of 100/);
      await until(page, /Image Top-Up[\s\S]*40\s+of 50/);
      await until(page, /10 of Images a month\s+10 of credits of Image Top-Up/);

      await press(page, "Sign out");
      assert.equal(new URL(page.url()).pathname, "/console/sign-in");
      assert.deepEqual(stage.complaints, []);
    } finally {
      await stage.close();
      await service.close();
    }
  },
});
