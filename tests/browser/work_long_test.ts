// Tasks of operators in the console, done in a real browser from beginning to end.

import assert from "node:assert/strict";
import { assertRefused, CATALOG, dataOf } from "../routes/support.ts";
import { ADMIN_TOKEN, type TestApp } from "../support/test_service.ts";
import { browserOfFile, fill, press, type Stage, until, wordsOf } from "./browser.ts";

/** A webhook receiver that is down until `isUp` is set. */
class Receiver {
  isUp = false;
  readonly types: string[] = [];
  readonly #server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const { type } = await request.json();
    if (this.isUp) this.types.push(type);
    return new Response(null, { status: this.isUp ? 204 : 500 });
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/`;
  }

  close(): Promise<void> {
    return this.#server.shutdown();
  }
}

const inBrowser = browserOfFile();

interface Scene {
  readonly stage: Stage;
  readonly app: TestApp;
  /** The URL of the app's pages. */
  readonly base: string;
}

const PACK = {
  id: "cpk_images",
  name: "Image Top-Up",
  kind: "per_type",
  items: [{
    id: "cpi_images",
    label: "50 images",
    unit: "count",
    amount: 50,
    matches: [{ event: "image.*" }],
  }],
};

/** Registers a test of an app that has credits to grant and a subscribed user "u". */
function inApp(name: string, work: (scene: Scene) => Promise<void>): void {
  inBrowser(name, async (stage) => {
    const app = await stage.service.newApp({ ...CATALOG, packs: [PACK] });
    await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
    await work({ stage, app, base: `${stage.origin}/console/apps/${app.appId}/live` });
  });
}

inApp(
  "a catalog with an error is corrected, checked and applied",
  async ({ stage, app, base }) => {
    const page = await stage.signedIn();
    await page.goto(`${base}/catalog`);
    const text = await page.$eval("textarea", (area) => (area as unknown as { value: string }).value);
    const changed = text.replace('"quota": 100,', '"quota": 120,');
    assert.notEqual(changed, text);

    await fill(page, "catalog", changed.replace('"quota": 120,', '"quota": -1,'));
    await press(page, "Check");
    assert.match(await wordsOf(page), /1 error[\s\S]*plans\[0\]\.limits\[0\]\.quota/);
    await fill(page, "catalog", `${changed},`);
    await press(page, "Check");
    assert.match(await wordsOf(page), /Line \d+, column \d+/);

    await fill(page, "catalog", changed);
    await press(page, "Check");
    assert.match(await wordsOf(page), /Changes[\s\S]*changed plans\[0\]\.limits\[0\]\.quota/);
    await press(page, "Apply as version 2");
    assert.match(await wordsOf(page), /version 2 is in force in live and test mode/);
    const inForce = (await stage.service.admin("GET", `/apps/${app.appId}/catalog`)).body.data;
    assert.deepEqual([inForce.version, inForce.plans[0].limits[0].quota], [2, 120]);
  },
);

inApp("an API key is created, shown once, and revoked after a confirmation", async ({ stage, base, app }) => {
  const page = await stage.signedIn();
  await page.goto(`${base}/keys`);
  await press(page, "Create API key");
  await press(page, "Continue");
  await press(page, "Create API key");
  const [key] = /sk_live_[A-Za-z0-9]+/.exec(await page.content()) ?? [];
  assert.ok(key !== undefined);
  assert.ok(!page.url().includes(key));
  await dataOf(app.call("GET", "/usage?userId=u", undefined, { key }));

  await page.goto(`${base}/keys`);
  assert.ok(!(await page.content()).includes(key));
  const revoke = await page.$$eval("tr", (rows, prefix) => {
    const row = rows.find((each) => (each as unknown as { innerText: string }).innerText.includes(prefix));
    return ([...row?.querySelectorAll("a") ?? []] as unknown as { href: string; innerText: string }[])
      .find(({ innerText }) => innerText === "Revoke")?.href ?? "";
  }, key.slice(0, 12));
  await page.goto(revoke);
  await page.type("#field-typed", key.slice(0, 12));
  await press(page, "Revoke");
  assert.match(await wordsOf(page), /is revoked/);
  assertRefused(await app.call("GET", "/usage?userId=u", undefined, { key }), 401, "invalid_key");
});

inApp(
  "a webhook endpoint is added, and a failed message is sent again and delivered",
  async ({ stage, base, app }) => {
    const receiver = new Receiver();
    try {
      const page = await stage.signedIn();
      await page.goto(`${base}/webhooks`);
      await press(page, "Add endpoint");
      await fill(page, "url", receiver.url);
      await press(page, "Continue");
      await press(page, "Add endpoint");
      assert.match(await page.content(), /whsec_/);

      await dataOf(app.call("POST", "/subscriptions", { userId: "v", planId: "plan_pro" }));
      await page.goto(`${base}/webhooks`);
      await press(page, receiver.url);
      while (!/subscription\.created[\s\S]*500/.test(await wordsOf(page))) await page.reload();
      receiver.isUp = true;
      await press(page, "Send again");
      await press(page, "Send again");
      await until(page, /delivered/);
      assert.deepEqual(receiver.types, ["subscription.created"]);
    } finally {
      await receiver.close();
    }
  },
);

inApp(
  "signing out ends the session in every window, and signing in returns to the requested page",
  async ({ stage, base }) => {
    const page = await stage.signedIn();
    const copy = await page.browserContext().newPage();
    await copy.goto(`${base}/keys`);
    const cookies = await page.browserContext().cookies();
    await page.bringToFront();
    await press(page, "Sign out");
    const thief = await stage.window();
    await thief.browserContext().setCookie(...cookies);
    for (const window of [copy, thief]) {
      await window.bringToFront();
      await window.goto(`${base}/keys`);
      assert.match(window.url(), /\/console\/sign-in\?to=/);
    }
    await copy.bringToFront();
    await copy.type("#token", ADMIN_TOKEN);
    await press(copy, "Sign in");
    assert.equal(copy.url(), `${base}/keys`);
  },
);

inApp("the keyboard reaches search, rows and pages", async ({ stage, base, app }) => {
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  const page = await stage.signedIn();
  await page.goto(base);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate("document.activeElement.id"), "search");
  await page.keyboard.press("Escape");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate("document.activeElement.className"), "row");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.notEqual(page.url(), base);
});

inBrowser(
  "a user is found, a refusal is explained, credits are granted, and the bars move on the open page",
  async (stage) => {
    const app = await stage.service.newApp();
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
    assert.match(await wordsOf(page), /Images a month\s+near limit\s+90 of 100/);

    for (const way of ["Check again", "Why was this refused?"]) {
      if (way === "Check again") await press(page, "Activity");
      // The newest refusal is filled in.
      await press(page, way);
      await fill(page, "count", "20");
      await press(page, "Explain");
      const why = /Refused by the limit "Images a month": 90 of 100 are used/;
      assert.match(await wordsOf(page), why);
      await press(page, "maria");
    }

    await press(page, "Grant credits");
    await press(page, "Continue");
    await press(page, "Grant");
    assert.match(await wordsOf(page), /Granted Image Top-Up to maria/);
    assert.match(await wordsOf(page), /Image Top-Up[\s\S]*50\s+of 50/);

    assert.equal((await dataOf(post("/reserve", { event: "image.render", count: 20 }))).allowed, true);
    await until(page, /Images a month\s+full\s+100 of 100/);
    await until(page, /Image Top-Up[\s\S]*40\s+of 50/);
    await until(page, /10 of Images a month\s+10 of credits of Image Top-Up/);

    await press(page, "Sign out");
    assert.equal(new URL(page.url()).pathname, "/console/sign-in");
  },
);

inApp("a new event in the live list keeps the focus on its row", async ({ stage, app, base }) => {
  const track = (quantity: number) =>
    dataOf(app.call("POST", "/track", { userId: "u", event: "image.render", quantity }));
  for (let quantity = 1; quantity <= 3; quantity++) await track(quantity);
  const page = await stage.signedIn();
  await page.goto(`${base}/events`);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  const focused = () =>
    page.evaluate("[document.activeElement.id, document.activeElement.closest('tr')?.innerText]");
  const before = await focused() as string[];
  assert.match(String(before), /^row-evt_.*image\.render/s);
  await track(71);
  await until(page, /\b71\b/);
  assert.deepEqual(await focused(), before);
  await page.keyboard.press("k");
  await page.keyboard.press("k");
  assert.match(String(await focused()), /\b71\b/);
});

inApp("a live change keeps the focus, the place and open details", async ({ stage, app, base }) => {
  const post = (path: string, body: object) => dataOf(app.call("POST", path, { userId: "u", ...body }));
  await post("/credits/grant", { packId: "cpk_images" });
  const { balanceId } = await post("/credits/grant", { packId: "cpk_images" });
  await post("/credits/revoke", { balanceId });
  const page = await stage.signedIn();
  await page.goto(`${base}/users/u`);
  const state = () =>
    page.evaluate("[document.activeElement.id, document.getElementById('past-credits').open, scrollY]");
  await page.evaluate("document.getElementById('past-credits').open = true");
  await page.focus('[id^="revoke-"]');
  const before = await state();
  await post("/track", { event: "image.render", count: 7 });
  await until(page, /\b7 of 100/);
  assert.deepEqual(await state(), before);
});

inApp(
  "going back after a form was answered shows its page, and no error of the browser",
  async ({ stage, base }) => {
    const page = await stage.signedIn();
    await page.goto(`${base}/users/u/grant`);
    await press(page, "Continue");
    await press(page, "Grant");
    const done = page.url();
    await page.goBack();
    await until(page, /Continue/);
    assert.equal(page.url(), `${base}/users/u/grant`);
    await page.goForward();
    assert.deepEqual([page.url(), done], [`${base}/users/u`, `${base}/users/u`]);

    await page.goto(`${base}/keys/new`);
    await press(page, "Continue");
    await press(page, "Create API key");
    assert.match(await page.content(), /sk_live_/);
    await page.goto(`${base}/keys`);
    // Chromium may keep a page in memory, or ask for it again.
    await page.goBack();
    assert.doesNotMatch(await page.content(), /value="sk_live_/);
    await until(page, /Continue/);
    assert.doesNotMatch(await page.content(), /value="sk_live_/);
  },
);

inApp("a printed page has its whole tables and nothing to press", async ({ stage, base }) => {
  const page = await stage.signedIn();
  // The width of A4 between margins.
  await page.setViewport({ width: 718, height: 1000 });
  await page.emulateMediaType("print");
  for (const path of ["", "/users", "/events", "/usage", "/users/u", "/users/u/explain?event=image.x"]) {
    await page.goto(base + path);
    const seen = await page.evaluate(`(() => {
      const all = [...document.querySelectorAll("body *")].filter((one) => one.getClientRects().length > 0);
      const scrolls = (one) => !["visible", "clip"].includes(getComputedStyle(one).overflowX);
      const cut = all.filter((one) => scrolls(one) && one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 1);
      const pressed = all.filter((one) => one.matches("header.bar, nav.tabs, .buttons, footer, form.filter"));
      return [...cut, ...pressed].map((one) => one.outerHTML.slice(0, 80));
    })()`);
    assert.deepEqual(seen, [], path);
    const wide = await page.evaluate(`[...document.querySelectorAll("main *")]
      .filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML.slice(0, 80))`);
    assert.deepEqual(wide, [], path);
  }
});

inApp("every menu opens within the width of a phone", async ({ stage, base }) => {
  const page = await stage.signedIn();
  await page.goto(`${base}/users/u`);
  for (const width of [320, 360, 480, 640]) {
    await page.setViewport({ width, height: 800 });
    const outside = await page.evaluate(`[...document.querySelectorAll("details.menu")].flatMap((menu) => {
      menu.open = true;
      const { left, right, top } = menu.querySelector(".items").getBoundingClientRect();
      const isBelow = top >= menu.querySelector("summary").getBoundingClientRect().bottom;
      menu.open = false;
      return left >= 0 && right <= innerWidth && isBelow ? [] : [[menu.innerText, left, right, top]];
    })`);
    assert.deepEqual(outside, [], `${width} px`);
  }
});
