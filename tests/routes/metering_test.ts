// Metering over HTTP: promises under parallel calls, what can be read of a user and of the plans, and the event feed with
// its records, order, filters and bounds. The rules are in tests/domain/metering.

import assert from "node:assert/strict";
import {
  appWithUser,
  assertRefused,
  CATALOG,
  countOf,
  dataOf,
  holdImages,
  serviceOfFile,
} from "./support.ts";

const service = serviceOfFile();

/** A catalog with one group of images. */
const ONE_GROUP = (quota: number) => ({
  plans: [{
    id: "plan_a",
    name: "A",
    rank: 1,
    period: { type: "monthly", anchor: "calendar" },
    limits: [{ id: "lg_a", label: "Images", unit: "count", quota, matches: [{ event: "image.*" }] }],
  }],
});

Deno.test("twenty parallel reserves of 75 against 500 allow exactly six, also after a restart", async () => {
  const app = await service.newApp(ONE_GROUP(500));
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_a" }));
  const reserve = { userId: "u", event: "image.x", count: 75 };
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => dataOf(app.call("POST", "/reserve", reserve))),
  );
  assert.equal(answers.filter(({ allowed }) => allowed).length, 6);
  for (const { allowed, reasons } of answers) if (!allowed) assert.deepEqual(reasons, ["limit_reached"]);
  await service.restart();
  assert.equal(await countOf(app, "lg_a"), 450);
});

Deno.test("a lapsed hold is recharged once, however soon the commit is repeated", async () => {
  const app = await service.newApp(ONE_GROUP(5));
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_a" }));
  const reserve = { userId: "u", event: "image.x", count: 2, ttlSeconds: 10 };
  const { reservationId } = await dataOf(app.call("POST", "/reserve", reserve));
  service.clock.advance(20_000);
  assert.equal(await countOf(app, "lg_a"), 0);
  // The tables now have the lapsed hold; the commit's own row is not written yet when the second one comes.
  await service.serving().term.flush();
  assert.equal((await dataOf(app.call("POST", "/commit", { reservationId }))).recharged, true);
  assertRefused(await app.call("POST", "/commit", { reservationId }), 409, "reservation_not_pending");
  assert.equal(await countOf(app, "lg_a"), 2);
  assert.equal((await dataOf(app.call("GET", "/events"))).events.length, 1);
});

Deno.test("usage shows every group of the plan with its exact members", async () => {
  const app = await appWithUser(service);
  await holdImages(app, 3);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x", inputCostCents: 0.5 }));
  const usage = await dataOf(app.call("GET", "/usage?userId=u"));
  assert.deepEqual(Object.keys(usage), [
    "userId",
    "period",
    "counters",
    "credits",
    "duplicateActiveSubscriptions",
  ]);
  assert.deepEqual(usage.period, { start: "2026-01-01T00:00:00.000Z", end: "2026-02-01T00:00:00.000Z" });
  assert.equal(usage.counters.length, 5);
  assert.deepEqual(usage.counters[0], {
    groupId: "lg_images",
    event: "image.*",
    label: "Images",
    unit: "count",
    quota: 100,
    count: 4,
    remaining: 96,
    costCents: 0.5,
    filters: {},
  });
});

Deno.test("the filter event narrows usage to the groups whose rules cover it, by name alone", async () => {
  const document = structuredClone(CATALOG) as { plans: { limits: unknown[] }[] };
  const group = (id: string, ...matches: unknown[]) => ({ id, label: id, unit: "count", quota: 5, matches });
  (document.plans[0] as { limits: unknown[] }).limits = [
    group("all", { event: "*" }),
    group("images", { event: "image.*" }),
    group("render", { event: "image.render", metadata: { model: "a" } }, {
      event: "image.render",
      metadata: { model: "b", size: "xl" },
    }),
    group("two", { event: "chat.x" }, { event: "image.re*" }),
  ];
  const app = await service.newApp(document);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  const groups = async (event: string) => {
    const { counters } = await dataOf(app.call("GET", `/usage?userId=u&event=${encodeURIComponent(event)}`));
    return counters.map((row: { groupId: string }) => row.groupId);
  };
  assert.deepEqual(await groups("image.render"), ["all", "images", "render", "two"]);
  assert.deepEqual(await groups("image.x"), ["all", "images"]);
  assert.deepEqual(await groups("image.*"), ["all", "images"]);
  assert.deepEqual(await groups("image.re*"), ["all", "images", "two"]);
  assert.deepEqual(await groups("image.*".toUpperCase()), ["all"]);
  assert.deepEqual(await groups("*"), ["all"]);
  assert.deepEqual(await groups("chat.x"), ["all", "two"]);
  assert.deepEqual(await groups("chat"), ["all"]);
  const { counters } = await dataOf(app.call("GET", "/usage?userId=u"));
  assert.deepEqual(counters[2].filters, { model: ["a", "b"], size: ["xl"] });
  for (const event of ["", "a*b", "**", "a\n", "x".repeat(201)]) {
    const answer = await app.call("GET", `/usage?userId=u&event=${encodeURIComponent(event)}`);
    assertRefused(answer, 400, "invalid_request", event);
  }
});

