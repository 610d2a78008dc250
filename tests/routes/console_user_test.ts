// The page of a user: its content, hidden data with the reason, the live part, and the search.

import assert from "node:assert/strict";
import { userPath } from "../../routes/console/parts/page.tsx";
import { consoleOf, pollOf, SUPPORT_TOKEN, Visitor } from "./console_support.ts";
import { stopQueued } from "./privacy_support.ts";
import { dataOf, serviceOfFile } from "./support.ts";
import { planOf } from "../domain/short_catalog.ts";
import type { TestApp } from "../support/test_service.ts";

const service = serviceOfFile();

interface World {
  readonly app: TestApp;
  readonly visitor: Visitor;
  readonly base: string;
  readonly user: string;
  // deno-lint-ignore no-explicit-any -- tests read any member
  post(path: string, body: object): Promise<any>;
}

async function world(token?: string): Promise<World> {
  const app = await service.newApp();
  const visitor = await Visitor.signedIn(consoleOf(service), token);
  const base = `/console/apps/${app.appId}/live`;
  const post = (path: string, body: object) => dataOf(app.call("POST", path, body));
  await post("/subscriptions", { userId: "ann", planId: "plan_pro" });
  return { app, visitor, base, user: `${base}/users/ann`, post };
}

Deno.test("the page of a user shows seats, the trial, and the change of plan that is to come", async () => {
  const plans = [
    planOf("plan_team", { g: 5 }, { name: "Team", trial: { days: 7 } }),
    planOf("plan_less", { g: 1 }, { name: "Less" }),
  ];
  const app = await service.newApp({ plans });
  const visitor = await Visitor.signedIn(consoleOf(service));
  const post = (body: object) => dataOf(app.call("POST", "/subscriptions", { userId: "bob", ...body }));
  await post({ planId: "plan_team", quantity: 4, trial: true });
  await post({ planId: "plan_less", at: "period_end" });
  const { text } = await visitor.get(`/console/apps/${app.appId}/live/users/bob/billing`);
  for (const words of [/Seats 4/, /Trial ends \S/, /Next plan Less from/]) assert.match(text, words);
});

Deno.test("the page of a user shows plan, limits, credits, holds, events, refusals, ledger and IDs", async () => {
  const { visitor, user, post, base } = await world();
  await post("/credits/grant", { userId: "ann", packId: "cpk_wallet", quantity: 5, notes: "Spring sale" });
  await post("/reserve", { userId: "ann", event: "image.x", count: 103 });
  await post("/track", {
    userId: "ann",
    event: "chat.reply",
    inputTokens: 700,
    prompt: "A lighthouse at dusk",
  });
  await post("/reserve", { userId: "ann", event: "image.x", count: 50 });
  await post("/subscriptions", { userId: "old", planId: "plan_free" });
  await post("/customers/alias", { from: "old", to: "ann" });
  const tabs: Readonly<Record<string, readonly string[]>> = {
    "": [
      "ann Pro",
      "Now Plan and billing Activity Privacy",
      "Images a month full 100 of 100 used 0 held 100 left 0 resets Feb 15",
      "Wallet 2 of 5 3",
      "3 of credits of Wallet",
    ],
    "/billing": ["Plan Pro", "Free sub_", "Spring sale", "Stripe"],
    "/activity": ["A lighthouse at dusk", "just now image.x limit reached"],
    "/privacy": ["Canonical ann Aliases old Merge report", "analytics opted in Opt out", "Keys of this user"],
  };
  for (const [tab, all] of Object.entries(tabs)) {
    const { text, html, status } = await visitor.get(`${user}${tab}`);
    assert.equal(status, 200);
    for (const words of all) assert.ok(text.includes(words), `${words}: ${text}`);
    assert.ok(html.includes(`<a href="${user}${tab}" aria-current="page">`), tab);
  }
  const byAlias = await visitor.get(`${base}/users/old`);
  assert.match(byAlias.text, /old is an alias of this user/);
  const merge = await visitor.get(`${user}/merges/old`);
  assert.match(merge.text, /old is an alias of ann .* Subscriptions 1/);
  assert.equal((await visitor.get(`${user}/merges/ann`)).status, 404);
});

