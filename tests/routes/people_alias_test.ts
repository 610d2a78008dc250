// People who are linked, and people under a pseudonym after they opted out of analytics.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import {
  captured,
  consent,
  countsOf,
  eventsOf,
  exportOf,
  identified,
  isOut,
  linked,
  realmOf,
  tracesOf,
} from "./people_support.ts";
import { erasePeople, idsOfPerson } from "../../src/people/people.ts";
import { forgetPseudonyms } from "../../src/people/pseudonyms.ts";
import { deleteCaptured } from "../../src/storage/stores/capture_store.ts";
import { TEST_FEATURES } from "../support/test_service.ts";

const service = serviceOfFile();

Deno.test("the person of the alias stays, with what both sides had", async () => {
  const app = await service.newApp();
  const from = await identified(app, { distinctId: "old", properties: { name: "Old", city: "Rome" } });
  await captured(app, { distinctId: "old", event: "before" });
  service.clock.advance(1000);
  const into = await identified(app, { distinctId: "new", properties: { name: "New" } });
  assert.equal(await linked(app, "old", "new"), into.personId);
  await captured(app, { distinctId: "old", event: "after" });
  for (const id of ["old", "new"]) {
    const { person, events } = await exportOf(service, app, id);
    assert.deepEqual(person, {
      personId: into.personId,
      distinctIds: ["new", "old"],
      properties: { name: "New", city: "Rome" },
      identifiedAt: new Date(service.clock.now() - 1000).toISOString(),
      createdAt: new Date(service.clock.now() - 1000).toISOString(),
    });
    assert.deepEqual(events.analytics.map(({ event }: { event: string }) => event), ["after", "before"]);
  }
  assert.equal((await identified(app, { distinctId: "old" })).personId, into.personId);
  assert.notEqual(from.personId, into.personId);
  assert.equal(await linked(app, "old", "new"), into.personId, "once more is the same");
  assert.equal(await linked(app, "new", "old"), into.personId, "the other way too");
});

Deno.test("people of people of people are one, with every event of all of them", async () => {
  const app = await service.newApp();
  const ids = ["a", "b", "c", "d", "e"];
  for (const distinctId of ids) {
    for (let count = 0; count < 3; count++) {
      service.clock.advance(1);
      await captured(app, { distinctId, event: `${distinctId}${count}` });
    }
  }
  await linked(app, "a", "b");
  await linked(app, "d", "c");
  await linked(app, "b", "c");
  const personId = await linked(app, "c", "e");
  const { person, events } = await exportOf(service, app, "a");
  assert.deepEqual([person.personId, person.distinctIds], [personId, ids]);
  const expected = ids.flatMap((id) => [0, 1, 2].map((count) => `${id}${count}`)).reverse();
  assert.deepEqual(events.analytics.map(({ event }: { event: string }) => event), expected);
});

Deno.test("an id without a person is given one, and two such ids get one between them", async () => {
  const app = await service.newApp();
  const { personId } = await identified(app, { distinctId: "u" });
  assert.equal(await linked(app, "u", "fresh"), personId);
  assert.equal(await linked(app, "another", "u"), personId);
  const both = await linked(app, "x", "y");
  assert.deepEqual((await exportOf(service, app, "x")).person.distinctIds, ["x", "y"]);
  assert.notEqual(both, personId);
  assert.equal((await countsOf(service, app)).people, 2);
});

Deno.test("a session needs consent on either side, and an id is no alias of itself", async () => {
  const app = await service.newApp();
  for (const [distinctId, alias] of [["anon_1", "u"], ["u", "anon_1"]]) {
    for (const consentGiven of [undefined, false]) {
      const answer = await app.call("POST", "/alias", { distinctId, alias, consentGiven });
      assertRefused(answer, 403, "consent_required");
    }
  }
  await dataOf(app.call("POST", "/alias", { distinctId: "u", alias: "v" }));
  for (const id of ["u", "anon_1"]) {
    assertRefused(await app.call("POST", "/alias", { distinctId: id, alias: id }), 409, "alias_cycle");
  }
  for (
    const body of [{}, { distinctId: "u" }, { distinctId: "u", alias: "" }, { distinctId: 1, alias: "v" }]
  ) {
    assertRefused(await app.call("POST", "/alias", body), 400, "invalid_request");
  }
  const body = { distinctId: "u", alias: "w" };
  const answer = await app.call("POST", "/alias", body, { key: app.publicLive });
  assertRefused(answer, 403, "requires_secret_key");
  assert.deepEqual((await exportOf(service, app, "u")).person.distinctIds, ["u", "v"]);
});

Deno.test("parallel aliases in a circle end in one person", async () => {
  const app = await service.newApp();
  const ids = Array.from({ length: 6 }, (_, index) => `c${index}`);
  await Promise.all(ids.flatMap((id, index) => [
    linked(app, id, ids[(index + 1) % ids.length] as string),
    captured(app, { distinctId: id }),
    identified(app, { distinctId: id, properties: { [id]: true } }),
  ]));
  const { person, events } = await exportOf(service, app, "c3");
  assert.deepEqual(person.distinctIds, ids);
  assert.deepEqual(Object.keys(person.properties).sort(), ids);
  assert.equal(events.analytics.length, 6);
});

