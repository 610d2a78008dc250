// Runs in the console: what each used of its limits, and the action that ends one.

import assert from "node:assert/strict";
import { consoleOf, SUPPORT_TOKEN, Visitor } from "./console_support.ts";
import { appWithUser, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

/** An app whose user "u" has two open runs, one within the other; the inner one used 3 of 5. */
async function runs() {
  const app = await appWithUser(service);
  const open = async (more: object) => {
    const limits = [{ unit: "count", quota: 5, event: "image.*" }, { unit: "cents", quota: 250 }];
    return (await dataOf(app.call("POST", "/runs", { userId: "u", limits, ...more }))).runId;
  };
  const outer = await open({ name: "Nightly report" });
  const inner = await open({ parentRunId: outer });
  const call = { userId: "u", event: "image.x", runId: inner };
  await dataOf(app.call("POST", "/track", { ...call, count: 1, inputCostCents: 20 }));
  await dataOf(app.call("POST", "/reserve", { ...call, count: 2 }));
  const base = `/console/apps/${app.appId}/live/users/u`;
  return { app, base, outer, inner, visitor: await Visitor.signedIn(consoleOf(service)) };
}

Deno.test("the page of a user lists its runs with their limits; a page of its own lists them by status", async () => {
  const { app, base, outer, inner, visitor } = await runs();
  const { text } = await visitor.get(`${base}/activity`);
  assert.match(
    text,
    new RegExp(
      `Runs All runs .* ${inner} within ${outer} active 3 of 5 for image\\.\\* \\$0\\.20 of \\$2\\.50`,
    ),
  );
  assert.match(text, new RegExp(`Nightly report ${outer} active 3 of 5`));
  assert.doesNotMatch((await visitor.get(`${base}x/activity`)).text, /All runs/);
  await dataOf(app.call("POST", `/runs/${inner}/end`, { reason: "done" }));
  const ended = await visitor.get(`${base}/runs?status=ended`);
  assert.match(ended.text, new RegExp(`${inner} within ${outer} ended .* done none Times`));
  assert.doesNotMatch(ended.text, /Nightly report/);
  assert.match((await visitor.get(`${base}x/runs`)).text, /No runs\. Ended runs are kept for 30 days\./);
});

Deno.test("an admin ends a run after a confirmation, with the runs within it", async () => {
  const { app, base, outer, inner, visitor } = await runs();
  const form = await visitor.get(`${base}/runs/${outer}/end`);
  const preview = await visitor.press(form, "Continue", { reason: "too slow" });
  assert.match(preview.text, /Runs within it end too\..* Run Nightly report active ended/);
  assert.match((await visitor.press(preview, "End run")).text, /Confirm to continue/);
  assert.match((await visitor.press(preview, "End run", { typed: "yes" })).text, /Nightly report has ended/);
  const { status, reason } = await dataOf(app.call("GET", `/runs/${outer}`));
  assert.deepEqual([status, reason], ["ended", "too slow"]);
  assert.equal((await dataOf(app.call("GET", `/runs/${inner}`))).status, "ended");
  const again = await visitor.get(`${base}/runs/${outer}/end`);
  assert.deepEqual([again.status, /This run has already ended/.test(again.text)], [409, true]);
  await dataOf(app.call("POST", "/track", { userId: "v", event: "image.x" }));
  assert.equal((await visitor.get(`${base.replace(/u$/, "v")}/runs/${outer}/end`)).status, 404);
  const { entries } = await dataOf(service.admin("GET", `/audit?appId=${app.appId}&limit=5`));
  assert.deepEqual([entries[0].what, entries[0].who, entries[0].userId], ["endRun", "admin", "u"]);
  const support = await Visitor.signedIn(consoleOf(service), SUPPORT_TOKEN);
  assert.equal((await support.get(`${base}/runs/${inner}/end`)).status, 403);
});

Deno.test("a refusal that explain cannot foresee is not called allowed: one by a run, and one by a cap", async () => {
  const { app, base, inner, visitor } = await runs();
  await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x", runId: inner, count: 9 }));
  const { text, html } = await visitor.get(base);
  assert.match(text, /Limit of a run reached\. .*allowed now, but not in a run whose limit is used up: runs/);
  assert.match(text, /because the limit of its run was reached\. It would be allowed in a new run\./);
  assert.match(html, new RegExp(`href="${base}/runs">runs<`));
  const asked = await visitor.get(`${base}/explain?event=image.x&count=9&runId=${inner}`);
  assert.match(asked.text, /Nothing is charged\. Caps of the workspace are not checked\. Refused by .*run/);
  assert.match((await visitor.get(`${base}/explain?event=image.x&runId=none`)).text, /Run not found/);

  await dataOf(service.admin("PATCH", `/workspaces/${app.workspaceId}`, { operationCap: 1 }));
  await app.call("POST", "/reserve", { userId: "u", event: "image.x" });
  const capped = await visitor.get(base);
  assert.match(capped.text, /Workspace cap reached\. .* but the cap may still refuse it: caps of workspaces/);
  assert.doesNotMatch(capped.text, /try again/);
});
