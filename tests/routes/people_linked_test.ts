// People of ids that a metering alias linked: they are one person, whether an id appears before the alias, after it or
// meanwhile.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import { dataOf, serviceOfFile } from "./support.ts";
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

const service = serviceOfFile();

/** Makes an alias; answers what its report says of analytics. */
async function aliased(app: TestApp, from: string, to: string, members: object = {}): Promise<string> {
  return (await dataOf(app.call("POST", "/customers/alias", { from, to, ...members }))).analytics;
}

/** What the export of an id says of people, without what names the id and the moment. */
async function documentOf(app: TestApp, id: string) {
  const { person, events, consentLog } = await exportOf(service, app, id);
  return { person, events, consentLog };
}

/** The ids' exports are one document, with these events, newest first. */
async function assertOne(app: TestApp, ids: readonly string[], events: readonly string[]) {
  const documents = await Promise.all(ids.map((id) => documentOf(app, id)));
  for (const document of documents) assert.deepEqual(document, documents[0]);
  const [first] = documents;
  assert.deepEqual(first?.person.distinctIds, [...ids].sort());
  assert.deepEqual(first?.events.analytics.map(({ event }: { event: string }) => event), events);
  return first;
}

Deno.test("a person made after the alias by either id is one", async () => {
  for (const [first, second] of [["old", "new"], ["new", "old"]] as const) {
    const app = await service.newApp();
    assert.equal(await aliased(app, "old", "new"), "linked");
    assert.equal((await countsOf(service, app)).people, 0, "an alias makes no person");
    await captured(app, { distinctId: first, event: "1st" });
    service.clock.advance(1);
    const { personId } = await identified(app, { distinctId: second, properties: { name: "N" } });
    await captured(app, { distinctId: second, event: "2nd" });
    await consent(app, "/opt-out", "old", "prompt_logging");
    const document = await assertOne(app, ["old", "new"], ["2nd", "1st"]);
    assert.deepEqual([document?.person.personId, document?.person.properties], [personId, { name: "N" }]);
    assert.equal(document?.consentLog.length, 1);
    assert.equal((await countsOf(service, app)).people, 1);
    assert.equal(await aliased(app, "old", "new"), "already_linked");
  }
});

Deno.test("people of both ids before the alias become one, and the canonical one's properties win", async () => {
  const app = await service.newApp();
  await identified(app, { distinctId: "old", properties: { name: "Old", city: "Rome" } });
  await identified(app, { distinctId: "new", properties: { name: "New" } });
  await linked(app, "friend", "old");
  await aliased(app, "old", "new");
  const document = await assertOne(app, ["old", "new", "friend"], []);
  assert.deepEqual(document?.person.properties, { name: "New", city: "Rome" });
});

Deno.test("a session is linked when the alias is repeated with consent", async () => {
  const app = await service.newApp();
  const skipped = "skipped_consent_required";
  assert.equal(await aliased(app, "anon_1", "u"), skipped);
  await identified(app, { distinctId: "anon_1", properties: { plan: "a", from: "ad" } });
  await identified(app, { distinctId: "u", properties: { plan: "b" } });
  assert.equal((await countsOf(service, app)).people, 2);
  assert.deepEqual((await exportOf(service, app, "u")).person.distinctIds, ["u"]);
  assert.equal(await aliased(app, "anon_1", "u", { consentGiven: true, dryRun: true }), "linked");
  assert.equal(await aliased(app, "anon_1", "u"), skipped, "a dry run links nothing");
  assert.equal(await aliased(app, "anon_1", "u", { consentGiven: true }), "linked");
  assert.equal(await aliased(app, "anon_1", "u"), "already_linked");
  const document = await assertOne(app, ["anon_1", "u"], []);
  assert.deepEqual(document?.person.properties, { plan: "b", from: "ad" });
});

