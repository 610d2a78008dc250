// Capture after an opt-out of analytics: a random name that is stable per person and opt-out, and no trace of who it is.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import {
  captured,
  consent,
  countsOf,
  eventsOf,
  identified,
  isOut,
  linked,
  tracesOf,
} from "./people_support.ts";
import { startTestService } from "../support/test_service.ts";

const service = serviceOfFile();

Deno.test("an opted-out id leaves no trace but on its user and in its consents", async () => {
  const app = await service.newApp();
  const id = "somebody-who-said-no@example.test";
  await consent(app, "/opt-out", id);
  const answered = await identified(app, { distinctId: id, properties: { age: 40 } });
  for (let count = 0; count < 3; count++) await captured(app, { distinctId: id, event: "seen" });
  await service.serving().term.flush();
  assert.deepEqual(await tracesOf(service, id), ["consents", "users"]);
  assert.deepEqual(await tracesOf(service, answered.personId), []);
  const rows = await eventsOf(service, app);
  assert.equal(rows.length, 3);
  const [{ pseudonym } = { pseudonym: null }] = rows;
  assert.match(pseudonym ?? "", /^psn_[0-9a-f-]{36}$/);
  for (const row of rows) assert.deepEqual([row.person_id, row.pseudonym], [null, pseudonym]);
  assert.deepEqual(await countsOf(service, app), {
    people: 0,
    person_ids: 0,
    analytics_events: 3,
    pseudonyms: 1,
  });
});

Deno.test("a person who was known stays in the rows of before, and new events do not lead there", async () => {
  const app = await service.newApp();
  const { personId } = await identified(app, { distinctId: "u", properties: { name: "Ada" } });
  await captured(app, { distinctId: "u", event: "before" });
  const people = await service.store.database.query("select * from people where id = $1", [personId]);
  await consent(app, "/opt-out", "u", "analytics");
  await captured(app, { distinctId: "u", event: "after" });
  const again = await identified(app, { distinctId: "u", properties: { name: "Eve" } });
  assert.deepEqual(again, { personId, merged: false }, "the answer shows no difference");
  const [before, after] = await eventsOf(service, app);
  assert.equal(before?.person_id, personId);
  assert.equal(after?.person_id, null);
  assert.ok(after !== undefined && !JSON.stringify(after).includes(personId));
  const now = await service.store.database.query("select * from people where id = $1", [personId]);
  assert.deepEqual(now, people);
});

Deno.test("all ids of a person share the pseudonym, also when first events come at once", async () => {
  const app = await service.newApp();
  await linked(app, "a", "u");
  await linked(app, "b", "u");
  await consent(app, "/opt-out", "u");
  for (const id of ["a", "b", "u"]) assert.equal(await isOut(app, id), true, id);
  await Promise.all(["a", "b", "u", "b", "a"].map((distinctId) => captured(app, { distinctId })));
  await captured(app, { distinctId: "b" });
  const names = (await eventsOf(service, app)).map(({ pseudonym }) => pseudonym);
  assert.equal(names.length, 6);
  assert.equal(new Set(names).size, 1);
});

Deno.test("strangers have different pseudonyms, and so has the same id in another mode or app", async () => {
  const [app, other] = [await service.newApp(), await service.newApp()];
  for (const id of ["u", "v"]) await consent(app, "/opt-out", id);
  await consent(other, "/opt-out", "u");
  await dataOf(app.call("POST", "/opt-out", { distinctId: "u" }, { key: app.secretTest }));
  for (const id of ["u", "v"]) await captured(app, { distinctId: id, event: "strangers" });
  await captured(other, { distinctId: "u", event: "strangers" });
  await captured(app, { distinctId: "u", event: "strangers" }, app.publicTest);
  const rows = await service.store.database.query<{ pseudonym: string }>(
    "select distinct pseudonym from analytics_events where event = 'strangers' and pseudonym is not null",
  );
  assert.equal(rows.length, 4);
});

Deno.test("after opting in events are the person's again, and the next opt-out has a new pseudonym", async () => {
  const app = await service.newApp();
  await linked(app, "a", "u");
  const capture = (distinctId: string) => captured(app, { distinctId });
  await consent(app, "/opt-out", "u");
  await capture("u");
  await consent(app, "/opt-out", "u");
  await capture("a");
  await consent(app, "/opt-in", "u");
  await capture("u");
  await consent(app, "/opt-out", "a", "analytics");
  await capture("u");
  await consent(app, "/opt-in", "u", "ai_personalization");
  await capture("a");
  const [first, second, third, fourth, fifth] = await eventsOf(service, app);
  assert.equal(first?.pseudonym, second?.pseudonym);
  assert.equal(third?.pseudonym, null);
  assert.match(third?.person_id ?? "", /^pid_/);
  assert.match(fourth?.pseudonym ?? "", /^psn_/);
  assert.notEqual(fourth?.pseudonym, first?.pseudonym);
  assert.equal(fifth?.pseudonym, fourth?.pseudonym);
});

Deno.test("a pseudonym outlives a restart", async () => {
  const app = await service.newApp();
  await consent(app, "/opt-out", "u");
  await captured(app, { distinctId: "u" });
  await service.restart();
  await captured(app, { distinctId: "u" });
  const names = (await eventsOf(service, app)).map(({ pseudonym }) => pseudonym);
  assert.deepEqual([names.length, new Set(names).size, names.includes(null)], [2, 1, false]);
});

Deno.test("an alias in metering shares what was opted out of", async () => {
  const app = await service.newApp();
  await dataOf(app.call("POST", "/track", { userId: "device", event: "e" }));
  await consent(app, "/opt-out", "device");
  await dataOf(app.call("POST", "/customers/alias", { from: "device", to: "u" }));
  await service.serving().term.flush();
  for (const distinctId of ["device", "u"]) await captured(app, { distinctId });
  assert.ok((await eventsOf(service, app)).every(({ person_id }) => person_id === null));
});

Deno.test("without the privacy secret nobody opts out of analytics, and capture works", async () => {
  const bare = await startTestService(undefined, { privacySecret: null });
  try {
    const app = await bare.newApp();
    const answer = await app.call("POST", "/opt-out", { distinctId: "u" });
    assertRefused(answer, 501, "not_implemented");
    await captured(app, { distinctId: "u" });
    await identified(app, { distinctId: "u", properties: { a: 1 } });
    assert.deepEqual(await countsOf(bare, app), {
      people: 1,
      person_ids: 1,
      analytics_events: 1,
      pseudonyms: 0,
    });
    // The secret was there once: a name that cannot be found again is none.
    await dataOf(app.call("POST", "/track", { userId: "v", event: "e" }));
    await bare.serving().term.flush();
    await bare.store.database.query("update users set opted_out = 1 where id = 'v'");
    await captured(app, { distinctId: "v" });
    assert.equal((await eventsOf(bare, app)).length, 1);
  } finally {
    await bare.close();
  }
});
