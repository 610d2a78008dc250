// A short fuzzing with a fixed seed, and ids that are names which every object has. `hostile_long_test.ts` and
// `deno task fuzz` go on from there.

import assert from "node:assert/strict";
import { assertNothingFound } from "./run.ts";
import { type FuzzScene, openScene } from "./scene.ts";

let opened: FuzzScene | null = null;
Deno.test.beforeAll(async () => {
  opened = await openScene();
});
Deno.test.afterAll(() => opened?.close());

function scene(): FuzzScene {
  if (opened === null) throw new Error("The scene is not open");
  return opened;
}

Deno.test("names that every object has are ids like any other: known where the catalog has them, else unknown", async () => {
  const { app } = scene();
  const userId = "user_of_odd_names";
  const post = (path: string, body: Record<string, unknown>) => app.call("POST", path, { userId, ...body });
  for (const name of ["__proto__", "toString", "isPrototypeOf"]) {
    assert.equal((await post("/subscriptions", { planId: name })).body.error.code, "not_found", name);
    assert.equal((await post("/compose", { type: name })).body.error.code, "not_found", name);
  }
  for (const name of ["valueOf", "isPrototypeOf"]) {
    assert.equal(
      (await post("/credits/grant", { packId: name })).body.error.code,
      "credit_pack_not_found",
      name,
    );
  }
  assert.equal((await post("/subscriptions", { planId: "constructor" })).body.data.planId, "constructor");
  const limits = await post("/subscriptions", {
    planId: "constructor",
    customLimits: { toString: { quota: 1 } },
  });
  assert.equal(limits.body.error.code, "invalid_request");
  const reserved = await post("/reserve", {
    event: "odd.toString",
    count: 7,
    metadata: { model: "constructor" },
  });
  assert.deepEqual(
    reserved.body.data.groups.map((
      { groupId, current }: { groupId: string; current: number },
    ) => [groupId, current]),
    [["__proto__", 7], ["valueOf", 0]],
  );
  assert.equal((await post("/reserve", { event: "odd.x" })).body.data.allowed, false);
  assert.equal((await post("/credits/grant", { packId: "__proto__" })).body.data.remaining, 3);
  assert.equal((await post("/reserve", { event: "odd.x", count: 3 })).body.data.allowed, true);
  const tracked = await post("/track", { event: "image.x", metadata: { model: "__proto__" } });
  const event = await app.call("GET", `/events/${tracked.body.data.eventId}`);
  assert.equal(event.body.data.costCents, 3, "the price of the model of that name");
  const plain = await post("/track", { event: "image.x", metadata: { model: "constructor" } });
  assert.equal((await app.call("GET", `/events/${plain.body.data.eventId}`)).body.data.costCents, 0);
});

Deno.test("generated requests to every route find no 500, no leak, no drift, and no trace of a refusal", async () => {
  await assertNothingFound(scene(), 20_261_121, 4);
});
