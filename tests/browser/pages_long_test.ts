// Every page of the console in a browser, reached by links: no violations of accessibility rules in either theme, no
// horizontal scrolling at the width of a phone, and no errors of scripts or of the content security policy.

import assert from "node:assert/strict";
import axe from "npm:axe-core@4.14.1";
import type { Page } from "npm:puppeteer-core@25.16.0";
import { appWithUser, CATALOG, dataOf } from "../routes/support.ts";
import { ADMIN_TOKEN, type TestApp, type TestService } from "../support/test_service.ts";
import { browserOfFile } from "./browser.ts";

const inBrowser = browserOfFile();
const THEMES = ["light", "dark"] as const;
const OF_COLORS = { type: "rule", values: ["color-contrast", "link-in-text-block"] };
const PHONE_PX = 360;

/** The kind of a page: its path without IDs and query. */
function kindOf(path: string, app: TestApp): string {
  return path.replace(/\?.*$/, "").replaceAll(app.appId, "APP")
    .replaceAll(/\/(evt|rsv|crb|sub|mrg|whk|whm|key|cle|run)_[^/]+/g, "/$1")
    .replaceAll(/\/users\/[^/]+/g, "/users/ID").replace(/\/versions\/\d+/, "/versions/N");
}

/** The violations that axe finds: the rule, and the first elements that violate it. Themes differ in colors alone. */
async function violationsOf(page: Page, theme: (typeof THEMES)[number]): Promise<string[]> {
  const options = theme === THEMES[0] ? {} : { runOnly: OF_COLORS };
  const { violations } = await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`) as {
    readonly violations: readonly {
      readonly id: string;
      readonly nodes: readonly { readonly html: string }[];
    }[];
  };
  return violations.map(({ id, nodes }) => `${id} at ${nodes.slice(0, 2).map(({ html }) => html).join(" ")}`);
}

async function linksOf(page: Page): Promise<string[]> {
  return await page.$$eval(
    "a[href]",
    (links) => links.map((link) => (link as unknown as { href: string }).href),
  );
}

/** An app with rows in every list. */
async function liveliness(service: TestService): Promise<TestApp> {
  const app = await appWithUser(service);
  const post = (path: string, body: unknown) => dataOf(app.call("POST", path, body));
  for (let count = 0; count < 3; count++) await post("/track", { userId: "u", event: "image.x", count: 20 });
  await post("/reserve", { userId: "u", event: "image.x", count: 5 });
  await post("/reserve", { userId: "u", event: "image.x", count: 500 });
  await post("/track", { userId: "old", event: "image.x" });
  await post("/customers/alias", { from: "old", to: "u" });
  await dataOf(app.call("PUT", "/users/member/parent", { parentId: "u" }));
  await post("/track", { userId: "member", event: "image.x" });
  const tried = { ...CATALOG, settings: { promptLogging: true } };
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog?mode=test`, tried));
  await post("/runs", { userId: "u", name: "Task", limits: [{ unit: "count", quota: 5 }] });
  return app;
}

inBrowser(
  "every linked page is accessible in both themes, fits a phone, and violates no policy",
  async (stage) => {
    const app = await liveliness(stage.service);
    const page = await stage.signedIn();
    const faults: string[] = [];
    const seen = new Set<string>();
    const next = [
      `${stage.origin}/console/apps/${app.appId}/live`,
      `${stage.origin}/console/apps/${app.appId}/live/users/u`,
      `${stage.origin}/console/apps/${app.appId}/live/users/unknown`,
      `${stage.origin}/console/nowhere`,
    ];
    for (const url of next) {
      const { pathname, search } = new URL(url);
      const kind = kindOf(pathname + search, app);
      if (seen.has(kind) || url.includes("format=csv") || pathname.endsWith(".csv")) continue;
      seen.add(kind);
      await page.setViewport({ width: 1200, height: 900 });
      const response = await page.goto(url);
      assert.ok(response !== null);
      if (response.status() >= 500) faults.push(`${kind}: ${response.status()}`);
      await page.evaluate(axe.source);
      for (const theme of THEMES) {
        await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
        for (const violation of await violationsOf(page, theme)) {
          faults.push(`${kind}, ${theme}: ${violation}`);
        }
      }
      await page.setViewport({ width: PHONE_PX, height: 800 });
      const over = await page.evaluate("document.documentElement.scrollWidth - innerWidth") as number;
      if (over > 0) faults.push(`${kind}: ${over} px wider than a phone`);
      for (const href of await linksOf(page)) {
        if (href.startsWith(`${stage.origin}/console`) && !href.includes("#")) next.push(href);
      }
    }
    assert.deepEqual(faults, []);
    assert.ok(seen.size >= 15, [...seen].join("\n"));
  },
);

inBrowser(
  "names of 200 characters without a break fit every page, on a desk and on a phone",
  async (stage) => {
    const app = await appWithUser(stage.service);
    const [userId, event, name] = ["W", "e", "n"].map((letter) => letter.repeat(200)) as [
      string,
      string,
      string,
    ];
    const post = (path: string, body: object) => dataOf(app.call("POST", path, { userId, ...body }));
    await post("/subscriptions", { planId: "plan_pro", provider: "p".repeat(100), externalId: name });
    await post("/track", { event: "image.x", metadata: { model: name } });
    await post("/reserve", { event });
    await post("/runs", { name, limits: [{ unit: "count", quota: 5, event }] });
    await dataOf(app.call("PUT", `/users/${"C".repeat(200)}/parent`, { parentId: userId }));
    await dataOf(app.call("POST", "/customers/alias", { from: "A".repeat(200), to: userId }));
    const url = `https://example.test/${name}`;
    await dataOf(
      stage.service.admin("POST", `/apps/${app.appId}/webhooks`, { url, mode: "live", events: ["*"] }),
    );
    const page = await stage.signedIn();
    const faults: string[] = [];
    const user = `/users/${userId}`;
    const paths = [
      "",
      "/users",
      "/events",
      "/refusals",
      "/webhooks",
      user,
      `${user}/billing`,
      `${user}/activity`,
    ];
    for (const path of [...paths, `${user}/privacy`, `${user}/runs`, `${user}/ledger`, `${user}/grant`]) {
      await page.goto(`${stage.origin}/console/apps/${app.appId}/live${path}`);
      for (const width of [1200, PHONE_PX]) {
        await page.setViewport({ width, height: 800 });
        const over = await page.evaluate("document.documentElement.scrollWidth - innerWidth") as number;
        if (over > 0) faults.push(`${path}: ${over} px wider than ${width}`);
      }
    }
    assert.deepEqual(faults, []);
  },
);

inBrowser("a first visit loads less than 200 KB, sign-in and the page after it", async (stage) => {
  await stage.service.newApp();
  const page = await stage.window();
  const session = await page.createCDPSession();
  await session.send("Network.enable");
  let bytes = 0;
  session.on("Network.loadingFinished", ({ encodedDataLength }) => bytes += encodedDataLength);
  await page.goto(`${stage.origin}/console`, { waitUntil: "networkidle0" });
  await page.type("#token", ADMIN_TOKEN);
  await Promise.all([
    page.waitForNavigation({ waitUntil: "networkidle0" }),
    page.click("main button[type=submit]"),
  ]);
  assert.ok(bytes > 1000 && bytes < 200 * 1024, `${bytes} bytes`);
});
