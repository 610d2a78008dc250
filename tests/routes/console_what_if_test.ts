// The page that tries a catalog on recorded events.

import assert from "node:assert/strict";
import { consoleOf, SUPPORT_TOKEN, Visitor } from "./console_support.ts";
import { dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

function catalogOf(quota: number) {
  const limits = [{ id: "lg", label: "Calls", unit: "count", quota, matches: [{ event: "*" }] }];
  return { plans: [{ id: "p", name: "P", rank: 1, period: { type: "daily", anchor: "calendar" }, limits }] };
}

Deno.test("the page says by day and group which calls the edited catalog would refuse", async () => {
  const app = await service.newApp(catalogOf(100));
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "p" }));
  for (let call = 0; call < 5; call++) {
    await dataOf(app.call("POST", "/track", { userId: "u", event: "x" }));
  }
  const visitor = await Visitor.signedIn(consoleOf(service));
  const path = `/console/apps/${app.appId}/live/catalog/what-if`;
  const editor = await visitor.get(`/console/apps/${app.appId}/live/catalog`);
  assert.match(editor.html, new RegExp(`formaction="${path}"[^>]*>What if<`));
  const catalog = JSON.stringify(catalogOf(3));
  // The editor sends its text, without a span.
  const opened = await visitor.press({ ...editor, path }, "Check", { catalog });
  assert.equal(opened.status, 200);
  const page = await visitor.press({ ...await visitor.get(path), path }, "Try", { catalog });
  assert.equal(page.status, 200);
  assert.match(page.text, /Calls that would be refused Of 5 events of 1 users\./);
  assert.match(page.text, /2026-01-15 Calls 2 1/);
  const same = await visitor.press(await visitor.get(path), "Try", {
    catalog: JSON.stringify(catalogOf(100)),
  });
  assert.match(same.text, /No call would be refused/);
});

Deno.test("errors of the text and the span are shown, and the text is kept", async () => {
  const app = await service.newApp(catalogOf(100));
  const visitor = await Visitor.signedIn(consoleOf(service));
  const path = `/console/apps/${app.appId}/live/catalog/what-if`;
  const tries: [Record<string, string>, RegExp][] = [
    [{ catalog: "{" }, /Invalid JSON/],
    [{ catalog: '{"plans":[{}]}' }, /plans\[0\]/],
    [{ catalog: "{}", from: "yesterday" }, /must be/],
    [{ catalog: "{}", to: "2020-01-01" }, /must be after from/],
  ];
  for (const [filled, expected] of tries) {
    const { status, text } = await visitor.press(await visitor.get(path), "Try", filled);
    assert.equal(status, 400);
    assert.match(text, expected);
  }
  const support = await Visitor.signedIn(consoleOf(service), SUPPORT_TOKEN);
  assert.equal((await support.get(path)).status, 200);
});
