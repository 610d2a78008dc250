// Accounts in the console: a user's place in the tree, the change of its parent, and what users above hold and refuse.

import assert from "node:assert/strict";
import { consoleOf, SUPPORT_TOKEN, Visitor } from "./console_support.ts";
import { DAILY_USE_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";
import { CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

/** An app in which "acme" has a plan, and "ann" is below "team" below "acme". */
async function account() {
  const app = await service.newApp(CATALOG);
  const base = `/console/apps/${app.appId}/live`;
  const post = (path: string, body: object) => dataOf(app.call("POST", path, body));
  const put = (userId: string, parentId: string) =>
    dataOf(app.call("PUT", `/users/${userId}/parent`, { parentId }));
  await post("/subscriptions", { userId: "acme", planId: "plan_pro" });
  await put("team", "acme");
  await put("ann", "team");
  return { app, base, post, put, visitor: await Visitor.signedIn(consoleOf(service)) };
}

Deno.test("the page of a user links its path and the users below, in pages, with the number of their own", async () => {
  const { base, put, visitor } = await account();
  const { text, html } = await visitor.get(`${base}/users/ann`);
  assert.match(
    text,
    /Calls count here and at every user above: ann › team › acme Limits of users above User Limit Used Quota acme Images 0 100 .* No users below/,
  );
  assert.ok(html.includes(`<a href="${base}/users/acme">acme</a>`));
  assert.match(
    (await visitor.get(`${base}/users/acme`)).text,
    /User below Users below it team 1 Last 30 days/,
  );
  assert.doesNotMatch((await visitor.get(`${base}/users/acme`)).text, /All users below/);
  for (let place = 0; place < 100; place++) await put(`bob${String(place).padStart(3, "0")}`, "team");
  const first = await visitor.get(`${base}/users/team/children`);
  assert.match(first.text, /Users below team List User below Users below it ann 0 bob000 0 .* bob098 0 More/);
  const [, next = ""] = /href="(\?cursor=[^"]*)"/.exec(first.html) ?? [];
  assert.match(
    (await visitor.get(`${base}/users/team/children${next}`)).text,
    /Users below it bob099 0 First page/,
  );
});

Deno.test("the last 30 days of an account include the users below, also those of an alias, up to a bound", async () => {
  const { app, base, post, visitor } = await account();
  await post("/track", { userId: "ann", event: "image.x" });
  await post("/track", { userId: "team", event: "image.x" });
  await post("/track", { userId: "old", event: "image.x" });
  await post("/customers/alias", { from: "team", to: "crew" });
  service.clock.advance(1);
  const days = async (userId: string) => (await visitor.get(`${base}/users/${userId}`)).text;
  assert.match(await days("acme"), /Includes the 2 users below this user\. Events 2 /);
  assert.match(await days("crew"), /Includes the user below this user\. Events 2 /);
  assert.match(await days("ann"), /Usage Events 1 /);
  using _limits = changedLimits(DAILY_USE_LIMITS, { membersMax: 1 });
  assert.match(await days("acme"), /Includes 1 of the users below this user\. Events 1 /);
  const read = await service.admin(
    "GET",
    `/apps/${app.appId}/usage/daily?mode=live&from=2020-01-01&to=2020-01-01&by=model&userId=acme&withMembers=true`,
  );
  assert.deepEqual((await dataOf(Promise.resolve(read))).members, { counted: 1, hasMore: true });
});

