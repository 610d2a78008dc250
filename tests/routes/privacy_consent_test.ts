// Opting out and in: scopes, audit entries, whom a consent follows, and what it excludes from the feed.

import assert from "node:assert/strict";
import { Customer } from "./credits_support.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import {
  another,
  askOf,
  catalogWith,
  entriesOf,
  feedOf,
  newLogged,
  optedOutOf,
  optIn,
  optOut,
  realmOf,
  rowsOf,
} from "./privacy_support.ts";
import type { Answer } from "../support/test_service.ts";

const service = serviceOfFile();

const ALL = ["analytics", "ai_personalization"];

Deno.test("each scope is opted out of and back in to by itself; all is analytics and personalization", async () => {
  const u = await newLogged(service);
  for (const scope of ["analytics", "ai_personalization", "prompt_logging"]) {
    await optOut(u, "u", scope);
    assert.deepEqual(await optedOutOf(u, "u"), [scope]);
    await optIn(u, "u", scope);
    assert.deepEqual(await optedOutOf(u, "u"), []);
  }
  await optOut(u, "u", "all");
  assert.deepEqual(await optedOutOf(u, "u"), ALL);
  await optIn(u, "u", "analytics");
  assert.deepEqual(await optedOutOf(u, "u"), ["ai_personalization"]);
});

Deno.test("opting in with all lifts analytics and personalization and leaves prompt logging out", async () => {
  const u = await newLogged(service);
  await optOut(u, "u", "all");
  await optOut(u, "u", "prompt_logging");
  await optIn(u, "u", "all");
  assert.deepEqual(await optedOutOf(u, "u"), ["prompt_logging"]);
});

Deno.test("without a scope, or with null, opting out and in is all, and opted-out asks for analytics", async () => {
  const u = await newLogged(service);
  const asked = async (id: string) =>
    (await dataOf(u.app.call("GET", `/opted-out?distinctId=${id}`, undefined, { key: u.key }))).optedOut;
  for (const scope of [undefined, null]) {
    await optOut(u, "u", scope);
    assert.deepEqual(await optedOutOf(u, "u"), ALL);
    assert.equal(await asked("u"), true);
    await optIn(u, "u", scope);
    assert.deepEqual(await optedOutOf(u, "u"), []);
    assert.equal(await asked("u"), false);
  }
  await optOut(u, "u", "ai_personalization");
  assert.equal(await asked("u"), false);
  assert.equal(await asked("never-seen"), false);
});

Deno.test("bad scopes and ids are refused, and opted-out does not take all", async () => {
  const u = await newLogged(service);
  for (const path of ["/opt-out", "/opt-in"]) {
    for (
      const body of [
        {},
        { distinctId: "" },
        { distinctId: 1 },
        { distinctId: null },
        { distinctId: "x".repeat(201) },
        { distinctId: "u", scope: "everything" },
        { distinctId: "u", scope: "" },
        { distinctId: "u", scope: ["all"] },
      ]
    ) {
      assertRefused(await askOf(u, path, body), 400, "invalid_request", JSON.stringify(body));
    }
  }
  for (const query of ["", "?distinctId=", "?distinctId=u&scope=all", "?distinctId=u&scope=x"]) {
    assertRefused(await u.app.call("GET", `/opted-out${query}`), 400, "invalid_request", query);
  }
  const longest = "😀".repeat(200);
  await optOut(u, longest, "analytics");
  assert.deepEqual(await optedOutOf(u, longest), ["analytics"]);
});

Deno.test("public keys may neither change nor read consent, nor erase", async () => {
  const { app } = await newLogged(service);
  for (const key of [app.publicLive, app.publicTest]) {
    const calls = [
      app.call("POST", "/opt-out", { distinctId: "u" }, { key }),
      app.call("POST", "/opt-in", { distinctId: "u" }, { key }),
      app.call("GET", "/opted-out?distinctId=u", undefined, { key }),
      app.call("POST", "/delete-person", { distinctId: "u" }, { key }),
      app.call("GET", "/deletion-status?jobId=job_1", undefined, { key }),
    ];
    for (const answer of await Promise.all(calls)) assertRefused(answer, 403, "requires_secret_key");
  }
});