Deno.test("hidden data has its reason: logging off, opted out, a pending deletion", async () => {
  const { app, visitor, user, post } = await world();
  await post("/track", { userId: "ann", event: "chat.reply", inputTokens: 7, prompt: "A secret wish" });
  await post("/opt-out", { distinctId: "ann", scope: "prompt_logging" });
  assert.match((await visitor.get(`${user}/activity`)).text, /this user opted out of prompt logging/);
  await post("/opt-out", { distinctId: "ann", scope: "ai_personalization" });
  assert.match(
    (await visitor.get(`${user}/activity`)).text,
    /Hidden: this user opted out of personalization/,
  );
  await post("/opt-in", { distinctId: "ann", scope: "all" });
  await post("/opt-in", { distinctId: "ann", scope: "prompt_logging" });
  assert.match((await visitor.get(`${user}/activity`)).text, /A secret wish/);
  const { version: _, ...document } = (await service.admin("GET", `/apps/${app.appId}/catalog`)).body.data;
  const quiet = { ...document, settings: { ...document.settings, promptLogging: false } };
  assert.equal((await service.admin("PUT", `/apps/${app.appId}/catalog`, quiet)).status, 200);
  const { text } = await visitor.get(`${user}/activity`);
  assert.match(text, /Prompts are hidden: prompt logging is off/);
  assert.doesNotMatch(text, /A secret wish/);
  const stop = stopQueued(service);
  await post("/delete-person", { distinctId: "ann" });
  await stop.reached;
  assert.match(
    (await visitor.get(`${user}/activity`)).text,
    /deletion pending The data of this user is being deleted.* Hidden: the data/,
  );
  stop.go();
});

Deno.test("support sees the whole page without prompts and without actions", async () => {
  const { visitor, user, post } = await world(SUPPORT_TOKEN);
  await post("/credits/grant", { userId: "ann", packId: "cpk_creator_bundle" });
  await post("/reserve", { userId: "ann", event: "image.x" });
  await post("/track", { userId: "ann", event: "chat.reply", inputTokens: 7, prompt: "A secret wish" });
  const acts = new Set<string>();
  for (const tab of ["", "/billing", "/activity", "/privacy"]) {
    const { html, text } = await visitor.get(`${user}${tab}`);
    assert.equal(/Prompts are hidden for your role/.test(text), tab === "/activity");
    assert.doesNotMatch(html, /A secret wish/);
    const links = [...html.matchAll(/href="([^"]*)"/g)].map(([, href = ""]) => href);
    for (const href of links) {
      if (href.startsWith(`${user}/`)) acts.add(href.slice(user.length).split("?")[0] ?? "");
    }
  }
  assert.deepEqual([...acts].toSorted(), ["/activity", "/billing", "/explain", "/ledger", "/privacy"]);
});

Deno.test("an unknown user has a page with the next steps", async () => {
  const { visitor, base } = await world();
  const { text, html } = await visitor.get(`${base}/users/unknown`);
  assert.match(text, /No user with this ID in live mode yet/);
  assert.ok(html.includes(`href="${base}/users/unknown/grant"`));
  assert.ok(html.includes(`href="${base}/search?q=unknown*"`));
});

Deno.test("the live part is replaced when something has changed, with the changed limit highlighted, and is empty otherwise", async () => {
  const { visitor, user, post } = await world();
  const headers = { "hx-request": "true" };
  const first = pollOf((await visitor.get(user)).html);
  const same = await visitor.get(first, headers);
  assert.deepEqual([same.status, same.html], [204, ""]);
  await post("/track", { userId: "ann", event: "chat.reply", inputTokens: 700 });
  const changed = await visitor.get(first, headers);
  assert.equal(changed.status, 200);
  assert.match(changed.text, /^Limits live/, "It is the part alone");
  assert.match(changed.text, /700 tokens of 100,000 tokens/);
  const bars = [
    ...changed.html.matchAll(/<div class="(group[^"]*)"[^>]*><div class="title"><span><b>([^<]*)/g),
  ];
  assert.deepEqual(bars.filter(([, name]) => name === "group changed").map(([, , label]) => label), [
    "Tokens for chat and recaps",
  ]);
  assert.equal((await visitor.get(pollOf(changed.html), headers)).status, 204);
});