Deno.test("an admin sets and clears the parent after a preview; a circle is refused at the field", async () => {
  const { app, base, visitor } = await account();
  const preview = async (userId: string, parentId: string) =>
    await visitor.press(await visitor.get(`${base}/users/${userId}/parent`), "Continue", { parentId });
  assert.match((await preview("ann", "team")).text, /No changes: this is the parent already/);
  const moved = await preview("ann", "acme");
  assert.match(moved.text, /From the next call on, calls of ann count at acme too\..* Parent team acme/);
  assert.match((await visitor.press(moved, "Change parent")).text, /ann is now below acme\./);
  assert.deepEqual((await dataOf(app.call("GET", "/users/ann"))).path, ["ann", "acme"]);
  const circle = await visitor.press(await preview("acme", "ann"), "Change parent");
  assert.equal(circle.status, 409);
  const cleared = await preview("ann", "");
  assert.match(cleared.text, /Calls of ann count at no other user from now on\..* Parent acme none/);
  assert.match((await visitor.press(cleared, "Change parent")).text, /ann has no parent any more\./);
  assert.equal((await dataOf(app.call("GET", "/users/ann"))).parentId, undefined);
  const { entries } = await dataOf(service.admin("GET", `/audit?appId=${app.appId}&limit=20`));
  const written = entries.filter(({ via }: { via: string }) => via === "console");
  assert.deepEqual(
    written.map((entry: Record<string, unknown>) => [entry["what"], entry["who"], entry["userId"]]),
    [["setParent", "admin", "ann"], ["setParent", "admin", "ann"]],
  );
  const support = await Visitor.signedIn(consoleOf(service), SUPPORT_TOKEN);
  assert.equal((await support.get(`${base}/users/ann/parent`)).status, 403);
});

Deno.test("a hold of a user below is shown with its user, and its release gives back at every level", async () => {
  const { app, base, post, visitor } = await account();
  await post("/subscriptions", { userId: "ann", planId: "plan_pro" });
  const { reservationId } = await post("/reserve", { userId: "ann", event: "image.x", count: 7 });
  await service.serving().term.flush();
  const { holds } = await dataOf(service.admin("GET", `/apps/${app.appId}/users/acme/holds?mode=live`));
  assert.deepEqual([holds[0].reservationId, holds[0].heldFor], [reservationId, "ann"]);
  const own = await dataOf(service.admin("GET", `/apps/${app.appId}/users/ann/holds?mode=live`));
  assert.deepEqual([own.holds[0].reservationId, own.holds[0].heldFor], [reservationId, undefined]);
  assert.match((await visitor.get(`${base}/users/acme`)).text, /Open holds Created Event type User Held/);
  const page = await visitor.get(`${base}/users/acme/holds/${reservationId}/release`);
  assert.match(page.text, new RegExp(`Reservation ${reservationId} for the event type image.x, of ann`));
  const preview = await visitor.press(page, "Continue", {});
  assert.match(preview.text, /are returned to ann and to every user above it/);
  assert.match((await visitor.press(preview, "Release hold", { typed: "yes" })).text, /is released/);
  for (const userId of ["ann", "acme"]) {
    const { counters } = await dataOf(app.call("GET", `/usage?userId=${userId}&event=image.x`));
    assert.equal(counters[0].count, 0);
  }
});

Deno.test("refusals and the explanation say which user above refuses", async () => {
  const { base, post, visitor } = await account();
  await post("/reserve", { userId: "ann", event: "image.x", count: 101 });
  await post("/reserve", { userId: "acme", event: "one", count: 2 });
  const all = await visitor.get(`${base}/refusals?by=acme`);
  assert.match(all.text, /Refused by .* ann image\.x limit reached/);
  assert.ok(all.html.includes(`<a href="${base}/users/acme">acme</a>`));
  const csv = await visitor.get(`${base}/refusals?as=csv&by=acme`);
  assert.match(csv.html, /"groupIds","refusedBy","count"/);
  assert.match(
    (await visitor.get(`${base}/users/ann`)).text,
    /Limit reached: Images\. .*Refused by acme , above/,
  );
  await post("/track", { userId: "acme", event: "image.x", count: 100 });
  const full = await visitor.get(`${base}/users/ann`);
  assert.match(
    full.text,
    /Waiting Images resets Feb 1 .*limit "Images" of your plan Pro was reached: 100 of 100/,
  );
  assert.ok(
    full.html.includes(`href="${base}/users/acme/plan?planId=plan_team"`),
    "links lead to the account",
  );
  const user = await visitor.get(`${base}/users/ann/activity`);
  assert.match(user.text, /Refusals .*Refused by .* limit reached acme Images \(Team\) 1 /);
  const explained = await visitor.get(`${base}/users/ann/explain?event=image.x&count=101`);
  assert.match(explained.text, /Refused at "acme" by the limit "Images"/);
  assert.match(explained.text, /Limits of team No limits Limits of acme refuses .* Images yes/);
});

