// The feed and users who opted out: whom it leaves out, that nobody can tell, and that metering goes on.

import assert from "node:assert/strict";
import type { Answer } from "../support/test_service.ts";
import type { Customer } from "./credits_support.ts";
import { assertRefused, serviceOfFile } from "./support.ts";
import { another, feedOf, newLogged, optIn, optOut } from "./privacy_support.ts";

const service = serviceOfFile();

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
  Deno.test(`whoever opted out of ${scope} is in no list and no detail, and all of it comes back`, async () => {
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
  Deno.test(`whoever opted out of ${scope} stays in the feed`, async () => {
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

Deno.test("pages of the feed are full whoever is excluded", async () => {
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
