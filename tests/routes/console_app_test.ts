// The console's pages of an app: events, refusals, usage, API keys, the catalog's editor, webhooks; and the system page.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import {
  consoleOf,
  formOf,
  hasButton,
  pollOf,
  SUPPORT_TOKEN,
  type Visit,
  Visitor,
} from "./console_support.ts";
import { appWithUser, CATALOG, dataOf, serviceOfFile } from "./support.ts";
import { eventOf, send, sessionOf } from "./stripe_support.ts";

const service = serviceOfFile();

const MARKUP = '<script>alert("x")</script>';

async function scene(token?: string) {
  const app = await appWithUser(service);
  const visitor = await Visitor.signedIn(consoleOf(service), token);
  const base = `/console/apps/${app.appId}/live`;
  return { app, visitor, base };
}

const track = (app: TestApp, userId: string, event: string, body: object = {}) =>
  app.call("POST", "/track", { userId, event, ...body });

Deno.test("events are listed newest first, by user and by type, and each has a page with its details", async () => {
  const { app, visitor, base } = await scene();
  assert.match((await visitor.get(`${base}/events`)).text, /No events yet/);
  for (let count = 0; count < 60; count++) await dataOf(track(app, `u${count % 2}`, "image.a"));
  const { eventId } = await dataOf(
    track(app, MARKUP, "video.a", { metadata: { note: MARKUP, model: "veo" } }),
  );
  const first = await visitor.get(`${base}/events`);
  assert.equal(first.status, 200);
  assert.equal(first.html.match(/<tr>/g)?.length, 51);
  assert.match(first.text, /<script>alert/);
  assert.ok(!first.html.includes(MARKUP));
  assert.match(first.html, /hx-trigger="every 4s"/);
  const paused = await visitor.get(`${base}/events?live=off`);
  assert.ok(!paused.html.includes('hx-trigger="every'));
  const second = await visitor.get(`${base}/events?offset=50`);
  assert.equal(second.html.match(/<tr>/g)?.length, 12);
  assert.ok(!second.html.includes('hx-trigger="every'));
  assert.equal((await visitor.get(`${base}/events?user=u1`)).html.match(/<tr>/g)?.length, 31);
  assert.match((await visitor.get(`${base}/events?type=none`)).text, /No results match these filters/);
  const one = await visitor.get(`${base}/events/${eventId}`);
  assert.match(one.text, new RegExp(eventId));
  assert.ok(one.text.includes(JSON.stringify(MARKUP)));
  assert.ok(!one.html.includes(MARKUP));
  assert.equal((await visitor.get(`${base}/events/evt_unknown`)).status, 404);
  const csv = await visitor.get(`${base}/events?as=csv`);
  assert.equal(csv.headers.get("content-type"), "text/csv; charset=UTF-8");
  assert.equal(csv.html.split("\r\n").length, 63);
});

Deno.test("a list that the page polls comes without the frame", async () => {
  const { visitor, base } = await scene();
  const part = await visitor.get(`${base}/events`, { "hx-request": "true" });
  assert.match(part.html, /id="feed"/);
  assert.ok(!part.html.includes("<html"));
});

