// The role agent: grants credits up to a cap in a UTC day over all apps, releases holds, and changes nothing else.

import assert from "node:assert/strict";
import { AGENT_TOKEN, consoleOf, hasButton, SUPPORT_TOKEN, type Visit, Visitor } from "./console_support.ts";
import { dataOf, serviceOfFile } from "./support.ts";
import type { TestApp } from "../support/test_service.ts";

const service = serviceOfFile();
const PREVIEW = "Continue";

interface World {
  readonly app: TestApp;
  readonly agent: Visitor;
  readonly user: string;
}

/** The service keeps what an agent granted on a day, so each test has a day of its own. */
async function world(): Promise<World> {
  service.clock.advance(24 * 3_600_000);
  const agent = await Visitor.signedIn(consoleOf(service), AGENT_TOKEN);
  return { agent, ...await appWithAnn() };
}

async function appWithAnn(): Promise<Omit<World, "agent">> {
  const app = await service.newApp();
  await dataOf(app.call("POST", "/subscriptions", { userId: "ann", planId: "plan_pro" }));
  return { app, user: `/console/apps/${app.appId}/live/users/ann` };
}

async function previewed(agent: Visitor, user: string, quantity: number): Promise<Visit> {
  const form = await agent.get(`${user}/grant`);
  return await agent.press(form, PREVIEW, { packId: "cpk_wallet", quantity: String(quantity) });
}

async function granted(agent: Visitor, user: string, quantity: number): Promise<Visit> {
  return await agent.press(await previewed(agent, user, quantity), "Grant");
}

async function leftOf(app: TestApp, userId = "ann"): Promise<number> {
  const { credits } = await dataOf(app.call("GET", `/credits?userId=${userId}`));
  return credits.reduce((sum: number, { remaining }: { remaining: number }) => sum + remaining, 0);
}

Deno.test("an agent grants up to the cap of the day over all apps; above it the form says what is left", async () => {
  const { app, agent, user } = await world();
  assert.match((await granted(agent, user, 15)).text, /Granted Wallet to ann\./);
  const other = await appWithAnn();
  assert.match((await agent.get(`${other.user}/grant`)).text, /You may grant 5 more units today/);
  const above = await granted(agent, other.user, 6);
  assert.equal(above.status, 403);
  assert.match(above.text, /This grant is 6 units\. 5 of the 20 units that you may grant today are left/);
  assert.match((await granted(agent, other.user, 5)).text, /Granted Wallet/);
  assert.equal((await granted(agent, user, 1)).status, 403);
  assert.deepEqual([await leftOf(app), await leftOf(other.app)], [15, 5]);
  service.clock.advance(24 * 3_600_000);
  const nextDay = await Visitor.signedIn(consoleOf(service), AGENT_TOKEN);
  assert.match((await granted(nextDay, user, 20)).text, /Granted Wallet/);
});

Deno.test("a form that is sent twice, also to two processes, grants once and counts once", async () => {
  const { app, agent, user } = await world();
  const preview = await previewed(agent, user, 12);
  const home = agent.http;
  const elsewhere = consoleOf(service);
  const sends = [home, elsewhere, home, elsewhere].map((http) => {
    agent.http = http;
    return agent.press(preview, "Grant", {}, false);
  });
  await Promise.all(sends);
  assert.equal(await leftOf(app), 12);
  assert.match((await granted(agent, user, 8)).text, /Granted Wallet/, "8 of 20 were left");
});

Deno.test("grants at once never pass the cap together", async () => {
  const { app, agent, user } = await world();
  const users = ["u0", "u1", "u2", "u3", "u4"];
  const previews = await Promise.all(users.map((id) => previewed(agent, user.replace(/ann$/, id), 7)));
  const all = await Promise.all(previews.map((preview) => agent.press(preview, "Grant", {}, false)));
  assert.deepEqual(all.map(({ status }) => status).toSorted(), [303, 303, 403, 403, 403]);
  const left = await Promise.all(users.map((id) => leftOf(app, id)));
  assert.equal(left.reduce((sum, each) => sum + each, 0), 14);
});

Deno.test("an agent releases a hold, and sees and makes no other change, no prompt, and its writes are audited", async () => {
  const { app, agent, user } = await world();
  const post = (path: string, body: object) => dataOf(app.call("POST", path, { userId: "ann", ...body }));
  await post("/track", { event: "chat.reply", inputTokens: 7, prompt: "A secret wish" });
  const { reservationId } = await post("/reserve", { event: "image.x" });
  await granted(agent, user, 1);
  const now = await agent.get(user);
  const actions = [...now.html.matchAll(/href="([^"]*)"/g)].map(([, href = ""]) => href)
    .filter((href) => href.startsWith(`${user}/`)).map((href) => href.slice(user.length + 1));
  assert.ok(actions.includes("grant") && actions.includes(`holds/${reservationId}/release`), actions.join());
  for (const name of ["plan", "erase", "limits", "merge"]) {
    assert.ok(!actions.includes(name), name);
    const { status, text } = await agent.get(`${user}/${name}`);
    assert.deepEqual([status, /grant credits and release holds/.test(text)], [403, true], name);
  }
  const activity = await agent.get(`${user}/activity`);
  assert.match(activity.text, /Prompts are hidden for your role/);
  assert.doesNotMatch(activity.html, /A secret wish/);
  const free = await Visitor.signedIn(consoleOf(service, { supportSeesPrompts: true }), AGENT_TOKEN);
  assert.doesNotMatch((await free.get(`${user}/activity`)).html, /A secret wish/);

  const preview = await agent.press(await agent.get(`${user}/holds/${reservationId}/release`), PREVIEW);
  assert.match((await agent.press(preview, "Release hold", { typed: "yes" })).text, /is released/);
  const { entries } = await dataOf(service.admin("GET", `/audit?appId=${app.appId}&limit=20`));
  assert.deepEqual(
    entries.filter(({ via }: { via: string }) => via === "console")
      .map(({ who, what }: { who: string; what: string }) => [who, what]),
    [["mia", "release"], ["mia", "grantCredits"]],
  );
  const support = await Visitor.signedIn(consoleOf(service), SUPPORT_TOKEN);
  assert.equal((await support.get(`${user}/grant`)).status, 403);
  assert.equal(hasButton((await support.get(user)).html, "Grant"), false);
});
