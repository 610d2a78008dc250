// Rotating an app's identity secret: tokens of the old one hold until their time, also after several rotations and a
// restart.

import assert from "node:assert/strict";
import { ADMIN_TOKEN, type Answer, send } from "../support/test_service.ts";
import { appWithUser, assertRefused, dataOf, endUserToken, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const DAY_MS = 24 * 3_600_000;

function rotate(appId: string, body: unknown): Promise<Answer> {
  const path = `/api/admin/v1/apps/${appId}/identity-secret`;
  return send(service.http, "POST", path, body, { key: ADMIN_TOKEN });
}

Deno.test("the old secret holds for the chosen time, each of several until its own", async () => {
  const app = await appWithUser(service);
  const now = () => service.clock.now();
  const takes = async (secret: string) => {
    const token = endUserToken(secret, { userId: "u", exp: now() / 1000 + 100 * 24 * 3600 });
    const options = { key: app.publicLive, headers: { "x-end-user-token": token } };
    const { status } = await app.call("GET", "/usage/me", undefined, options);
    return status === 200;
  };
  const first = app.identitySecret;
  const second = await dataOf(rotate(app.appId, {}));
  assert.deepEqual(Object.keys(second).sort(), ["identitySecret", "oldValidUntil"]);
  assert.equal(Date.parse(second.oldValidUntil), now() + DAY_MS);
  const third = await dataOf(rotate(app.appId, { keepOldSeconds: 60 }));
  const secrets = [first, second.identitySecret, third.identitySecret];
  assert.equal(new Set(secrets).size, 3);
  assert.deepEqual(await Promise.all(secrets.map(takes)), [true, true, true]);

  await service.restart();
  assert.deepEqual(await Promise.all(secrets.map(takes)), [true, true, true]);
  service.clock.advance(60_000);
  assert.deepEqual(await Promise.all(secrets.map(takes)), [true, false, true]);
  service.clock.advance(DAY_MS);
  assert.deepEqual(await Promise.all(secrets.map(takes)), [false, false, true]);

  await dataOf(rotate(app.appId, { keepOldSeconds: 0 }));
  assert.equal(await takes(third.identitySecret), false);
});

Deno.test("a rotation names its app and how long the old secret stays valid, up to thirty days", async () => {
  const app = await appWithUser(service);
  for (const keepOldSeconds of [-1, 2_592_001, "60"]) {
    assertRefused(await rotate(app.appId, { keepOldSeconds }), 400, "invalid_request");
  }
  await dataOf(rotate(app.appId, { keepOldSeconds: 2_592_000 }));
  assertRefused(await rotate("app_unknown", {}), 404, "not_found");
  const shown = await dataOf(
    send(service.http, "GET", `/api/admin/v1/apps/${app.appId}`, undefined, { key: ADMIN_TOKEN }),
  );
  assert.ok(!JSON.stringify(shown).includes("ecret"));
});
