// The catalog in the console beyond its editor: tried in test mode, promoted, dropped, and put back.

import assert from "node:assert/strict";
import { consoleOf, formOf, hasButton, SUPPORT_TOKEN, type Visit, Visitor } from "./console_support.ts";
import { appWithUser, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

async function scene() {
  const app = await appWithUser(service);
  const visitor = await Visitor.signedIn(consoleOf(service));
  const base = `/console/apps/${app.appId}`;
  const quotas = async () => {
    const of = async (mode: string) =>
      (await dataOf(service.admin("GET", `/apps/${app.appId}/catalog?mode=${mode}`))).plans[0].limits[1]
        .quota;
    return [await of("live"), await of("test")];
  };
  return { app, visitor, base, quotas };
}

const editorOf = (page: Visit) => formOf(page.html, "Check").fields["catalog"]?.replace(/^\n/, "") ?? "";

/** Checks a text with another quota on a page. */
async function check(visitor: Visitor, page: Visit, quota: number): Promise<Visit> {
  const catalog = editorOf(page).replace(/"quota": \d{4}/, `"quota": ${quota}`);
  return await visitor.press(page, "Check", { catalog });
}

Deno.test("a catalog is tried in test mode from the editor, and promoted after a look at what changes", async () => {
  const { app, visitor, base, quotas } = await scene();
  const checked = await check(visitor, await visitor.get(`${base}/live/catalog`), 2000);
  assert.match(checked.text, /Users on plans that change: 1 in live mode, 0 in test mode/);
  const tried = await visitor.press(checked, "Try in test mode", { catalog: editorOf(checked) });
  assert.equal(tried.path, `${base}/test/catalog`);
  assert.match(tried.text, /version 2 is in force in test mode alone; live mode has version 1/);
  assert.deepEqual(await quotas(), [1000, 2000]);

  const live = await visitor.get(`${base}/live/catalog`);
  assert.match(live.text, /version 1 is in force in live mode alone; test mode has version 2/);
  const again = await check(visitor, live, 3000);
  assert.ok(!hasButton(again.html, "Try in test mode"));
  await visitor.press(again, "Apply as version 3", { catalog: editorOf(again) });
  assert.deepEqual(await quotas(), [3000, 2000]);

  const preview = await visitor.get(`${base}/test/catalog/promote`);
  assert.match(preview.text, /Changes: plans\[0\]\.limits\[1\]\.quota \(lg_chat\) changed/);
  const promoted = await visitor.press(preview, "Promote");
  assert.match(promoted.text, /Version 4 of the catalog is in force in live and test mode/);
  assert.deepEqual(await quotas(), [2000, 2000]);
  assert.equal((await visitor.get(`${base}/test/catalog/promote`)).status, 404);
  const [version] = await dataOf(service.admin("GET", `/apps/${app.appId}/catalog/versions`));
  assert.deepEqual([version.version, version.who], [4, "admin"]);
});

Deno.test("a catalog of test mode is dropped; a refusal names the plan that test users have", async () => {
  const { app, visitor, base, quotas } = await scene();
  const page = await visitor.get(`${base}/test/catalog`);
  const document = JSON.parse(editorOf(page));
  document.plans.push({ ...document.plans[0], id: "plan_extra", name: "Extra" });
  const checked = await visitor.press(page, "Check", { catalog: JSON.stringify(document) });
  const applied = await visitor.press(checked, "Apply as version 2", { catalog: editorOf(checked) });
  assert.match(applied.text, /Compared with live mode .*plan_extra/s);
  const subscribe = (planId: string) =>
    dataOf(app.call("POST", "/subscriptions", { userId: "t", planId }, { key: app.secretTest }));
  await subscribe("plan_extra");
  const refused = await visitor.get(`${base}/test/catalog/drop`);
  assert.match(refused.text, /plans with active subscriptions: plan_extra/);
  await subscribe("plan_pro");
  const dropped = await visitor.press(await visitor.get(`${base}/test/catalog/drop`), "Drop");
  assert.match(dropped.text, /version 1 is in force in live and test mode/);
  assert.deepEqual(await quotas(), [1000, 1000]);
});

Deno.test("versions are listed, compared with the catalog in force, and put back as a new one", async () => {
  const { visitor, base, quotas } = await scene();
  const checked = await check(visitor, await visitor.get(`${base}/live/catalog`), 2000);
  await visitor.press(checked, "Apply as version 2", { catalog: editorOf(checked) });
  const list = await visitor.get(`${base}/live/catalog/versions`);
  assert.match(
    list.text,
    /Version 2 in force: live and test .*admin.*quota \(lg_chat\) changed.*Version 1.*API/s,
  );
  const first = await visitor.get(`${base}/live/catalog/versions/1`);
  assert.match(first.html, /<del>[^<]*&quot;quota&quot;: 2000.*<ins>[^<]*&quot;quota&quot;: 1000/s);
  const preview = await visitor.get(`${base}/live/catalog/versions/1/put-back`);
  assert.match(
    preview.text,
    /document of version 1 replaces version 2 in live and test mode.*1 in live mode/s,
  );
  assert.match((await visitor.press(preview, "Put back")).text, /Version 3 of the catalog is in force/);
  assert.deepEqual(await quotas(), [1000, 1000]);
  assert.match((await visitor.get(`${base}/live/catalog/versions/3`)).text, /No difference/);
  assert.equal((await visitor.get(`${base}/live/catalog/versions/9`)).status, 404);
  const support = await Visitor.signedIn(consoleOf(service), SUPPORT_TOKEN);
  assert.ok(!(await support.get(`${base}/live/catalog/versions/2`)).text.includes("Put back"));
});