Deno.test("refusals show who hit which limit, and how often", async () => {
  const { app, visitor, base } = await scene();
  assert.match((await visitor.get(`${base}/refusals`)).text, /No refusals/);
  await dataOf(track(app, "u", "one"));
  for (let count = 0; count < 3; count++) await track(app, "u", "one");
  const { text, html } = await visitor.get(`${base}/refusals`);
  assert.match(text, /one limit reached: One 3/);
  assert.match(html, /users\/u"/);
  assert.match(
    (await visitor.get(`${base}/refusals?as=csv`)).html,
    /,"u","one","limit_reached","lg_one",3\r\n/,
  );
});

Deno.test("usage is shown as a chart and as a table of the same numbers", async () => {
  const { app, visitor, base } = await scene();
  await dataOf(track(app, "u", "image.a"));
  await dataOf(track(app, "u", "one"));
  await track(app, "u", "one");
  await dataOf(track(app, MARKUP, "video.a", { metadata: { model: "veo" } }));
  service.clock.advance(1);
  const page = await visitor.get(`${base}/usage?by=user&days=7`);
  assert.ok(!page.html.includes(MARKUP));
  assert.equal(page.html.match(/<g>/g)?.length, 2 * 7);
  const day = new Date(service.clock.now()).toISOString().slice(0, 10);
  assert.match(page.text, new RegExp(`${day} · u 2 · .* 1 · blocked 1`));
  assert.match(page.text, /Total\s+3\s+1\s+\$0\.40/);
  assert.equal(
    (await visitor.get(`${base}/usage?by=user&days=7&as=csv`)).html.split("\r\n").length,
    1 + 7 + 2 + 1,
  );
  const blocked = await visitor.get(`${base}/usage?by=plan&status=blocked&from=${day}&to=${day}`);
  assert.match(blocked.html, /Blocked events of 1 day by plan/);
  assert.match(blocked.text, /Pro\s+2\s+1\s/);
  assert.match(
    (await visitor.get(`${base}/usage?by=x&from=yesterday&to=2026-02-31`)).text,
    /events in 30 days/,
  );
});

Deno.test("the overview compares with the same hours of a week ago, and names what needs attention", async () => {
  const { app, base } = await scene();
  const hour = 3_600_000;
  service.clock.advance(24 * hour - service.clock.now() % (24 * hour) + 5 * hour);
  for (let count = 0; count < 4; count++) await dataOf(track(app, "u", "image.a"));
  service.clock.advance(7 * 24 * hour + 2 * hour);
  await dataOf(track(app, "v", "image.a"));
  await dataOf(track(app, "u", "image.a", { metadata: { model: "sdxl" } }));
  service.clock.advance(1);
  const visitor = await Visitor.signedIn(consoleOf(service));
  // 7:00 of today is not over: what came in it is in today's number, and not compared.
  const { text } = await visitor.get(base);
  assert.match(text, /compared up to 07:00 UTC with \w+ a week ago/);
  assert.match(text, /2 events 0 by 07:00: −100 % from 4/);
  assert.match(text, /2 users /);
  assert.match(text, /Events without a price in 30 days: 1 of sdxl/);
  service.clock.advance(hour);
  assert.match((await visitor.get(base)).text, /2 events 2 by 08:00: −50 % from 4/);
  assert.match((await visitor.get(`${base}/margins?plans`)).text, /Pro\s+1\s+1\s/);
});

Deno.test("the overview compares the last 7 full days with the 7 before, in words and in a table", async () => {
  const { app, visitor: admin, base } = await scene();
  const week = 7 * 24 * 3_600_000;
  assert.ok(!(await admin.get(base)).text.includes("against last week"));
  for (let count = 0; count < 4; count++) await dataOf(track(app, "u", "image.a"));
  service.clock.advance(week);
  for (let count = 0; count < 3; count++) await dataOf(track(app, "u", "image.a"));
  const overview = async () => (await (await Visitor.signedIn(consoleOf(service))).get(base)).text;
  assert.match(await overview(), /There was no usage in the week before\..* Events 4 0 \+4/);
  service.clock.advance(week);
  const text = await overview();
  assert.match(text, /25 % fewer events than in the week before\./);
  assert.match(
    text,
    /Number This week Week before Difference Events 3 4 −25 % Users a day 0\.1 0\.1 unchanged/,
  );
});

Deno.test("pages that are missing keep the navigation of the app", async () => {
  const { visitor, base } = await scene();
  for (const path of [`${base}/nowhere`, `${base}/events/evt_x`]) {
    const page = await visitor.get(path);
    assert.equal(page.status, 404);
    assert.ok(page.html.includes(`href="${base}/usage"`), path);
  }
});

Deno.test("a live list that has not changed is answered without one, and can be filtered by status", async () => {
  const { app, visitor, base } = await scene();
  await dataOf(track(app, "u", "one"));
  await track(app, "u", "one");
  const { html } = await visitor.get(`${base}/events?status=blocked`);
  assert.equal(html.match(/class="row"/g)?.length, 1);
  const ask = () => visitor.get(pollOf(html), { "hx-request": "true" });
  assert.equal((await ask()).status, 204);
  await track(app, "u", "one");
  assert.equal((await ask()).status, 200);
});

Deno.test("an API key is shown once, in the answer to the form that created it, and is valid until it is revoked", async () => {
  const { app, visitor, base } = await scene();
  const preview = await visitor.press(await visitor.get(`${base}/keys/new`), "Continue");
  const made = await visitor.press(preview, "Create API key");
  const [key] = /sk_live_[A-Za-z0-9]+/.exec(made.text + made.html) ?? [];
  assert.ok(key !== undefined);
  assert.equal(made.path, `${base}/keys/new`);
  assert.equal(made.headers.get("cache-control"), "no-store");
  await dataOf(app.call("GET", "/plans", undefined, { key }));
  const list = await visitor.get(`${base}/keys`);
  assert.ok(!list.html.includes(key));
  assert.ok(!(await visitor.get(`${base}/keys/new`)).html.includes(key));
  const keys = await dataOf(service.admin("GET", `/apps/${app.appId}/keys`));
  const { keyId, prefix } = keys.find((each: { prefix: string }) => key.startsWith(each.prefix));
  const question = await visitor.get(`${base}/keys/${keyId}/revoke`);
  assert.match(question.text, /This cannot be undone/);
  const unsure = await visitor.press(question, "Revoke", { typed: "yes" });
  assert.equal(unsure.status, 400);
  await dataOf(app.call("GET", "/plans", undefined, { key }));
  const after = await visitor.press(question, "Revoke", { typed: prefix });
  assert.match(after.text, /is revoked/);
  assert.equal((await app.call("GET", "/plans", undefined, { key })).status, 401);
  assert.match((await visitor.get(`${base}/keys/${keyId}/revoke`)).text, /already revoked/);
});

const editorOf = (page: Visit) => formOf(page.html, "Check").fields["catalog"]?.replace(/^\n/, "") ?? "";

Deno.test("errors in a catalog are shown at their places, changes as a difference, and the checked text is applied", async () => {
  const { app, visitor, base } = await scene();
  const page = await visitor.get(`${base}/catalog`);
  const text = editorOf(page);
  assert.equal(JSON.parse(text).plans.length, 2);
  const check = (catalog: string) => visitor.press(page, "Check", { catalog });

  const broken = text.replace('"Pro",', '"Pro"');
  const misread = await check(broken.replaceAll("\n", "\r\n"));
  assert.equal(misread.status, 400);
  const rankLine = broken.split("\n").findIndex((line) => line.includes('"rank": 10')) + 1;
  assert.match(misread.text, new RegExp(`Line ${rankLine}, column 7 : missing "," or "}" "rank": 10`));
  assert.equal(editorOf(misread), broken);

  const wrong = text.replace('"quota": 1000', '"quota": "many"');
  const faulty = await check(wrong);
  assert.equal(faulty.status, 400);
  const quotaLine = wrong.split("\n").findIndex((line) => line.includes("many")) + 1;
  assert.match(
    faulty.text,
    new RegExp(`Line ${quotaLine}, column \\d+ : plans\\[0\\]\\.limits\\[1\\]\\.quota`),
  );
  assert.equal(editorOf(faulty), wrong);
  assert.ok(!hasButton(faulty.html, "Apply as version 2"));

  const right = text.replace('"quota": 1000', '"quota": 2000');
  const checked = await check(right);
  assert.equal(checked.status, 200);
  assert.match(checked.text, /changed plans\[0\]\.limits\[1\]/);
  assert.match(checked.html, /<del>[^<]*&quot;quota&quot;: 1000/);
  assert.match(checked.html, /<ins>[^<]*&quot;quota&quot;: 2000/);

  const other = right.replace('"quota": 2000', '"quota": 3000');
  const edited = await visitor.press(checked, "Apply as version 2", { catalog: other });
  assert.equal(edited.status, 409);
  assert.match(edited.text, /has changed since it was checked/);
  assert.equal(editorOf(edited), other);

  const applied = await visitor.press(checked, "Apply as version 2", { catalog: right });
  assert.match(applied.text, /Version 2 of the catalog is in force in live and test mode/);
  const inForce = await dataOf(service.admin("GET", `/apps/${app.appId}/catalog`));
  assert.deepEqual([inForce.version, inForce.plans[0].limits[1].quota], [2, 2000]);
  assert.match((await visitor.press(applied, "Check")).text, /No changes/);
});

Deno.test("a catalog that another person changed meanwhile is not applied, and the text stays", async () => {
  const { app, visitor, base } = await scene();
  const page = await visitor.get(`${base}/catalog`);
  const mine = editorOf(page).replace('"quota": 1000', '"quota": 5');
  const checked = await visitor.press(page, "Check", { catalog: mine });
  const theirs = structuredClone(CATALOG) as { plans: { name: string }[] };
  (theirs.plans[0] as { name: string }).name = "Theirs";
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, theirs));
  const moved = await visitor.press(checked, "Apply as version 2", { catalog: mine });
  assert.equal(moved.status, 409);
  assert.match(moved.text, /Version 2 was applied in the meantime, so your text was not applied/);
  assert.equal(editorOf(moved), mine);
  assert.match(moved.html, /<del>[^<]*Theirs/);
  assert.equal((await dataOf(service.admin("GET", `/apps/${app.appId}/catalog`))).version, 2);
  const taken = JSON.stringify({ ...JSON.parse(mine), plans: [JSON.parse(mine).plans[1]] });
  const inUse = await visitor.press(moved, "Check", { catalog: taken });
  assert.equal(inUse.status, 409);
  assert.match(inUse.text, /The catalog and your text are unchanged/);
  assert.equal(editorOf(inUse), taken);
});