Deno.test("a batch links too, and so does a chain of aliases", async () => {
  const app = await service.newApp();
  const pairs = [{ from: "a", to: "b" }, { from: "b", to: "c" }, { from: "d", to: "a" }];
  await dataOf(app.call("POST", "/customers/alias/batch", { pairs }));
  await captured(app, { distinctId: "b", event: "b" });
  for (const id of ["a", "c", "d"]) {
    service.clock.advance(1);
    await captured(app, { distinctId: id, event: id });
  }
  await assertOne(app, ["a", "b", "c", "d"], ["d", "c", "a", "b"]);
  assert.equal((await countsOf(service, app)).people, 1);
});

Deno.test("an opt-out by either id holds for all ids of the person, under one pseudonym", async () => {
  const app = await service.newApp();
  await aliased(app, "a", "b");
  await consent(app, "/opt-out", "b", "analytics");
  await Promise.all(["a", "b", "b", "a"].map((distinctId) => captured(app, { distinctId })));
  const events = await eventsOf(service, app);
  assert.equal(new Set(events.map(({ pseudonym }) => pseudonym)).size, 1);
  assert.match(events[0]?.pseudonym ?? "", /^psn_/);
  await consent(app, "/opt-in", "a", "analytics");
  await captured(app, { distinctId: "a" });
  await linked(app, "x", "a");
  await consent(app, "/opt-out", "x", "ai_personalization");
  assert.deepEqual(
    await Promise.all(["a", "b", "x"].map((id) => isOut(app, id, "ai_personalization"))),
    [true, true, true],
  );
  const { consentLog } = await exportOf(service, app, "b");
  assert.equal(consentLog.length, 3);
});

Deno.test("people who were split by an older version become one when an id is used", async () => {
  for (const use of ["export", "capture", "identify", "alias"] as const) {
    const app = await service.newApp();
    await aliased(app, "old", "new");
    await captured(app, { distinctId: "old", event: "old" });
    // What an older version left: the canonical id has a person of its own.
    const { realm } = realmOf(service, app);
    const { database } = service.store;
    const id = `pid_${String(realm).padStart(20, "0")}`;
    await database.query(
      "insert into people (id, realm, properties, created_at_ms) values ($1, $2::int, '{}', $3::bigint)",
      [id, realm, service.clock.now()],
    );
    await database.query(
      "update person_ids set person_id = $1 where realm = $2::int and distinct_id = 'new'",
      [id, realm],
    );
    service.clock.advance(1);
    if (use === "capture") await captured(app, { distinctId: "old", event: "again" });
    if (use === "identify") assert.equal((await identified(app, { distinctId: "old" })).personId, id);
    if (use === "alias") assert.equal(await linked(app, "friend", "old"), id);
    const ids = use === "alias" ? ["old", "new", "friend"] : ["old", "new"];
    const document = await assertOne(app, ids, use === "capture" ? ["again", "old"] : ["old"]);
    assert.equal(document?.person.personId, id);
  }
});

Deno.test("captures, identifications and the alias at once end in one person", async () => {
  for (let round = 0; round < 5; round++) {
    const app = await service.newApp();
    await Promise.all([
      ...["a", "b", "b", "a"].map((distinctId) => captured(app, { distinctId })),
      aliased(app, "a", "b"),
      ...["b", "a"].map((distinctId) => identified(app, { distinctId, properties: { [distinctId]: 1 } })),
      aliased(app, "c", "b"),
      ...["c", "a", "b"].map((distinctId) => captured(app, { distinctId })),
    ]);
    const document = await assertOne(app, ["a", "b", "c"], Array.from({ length: 7 }, () => "page"));
    assert.deepEqual(Object.keys(document?.person.properties).sort(), ["a", "b"]);
  }
});

Deno.test("an erasure takes both ids, and neither is linked afterwards", async () => {
  const app = await service.newApp();
  await aliased(app, "erased-old", "erased-new");
  await captured(app, { distinctId: "erased-old" });
  await dataOf(app.call("POST", "/delete-person", { distinctId: "erased-old" }));
  await dataOf(service.admin("POST", "/sweep"));
  for (const id of ["erased-old", "erased-new"]) assert.deepEqual(await tracesOf(service, id), []);
  await captured(app, { distinctId: "erased-old" });
  await captured(app, { distinctId: "erased-new" });
  assert.equal((await countsOf(service, app)).people, 2);
});
