// Links that a public key makes: it is in every page, so nobody reaches the data of a named person by them.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import {
  captured,
  consent,
  countsOf,
  eventsOf,
  exportOf,
  identified,
  isOut,
  linked,
  tracesOf,
} from "./people_support.ts";
import { assertRefused, dataOf, endUserToken, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const merge = (distinctId: string, mergeAnonymousId: string) => ({
  distinctId,
  mergeAnonymousId,
  consentGiven: true,
});

const track = (app: TestApp, userId: string) =>
  dataOf(app.call("POST", "/track", { userId, event: "image.x" }));

async function refused(app: TestApp, distinctId: string, anonymousId: string, token?: string) {
  const headers: Record<string, string> = token === undefined ? {} : { "x-end-user-token": token };
  const body = merge(distinctId, anonymousId);
  const answer = await app.call("POST", "/identify", body, { key: app.publicLive, headers });
  assert.match(assertRefused(answer, 400, "invalid_request", anonymousId).message, /mergeAnonymousId/);
}

async function erased(app: TestApp, distinctId: string): Promise<void> {
  const { jobId } = await dataOf(app.call("POST", "/delete-person", { distinctId }));
  for (let status = ""; status !== "completed";) {
    ({ status } = await dataOf(app.call("GET", `/deletion-status?jobId=${jobId}`)));
  }
}

Deno.test("a public key joins no named ids, whichever of them is metered or identified", async () => {
  const app = await service.newApp();
  await dataOf(app.call("POST", "/subscriptions", { userId: "victim", planId: "plan_pro" }));
  await identified(app, { distinctId: "victim" });
  for (const [into, from] of [["victim", "attacker"], ["attacker", "victim"], ["x", "unseen"]] as const) {
    await refused(app, into, from);
  }
  assert.equal((await exportOf(service, app, "attacker")).person, null);
});

Deno.test("a public key links no anonymous id with metering, another person or ids of its own", async () => {
  const app = await service.newApp();
  await track(app, "anon_event");
  await dataOf(app.call("POST", "/subscriptions", { userId: "anon_plan", planId: "plan_pro" }));
  await dataOf(
    app.call("POST", "/customers/alias", { from: "device", to: "anon_alias", consentGiven: true }),
  );
  await linked(app, "anon_person", "another-user");
  await identified(app, { distinctId: "anon_named" });
  await identified(app, merge("anon_user", "anon_below"));
  for (const id of ["event", "plan", "alias", "person", "named", "user"]) {
    await refused(app, "u", `anon_${id}`);
  }
  await identified(app, merge("u", "anon_free"));
  await refused(app, "another", "anon_free");
  assert.equal((await identified(app, merge("u", "anon_free"))).merged, true, "once more is the same");
});

Deno.test("the named id reaches the anonymous one, and never the other way round", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "anon_1", event: "visit" });
  await identified(app, { ...merge("u", "anon_1"), properties: { name: "Ada" } });
  await track(app, "u");
  const ofNamed = await exportOf(service, app, "u");
  assert.deepEqual(ofNamed.person.distinctIds, ["anon_1", "u"]);
  assert.deepEqual(ofNamed.events.analytics.map(({ event }: { event: string }) => event), ["visit"]);
  const ofAnonymous = await exportOf(service, app, "anon_1");
  assert.deepEqual(ofAnonymous.person.distinctIds, ["anon_1"]);
  assert.deepEqual(ofAnonymous.person.properties, {});
  assert.equal(ofAnonymous.events.metering.length, 0);

  await consent(app, "/opt-out", "anon_1");
  assert.deepEqual([await isOut(app, "anon_1"), await isOut(app, "u")], [true, false]);
  await consent(app, "/opt-in", "u");
  assert.equal(await isOut(app, "anon_1"), false);
  await consent(app, "/opt-out", "u", "ai_personalization");
  assert.equal(await isOut(app, "anon_1", "ai_personalization"), true);

  await erased(app, "anon_1");
  assert.deepEqual((await exportOf(service, app, "u")).person.distinctIds, ["u"]);
  assert.equal((await exportOf(service, app, "u")).events.metering.length, 1);
});

Deno.test("an opt-out of the anonymous id does not pass to the named one by the link", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "anon_out", event: "visit" });
  await consent(app, "/opt-out", "anon_out");
  await identified(app, merge("u", "anon_out"));
  assert.deepEqual([await isOut(app, "anon_out"), await isOut(app, "u")], [true, false]);
  await consent(app, "/opt-out", "v");
  await identified(app, merge("v", "anon_of_v"));
  assert.equal(await isOut(app, "anon_of_v"), true);
});