Deno.test("either side's opt-outs hold for every id of both people", async () => {
  const app = await service.newApp();
  await linked(app, "a1", "a2");
  await linked(app, "b1", "b2");
  await consent(app, "/opt-out", "a1", "ai_personalization");
  await consent(app, "/opt-out", "b2", "prompt_logging");
  await linked(app, "a1", "b1");
  for (const id of ["a1", "a2", "b1", "b2"]) {
    const scopes = ["analytics", "ai_personalization", "prompt_logging"];
    const out = await Promise.all(scopes.map((scope) => isOut(app, id, scope)));
    assert.deepEqual(out, [false, true, true], id);
  }
  await consent(app, "/opt-out", "c", "analytics");
  await linked(app, "c", "a2");
  await captured(app, { distinctId: "b2" });
  assert.equal((await eventsOf(service, app)).at(-1)?.person_id, null);
  await consent(app, "/opt-in", "a1");
  await captured(app, { distinctId: "c" });
  assert.match((await eventsOf(service, app)).at(-1)?.person_id ?? "", /^pid_/);
});

Deno.test("metering is not touched", async () => {
  const app = await service.newApp();
  await dataOf(app.call("POST", "/track", { userId: "u", event: "e" }));
  await linked(app, "u", "v");
  const customer = await dataOf(app.call("GET", "/customers/v"));
  assert.deepEqual([customer.canonicalId, customer.aliases], ["v", []]);
});

Deno.test("an erasure removes the whole person, with all ids, events and the way to pseudonyms", async () => {
  const app = await service.newApp();
  const { realm } = realmOf(service, app);
  const { database } = service.store;
  for (const distinctId of ["a", "b", "keep"]) await captured(app, { distinctId });
  await captured(app, {});
  await linked(app, "a", "b");
  await consent(app, "/opt-out", "a");
  await captured(app, { distinctId: "b", event: "hidden" });
  const step = () => database.transaction((session) => deleteCaptured(session, realm, ["b"], 1));
  assert.deepEqual([await step(), await step(), await step()], [1, 1, 0]);
  await database.transaction(async (session) => {
    await forgetPseudonyms(session, TEST_FEATURES.privacySecret, realm, ["a"]);
    await erasePeople(session, realm, ["a"]);
    await erasePeople(session, realm, ["a", "nobody"]);
  });
  assert.deepEqual(await countsOf(service, app), {
    people: 1,
    person_ids: 1,
    analytics_events: 3,
    pseudonyms: 0,
  });
  const [kept, anonymous, hidden] = await eventsOf(service, app);
  assert.match(kept?.person_id ?? "", /^pid_/);
  assert.deepEqual([anonymous?.person_id, anonymous?.pseudonym], [null, null]);
  assert.match(hidden?.pseudonym ?? "", /^psn_/);
  assert.deepEqual(await idsOfPerson(database, realm, "a"), ["a"]);
});

Deno.test("captures, links and erasures at once leave no event without its person", async () => {
  const app = await service.newApp();
  const { realm } = realmOf(service, app);
  const { database } = service.store;
  const work: Promise<unknown>[] = [];
  for (let round = 0; round < 8; round++) {
    for (const id of ["a", "b", "c"]) {
      work.push(
        captured(app, { distinctId: id }),
        identified(app, { distinctId: id, properties: { round } }),
      );
    }
    work.push(linked(app, "a", "b"), linked(app, "b", "c"), linked(app, "c", "a"));
    work.push(database.transaction((session) => erasePeople(session, realm, ["b"])));
  }
  await Promise.all(work);
  const { person } = await exportOf(service, app, "a");
  assert.ok(person === null || person.distinctIds.includes("a"));
  const pointers = await database.query(
    "select 1 from people p join people q on q.id = p.merged_into where q.merged_into is not null",
  );
  assert.equal(pointers.length, 0, "pointers are one hop");
});

Deno.test("a person with a pending erasure is linked with no other", async () => {
  const app = await service.newApp();
  const { realm } = realmOf(service, app);
  await dataOf(app.call("POST", "/track", { userId: "gone", event: "e" }));
  await captured(app, { distinctId: "gone" });
  await service.serving().term.flush();
  await service.store.database.query(
    "update users set erasing = true where id = 'gone' and realm = $1::int",
    [realm],
  );
  await linked(app, "v", "gone");
  await linked(app, "gone", "w");
  await identified(app, { distinctId: "gone", mergeAnonymousId: "x", consentGiven: true }, app.secretLive);
  assert.deepEqual(await idsOfPerson(service.store.database, realm, "gone"), ["gone"]);
  const counts = await countsOf(service, app);
  assert.deepEqual([counts.people, counts.person_ids], [1, 1]);
});

Deno.test("an opted-out id leaves no trace but on its user and in its consents", async () => {
  const app = await service.newApp();
  const id = "refused-consent@example.test";
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