Deno.test("limits with a period of their own say when they count, live and on the form of custom limits", async () => {
  const { app, visitor, user, post } = await world();
  const { version: _, ...document } = (await service.admin("GET", `/apps/${app.appId}/catalog`)).body.data;
  const group = (id: string, label: string, quota: number, period: object) => ({
    id,
    label,
    unit: "count",
    quota,
    matches: [{ event: "image.*" }],
    period,
  });
  const [plan] = document.plans.filter(({ id }: { id: string }) => id === "plan_pro");
  plan.limits.push(
    group("lg_rate", "Rate", 4, { type: "rolling", seconds: 60 }),
    group("lg_open", "At once", 3, { type: "concurrent" }),
    group("lg_session", "Session", 50, { type: "session", seconds: 18_000 }),
    group("lg_day", "Day", 9, { type: "daily", anchor: "calendar" }),
  );
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, document));
  const before = await visitor.get(user);
  assert.match(before.text, /Session 0 of 50 used 0 left 50 starts with the next call/);
  await post("/reserve", { userId: "ann", event: "image.x", count: 2 });
  const live = await visitor.get(pollOf(before.html), { "hx-request": "true" });
  for (
    const words of [
      "Rate 2 of 4 in the last 60 s used 0 held 2 left 2",
      "At once 2 of 3 in flight used 0 held 2 left 1",
      "Session 2 of 50 used 0 held 2 left 48 resets in 5 h",
      "Day 2 of 9 used 0 held 2 left 7 resets in 12 h",
    ]
  ) assert.ok(live.text.includes(words), `${words}: ${live.text}`);
  const { text } = await visitor.get(`${user}/limits`);
  for (const words of ["4 in 60 s.", "3 in flight.", "50 in a session of 5 h.", "9, daily."]) {
    assert.ok(text.includes(`Default of the plan: ${words}`), `${words}: ${text}`);
  }
  const { html } = await visitor.get(`${user}/members`);
  assert.deepEqual(
    [html.includes(">Day<"), html.includes(">Rate<")],
    [true, false],
    "guards do not count by member",
  );
});

Deno.test("explain answers with a text, every limit and every balance, and shows errors at their fields", async () => {
  const { visitor, user, post } = await world();
  await post("/credits/grant", { userId: "ann", packId: "cpk_wallet", quantity: 5 });
  await post("/reserve", { userId: "ann", event: "image.render", count: 90 });
  const ask = (query: Record<string, string>) => visitor.get(`${user}/explain?${new URLSearchParams(query)}`);
  const refused = await ask({ event: "image.render", count: "20", metadata: '{"model":"flux-pro"}' });
  assert.match(refused.text, /Refused by the limit "Images a month"/);
  assert.match(refused.text, /Images a month yes 20 10 0 90 – 100 no/);
  assert.match(refused.text, /Tokens for chat and recaps no: no rule matches the event type/);
  assert.match(refused.text, /Wallet 5 .* yes 0/);
  const other = await ask({ event: "image.render", count: "1", metadata: '{"model":"other"}' });
  assert.match(other.text, /Premium images a month no: model is "other", expected "flux-pro"/);
  assert.match((await ask({ event: "image.render", count: "12" })).text, /Wallet 5 .* yes 2/);
  const faulty = await ask({ event: "image.*", count: "many", metadata: "{" });
  assert.equal(faulty.status, 400);
  assert.match(faulty.html, /id="metadata-fault"[^>]*>Invalid JSON/);
  const faults = await ask({ event: "image.*", count: "many" });
  assert.match(faults.html, /id="event-fault"/);
  assert.match(faults.html, /id="count-fault"/);
  assert.match(faults.html, /value="image\.\*"/);
});