Deno.test("each call that changed something leaves one entry, with the scope as called", async () => {
  const u = await newLogged(service);
  await optIn(u, "u", "all");
  await optIn(u, "u", "prompt_logging");
  assert.deepEqual(await entriesOf(service, u), []);
  await optOut(u, "u", "analytics");
  await optOut(u, "u", "analytics");
  await optOut(u, "u", "all");
  await optOut(u, "u");
  await optOut(u, "u", "ai_personalization");
  await optOut(u, "u", "prompt_logging");
  await optIn(u, "u", "ai_personalization");
  await optIn(u, "u");
  await optIn(u, "u", "all");
  assert.deepEqual(await entriesOf(service, u), [
    ["u", "opt_out", "analytics"],
    ["u", "opt_out", "all"],
    ["u", "opt_out", "prompt_logging"],
    ["u", "opt_in", "ai_personalization"],
    ["u", "opt_in", "all"],
  ]);
});

Deno.test("opt-outs at the same time leave one entry, and all of them see it", async () => {
  const u = await newLogged(service);
  const calls = Array.from({ length: 20 }, async (_, index) => {
    await optOut(u, "u", "analytics");
    assert.deepEqual(await optedOutOf(u, "u"), ["analytics"], String(index));
  });
  await Promise.all(calls);
  assert.deepEqual(await entriesOf(service, u), [["u", "opt_out", "analytics"]]);
});

Deno.test("an opt-in of an unknown person writes nothing", async () => {
  const u = await newLogged(service);
  await optIn(u, "never-seen");
  const rows = await rowsOf(service, "select 1 from users where realm = $1::int and id = 'never-seen'", [
    await realmOf(service, u),
  ]);
  assert.deepEqual(rows, []);
});

Deno.test("an acknowledged opt-out survives a restart, and its entry has the time of its realm", async () => {
  const u = await newLogged(service, { mode: "test" });
  await u.pass(86_400);
  await optOut(u, "u", "ai_personalization");
  await service.restart();
  assert.deepEqual(await optedOutOf(u, "u"), ["ai_personalization"]);
  const [row] = await rowsOf<{ at_ms: number }>(
    service,
    "select at_ms from consents where realm = $1::int",
    [await realmOf(service, u)],
  );
  assert.equal(row?.at_ms, service.clock.now() + 86_400_000);
});

Deno.test("a repeated opt-out under an idempotency key is answered from the first", async () => {
  const u = await newLogged(service);
  const headers = { "idempotency-key": "opt-out-1" };
  const body = { distinctId: "u", scope: "analytics" };
  const call = () => u.app.call("POST", "/opt-out", body, { key: u.key, headers });
  assert.deepEqual(await dataOf(call()), {});
  await optIn(u, "u", "analytics");
  const again = await call();
  assert.deepEqual([again.status, again.headers.get("idempotent-replayed")], [200, "true"]);
  assert.deepEqual(await optedOutOf(u, "u"), []);
});

Deno.test("the modes of an app, and two apps, know nothing of each other's consents", async () => {
  const live = await newLogged(service);
  const test = new Customer(live.app, "u", live.app.secretTest);
  const foreign = await newLogged(service);
  const { eventId } = await test.post("/track", { event: "image.x" });
  await optOut(live, "u", "all");
  assert.deepEqual(await optedOutOf(test, "u"), []);
  assert.deepEqual(await optedOutOf(foreign, "u"), []);
  assert.deepEqual((await feedOf(test)).map(({ id }) => id), [eventId]);
  assert.deepEqual(await entriesOf(service, test), []);
});

for (const [from, to, scope] of [["out", "in", "all"], ["in", "out", "prompt_logging"]] as const) {
  Deno.test(`a metering alias opts the merged user out when ${from} joins ${to} and "out" had opted out`, async () => {
    const u = await newLogged(service);
    await another(u, "in");
    await another(u, "out");
    const { eventId } = await u.post("/track", { userId: "in", event: "image.x", prompt: "before" });
    await optOut(u, "out", scope);
    const expected = scope === "all" ? ALL : [scope];
    await u.post("/customers/alias", { from, to });
    assert.deepEqual(await optedOutOf(u, "in"), expected);
    assert.deepEqual(await optedOutOf(u, "out"), expected);
    const detail = await u.app.call("GET", `/events/${eventId}`, undefined, { key: u.key });
    assert.equal(detail.status, scope === "all" ? 404 : 200);
    await service.restart();
    assert.deepEqual(await optedOutOf(u, "in"), expected);
    await optIn(u, "in", scope);
    assert.deepEqual([await optedOutOf(u, "in"), await optedOutOf(u, "out")], [[], []]);
    assert.deepEqual(await entriesOf(service, u), [["out", "opt_out", scope], ["in", "opt_in", scope]]);
  });
}