Deno.test("a webhook endpoint is added, edited, disabled, gets a new secret and is removed; its secret is shown once", async () => {
  const { app, visitor, base } = await scene();
  assert.match((await visitor.get(`${base}/webhooks`)).text, /No endpoints in live mode yet/);
  const form = await visitor.get(`${base}/webhooks/new`);
  const plain = await visitor.press(form, "Continue", { url: "http://a.example", events: "*" });
  const refused = await visitor.press(plain, "Add endpoint");
  assert.equal(refused.status, 400);
  assert.match(refused.html, /id="url-fault"/);
  const fault = await visitor.press(form, "Continue", {
    url: "https://a.example",
    events: "nothing.*",
  });
  assert.equal(fault.status, 400);
  const filled = { url: "https://hooks.example/a", events: "credits.*, user.merged", description: MARKUP };
  const made = await visitor.press(await visitor.press(form, "Continue", filled), "Add endpoint");
  const [secret] = /whsec_[A-Za-z0-9+/=]+/.exec(made.html) ?? [];
  assert.ok(secret !== undefined, made.text);
  const [webhook] = await dataOf(service.admin("GET", `/apps/${app.appId}/webhooks`));
  assert.deepEqual([webhook.mode, webhook.events], ["live", ["credits.*", "user.merged"]]);
  const place = `${base}/webhooks/${webhook.webhookId}`;
  const page = await visitor.get(place);
  assert.ok(!page.html.includes(secret) && !page.html.includes(MARKUP));
  assert.match((await visitor.get(`${base}/webhooks`)).text, /hooks\.example\/a credits\.\*, user\.merged/);
  assert.equal((await visitor.get(place.replace("/live/", "/test/"))).status, 404);

  const changed = await visitor.press(
    await visitor.press(await visitor.get(`${place}/change`), "Continue", { events: "*" }),
    "Save",
  );
  assert.match(changed.text, /The endpoint is updated/);
  await visitor.press(await visitor.get(`${place}/disable`), "Disable");
  assert.match((await visitor.get(place)).text, /disabled/);
  await visitor.press(await visitor.get(`${place}/enable`), "Enable");
  const rotated = await visitor.press(await visitor.get(`${place}/rotate`), "Rotate secret");
  assert.match(rotated.html, /whsec_/);
  assert.ok(!rotated.html.includes(secret));
  const [after] = await dataOf(service.admin("GET", `/apps/${app.appId}/webhooks`));
  assert.deepEqual([after.disabled, after.events], [false, ["*"]]);
  const gone = await visitor.press(await visitor.get(`${place}/delete`), "Remove", {
    typed: webhook.webhookId,
  });
  assert.match(gone.text, /is removed/);
  assert.equal((await visitor.get(place)).status, 404);
});