Deno.test("a banner says what was refused last and what would help, with a reply to copy; after a week it is gone", async () => {
  const { visitor, user, post } = await world();
  assert.doesNotMatch((await visitor.get(user)).text, /was refused/);
  await post("/track", { userId: "ann", event: "image.x", count: 100 });
  for (let call = 0; call < 2; call++) await post("/reserve", { userId: "ann", event: "image.x" });
  const { text, html } = await visitor.get(user);
  for (
    const words of [
      "image.x was refused just now Limit reached: Images a month. 2 calls within an hour.",
      "Waiting Images a month resets Feb 15",
      'Your request (image.x) was not allowed because the limit "Images a month" of your plan Pro was reached: ' +
      "100 of 100 are used. The limit resets on Feb 15, 2026 at 12:00 UTC. The plans Trial, Team and Organisation would allow it " +
      "now. Extra credits would allow it too: Image Top-Up and Wallet.",
    ]
  ) assert.ok(text.includes(words), `${words}: ${text}`);
  assert.match(html, /Credit packs<\/dt><dd>.*<a href="[^"]*\/grant\?packId=cpk_wallet">Wallet<\/a>/s);
  assert.match(html, /data-copies="reply-text"/);
  assert.match(html, /aria-label="Images a month: 100 of 100, full"/);
  await post("/credits/grant", { userId: "ann", packId: "cpk_wallet", quantity: 1 });
  assert.match(
    (await visitor.get(user)).text,
    /A call of this type with a count of 1 is allowed now\..* It would be allowed now/,
  );
  await post("/reserve", { userId: "new", event: "image.x" });
  const { text: unknown } = await visitor.get(user.replace(/ann$/, "new"));
  assert.match(unknown, /No user with this ID in live mode yet.* image\.x was refused just now No plan\./);
  assert.match(unknown, /not allowed because you have no active plan\. The plans Free, /);
  const support = await Visitor.signedIn(consoleOf(service), SUPPORT_TOKEN);
  assert.doesNotMatch((await support.get(user)).html, /packId=/);
  const explained = await visitor.get(`${user}/explain`);
  assert.match(explained.html, /value="image\.x"/, "the newest refusal is filled in");
  assert.match(
    explained.text,
    /Allowed .* Last refusals Last seen Event type .* image\.x limit reached Images a month \(Pro\) 2 Check again/,
  );
  service.clock.advance(8 * 24 * 3_600_000);
  const later = await Visitor.signedIn(consoleOf(service));
  assert.doesNotMatch((await later.get(user)).text, /was refused/);
  assert.match((await later.get(`${user}/activity`)).text, /Jan \d+ image\.x limit reached/);
});

