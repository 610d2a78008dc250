// Overage over HTTP: what is sold past a quota, who stops it, what is reported of it, and that nothing is left of it.

import assert from "node:assert/strict";
import type { TestApp, TestService } from "../support/test_service.ts";
import { Customer } from "./credits_support.ts";
import { catalogWith, emptiedServiceOfFile, erase, MARK, tracesOf } from "./privacy_support.ts";
import { exportOf } from "./people_support.ts";
import { dataOf, driftsOf, endUserToken } from "./support.ts";

const withService = emptiedServiceOfFile();

const planOf = (id: string, quota: number, max: number | null) => ({
  id: `plan_${id}`,
  name: id,
  rank: 1,
  period: { type: "daily", anchor: "calendar" },
  limits: [{
    id: "lg_images",
    label: "Images",
    unit: "count",
    quota,
    matches: [{ event: "image.*" }],
    overage: { max },
  }],
});
const DOCUMENT = { ...catalogWith(), plans: [planOf("pro", 10, 5), planOf("org", 12, null)] };

/** Calls of an app's test mode. */
function asking(app: TestApp) {
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  return (method: string, path: string, body?: object): Promise<any> =>
    dataOf(app.call(method, path, body, { key: app.secretTest }));
}

const image = (userId: string, count: number) => ({ userId, event: "image.render", count });

/** The messages of a webhook that are about overage, as recorded. */
async function toldBy(service: TestService): Promise<string[]> {
  await service.serving().term.flush();
  const rows = await service.store.database.query<{ body: string }>(
    "select body from webhook_messages where type like 'usage.%' order by id",
  );
  return rows.map(({ body }) => {
    const { type, data } = JSON.parse(body);
    return [type.slice("usage.".length), data.userId, data.amount ?? data.overage, data.total ?? data.max]
      .join(" ");
  });
}

Deno.test("what goes past a quota is sold, told and listed, and a customer's own cap stops it", async () => {
  await withService(async (service) => {
    const app = await service.newApp(DOCUMENT);
    const webhook = { url: "https://webhook.test/", mode: "test", events: ["usage.*"] };
    await dataOf(service.admin("POST", `/apps/${app.appId}/webhooks`, webhook));
    const ask = asking(app);
    const now = Math.floor(Date.now() / 86_400_000 + 1) * 86_400_000 + 12 * 3_600_000;
    await ask("POST", "/test-clock", { now: new Date(now).toISOString() });
    await ask("POST", "/subscriptions", { userId: "u", planId: "pro" });

    const tracked = await ask("POST", "/track", image("u", 12));
    const [counter] = tracked.counters;
    assert.deepEqual(
      [counter.count, counter.remaining, counter.overage, counter.overageMax],
      [12, 0, 2, 5],
    );
    const held = await ask("POST", "/reserve", image("u", 3));
    assert.deepEqual([held.allowed, held.groups[0].current, held.groups[0].overage], [true, 15, 5]);
    const refused = await ask("POST", "/can-use", image("u", 1));
    assert.deepEqual([refused.allowed, refused.reasons, refused.details[0].overage], [false, [
      "limit_reached",
    ], 5]);
    const { text, groups: [explained] } = await ask("POST", "/explain", image("u", 1));
    assert.equal(explained.fits, false);
    assert.match(text, /5 of 5 sold past it/);
    const done = await ask("POST", "/commit", { reservationId: held.reservationId, actual: { count: 2.5 } });
    assert.deepEqual(done.groups, [
      { groupId: "lg_images", unit: "count", quota: 10, current: 14.5, overflow: false, overage: 4.5 },
    ]);

    const hour = new Date(now).toISOString();
    const sums = { userId: "u", groupId: "lg_images", unit: "count", hour, amount: 4.5, total: 4.5 };
    assert.deepEqual(await ask("GET", "/overage?userId=u"), { overage: [sums] });
    assert.deepEqual(await toldBy(service), ["overage_started u 2 5", "cap_reached u 5 5"]);
    await ask("POST", "/test-clock", { advanceSeconds: 3_600 });
    assert.deepEqual(
      (await toldBy(service)).slice(2),
      ["overage u 4.5 4.5"],
      "before the clock's call answers",
    );
    assert.deepEqual(await ask("GET", "/overage?userId=u"), { overage: [sums] });
    await service.store.database.query("update overage_hours set window_end_ms = null");
    assert.deepEqual(await ask("GET", "/overage?userId=u"), { overage: [sums] }, "as of an older version");
    const later = new Date(now + 3_600_000).toISOString();
    assert.deepEqual(await ask("GET", `/overage?userId=u&from=${later}`), { overage: [] });

    const cap = (body: object, key: string, headers = {}) =>
      app.call("PUT", "/usage/spend-cap", body, { key, headers });
    const exp = Math.floor(Date.now() / 1000) + 600;
    const own = { "x-end-user-token": endUserToken(app.identitySecret, { userId: "u", exp }) };
    assert.deepEqual(await dataOf(cap({ groupId: "lg_images", max: 4 }, app.publicTest, own)), {
      userId: "u",
      groupId: "lg_images",
      max: 4,
    });
    assert.equal((await cap({ groupId: "lg_images", max: 4 }, app.publicTest)).status, 403);
    assert.equal(
      (await cap({ groupId: "lg_images", max: 4 }, app.secretTest)).body.error.code,
      "invalid_request",
    );
    const above = await cap({ userId: "u", groupId: "lg_images", max: 6 }, app.secretTest);
    assert.equal(above.body.error.message, "max: must be at most 5, the most that the group sells");
    assert.equal((await ask("POST", "/reserve", image("u", 0.1))).allowed, false);
    assert.deepEqual((await ask("GET", "/users/u")).spendCaps, { lg_images: { max: 4 } });
    assert.equal((await ask("GET", "/usage?userId=u")).counters[0].overageMax, 4);
    await ask("PUT", "/users/member/parent", { parentId: "u" });
    const ofMember = { "x-end-user-token": endUserToken(app.identitySecret, { userId: "member", exp }) };
    const seen = await dataOf(
      app.call("GET", "/usage?levels=true", undefined, { key: app.publicTest, headers: ofMember }),
    );
    assert.deepEqual(Object.keys(seen.levels[0].counters[0]).sort(), [
      "count",
      "groupId",
      "label",
      "member",
      "period",
      "quota",
      "remaining",
      "unit",
    ]);
    assert.deepEqual(await driftsOf(service), []);
  });
});