Deno.test("the page of an account lists what its members used, of their limits, and links the whole list of each limit", async () => {
  const { app, base, post, visitor } = await account();
  const memberLimits = { lg_images: { quota: 40 } };
  await dataOf(app.call("PUT", "/users/ann/parent", { parentId: "team", memberLimits }));
  await post("/track", { userId: "ann", event: "image.x", count: 7, costCents: 12 });
  await post("/track", { userId: "team", event: "image.x", count: 3 });
  const page = await visitor.get(`${base}/users/acme`);
  assert.match(page.text, /Members .*Member limit Cost Images ann 7 40 \$0\.12 Images team 3 none \$0\.00/);
  const { counters } = await dataOf(app.call("GET", "/users/acme"));
  const list = await visitor.get(`${base}/users/acme/members`);
  assert.match(
    list.text,
    /Members of acme Images .* List Member Used Member limit Cost ann 7 40 .* team 3 none/,
  );
  assert.ok(list.html.includes(`<a class="row" href="${base}/users/ann">ann</a>`));
  const other = await visitor.get(`${base}/users/acme/members?group=${counters[1].groupId}`);
  assert.match(other.text, /No user below used this limit in the running window\./);
  const unknown = await visitor.get(`${base}/users/acme/members?group=lg_gone`);
  assert.match(unknown.text, /The plan in force has no such limit\./);
});

Deno.test("members are listed in pages of 100", async () => {
  const { base, post, put, visitor } = await account();
  for (let place = 0; place < 101; place++) {
    const userId = `bob${String(place).padStart(3, "0")}`;
    await put(userId, "team");
    if (place < 100) await post("/track", { userId, event: "image.x", count: 0.5 });
  }
  await post("/track", { userId: "bob100", event: "image.x", count: 0.25 });
  const first = await visitor.get(`${base}/users/acme/members?group=lg_images`);
  assert.match(first.text, /bob000 0\.5 .* bob099 0\.5 none \$0\.00 More/);
  const [, next = ""] = /href="(\?group=lg_images&amp;cursor=[^"]*)"/.exec(first.html) ?? [];
  const last = await visitor.get(`${base}/users/acme/members${next.replaceAll("&amp;", "&")}`);
  assert.match(last.text, /Cost bob100 0\.25 none \$0\.00 First page/);
});

Deno.test("an admin sets, keeps and clears the limits of a member, also of a limit that no user above has", async () => {
  const { app, base, visitor } = await account();
  const limitsOf = async () => (await dataOf(app.call("GET", "/users/ann"))).memberLimits;
  const set = async (fields: Record<string, string>) => {
    const form = await visitor.get(`${base}/users/ann/member-limits`);
    return await visitor.press(form, "Continue", fields);
  };
  assert.equal(await limitsOf(), undefined);
  const preview = await set({ "memberLimits.lg_images": "40" });
  assert.match(preview.text, /Value Now After Images none 40/);
  assert.match((await visitor.press(preview, "Set limits")).text, /The member limits of ann are updated\./);
  assert.deepEqual(await limitsOf(), { lg_images: { quota: 40 } });
  assert.match((await set({})).text, /No changes: these limits are already set\./);
  assert.match((await set({ "memberLimits.lg_images": "-1" })).text, /must be/);
  const memberLimits = { lg_images: { quota: 40 }, lg_gone: { quota: 2 } };
  await dataOf(app.call("PUT", "/users/ann/parent", { parentId: "team", memberLimits }));
  const cleared = await set({ "memberLimits.lg_images": "" });
  assert.match(cleared.text, /Value Now After Images 40 none/);
  await visitor.press(cleared, "Set limits");
  assert.deepEqual(await limitsOf(), { lg_gone: { quota: 2 } });
  await dataOf(app.call("PUT", "/users/ann/parent", { parentId: "acme" }));
  assert.equal(await limitsOf(), undefined);
  assert.match((await visitor.get(`${base}/users/acme/member-limits`)).text, /No limits above/);
});