Deno.test("an opt-out through an alias is one of its canonical user", async () => {
  const u = await newLogged(service);
  await u.post("/track", { userId: "old", event: "image.x" });
  await u.post("/customers/alias", { from: "old", to: "u" });
  await optOut(u, "old", "ai_personalization");
  assert.deepEqual(await optedOutOf(u, "u"), ["ai_personalization"]);
  assert.deepEqual(await entriesOf(service, u), [["old", "opt_out", "ai_personalization"]]);
  assert.deepEqual(await feedOf(u), []);
});

for (const out of ["a", "b"]) {
  Deno.test(`an alias of people opts both ids out when "${out}" had, and an opt-out reaches both after`, async () => {
    const u = await newLogged(service);
    await optOut(u, out, "ai_personalization");
    for (const distinctId of ["a", "b"]) await dataOf(askOf(u, "/identify", { distinctId }));
    await dataOf(askOf(u, "/alias", { distinctId: "a", alias: "b" }));
    for (const id of ["a", "b"]) assert.deepEqual(await optedOutOf(u, id), ["ai_personalization"]);
    const before = await entriesOf(service, u);
    await optOut(u, "b", "prompt_logging");
    assert.deepEqual(await optedOutOf(u, "a"), ["ai_personalization", "prompt_logging"]);
    await optIn(u, "a", "ai_personalization");
    assert.deepEqual(await optedOutOf(u, "b"), ["prompt_logging"]);
    assert.deepEqual((await entriesOf(service, u)).slice(before.length), [
      ["b", "opt_out", "prompt_logging"],
      ["a", "opt_in", "ai_personalization"],
    ]);
  });
}

Deno.test("merging an anonymous session by identify takes its opt-outs along", async () => {
  const u = await newLogged(service);
  await optOut(u, "anon_1", "ai_personalization");
  const body = { distinctId: "known", mergeAnonymousId: "anon_1", consentGiven: true };
  await dataOf(askOf(u, "/identify", body));
  assert.deepEqual(await optedOutOf(u, "known"), ["ai_personalization"]);
});

Deno.test("an opt-out is known for the canonical id right after an alias without consent with a long history", async () => {
  const app = await service.newApp(catalogWith());
  const u = new Customer(app);
  const tracks = Array.from({ length: 510 }, () => u.post("/track", { userId: "anon_1", event: "x" }));
  await Promise.all(tracks);
  await optOut(u, "anon_1", "analytics");
  const report = await u.post("/customers/alias", { from: "anon_1", to: "known" });
  assert.deepEqual([report.analytics, report.historyPending], ["skipped_consent_required", true]);
  assert.deepEqual(await optedOutOf(u, "known"), ["analytics"]);
  await dataOf(askOf(u, "/capture", { distinctId: "known", event: "silenced" }));
  const [row] = await rowsOf<{ person_id: string | null }>(
    service,
    "select person_id from analytics_events where realm = $1::int",
    [await realmOf(service, u)],
  );
  assert.equal(row?.person_id, null);
});

function detailOf({ app, key }: Customer, eventId: string, id = "same"): Promise<Answer> {
  return app.call("GET", `/events/${eventId}`, undefined, { key, headers: { "x-request-id": id } });
}

/** Every form of the list that could show a user's events. */
async function listsOf(customer: Customer, userId: string) {
  const lists = [];
  for (
    const query of ["", `&userId=${userId}`, "&eventType=image.x", `&userId=${userId}&eventType=image.x`]
  ) {
    lists.push((await feedOf(customer, query)).map(({ endUserId }) => endUserId));
  }
  return lists;
}