Deno.test("a repeated member of a query counts by its first value, and unknown members are ignored", async () => {
  const app = await appWithUser(service);
  const usage = await dataOf(app.call("GET", "/usage?userId=u&userId=v&x=1&event=image.*&constructor=2"));
  assert.deepEqual([usage.userId, usage.counters.length], ["u", 1]);
});

Deno.test("the user's view has exact members, and empty values for a stranger", async () => {
  const app = await appWithUser(service);
  const stranger = await dataOf(app.call("GET", "/users/stranger"));
  assert.deepEqual(stranger, {
    userId: "stranger",
    aliases: [],
    subscription: null,
    history: [],
    period: null,
    counters: [],
    credits: [],
    duplicateActiveSubscriptions: null,
  });
  const row = await dataOf(
    app.call("POST", "/subscriptions", {
      userId: "u",
      planId: "team",
      provider: "stripe",
      externalId: "s1",
      cycleStart: "2026-01-10T06:00:00+02:00",
      endsAt: "2027-01-01",
    }),
  );
  const user = await dataOf(app.call("GET", "/users/u"));
  assert.deepEqual(user.subscription, {
    subscriptionId: row.subscriptionId,
    userId: "u",
    planId: "plan_team",
    startedAt: new Date(service.clock.now()).toISOString(),
    endsAt: "2027-01-01T00:00:00.000Z",
    cycleAnchorAt: "2026-01-10T04:00:00.000Z",
    customLimits: null,
    provider: "stripe",
    externalId: "s1",
  });
  assert.deepEqual(row, user.subscription);
  assert.deepEqual(user.period, { start: "2026-01-15T04:00:00.000Z", end: "2026-01-16T04:00:00.000Z" });
  const [duplicate, ...others] = user.duplicateActiveSubscriptions.duplicates;
  assert.deepEqual(Object.keys(duplicate), [
    "subscriptionId",
    "planId",
    "planName",
    "provider",
    "externalId",
    "startedAt",
    "endsAt",
  ]);
  assert.deepEqual([duplicate.planName, duplicate.provider, others], ["Pro", null, []]);
  assert.equal(user.duplicateActiveSubscriptions.primary.subscriptionId, row.subscriptionId);
  assert.deepEqual(Object.keys(user.history[0]), [
    "id",
    "type",
    "subscriptionId",
    "planId",
    "previousPlanId",
    "reason",
    "at",
  ]);
});

Deno.test("the user's history is newest first and shows the last 50 rows", async () => {
  const app = await appWithUser(service);
  for (let turn = 0; turn < 30; turn++) {
    const planId = turn % 2 === 0 ? "plan_team" : "plan_pro";
    await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId }));
    await dataOf(app.call("DELETE", "/subscriptions", { userId: "u", reason: `r${turn}` }));
  }
  const { history } = await dataOf(app.call("GET", "/users/u"));
  assert.equal(history.length, 50);
  assert.deepEqual([history[0].type, history[0].reason], ["canceled", "r29"]);
  const ids = history.map(({ id }: { id: string }) => id);
  assert.deepEqual(ids, [...ids].sort().reverse());
});

Deno.test("plans are listed to both key classes, oldest first, without prices, ranks and policies", async () => {
  const app = await service.newApp(CATALOG);
  const expected = CATALOG.plans.map(({ id, name, period, limits }) => ({
    id,
    name,
    period,
    limits: limits.map((limit) => ({ ...limit, event: limit.matches[0]?.event })),
  }));
  for (const key of [app.secretLive, app.secretTest, app.publicLive, app.publicTest]) {
    assert.deepEqual(await dataOf(app.call("GET", "/plans", undefined, { key })), expected);
  }
  const empty = await service.newApp({});
  assert.deepEqual(await dataOf(empty.call("GET", "/plans")), []);
});

