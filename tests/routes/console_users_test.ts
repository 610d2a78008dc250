// The console's list of users: bars, orders, filters and pages, the CSV file, and the search that leads to users.

import assert from "node:assert/strict";
import { consoleOf, SUPPORT_TOKEN, Visitor } from "./console_support.ts";
import { CATALOG, dataOf, serviceOfFile } from "./support.ts";
import type { TestApp } from "../support/test_service.ts";

const service = serviceOfFile();

async function scene(...ids: string[]) {
  const app = await service.newApp(CATALOG);
  for (const userId of ids) {
    await dataOf(app.call("POST", "/subscriptions", { userId, planId: "plan_pro" }));
  }
  const visitor = await Visitor.signedIn(consoleOf(service), SUPPORT_TOKEN);
  return { app, visitor, base: `/console/apps/${app.appId}/live` };
}

const track = (app: TestApp, userId: string, count: number) =>
  dataOf(app.call("POST", "/track", { userId, event: "image.a", count }));

/** The links to users in a page, in their order. */
const namesOf = (html: string) =>
  [...html.matchAll(/class="row" href="[^"]*">([^<]*)</g)].map(([, id]) => id);

Deno.test("users are listed with bars that say how full a limit is, sorted and filtered by links", async () => {
  const { app, visitor, base } = await scene("ann", "bob", "cleo", "dan");
  for (const [userId, count] of [["ann", 85], ["bob", 100], ["cleo", 20]] as const) {
    await track(app, userId, count);
  }
  const page = await visitor.get(`${base}/users`);
  assert.equal(page.status, 200);
  assert.match(page.text, /as of each user's last call/);
  assert.deepEqual(namesOf(page.html), ["bob", "ann", "cleo", "dan"]);
  const bars = [...page.html.matchAll(/aria-label="(Images: [^"]*)"(?: data-level="(\w+)")?/g)];
  assert.deepEqual(bars.map(([, label, level]) => [label, level]), [
    ["Images: 100 %, full", "full"],
    ["Images: 85 %, near limit", "near"],
    ["Images: 20 %", undefined],
    ["Images: 0 %", undefined],
  ]);
  assert.match(page.html, /aria-sort="descending"[^>]*><a class="sort" href="[^"]*sort=limit&amp;order=asc"/);
  assert.match(page.html, /<a href="[^"]*\/users" aria-current="page">Users</);
  const LISTS: [query: string, expected: string[]][] = [
    ["sort=id&order=desc", ["dan", "cleo", "bob", "ann"]],
    ["filter=near", ["bob", "ann"]],
    ["filter=hit", []],
    ["plan=plan_team", []],
    ["q=C&sort=id", ["cleo"]],
    ["sort=nonsense&filter=nonsense&order=nonsense", ["bob", "ann", "cleo", "dan"]],
  ];
  for (const [query, expected] of LISTS) {
    assert.deepEqual(namesOf((await visitor.get(`${base}/users?${query}`)).html), expected, query);
  }
  assert.equal((await visitor.get(`${base}/users?cursor=nonsense`)).status, 400);
  const overview = await visitor.get(base);
  assert.match(overview.text, /Users near a limit All .* bob Pro Images 100 % .* ann Pro Images 85 % /);
  assert.match(overview.html, /\/users\?filter=near"/);
  const billing = await visitor.get(`${base}/users/bob/billing`);
  assert.match(billing.text, /Margin of 30 days All plans .*Pro 1 /);
  assert.doesNotMatch(billing.text, /Margin of 30 days .*Team/);
});

Deno.test("all users of a list are in the file, and no text of it is a formula", async () => {
  const ids = Array.from({ length: 130 }, (_, index) => `u${String(index).padStart(3, "0")}`);
  const formulas = ["=1+1", "+1", "-1", "@x", "\tx", "\rx"];
  const { app, visitor, base } = await scene(...ids, ...formulas);
  await track(app, "u002", 50);
  const page = await visitor.get(`${base}/users`);
  assert.equal(namesOf(page.html).length, 50);
  const next = /href="(\?[^"]*cursor=[^"]*)" rel="next"/.exec(page.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
  assert.equal(namesOf((await visitor.get(`${base}/users${next}`)).html).length, 50);
  const file = await visitor.get(`${base}/users.csv?sort=limit`);
  assert.equal(file.headers.get("content-type"), "text/csv; charset=UTF-8");
  const lines = file.html.split("\r\n");
  assert.equal(lines.length, 1 + ids.length + formulas.length + 1);
  assert.equal(
    lines[0],
    '"userId","planId","planName","limitGroupId","limitPercent","costCents30d","refusals7d","lastSeenAt"',
  );
  assert.match(lines[1] as string, /^"u002","plan_pro","Pro","lg_images",50,0,0,"2[^"]*Z"$/);
  for (const id of formulas) assert.ok(file.html.includes(`"'${id}","plan_pro"`), JSON.stringify(id));
  const near = await visitor.get(`${base}/users.csv?filter=near`);
  assert.equal(near.html.split("\r\n").length, 2);
});

Deno.test("a search leads to the user whose id, email or name has the text, and ids of dots have pages", async () => {
  const { app, visitor, base } = await scene("Felix@studio.example", "agency_1", "agency_2", ".", "..");
  const properties = { $email: "Boss@Agency.example", name: "Ada" };
  await dataOf(app.call("POST", "/identify", { distinctId: "agency_2", properties }));
  const FOUND: [text: string, path: string][] = [
    ["FELIX@STUDIO", `${base}/users/Felix%40studio.example`],
    ["boss@", `${base}/users/agency_2`],
    ["ADA", `${base}/users/agency_2`],
    ["agency_1", `${base}/users/agency_1`],
    [".", `${base}/users/~.`],
    ["..", `${base}/users/~..`],
  ];
  for (const [text, path] of FOUND) {
    const visit = await visitor.get(`${base}/search?q=${encodeURIComponent(text)}`);
    assert.deepEqual([visit.path, visit.status], [path, 200], text);
  }
  const both = await visitor.get(`${base}/search?q=GENCY`);
  assert.deepEqual(namesOf(both.html), ["agency_1", "agency_2"]);
  assert.equal((await visitor.get(`${base}/search?q=nobody`)).status, 404);
});