Deno.test("Stripe's secret is set and removed, and no page shows it after it was sent", async () => {
  const { app, visitor, base } = await scene();
  const secret = "whsec_console_0123456789";
  assert.match((await visitor.get(`${base}/stripe`)).text, /not connected/);
  const form = await visitor.get(`${base}/stripe/set`);
  const wrong = await visitor.press(form, "Continue", { webhookSecret: "sk_live_1" });
  assert.equal(wrong.status, 400);
  assert.ok(!wrong.html.includes("sk_live_1"));
  const preview = await visitor.press(form, "Continue", { webhookSecret: secret });
  const page = await visitor.press(preview, "Save");
  assert.match(page.text, /The signing secret is saved.*no messages yet/s);
  assert.ok(!page.html.includes(secret));
  assert.ok(!(await visitor.get(`${base}/stripe/set`)).html.includes(secret));
  assert.match((await visitor.get(`${base.replace("/live", "/test")}/stripe`)).text, /not connected/);
  const sale = eventOf("checkout.session.completed", sessionOf({ amount_total: 1900, currency: "usd" }));
  await dataOf(send(service, app, sale, { secret }));
  const listed = await visitor.get(`${base}/stripe`);
  assert.match(listed.text, /checkout\.session\.completed.*1900 usd.*the catalog has no pack "cpk_images"/s);
  const retry = await visitor.get(`${base}/stripe/unhandled/${sale.id}/retry`);
  assert.match((await visitor.press(retry, "Retry")).text, /Not handled: the catalog has no pack/);
  const remove = await visitor.get(`${base}/stripe/remove`);
  const removed = await visitor.press(remove, "Disconnect", { typed: "yes" });
  assert.match(removed.text, /Stripe is disconnected/);
  const { live } = await dataOf(service.admin("GET", `/apps/${app.appId}/stripe`));
  assert.equal(live.isSet, false);
});