Deno.test("merges, an erasure and an export keep the books of what was sold", async () => {
  await withService(async (service) => {
    const app = await service.newApp(DOCUMENT);
    const ask = asking(app);
    const OLD = `${MARK}-old`;
    for (const [userId, planId] of Object.entries({ org: "org", [MARK]: "pro", [OLD]: "pro" })) {
      await ask("POST", "/subscriptions", { userId, planId });
    }
    await ask("PUT", `/users/${MARK}/parent`, { parentId: "org" });
    await ask("PUT", "/usage/spend-cap", { userId: OLD, groupId: "lg_images", max: 4 });
    await ask("POST", "/track", image(OLD, 11));
    await ask("POST", "/test-clock", { advanceSeconds: 3_600 });
    const { reservationId } = await ask("POST", "/reserve", { ...image(MARK, 13), ttlSeconds: 86_400 });
    await ask("POST", "/customers/alias", { from: OLD, to: MARK });
    await ask("POST", "/test-clock", { advanceSeconds: 90_000 });
    await ask("POST", "/commit", { reservationId });
    const { overage } = await ask("GET", `/overage?userId=${OLD}`);
    assert.deepEqual(
      overage.map((row: Record<string, unknown>) => [row.userId, row.amount, row.total]).sort(),
      [[MARK, 1, 1], [MARK, 3, 4]],
    );
    assert.deepEqual((await ask("GET", "/overage?userId=org")).overage.length, 1);
    assert.deepEqual(await driftsOf(service), []);

    const exported = await exportOf(service, app, MARK, app.secretTest);
    assert.deepEqual(exported.overage.map(({ amount }: { amount: number }) => amount), [1, 3]);
    assert.deepEqual(exported.spendCaps, [{ groupId: "lg_images", max: 4 }]);

    await erase(service, new Customer(app, MARK, app.secretTest), MARK);
    await service.serving().term.flush();
    assert.deepEqual(await tracesOf(service, MARK), {});
    assert.deepEqual(await driftsOf(service), [], "what the account was sold is still proved");
    assert.equal((await ask("GET", "/overage?userId=org")).overage.length, 1);
  });
});
