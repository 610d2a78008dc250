// Erasure in a tree: of a user with an account above and a member below nothing is left in any row, theirs neither, and
// the books of both add up.

import assert from "node:assert/strict";
import type { TestService } from "../support/test_service.ts";
import { Customer } from "./credits_support.ts";
import { catalogWith, emptiedServiceOfFile, erase, MARK, rowsOf, tracesOf } from "./privacy_support.ts";
import { dataOf, driftsOf } from "./support.ts";

const withService = emptiedServiceOfFile();

const planOf = (id: string, quota: number, perMember?: number) => ({
  id: `plan_${id}`,
  name: id,
  rank: 1,
  period: { type: "lifetime", anchor: "subscription_start" },
  limits: [{
    id: "lg_pool",
    label: "Pool",
    unit: "count",
    quota,
    matches: [{ event: "image.*" }],
    alerts: [10, 50],
    ...perMember === undefined ? {} : { perMember: { quota: perMember } },
  }],
});

const DOCUMENT = {
  ...catalogWith(),
  plans: [planOf("org", 40, 30), planOf("team", 20), planOf("wide", 1000)],
};

/** The user that is erased, and an id that is merged into it; "org" is above, "kid" below. */
const [USER, OLD] = [MARK, `${MARK}-old`];

interface Scene {
  readonly service: TestService;
  readonly customer: Customer;
  /** Makes a call under a key; returns its data. */
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
  readonly ask: (method: string, path: string, body?: object) => Promise<any>;
}

async function sceneIn(service: TestService): Promise<Scene> {
  const app = await service.newApp(DOCUMENT);
  const webhook = { url: "https://webhook.test/", mode: "test", events: ["*"] };
  await dataOf(service.admin("POST", `/apps/${app.appId}/webhooks`, webhook));
  let calls = 0;
  const ask: Scene["ask"] = (method, path, body) => {
    const headers = { "idempotency-key": `first-${calls++}` };
    return dataOf(app.call(method, path, body, { key: app.secretTest, headers }));
  };
  for (const [userId, planId] of Object.entries({ org: "org", [USER]: "team", [OLD]: "team", kid: "wide" })) {
    await ask("POST", "/subscriptions", { userId, planId });
  }
  await ask("PUT", `/users/${USER}/parent`, { parentId: "org", memberLimits: { lg_pool: { quota: 25 } } });
  await ask("PUT", `/users/${OLD}/parent`, { parentId: "org" });
  await ask("PUT", "/users/kid/parent", { parentId: USER });
  return { service, customer: new Customer(app, USER, app.secretTest), ask };
}

const callOf = (userId: string, count: number, more: object = {}) => ({
  userId,
  event: "image.render",
  count,
  ...more,
});

/** Lets the user, its member and its account do everything; returns ids of open and lapsed holds. */
async function live({ ask, customer }: Scene): Promise<Record<"own" | "late" | "ofKid", string>> {
  const holdOf = async (userId: string, count: number, more?: object) =>
    (await ask("POST", "/reserve", callOf(userId, count, more))).reservationId as string;
  await ask("POST", "/track", callOf(OLD, 1, { metadata: { who: OLD } }));
  const { runId } = await ask("POST", "/runs", {
    userId: USER,
    name: `run of ${USER}`,
    limits: [{ unit: "count", quota: 50 }],
    metadata: { who: USER },
  });
  await ask("POST", `/users/${USER}/keys`, { name: `key of ${USER}` });
  const late = await holdOf(USER, 2, { ttlSeconds: 60 });
  await dataOf(
    customer.app.call("POST", "/test-clock", { advanceSeconds: 61 }, { key: customer.key }),
  );
  const own = await holdOf(USER, 3, { runId, ttlSeconds: 86_400 });
  const { reservationId: ofKid } = await reserveOfKid(customer);
  await ask("POST", "/track", callOf(USER, 5, { runId, metadata: { who: USER } }));
  await ask("POST", "/track", callOf("kid", 2));
  await ask("POST", "/customers/alias", { from: OLD, to: USER });
  // Refused by the user for its member, and by the account for the user.
  await ask("POST", "/reserve", callOf("kid", 15));
  await customer.app.call("POST", "/track", callOf("kid", 15), { key: customer.key });
  await ask("POST", "/reserve", callOf(USER, 39));
  const settled = await holdOf(USER, 1);
  await ask("POST", "/commit", { reservationId: settled, actual: { count: 1 } });
  await ask("POST", "/release", { reservationId: await holdOf("kid", 1) });
  return { own, late, ofKid };
}

/** A reserve of the member, always the same under one key. */
function reserveOfKid({ app, key }: Customer) {
  const options = { key, headers: { "idempotency-key": "of kid" } };
  return dataOf(app.call("POST", "/reserve", callOf("kid", 4, { ttlSeconds: 86_400 }), options));
}

Deno.test("an erased user in a tree leaves no trace in any row, of the users above and below neither", async () => {
  await withService(async (service) => {
    const scene = await sceneIn(service);
    const { ofKid, own, late } = await live(scene);
    await service.serving().term.flush();
    await service.serving().term.refusedCalls.write();
    const found = Object.keys(await tracesOf(service, MARK));
    const wanted = [
      "users",
      "events",
      "runs",
      "end_user_keys",
      "shares",
      "refusals",
      "idempotency",
      "webhook_messages",
    ];
    assert.deepEqual(wanted.filter((table) => !found.includes(table)), [], `in ${found}`);
    const [{ key } = { key: 0 }] = await rowsOf<{ key: number }>(
      service,
      "select key from users where id = $1",
      [USER],
    );
    await erase(service, scene.customer, USER);
    assert.deepEqual(await tracesOf(service, MARK), {});
    assert.deepEqual(await driftsOf(service), []);
    const named = ["user_key", "caused_by", "parent_key"].map(async (column) => {
      const tables = await rowsOf<{ name: string }>(
        service,
        "select table_name as name from information_schema.columns where column_name = $1 order by 1",
        [column],
      );
      const counts = await Promise.all(tables.map(async ({ name }) => {
        const [row] = await rowsOf<{ count: number }>(
          service,
          `select count(*) as count from "${name}" where ${column} = $1`,
          [key],
        );
        return row?.count === 0 ? [] : [`${name}.${column}`];
      }));
      return counts.flat();
    });
    assert.deepEqual((await Promise.all(named)).flat(), []);
    const again = await reserveOfKid(scene.customer);
    assert.deepEqual(
      [again.reservationId, again.levels.map(({ userId }: { userId: string }) => userId)],
      [ofKid, ["org"]],
    );
    const counts = async () => {
      const { counters } = await scene.ask("GET", "/usage?userId=org");
      return counters[0].count;
    };
    // The user's events stay counted, its open hold is given back; its member is under the account now, and holds on.
    assert.equal(await counts(), 1 + 5 + 2 + 1 + 4);
    await scene.ask("POST", "/commit", { reservationId: ofKid, actual: { count: 6 } });
    for (const reservationId of [own, late]) {
      const { status } = await scene.customer.app.call("POST", "/commit", { reservationId }, {
        key: scene.customer.key,
      });
      assert.equal(status, 404);
    }
    assert.equal(await counts(), 1 + 5 + 2 + 1 + 6);
    await scene.ask("POST", "/track", callOf("kid", 1));
    assert.deepEqual(await driftsOf(service), []);
    assert.deepEqual(await tracesOf(service, MARK), {});
  });
});