Deno.test("support sees every page without controls that change something, and its writes are refused", async () => {
  const { app, visitor: admin } = await scene();
  const visitor = await Visitor.signedIn(consoleOf(service), SUPPORT_TOKEN);
  const base = `/console/apps/${app.appId}/live`;
  const path = `/apps/${app.appId}/webhooks`;
  const { webhookId } = await dataOf(
    service.admin("POST", path, { url: "https://hooks.example/c", mode: "live", events: ["*"] }),
  );
  const places = [
    "",
    "/events",
    "/usage",
    "/refusals",
    "/keys",
    "/catalog",
    "/webhooks",
    `/webhooks/${webhookId}`,
    "/stripe",
  ];
  for (const place of places) {
    const page = await visitor.get(base + place);
    assert.equal(page.status, 200, place);
    const forms = [...page.html.matchAll(/<form[^>]*method="post"[^>]*action="([^"]*)"/g)].map(([, to]) =>
      to
    );
    assert.deepEqual(forms, ["/console/sign-out"], place);
    assert.ok(!/href="[^"]*\/(new|revoke|rotate|ping|disable|delete|change|set)"/.test(page.html), place);
  }
  for (const place of ["/keys/new", "/webhooks/new", `/webhooks/${webhookId}/rotate`, "/stripe/set"]) {
    assert.equal((await visitor.get(base + place)).status, 403, place);
  }
  const { fields } = formOf((await admin.get(`${base}/catalog`)).html, "Check");
  const [, csrf = ""] = /name="csrf" value="([^"]*)"/.exec((await visitor.get(base)).html) ?? [];
  const sent = await visitor.send(`${base}/catalog`, { ...fields, csrf });
  assert.equal(sent.status, 403);
  assert.match(sent.text, /You have read-only access/);
});

