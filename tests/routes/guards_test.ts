// Periods of limit groups over HTTP: faults in the catalog, when a refused call may be tried again, what usage shows of
// rates, concurrency limits and sessions, and that all of it outlives a restart, a sweep and an erasure.

import assert from "node:assert/strict";
import { EventReader } from "../support/event_stream.ts";
import type { TestApp } from "../support/test_service.ts";
import { Customer } from "./credits_support.ts";
import { erase, sweep } from "./privacy_support.ts";
import { assertRefused, CATALOG, dataOf, driftsOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const group = (id: string, quota: number, more: object = {}, event = "image.*") => ({
  id,
  label: id,
  unit: "count",
  quota,
  matches: [{ event }],
  ...more,
});
const rolling = (seconds: number) => ({ period: { type: "rolling", seconds } });
const CONCURRENT = { period: { type: "concurrent" } };
const session = (seconds: number) => ({ period: { type: "session", seconds } });
const MONTHLY = { period: { type: "monthly", anchor: "calendar" } };
const documentOf = (...limits: object[]) => ({ plans: [{ ...CATALOG.plans[0], limits }] });

const DOCUMENT = documentOf(
  group("lg_all", 100, {}, "*"),
  group("lg_rate", 4, rolling(60)),
  group("lg_open", 3, CONCURRENT),
  group("lg_session", 50, session(18_000)),
  group("lg_day", 20, { period: { type: "daily", anchor: "calendar" } }),
  group("lg_slow", 1, rolling(86_400), "slow"),
);

/** An app with the catalog above and a subscribed user "u". */
async function limited(): Promise<TestApp> {
  const app = await service.newApp(DOCUMENT);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  // A slot begins now, so that times are whole.
  service.clock.set(Math.ceil(service.clock.now() / 1_440_000) * 1_440_000);
  return app;
}

const call = (count: number, userId = "u", event = "image.x") => ({ userId, event, count });
const track = (app: TestApp, count: number, userId = "u") =>
  dataOf(app.call("POST", "/track", call(count, userId)));
const usageOf = (app: TestApp, userId = "u", more = "") =>
  dataOf(app.call("GET", `/usage?userId=${userId}${more}`));

async function countsOf(app: TestApp, userId = "u"): Promise<Record<string, number>> {
  const { counters } = await usageOf(app, userId);
  return Object.fromEntries(
    counters.map(({ groupId, count }: { groupId: string; count: number }) => [groupId, count]),
  );
}

const GUARD = "must be left out: rates and concurrency limits only refuse";
const CHANGED = "and cannot change under this id: give the limit group a new id";

/** The catalog in force where it matters, a group of a new one, and where the fault is and what it says. */
const FAULTS: readonly (readonly [inForce: object | null, next: object, path: string, says: string])[] = [
  [null, { period: { type: "minutely", anchor: "calendar" } }, "period.type", "must be one of"],
  [null, { period: { type: "minutely" } }, "period.type", "must be one of"],
  [null, { period: {} }, "period.type", "is required"],
  [null, { period: { type: "hourly" } }, "period.anchor", "is needed when type is hourly"],
  [null, { period: { ...MONTHLY.period, seconds: 60 } }, "period.seconds", "left out when type is monthly"],
  [null, { period: { type: "session" } }, "period.seconds", "is needed when type is session"],
  [null, session(59), "period.seconds", "must be from 60 to 2678400 when type is session"],
  [null, session(2_678_401), "period.seconds", "must be from 60 to 2678400"],
  [null, rolling(0), "period.seconds", "must be greater than 0"],
  [null, rolling(86_401), "period.seconds", "must be from 1 to 86400 when type is rolling"],
  [null, rolling(1.5), "period.seconds", "must be an integer"],
  [null, { period: { type: "rolling", seconds: 60, anchor: "calendar" } }, "period.anchor", "left out"],
  [null, { period: { type: "concurrent", seconds: 60 } }, "period.seconds", "left out"],
  [null, { ...rolling(60), headroom: { mode: "percent", value: 90 } }, "headroom", GUARD],
  [null, { ...CONCURRENT, alerts: [80] }, "alerts", GUARD],
  [null, { ...rolling(60), perMember: { quota: 1 } }, "perMember", GUARD],
  [{}, rolling(60), "period.type", `is a calendar period in the catalog in force ${CHANGED}`],
  [rolling(60), {}, "period.type", `is rolling in the catalog in force ${CHANGED}`],
  [rolling(60), CONCURRENT, "period.type", `is rolling in the catalog in force ${CHANGED}`],
  [rolling(60), session(60), "period.type", `is rolling in the catalog in force ${CHANGED}`],
  [rolling(60), rolling(61), "period.seconds", `is 60 in the catalog in force ${CHANGED}`],
  [session(60), session(61), "period.seconds", `is 60 in the catalog in force ${CHANGED}`],
  [{}, { period: { ...MONTHLY.period, seconds: 60 } }, "period.seconds", "left out when type is monthly"],
];

Deno.test("a period has what its type needs, a guard only refuses, and no kind changes under an id", async () => {
  const app = await service.newApp(documentOf());
  for (const [index, [inForce, next, path, says]] of FAULTS.entries()) {
    const put = (more: object) =>
      service.admin("PUT", `/apps/${app.appId}/catalog`, documentOf(group(`lg_${index}`, 5, more)));
    if (inForce !== null) await dataOf(put(inForce));
    const { details } = assertRefused(await put(next), 400, "invalid_request", path);
    assert.deepEqual(
      details.map((fault: { path: string }) => fault.path),
      [`plans[0].limits[0].${path}`],
      JSON.stringify([next, details]),
    );
    assert.ok(details[0].message.includes(says), details[0].message);
  }
});

Deno.test("calendar types may change under an id, and plans show a group's period", async () => {
  const app = await service.newApp(documentOf(group("lg_a", 5), group("lg_b", 5, MONTHLY)));
  const yearly = { period: { type: "yearly", anchor: "subscription_start" } };
  const next = [
    group("lg_a", 5, yearly),
    group("lg_b", 5),
    group("lg_r", 5, rolling(60)),
    group("lg_o", 5, CONCURRENT),
  ];
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, documentOf(...next)));
  const [{ limits }] = await dataOf(app.call("GET", "/plans"));
  assert.deepEqual(
    limits.map(({ period }: { period?: object }) => period),
    [yearly.period, undefined, rolling(60).period, CONCURRENT.period],
  );
});