Deno.test("archived plans leave the list and take no new subscriptions, and stay valid for their holders", async () => {
  const app = await appWithUser(service);
  const [pro, team] = CATALOG.plans;
  await service.admin("PUT", `/apps/${app.appId}/catalog`, {
    ...CATALOG,
    plans: [{ ...pro, archived: true }, team],
  });
  const listed = await dataOf(app.call("GET", "/plans"));
  assert.deepEqual(listed.map(({ id }: { id: string }) => id), ["plan_team"]);
  for (const planId of ["plan_pro", "Pro", "PRO"]) {
    const answer = await app.call("POST", "/subscriptions", { userId: "v", planId });
    assertRefused(answer, 404, "not_found", planId);
  }
  assert.equal((await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x" }))).allowed, true);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "pro", endsAt: "2027-01-01" }));
  assert.equal((await dataOf(app.call("GET", "/usage?userId=u"))).counters.length, 5);
});

/** An event as the list shows it, as far as the tests look. */
interface Listed {
  readonly id: string;
  readonly endUserId: string;
  readonly eventType: string;
  readonly matchStatus: string;
  readonly createdAt: string;
}

Deno.test("list and detail show exactly their members", async () => {
  const app = await appWithUser(service);
  const body = { userId: "u", event: "image.x", quantity: 2.5, costCents: 0.25, metadata: { a: [1, null] } };
  const { eventId } = await dataOf(app.call("POST", "/track", body));
  const page = await dataOf(app.call("GET", "/events"));
  const listed = {
    id: eventId,
    endUserId: "u",
    eventType: "image.x",
    quantity: 2.5,
    costCents: 0.25,
    matchStatus: "matched",
    createdAt: new Date(service.clock.now()).toISOString(),
    hasLog: false,
    promptPreview: null,
  };
  assert.deepEqual(page, { events: [listed], limit: 20, offset: 0, logPromptsEnabled: false });
  assert.deepEqual(await dataOf(app.call("GET", `/events/${eventId}`)), {
    ...listed,
    metadata: { a: [1, null] },
    matchedGroupIds: ["lg_images"],
    amounts: [{ groupId: "lg_images", unit: "count", amount: 2.5 }],
    prompt: null,
    response: null,
    errorCode: null,
    reservationId: null,
    reason: null,
    uncovered: {},
  });
});

Deno.test("every match status is listed, and only a matched event names its groups", async () => {
  const app = await appWithUser(service);
  const track = (userId: string, event: string) => app.call("POST", "/track", { userId, event });
  await dataOf(track("u", "one"));
  assertRefused(await track("u", "one"), 429, "limit_reached");
  await dataOf(track("u", "nothing"));
  await dataOf(track("nobody", "image.x"));
  const reservationId = await holdImages(app);
  const reason = { reservationId, reason: "r".repeat(600), errorCode: "e".repeat(200) };
  await dataOf(app.call("POST", "/release", reason));
  const committed = await holdImages(app);
  const { eventId } = await dataOf(app.call("POST", "/commit", { reservationId: committed }));
  const { events } = await dataOf(app.call("GET", "/events"));
  assert.deepEqual(events.map((row: Listed) => row.matchStatus), [
    "matched",
    "released",
    "no_subscription",
    "unmatched",
    "blocked",
    "matched",
  ]);
  for (const { id, matchStatus } of events as Listed[]) {
    const detail = await dataOf(app.call("GET", `/events/${id}`));
    assert.equal(detail.matchedGroupIds.length, matchStatus === "matched" ? 1 : 0, matchStatus);
    const ofHold: Record<string, string> = { [eventId]: committed, [events[1].id]: reservationId };
    assert.equal(detail.reservationId, ofHold[id] ?? null);
  }
  const released = await dataOf(app.call("GET", `/events/${events[1].id}`));
  assert.deepEqual(
    [released.reason, released.errorCode, released.costCents, released.hasLog],
    ["r".repeat(500), null, 0, false],
  );
  const settings = { ...CATALOG.settings, promptLogging: true };
  await service.admin("PUT", `/apps/${app.appId}/catalog`, { ...CATALOG, settings });
  const later = await dataOf(app.call("GET", `/events/${events[1].id}`));
  assert.equal(later.errorCode, null, "written while logging was off");
  await dataOf(app.call("POST", "/release", { ...reason, reservationId: await holdImages(app) }));
  const [newest] = (await dataOf(app.call("GET", "/events?limit=1"))).events;
  assert.equal((await dataOf(app.call("GET", `/events/${newest.id}`))).errorCode, "e".repeat(100));
  assert.equal((await dataOf(app.call("GET", "/events"))).logPromptsEnabled, true);
});

Deno.test("the feed is newest first, the later written first at equal times, in pages without gaps", async () => {
  const app = await appWithUser(service);
  const ids: string[] = [];
  for (let index = 0; index < 45; index++) {
    if (index % 3 === 0) service.clock.advance(1000);
    const userId = index % 2 === 0 ? "u" : "v";
    ids.push((await dataOf(app.call("POST", "/track", { userId, event: `image.${index % 5}` }))).eventId);
  }
  ids.reverse();
  const idsOf = async (query: string) =>
    (await dataOf(app.call("GET", `/events?${query}`))).events.map(({ id }: Listed) => id);
  assert.deepEqual(await idsOf("limit=100"), ids);
  assert.deepEqual(await idsOf(""), ids.slice(0, 20));
  assert.deepEqual(await idsOf("limit=1"), ids.slice(0, 1));
  assert.deepEqual(await idsOf("offset=40"), ids.slice(40));
  assert.deepEqual(await idsOf("offset=10000"), []);
  const paged: string[] = [];
  for (let offset = 0; offset < 50; offset += 7) paged.push(...await idsOf(`limit=7&offset=${offset}`));
  assert.deepEqual(paged, ids);
  const mine = ids.filter((_, index) => (44 - index) % 2 === 0);
  assert.deepEqual(await idsOf("limit=100&userId=u"), mine);
  assert.deepEqual(await idsOf("limit=5&offset=3&userId=u"), mine.slice(3, 8));
  const typed = ids.filter((_, index) => (44 - index) % 5 === 3);
  assert.deepEqual(await idsOf("limit=100&eventType=image.3"), typed);
  const both = ids.filter((_, index) => (44 - index) % 5 === 3 && (44 - index) % 2 === 0);
  assert.deepEqual(await idsOf("limit=100&eventType=image.3&userId=u"), both);
  assert.deepEqual(await idsOf("userId=stranger"), []);
  assert.deepEqual(await idsOf("eventType=image.9"), []);
  assert.deepEqual(await idsOf("eventType=IMAGE.3"), []);
  const page = await dataOf(app.call("GET", "/events?limit=7&offset=3"));
  assert.deepEqual([page.limit, page.offset], [7, 3]);
});

Deno.test("limit and offset are whole numbers in their bounds, and event types concrete names", async () => {
  const app = await appWithUser(service);
  const bad = [
    "",
    "0",
    "-1",
    "101",
    "1e2",
    "1.5",
    "x",
    "0x10",
    "NaN",
    "Infinity",
    "99999999999999999999",
    " 5",
    "5 ",
  ];
  for (const text of bad) {
    const answer = await app.call("GET", `/events?limit=${encodeURIComponent(text)}`);
    const error = assertRefused(answer, 400, "invalid_request", `limit=${text}`);
    assert.ok(error.message.startsWith("limit"));
  }
  for (const text of [...bad.filter((text) => text !== "0" && text !== "101"), "10001"]) {
    const answer = await app.call("GET", `/events?offset=${encodeURIComponent(text)}`);
    assertRefused(answer, 400, "invalid_request", `offset=${text}`);
  }
  for (const text of ["image.*", "*", "a%0Ab", "x".repeat(201)]) {
    assertRefused(await app.call("GET", `/events?eventType=${text}`), 400, "invalid_request", text);
  }
  for (const query of ["limit=1", "limit=100", "offset=0", "offset=10000"]) {
    await dataOf(app.call("GET", `/events?${query}`));
  }
});

Deno.test("what was answered is in the feed at once, and a hold is not", async () => {
  const app = await appWithUser(service);
  for (let turn = 1; turn <= 10; turn++) {
    const reservationId = await holdImages(app);
    const { eventId } = await dataOf(app.call("POST", "/commit", { reservationId }));
    const { events } = await dataOf(app.call("GET", "/events"));
    assert.deepEqual([events.length, events[0].id], [turn, eventId]);
    await holdImages(app);
  }
});