Deno.test("the system page shows caps, processes and health checks", async () => {
  const { visitor } = await scene();
  await dataOf(service.admin("POST", "/workspaces", { name: MARKUP, operationCap: 10, aiBudgetCents: 500 }));
  const page = await visitor.get("/console/system");
  assert.equal(page.status, 200);
  assert.match(page.text, /Operations 0 of 10 AI spend \$0\.00 of \$5\.00/);
  assert.match(page.text, /this process/);
  assert.ok(!page.html.includes(MARKUP));
  const checks = await visitor.get("/console/system/checks");
  assert.match(checks.text, /backlog OK/);
  assert.doesNotMatch(checks.text, /drift|gateway/);
  assert.match(checks.html, /hx-get="\/console\/system\/checks\?long"/);
  const long = await visitor.get("/console/system/checks?long");
  assert.match(long.text, /drift OK none in[^]*prices OK[^]*gateway OK/);
  assert.doesNotMatch(long.text, /backlog/);
  const part = await visitor.get("/console/system/checks", { "hx-request": "true" });
  assert.match(part.html, /<section class="card" id="checks">/);
  assert.ok(!part.html.includes("<html"));
});

Deno.test("many apps are listed a page at a time, found by a part of a name or ID, and never all in one menu", async () => {
  const { visitor } = await scene();
  const { workspaceId } = await dataOf(service.admin("POST", "/workspaces", { name: "Many" }));
  for (let count = 0; count < 51; count++) {
    await dataOf(service.admin("POST", "/apps", { name: `Many ${count}.`, workspaceId }));
  }
  const found = await visitor.get("/console/apps?q=mANY");
  assert.equal(found.html.match(/<tr>/g)?.length, 51, "50 apps and their headings");
  const { appId, name } = (await dataOf(service.admin("GET", "/apps"))).find(({ name }: { name: string }) =>
    name === "Many 50."
  );
  assert.ok(!found.html.includes(appId));
  const next = /href="([^"]*)" rel="next"/.exec(found.html)?.[1] ?? "";
  const rest = await visitor.get(`/console/apps${next.replaceAll("&amp;", "&")}`);
  assert.ok(
    rest.html.includes(appId) && rest.html.includes('rel="prev"') && !rest.html.includes('rel="next"'),
  );
  for (const asked of [name, appId]) {
    const { html } = await visitor.get(`/console/apps?q=${encodeURIComponent(asked)}`);
    assert.equal(html.match(/<tr>/g)?.length, 2, asked);
  }
  assert.match((await visitor.get("/console/apps?q=none")).text, /No results match this filter/);
});

Deno.test("of many workspaces the system page shows those nearest to a cap", async () => {
  const { visitor } = await scene();
  for (let count = 0; count < 21; count++) {
    await dataOf(service.admin("POST", "/workspaces", { name: `Idle ${count}.`, operationCap: 10 }));
  }
  const { app } = await scene();
  await dataOf(track(app, "u", "image.a"));
  const { workspaceId } = await dataOf(service.admin("GET", `/apps/${app.appId}`));
  const busy = { name: "Nearly full", operationCap: 2 };
  await dataOf(service.admin("PATCH", `/workspaces/${workspaceId}`, busy));
  const { text } = await visitor.get("/console/system");
  assert.match(text, /The 20 of \d+ workspaces that are nearest to a cap/);
  assert.equal(text.match(/Operations \d+ /g)?.length, 20);
  assert.match(text, /month Nearly full/);
});

Deno.test("an app and a workspace whose names cannot be seen are shown by their IDs, in every link", async () => {
  const { data: { workspaceId } } = (await service.admin("POST", "/workspaces", { name: "\u200b" })).body;
  const { data: { appId } } = (await service.admin("POST", "/apps", { name: " \u00a0 ", workspaceId })).body;
  const visitor = await Visitor.signedIn(consoleOf(service));
  const { html } = await visitor.get(`/console/apps?q=${appId}`);
  assert.ok(html.includes(`<h2>${workspaceId}</h2>`));
  assert.ok(html.includes(`>${appId}</a>`));
  const overview = (await visitor.get(`/console/apps/${appId}/live`)).html;
  assert.ok(overview.includes(`<h1>${appId}</h1>`) && overview.includes(`<summary>${appId}</summary>`));
  assert.doesNotMatch(overview, /<(a|summary)[^>]*>\s*<\/\1>/);
});