for (const scope of ["ai_personalization", "all"]) {
  Deno.test(`a user who opted out of ${scope} is in no list and no detail, and after an opt-in is back`, async () => {
    const u = await newLogged(service);
    const v = await another(u, "v");
    const { eventId } = await u.post("/track", { event: "image.x", prompt: "p" });
    const { eventId: others } = await v.post("/track", { event: "image.x" });
    const before = [await feedOf(u), (await detailOf(u, eventId)).body];
    await optOut(u, "u", scope);
    assert.deepEqual(await listsOf(u, "u"), [["v"], [], ["v"], []]);
    assertRefused(await detailOf(u, eventId), 404, "not_found");
    assert.equal((await detailOf(u, others)).status, 200);
    await optIn(u, "u", scope);
    assert.deepEqual([await feedOf(u), (await detailOf(u, eventId)).body], before);
  });
}

for (const scope of ["analytics", "prompt_logging"]) {
  Deno.test(`a user who opted out of ${scope} stays in the feed`, async () => {
    const u = await newLogged(service);
    const { eventId } = await u.post("/track", { event: "image.x", prompt: "p" });
    await optOut(u, "u", scope);
    assert.deepEqual(await listsOf(u, "u"), [["u"], ["u"], ["u"], ["u"]]);
    assert.equal((await detailOf(u, eventId)).body.data.prompt, "p");
  });
}

Deno.test("an event of an excluded user and an unknown one are answered alike", async () => {
  const u = await newLogged(service);
  const { eventId } = await u.post("/track", { event: "image.x" });
  await optOut(u, "u", "ai_personalization");
  const unknown = eventId.replace(/.{3}$/, "zzz");
  const answers = await Promise.all([detailOf(u, eventId), detailOf(u, unknown), detailOf(u, "evt_no")]);
  const [first, ...rest] = answers.map(({ status, headers, body }) => {
    return { status, headers: [...headers].sort(), body };
  });
  assert.equal(first?.status, 404);
  for (const other of rest) assert.deepEqual(other, first);
});

Deno.test("pages of the feed are full whatever users are excluded", async () => {
  const u = await newLogged(service);
  for (let index = 0; index < 9; index++) {
    await u.post("/track", { userId: index % 3 === 0 ? "u" : `v${index}`, event: "image.x" });
  }
  await optOut(u, "u", "ai_personalization");
  const pages = [];
  for (const offset of [0, 4]) pages.push(await u.app.call("GET", `/events?limit=4&offset=${offset}`));
  const ids = pages.map(({ body }) => body.data.events.map((row: { endUserId: string }) => row.endUserId));
  assert.deepEqual(ids, [["v8", "v7", "v5", "v4"], ["v2", "v1"]]);
});

Deno.test("metering goes on for a user who opted out of everything", async () => {
  const u = await newLogged(service);
  await optOut(u, "u", "all");
  await optOut(u, "u", "prompt_logging");
  await u.fund("cpk_count", 5);
  const { reservationId, groups } = await u.post("/reserve", { event: "image.x", count: 2 });
  assert.equal(groups[0].current, 2);
  await u.commit(reservationId, { extra: { count: 1 } });
  const { matchStatus } = await u.post("/track", { event: "image.x", quantity: 4 });
  assert.equal(matchStatus, "matched");
  await u.release(await u.hold("image.x", { count: 8 }));
  assert.deepEqual(await u.counts("lg_images"), [7]);
  const { body } = await u.ask("GET", "/users/u");
  assert.deepEqual([body.data.userId, body.data.subscription.planId], ["u", "plan_pro"]);
  const refused = await u.post("/reserve", { event: "image.x", count: 9 });
  assert.deepEqual([refused.allowed, refused.reasons], [false, ["limit_reached"]]);
  assert.deepEqual(await feedOf(u), []);
  await optIn(u, "u", "ai_personalization");
  assert.deepEqual((await feedOf(u)).map(({ matchStatus }) => matchStatus), [
    "released",
    "matched",
    "matched",
  ]);
});

Deno.test("the events of an alias are excluded with its canonical user, also while its history moves", async () => {
  const u = await newLogged(service);
  const { eventId } = await u.post("/track", { userId: "old", event: "image.x" });
  await u.post("/customers/alias", { from: "old", to: "u" });
  assert.deepEqual(await listsOf(u, "old"), [["u"], ["u"], ["u"], ["u"]]);
  await optOut(u, "u", "ai_personalization");
  assert.deepEqual(await listsOf(u, "old"), [[], [], [], []]);
  assertRefused(await detailOf(u, eventId), 404, "not_found");
});
