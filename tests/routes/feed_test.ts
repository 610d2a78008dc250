// The event feed: its records, order, filters and bounds.

import assert from "node:assert/strict";
import { appWithUser, assertRefused, CATALOG, dataOf, holdImages, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

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