/** What was tracked before, the call, the reasons and when it passes; undefined where not guards alone refuse. */
const REFUSED: readonly (readonly [
  tracked: number,
  count: number,
  reasons: readonly string[],
  retryAfterMs: number | null | undefined,
])[] = [
  [4, 1, ["rate_limit_reached"], 61_000],
  [2, 3, ["rate_limit_reached"], 61_000],
  [0, 5, ["rate_limit_reached", "concurrency_limit_reached"], null],
  [0, 101, ["limit_reached", "rate_limit_reached", "concurrency_limit_reached"], undefined],
];

Deno.test("a refused call says when it passes, exactly where guards alone refuse it", async () => {
  for (const [tracked, count, reasons, retryAfterMs] of REFUSED) {
    const app = await limited();
    if (tracked > 0) await track(app, tracked);
    for (const path of ["/reserve", "/can-use", "/explain"]) {
      const answer = await dataOf(app.call("POST", path, call(count)));
      assert.deepEqual([answer.allowed, answer.reasons], [false, reasons], path);
      assert.deepEqual(["retryAfterMs" in answer, answer.retryAfterMs], [
        retryAfterMs !== undefined,
        retryAfterMs,
      ], path);
      const allowed = await dataOf(app.call("POST", path, call(1, "u", "other")));
      assert.deepEqual([allowed.allowed, "retryAfterMs" in allowed], [true, false], path);
    }
  }
});

Deno.test("the 429 of a track has Retry-After in seconds, also where it is replayed, and none where it never passes", async () => {
  const app = await limited();
  await track(app, 4);
  service.clock.advance(100);
  const headers = { "idempotency-key": "k" };
  const first = await app.call("POST", "/track", call(1), { headers });
  const { details } = assertRefused(first, 429, "rate_limit_reached");
  assert.deepEqual(Object.keys(details).toSorted(), ["eventId", "groups", "retryAfterMs"]);
  assert.deepEqual([details.retryAfterMs, first.headers.get("retry-after")], [60_900, "61"]);
  assert.deepEqual(details.groups.map(({ groupId }: { groupId: string }) => groupId), ["lg_rate"]);
  service.clock.advance(10_000);
  const again = await app.call("POST", "/track", call(1), { headers });
  assert.deepEqual(
    [again.status, again.headers.get("idempotent-replayed"), again.headers.get("retry-after")],
    [
      429,
      "true",
      "61",
    ],
  );
  assert.deepEqual(again.body, first.body);
  const never = await app.call("POST", "/track", call(5));
  assert.equal(assertRefused(never, 429, "rate_limit_reached").details.retryAfterMs, null);
  const byQuota = await app.call("POST", "/track", call(101));
  assert.equal("retryAfterMs" in assertRefused(byQuota, 429, "limit_reached").details, false);
  for (const answer of [never, byQuota]) assert.equal(answer.headers.get("retry-after"), null);
  const { events } = await dataOf(app.call("GET", "/events?limit=3"));
  assert.deepEqual(
    events.map(({ matchStatus }: { matchStatus: string }) => matchStatus),
    Array(3).fill("blocked"),
  );
});