Deno.test("erasing the named id erases the anonymous one and leaves no trace of the link", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "anon_zebra", event: "visit" });
  await identified(app, merge("named-zebra", "anon_zebra"));
  await captured(app, { distinctId: "anon_zebra", event: "later" });
  await erased(app, "named-zebra");
  assert.deepEqual(await tracesOf(service, "zebra"), []);
  assert.equal((await countsOf(service, app)).people, 0);
  assert.deepEqual([...await eventsOf(service, app)], []);
});

Deno.test("an anonymous id that became part of another person is no longer reached", async () => {
  const app = await service.newApp();
  await captured(app, { distinctId: "anon_1", event: "visit" });
  await captured(app, { distinctId: "anon_2", event: "visit" });
  await identified(app, merge("attacker", "anon_1"));
  await identified(app, merge("attacker", "anon_2"));
  await identified(app, { distinctId: "owner" });
  await dataOf(app.call("POST", "/customers/alias", { from: "anon_1", to: "owner", consentGiven: true }));
  await identified(app, merge("owner", "anon_2"), app.secretLive);
  await track(app, "owner");
  assert.deepEqual((await exportOf(service, app, "attacker")).person.distinctIds, ["attacker"]);
  assert.deepEqual((await exportOf(service, app, "owner")).person.distinctIds, ["anon_1", "anon_2", "owner"]);
  await erased(app, "attacker");
  assert.equal((await exportOf(service, app, "owner")).events.metering.length, 1);
});

Deno.test("with the end-user token of distinctId the ids are one person, with another it is forbidden", async () => {
  const app = await service.newApp();
  await track(app, "session-7");
  const exp = Math.floor(service.clock.now() / 1000) + 60;
  const call = (token: string) =>
    app.call("POST", "/identify", merge("u", "session-7"), {
      key: app.publicLive,
      headers: { "x-end-user-token": token },
    });
  assertRefused(await call(endUserToken(app.identitySecret, { userId: "v", exp })), 403, "forbidden");
  assertRefused(await call("nonsense"), 403, "forbidden");
  await dataOf(call(endUserToken(app.identitySecret, { userId: "u", exp })));
  for (const id of ["u", "session-7"]) {
    assert.deepEqual((await exportOf(service, app, id)).person.distinctIds, ["session-7", "u"]);
  }
  const rows = await service.store.database.query(
    "select made_by from person_links where from_id = 'session-7'",
  );
  assert.deepEqual([...rows], [{ made_by: "end_user_token" }]);
});

Deno.test("of many links of one anonymous id at once only those to one person are made", async () => {
  const app = await service.newApp();
  const answers = await Promise.all(
    Array.from(
      { length: 8 },
      (_, place) => app.call("POST", "/identify", merge(`r${place % 4}`, "anon_1"), { key: app.publicLive }),
    ),
  );
  const rows = await service.store.database.query<{ into_id: string }>(
    "select into_id from person_links l join realms r on r.realm = l.realm where r.app_id = $1",
    [app.appId],
  );
  assert.equal(rows.length, 1);
  assert.equal(answers.filter(({ status }) => status === 200).length, 2);
});

Deno.test("an operator sees every id that an export or a deletion covers", async () => {
  const app = await service.newApp();
  await identified(app, merge("u", "anon_1"));
  await dataOf(app.call("POST", "/customers/alias", { from: "anon_left", to: "u" }));
  const covered = (id: string) =>
    dataOf(service.admin("GET", `/apps/${app.appId}/users/${id}/covered-ids?mode=live`));
  assert.deepEqual(await covered("u"), { exported: ["anon_1", "u"], deleted: ["anon_1", "anon_left", "u"] });
  assert.deepEqual(await covered("anon_1"), { exported: ["anon_1"], deleted: ["anon_1"] });
  assert.deepEqual(await covered("unseen"), { exported: ["unseen"], deleted: ["unseen"] });
});

Deno.test("an operator finds metered ids that a link without a maker joins", async () => {
  const app = await service.newApp();
  const found = async () =>
    (await dataOf(service.admin("GET", `/apps/${app.appId}/person-links?mode=live`))).people.map((
      { distinctIds }: { distinctIds: string[] },
    ) => distinctIds);
  for (const id of ["a", "b", "c", "d", "e"]) await track(app, id);
  await linked(app, "a", "b");
  await linked(app, "c", "d");
  await dataOf(app.call("POST", "/customers/alias", { from: "e", to: "a" }));
  assert.deepEqual(await found(), []);
  // As an earlier version made it.
  await service.store.database.query("delete from person_links where into_id = 'c' or from_id = 'c'");
  assert.deepEqual(await found(), [["c", "d"]]);
});
