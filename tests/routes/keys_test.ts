// API keys over HTTP: their names and creators, when they were used, and the time until which a rolled key is valid.

import assert from "node:assert/strict";
import { runSweep } from "../../src/operations/sweeps/sweeps.ts";
import type { TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const MINUTE = 60_000;

const plans = (app: TestApp, key: string) => app.call("GET", "/credits?userId=u", undefined, { key });
const keys = (app: TestApp) => dataOf(service.admin("GET", `/apps/${app.appId}/keys`));
const keyOf = async (app: TestApp, keyId: string) =>
  (await keys(app)).find((key: { keyId: string }) => key.keyId === keyId);

function roll(app: TestApp, keyId: string, keepOldSeconds?: number) {
  return service.admin("POST", `/apps/${app.appId}/keys/${keyId}/roll`, { keepOldSeconds });
}

function create(app: TestApp, body: object = {}) {
  return dataOf(service.admin("POST", `/apps/${app.appId}/keys`, { class: "secret", mode: "live", ...body }));
}

Deno.test("a key has a name and its creator; a rolled one is valid until its time, and the new one at once", async () => {
  const app = await appWithUser(service);
  const old = await create(app, { name: "Billing job" });
  assert.deepEqual(
    [(await keyOf(app, old.keyId)).name, (await keyOf(app, old.keyId)).createdBy],
    ["Billing job", "admin"],
  );
  const rolled = await dataOf(roll(app, old.keyId, 60));
  for (const { key } of [old, rolled]) await dataOf(plans(app, key));
  const shown = await keyOf(app, rolled.keyId);
  assert.deepEqual([shown.name, shown.class, shown.mode, shown.validUntil], [
    "Billing job",
    "secret",
    "live",
    null,
  ]);
  assert.equal((await keyOf(app, old.keyId)).validUntil, rolled.oldValidUntil);
  service.clock.advance(MINUTE - 1);
  await dataOf(plans(app, old.key));
  service.clock.advance(1);
  assertRefused(await plans(app, old.key), 401, "invalid_key");
  await dataOf(plans(app, rolled.key));
  assertRefused(await roll(app, old.keyId), 400, "invalid_request");
});

Deno.test("without a time the old key is valid for a day; a second roll never makes it valid for longer", async () => {
  const app = await appWithUser(service);
  const old = await create(app);
  const at = service.clock.now();
  assert.equal(Date.parse((await dataOf(roll(app, old.keyId))).oldValidUntil), at + 24 * 60 * MINUTE);
  assert.equal(
    Date.parse((await dataOf(roll(app, old.keyId, 30 * 86_400))).oldValidUntil),
    at + 24 * 60 * MINUTE,
  );
  assert.equal(Date.parse((await dataOf(roll(app, old.keyId, 0))).oldValidUntil), at);
  assertRefused(await plans(app, old.key), 401, "invalid_key");
  assertRefused(await roll(app, old.keyId, 30 * 86_400 + 1), 400, "invalid_request");
  assertRefused(await roll(app, "key_unknown"), 404, "not_found");
});

Deno.test("the last use of a key is there at once, to the minute, and is stored once a minute", async () => {
  const app = await appWithUser(service);
  const { keyId, key } = await create(app);
  assert.equal((await keyOf(app, keyId)).lastUsedAt, null);
  // Every process does this once a minute.
  const store = () => runSweep(service.service.requireServing(), "key_uses");
  const at = service.clock.now();
  const minute = new Date(at - at % MINUTE).toISOString();
  await dataOf(plans(app, key));
  assert.equal((await keyOf(app, keyId)).lastUsedAt, minute);
  await dataOf(roll(app, keyId));
  assert.equal((await keyOf(app, keyId)).lastUsedAt, minute);
  await store();
  assert.equal((await keyOf(app, keyId)).lastUsedAt, minute);
  service.clock.advance(MINUTE);
  await dataOf(plans(app, key));
  await store();
  assert.equal(Date.parse((await keyOf(app, keyId)).lastUsedAt), Date.parse(minute) + MINUTE);
});