Deno.test("Retry-After is at least a second and at most a day", async () => {
  const app = await limited();
  const slow = () => app.call("POST", "/track", call(1, "u", "slow"));
  await dataOf(slow());
  const first = await slow();
  assert.equal(assertRefused(first, 429, "rate_limit_reached").details.retryAfterMs, 86_400_000 + 1_440_000);
  assert.equal(first.headers.get("retry-after"), "86400");
  service.clock.advance(86_400_000 + 1_440_000 - 1);
  assert.equal((await slow()).headers.get("retry-after"), "1");
  service.clock.advance(1);
  await dataOf(slow());
});

Deno.test("usage shows the window of each group with a period of its own, and what a guard counts now", async () => {
  const app = await limited();
  const now = service.clock.now();
  const at = (ms: number) => new Date(ms).toISOString();
  const midnight = now - now % 86_400_000;
  const day = { start: at(midnight), end: at(midnight + 86_400_000) };
  const shownOf = async (userId = "u") => {
    const { counters } = await usageOf(app, userId);
    // deno-lint-ignore no-explicit-any -- tests look at whatever came back
    return Object.fromEntries(counters.map((row: any) => {
      const { groupId, count, remaining, period, window } = row;
      return [groupId, [count, remaining, period, window]];
    }));
  };
  const ofRate = { type: "rolling", seconds: 60 };
  assert.deepEqual(await shownOf(), {
    lg_all: [0, 100, undefined, undefined],
    lg_rate: [0, 4, null, ofRate],
    lg_open: [0, 3, null, { type: "concurrent" }],
    lg_session: [0, 50, null, undefined],
    lg_day: [0, 20, day, undefined],
    lg_slow: [0, 1, null, { type: "rolling", seconds: 86_400 }],
  });
  const held = await dataOf(app.call("POST", "/reserve", { ...call(2), ttlSeconds: 60 }));
  assert.deepEqual(held.groups.map(({ groupId }: { groupId: string }) => groupId), [
    "lg_all",
    "lg_rate",
    "lg_open",
    "lg_session",
    "lg_day",
  ]);
  const running = { start: at(now), end: at(now + 18_000_000) };
  const { lg_rate, lg_open, lg_session } = await shownOf();
  assert.deepEqual([lg_rate, lg_open, lg_session], [
    [2, 2, null, ofRate],
    [2, 1, null, { type: "concurrent" }],
    [2, 48, running, undefined],
  ]);
  const full = await dataOf(app.call("POST", "/reserve", call(3)));
  const resets = full.groups.map(({ groupId, resetsAt }: Record<string, unknown>) => [groupId, resetsAt]);
  assert.deepEqual(resets, [
    ["lg_all", undefined],
    ["lg_rate", null],
    ["lg_open", null],
    ["lg_session", undefined],
    ["lg_day", undefined],
  ]);
  service.clock.advance(18_000_000);
  assert.deepEqual(
    (await shownOf()).lg_session,
    [0, 50, null, undefined],
    "the session is over, the hold lapsed",
  );
  await track(app, 5).then(() => assert.fail("above the rate"), () => {});
  assert.deepEqual((await shownOf()).lg_session, [0, 50, null, undefined], "a refused call begins none");
});