Deno.test("a search opens the user or record with the ID, lists several, and helps where there are no results", async () => {
  const { visitor, base, post, user } = await world();
  const grant = { userId: "ann", packId: "cpk_wallet", quantity: 1, externalRef: "order-7" };
  const { balanceId } = await post("/credits/grant", grant);
  const { eventId } = await post("/track", { userId: "ann", event: "image.x" });
  const { reservationId } = await post("/reserve", { userId: "ann", event: "image.x" });
  await post("/subscriptions", { userId: "anna", planId: "plan_free" });
  await post("/subscriptions", { userId: "Bob", planId: "plan_free" });
  await post("/subscriptions", { userId: "an", planId: "plan_free" });
  const { mergeId } = await post("/customers/alias", { from: "an", to: "ann" });
  const leads = async (q: string) =>
    (await visitor.get(`${base}/search?q=${encodeURIComponent(q)}`, {}, false)).headers.get("location");
  assert.equal(await leads("ann"), user);
  assert.equal(await leads(" ann "), user);
  assert.equal(await leads("an"), `${base}/users/an`);
  assert.equal(await leads("Bo"), `${base}/users/Bob`);
  assert.equal(await leads("OB"), `${base}/users/Bob`);
  assert.equal(await leads(balanceId), `${user}?found=${balanceId}#${balanceId}`);
  assert.equal(await leads("order-7"), `${user}?found=${balanceId}#${balanceId}`);
  assert.equal(await leads(reservationId), `${user}?found=${reservationId}#${reservationId}`);
  assert.equal(await leads(eventId), `${base}/events/${eventId}`);
  assert.equal(await leads(mergeId), `${user}/merges/an`);
  const listed = await visitor.get(`${base}/search?q=ann*`);
  assert.match(listed.text, /ann user anna user/);
  assert.match((await visitor.get(`${base}/search?q=an*`)).text, /an alias of ann ann user/);
  assert.match((await visitor.get(`${base}/search?q=`)).text, /Bob user/);
  const nothing = await visitor.get(`${base}/search?q=zed`);
  assert.equal(nothing.status, 404);
  assert.match(nothing.text, /No results in live mode/);
  await post("/release", { reservationId });
  const found = await visitor.get(`${user}?found=${reservationId}`);
  assert.match(found.text, /is a reservation of this user. It was released/);
  assert.doesNotMatch((await visitor.get(`${user}?found=rsv_of_nobody`)).text, /rsv_of_nobody/);
});

Deno.test("a long ledger is read page by page to its end", async () => {
  const { visitor, user, post } = await world();
  for (let at = 0; at < 103; at++) {
    await post("/credits/grant", { userId: "ann", packId: "cpk_wallet", quantity: 1, notes: `note-${at}-` });
  }
  const first = await visitor.get(`${user}/ledger`);
  const older = /href="([^"]*cursor=[^"]*)"/.exec(first.html)?.[1] ?? "";
  const second = await visitor.get(older.replaceAll("&amp;", "&"));
  const notes = [first, second].map(({ text }) => text.match(/note-\d+-/g) ?? []);
  assert.deepEqual(notes.map(({ length }) => length), [100, 3]);
  assert.equal(new Set(notes.flat()).size, 103);
  await post("/credits/grant", { userId: "rae", packId: "cpk_wallet", quantity: 1 });
  const { eventId } = await post("/track", { userId: "rae", event: "image.x" });
  const ledger = await visitor.get(user.replace(/ann$/, "rae/ledger"));
  const [, cause = ""] = new RegExp(`href="([^"]*${eventId})"`).exec(ledger.html) ?? [];
  assert.match(
    (await visitor.get(cause)).path,
    new RegExp(`/events/${eventId}$`),
    "an entry leads to its event",
  );
});

Deno.test("every id opens the page of its user, those that browsers take for steps of a path too", async () => {
  const { app, visitor, base, post } = await world();
  const ids = [".", "..", "~", "~.", "~~x", "%2e", "%2E%2e", "a/b", "...", "ü ?#"];
  for (const userId of ids) await post("/subscriptions", { userId, planId: "plan_pro" });
  for (const userId of ids) {
    const path = userPath({ appId: app.appId, mode: "live" }, userId);
    // As a browser reads the address of a link.
    const { pathname } = new URL(path, "http://service.test");
    const page = await visitor.get(`${pathname}/privacy`);
    assert.deepEqual([page.status, page.text.includes(`Canonical ${userId} `)], [200, true], userId);
    const plan = await visitor.get(new URL(`${path}/plan`, "http://service.test").pathname);
    assert.equal(plan.status, 200, userId);
  }
  await post("/customers/alias", { from: "..", to: "ann" });
  const report = await visitor.get(`${base}/users/ann/privacy`);
  const [, link = ""] = /href="([^"]+\/merges\/[^"]+)"/.exec(report.html) ?? [];
  assert.equal((await visitor.get(new URL(link, "http://service.test").pathname)).status, 200, link);
});