Deno.test("an account shows the guards of its plan to those below, and they count all of them", async () => {
  const app = await limited();
  for (const userId of ["a", "b"]) {
    const memberLimits = { lg_rate: { quota: 3 } };
    await dataOf(app.call("PUT", `/users/${userId}/parent`, { parentId: "u", memberLimits }));
  }
  await track(app, 3, "a");
  const { levels } = await dataOf(app.call("POST", "/track", call(1, "b")));
  const [{ counters: [, tracked] }] = levels;
  assert.deepEqual(tracked.window, { type: "rolling", seconds: 60 });
  assert.equal("member" in tracked, false, "a guard keeps no shares");
  const refused = await dataOf(app.call("POST", "/reserve", call(1, "b")));
  assert.deepEqual([refused.reasons, refused.refusedBy, refused.retryAfterMs], [
    ["rate_limit_reached"],
    ["u"],
    61_000,
  ]);
  const { levels: [above] } = await usageOf(app, "b", "&levels=true");
  const { count, period, window, member } = above.counters[1];
  assert.deepEqual([count, period, window, member], [4, null, tracked.window, undefined]);
});

Deno.test("a stream sends nothing when slots of a rate pass, and then the next change with what counts", async () => {
  const app = await limited();
  await dataOf(app.call("POST", "/subscriptions", { userId: "v", planId: "plan_pro" }));
  await using stream = await EventReader.open(service.http, "/usage/stream?userId=u", app.secretLive);
  await using other = await EventReader.open(service.http, "/usage/stream?userId=v", app.secretLive);
  const rateIn = (usage: { counters: { groupId: string; count: number }[] }) =>
    usage.counters.slice(0, 2).map(({ count }) => count);
  await stream.data();
  await other.data();
  await track(app, 3);
  assert.deepEqual(rateIn(await stream.data()), [3, 3]);
  await dataOf(app.call("POST", "/reserve", { ...call(1, "v"), ttlSeconds: 61 }));
  await other.data();
  service.clock.advance(61_000);
  // The hold of another user lapses at the same moment, so streams have been looked at.
  assert.deepEqual(rateIn(await other.data()), [0, 0]);
  await track(app, 1);
  assert.deepEqual(rateIn(await stream.data()), [4, 1]);
});

Deno.test("rates, sessions and open holds outlive a restart, from the journal and from the tables", async () => {
  const app = await limited();
  await track(app, 1);
  const { reservationId } = await dataOf(app.call("POST", "/reserve", call(2)));
  service.clock.advance(5_000);
  const before = await usageOf(app);
  const refused = await dataOf(app.call("POST", "/reserve", call(2)));
  assert.deepEqual(refused.reasons, ["rate_limit_reached", "concurrency_limit_reached"]);
  for (const isDrained of [false, true]) {
    if (isDrained) await service.serving().term.flush();
    await service.restart();
    assert.deepEqual(await usageOf(app), before, String(isDrained));
    assert.deepEqual(await dataOf(app.call("POST", "/reserve", call(2))), refused, String(isDrained));
  }
  await dataOf(app.call("POST", "/release", { reservationId }));
  const { lg_rate, lg_open, lg_session } = await countsOf(app);
  assert.deepEqual([lg_rate, lg_open, lg_session], [1, 0, 1]);
});

const assertBooks = async () => assert.deepEqual(await driftsOf(service), []);

Deno.test("passed slots are removed, also those of an erased member at its account, and the books balance", async () => {
  const app = await limited();
  await dataOf(app.call("PUT", "/users/member/parent", { parentId: "u" }));
  await track(app, 1);
  await track(app, 2, "member");
  await erase(service, new Customer(app, "member"), "member");
  assert.equal((await countsOf(app)).lg_rate, 3);
  await assertBooks();
  await dataOf(app.call("POST", "/reserve", { ...call(1), ttlSeconds: 3600 }));
  const slots = async () => [
    ...await service.store.database.query<{ rows: number; erased: number }>(
      `select (select count(*) from counters where kind = 'rate' and user_key = u.key) as rows,
         (select count(*) from erased_charges e where e.user_key = u.key and group_id = 'lg_rate') as erased
       from users u where id = 'u' and realm = (select realm from realms where app_id = $1 and mode = 'live')`,
      [app.appId],
    ),
  ];
  await assertBooks();
  assert.deepEqual(await slots(), [{ rows: 1, erased: 1 }]);
  service.clock.advance(60_999);
  await sweep(service);
  assert.deepEqual(await slots(), [{ rows: 1, erased: 1 }], "they still count");
  service.clock.advance(1);
  assert.ok((await sweep(service)).rates >= 1);
  assert.deepEqual(await slots(), [{ rows: 0, erased: 0 }]);
  await assertBooks();
  const { lg_all, lg_rate, lg_open } = await countsOf(app);
  assert.deepEqual([lg_all, lg_rate, lg_open], [4, 0, 1]);
});
