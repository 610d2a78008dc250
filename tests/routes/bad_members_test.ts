// Members of the wrong type or size, for every operation with a body: each is refused as `invalid_request` that
// names the member, and changes nothing.

import assert from "node:assert/strict";
import type { z } from "zod";
import { SURFACE } from "../../routes/surface.ts";
import { appWithUser, assertRefused, dataOf, holdImages, pictureOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

/** JSON texts that are no amount of at least zero. */
const NO_AMOUNT = [
  '"5"',
  '""',
  "true",
  "[]",
  "[1]",
  "{}",
  "-1",
  "-0.000001",
  "1e13",
  "-1e13",
  "1e400",
  '"NaN"',
];
/** JSON texts that are no amount above zero. */
const NOT_POSITIVE = [...NO_AMOUNT, "0", "-0", "0.0000004", "1e-300"];
const NO_SIGNED_AMOUNT = NO_AMOUNT.filter((text) => !text.startsWith("-")).concat("-1e13", "-1e400");
const NO_TEXT = ["5", "true", "[]", "{}"];
const long = (length: number) => JSON.stringify("x".repeat(length));
const NO_ID = [...NO_TEXT, "null", '""', long(201), JSON.stringify("😀".repeat(201))];
const NO_OPTIONAL_ID = NO_ID.filter((text) => text !== "null");
const NO_EVENT = [...NO_ID, '"*"', '"a*"', '"a*b"', '"a\\nb"', '"\\u007f"', '"\\u0085"'];
const NO_OBJECT = ["5", '"x"', "true", "[]", "[{}]"];
const NO_TTL = ['"60"', "true", "[]", "{}", "9", "9.999", "86401", "0", "-60", "1e400"];
const NO_TIME = [
  "5",
  "true",
  "[]",
  "{}",
  '""',
  '"now"',
  '"2026-13-01"',
  '"2026-02-30T00:00:00Z"',
  '"2026-01-01T00:00:00"',
  '"2026-01-01T25:00:00Z"',
  '"01.02.2026"',
  '"+010000-01-01T00:00:00Z"',
  '"0000-06-01T00:00:00Z"',
  '"1769000000000"',
];

const SIZE = {
  quantity: NOT_POSITIVE,
  count: NOT_POSITIVE,
  inputTokens: NO_AMOUNT,
  inputCostCents: NO_AMOUNT,
};
const METADATA = { metadata: NO_OBJECT };

/** A path, a valid body, and for each member the texts that do not fit it. */
type Case = readonly [
  path: string,
  body: (reservationId: string) => object,
  bad: Readonly<Record<string, readonly string[]>>,
];

const CALL = { userId: "u", event: "image.x" };
const CASES: readonly Case[] = [
  ["POST /reserve", () => CALL, {
    userId: NO_ID,
    event: NO_EVENT,
    ...SIZE,
    ...METADATA,
    ttlSeconds: NO_TTL,
    prompt: NO_TEXT,
    options: NO_OBJECT,
  }],
  ["POST /can-use", () => CALL, { userId: NO_ID, event: NO_EVENT, ...SIZE, ...METADATA, options: NO_OBJECT }],
  ["POST /explain", () => CALL, { userId: NO_ID, event: NO_EVENT, ...SIZE, ...METADATA, options: NO_OBJECT }],
  ["POST /track", () => CALL, {
    userId: NO_ID,
    event: NO_EVENT,
    ...SIZE,
    ...METADATA,
    costCents: NO_AMOUNT,
    prompt: NO_TEXT,
    response: NO_TEXT,
    options: NO_OBJECT,
  }],
  ["POST /commit", (reservationId) => ({ reservationId }), {
    reservationId: [...NO_TEXT, "null", '""', long(201)],
    extra: NO_OBJECT,
    actual: NO_OBJECT,
    costCents: NO_AMOUNT,
    response: NO_TEXT,
    options: NO_OBJECT,
  }],
  ["POST /release", (reservationId) => ({ reservationId }), {
    reservationId: [...NO_TEXT, "null", '""', long(201)],
    reason: NO_TEXT,
    errorCode: NO_TEXT,
    response: NO_TEXT,
    options: NO_OBJECT,
  }],
  ["POST /subscriptions", () => ({ userId: "u", planId: "plan_team" }), {
    userId: NO_ID,
    planId: NO_ID,
    customLimits: [...NO_OBJECT, '{"lg_images":5}', '{"lg_images":{}}', '{"lg_images":{"quota":-1}}'],
    customFeatures: [...NO_OBJECT, '{"sso":null}', '{"sso":{}}', '{"sso":[1]}'],
    startsAt: NO_TIME,
    endsAt: NO_TIME,
    cycleStart: NO_TIME,
    trial: ['"true"', "1", "[]"],
    quantity: ['"2"', "true", "[]", "{}", "0", "-1", "1.5", "10001"],
  }],
  ["POST /subscriptions", () => ({ userId: "u", planId: "plan_team", provider: "p", externalId: "x" }), {
    provider: [...NO_ID, '"p","provider":null'],
    externalId: NO_ID,
  }],
  ["DELETE /subscriptions", () => ({ userId: "u" }), { userId: NO_ID, endsAt: NO_TIME, reason: NO_TEXT }],
  ["DELETE /subscriptions", () => ({ userId: "u", provider: "p", externalId: "x" }), {
    provider: NO_ID,
    externalId: NO_OPTIONAL_ID,
  }],
];

for (const [operation, body, bad] of CASES) {
  const members = Object.keys(bad).join(", ");
  Deno.test(`${operation} refuses each ${members} of a wrong type or size and changes nothing`, async () => {
    const app = await appWithUser(service);
    const reservationId = await holdImages(app, 2);
    const before = await pictureOf(app);
    const [method, path] = operation.split(" ") as [string, string];
    for (const [member, texts] of Object.entries(bad)) {
      for (const text of texts) {
        const answer = await app.call(method, path, withMember(body(reservationId), member, text));
        const error = assertRefused(answer, 400, "invalid_request", `${member}: ${text}`);
        assert.ok(!error.message.includes("sk_live"), "no key in a message");
        assert.ok(
          error.message.startsWith(member) || /provider and externalId/.test(JSON.stringify(error)),
          `${member}: ${text}: ${error.message}`,
        );
      }
    }
    assert.deepEqual(await pictureOf(app), before);
    await dataOf(app.call("POST", "/release", { reservationId }));
  });
}

/** A body as text with one member replaced by a raw JSON text. */
function withMember(body: object, member: string, text: string): string {
  const { [member as never]: _, ...rest } = body as Record<string, unknown>;
  const others = JSON.stringify(rest).slice(1, -1);
  return `{${others}${others === "" ? "" : ","}${JSON.stringify(member)}:${text}}`;
}

Deno.test("each member of extra and actual is checked, by both of its names", async () => {
  const app = await appWithUser(service);
  const reservationId = await holdImages(app, 2);
  const before = await pictureOf(app);
  const refuse = async (member: string, name: string, text: string) => {
    const answer = await app.call(
      "POST",
      "/commit",
      `{"reservationId":"${reservationId}","${member}":{"${name}":${text}}}`,
    );
    const error = assertRefused(answer, 400, "invalid_request", `${member}.${name}: ${text}`);
    assert.ok(error.message.startsWith(`${member}.${name}`), error.message);
  };
  for (const name of ["count", "tokens", "outputTokens", "cents", "outputCostCents", "seconds"]) {
    for (const text of NO_SIGNED_AMOUNT) await refuse("extra", name, text);
  }
  for (const name of ["count", "tokens", "cents", "seconds"]) {
    for (const text of NO_AMOUNT) await refuse("actual", name, text);
  }
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("members of a commit that contradict each other are refused and leave the hold unchanged", async () => {
  const app = await appWithUser(service);
  const reservationId = await holdImages(app, 2);
  const before = await pictureOf(app);
  const contradictions = [
    { extra: { count: 1 }, actual: { count: 1 } },
    { extra: { tokens: 0 }, actual: { tokens: 0 } },
    { extra: { outputTokens: 1 }, actual: { tokens: 1 } },
    { extra: { cents: 1 }, actual: { cents: 1 } },
    { extra: { outputCostCents: 1 }, actual: { cents: 1 } },
    { extra: { seconds: 1 }, actual: { seconds: 1 } },
    { extra: { tokens: 1, outputTokens: 1 } },
    { extra: { cents: 1, outputCostCents: 1 } },
    { costCents: 1, extra: { cents: 1 } },
    { costCents: 0, extra: { outputCostCents: 0 } },
    { costCents: 1, actual: { cents: 1 } },
    { options: { costCents: 1 }, actual: { cents: 1 } },
    { options: { extra: { count: 1 } }, actual: { count: 1 } },
  ];
  for (const members of contradictions) {
    const answer = await app.call("POST", "/commit", { reservationId, ...members });
    assertRefused(answer, 400, "invalid_request", JSON.stringify(members));
  }
  assert.deepEqual(await pictureOf(app), before);
  const nulls = {
    extra: { count: null, tokens: 1 },
    actual: { count: 1, tokens: null, cents: null },
    costCents: 1,
  };
  const { groups } = await dataOf(app.call("POST", "/commit", { reservationId, ...nulls }));
  assert.equal(groups[0].current, 1);
});

Deno.test("null for an optional member is the same as leaving it out", async () => {
  const app = await appWithUser(service);
  const none = (names: string) => Object.fromEntries(names.split(" ").map((name) => [name, null]));
  const size = none("quantity count inputTokens inputCostCents metadata prompt response costCents options");
  const hold = await dataOf(app.call("POST", "/reserve", { ...CALL, ...size, ttlSeconds: null }));
  assert.equal(hold.groups[0].current, 1);
  const commit = none("extra actual costCents response options");
  await dataOf(app.call("POST", "/commit", { reservationId: hold.reservationId, ...commit }));
  assert.equal((await dataOf(app.call("POST", "/track", { ...CALL, ...size }))).counters[0].count, 2);
  assert.equal((await dataOf(app.call("POST", "/can-use", { ...CALL, ...size }))).allowed, true);
  const other = await holdImages(app);
  await dataOf(app.call("POST", "/release", { reservationId: other, ...none("reason errorCode response") }));
  const row = none(
    "provider externalId startsAt endsAt cycleStart customLimits customFeatures quantity trial at",
  );
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro", ...row }));
  await dataOf(
    app.call("DELETE", "/subscriptions", { userId: "u", ...none("provider externalId endsAt reason") }),
  );
});

Deno.test("a number beyond every integer is refused by the bound of its member alone", async () => {
  const app = await service.newApp();
  for (const [quantity, message] of [[1e20, "must be at most 10000"], [-1e20, "must be at least 1"]]) {
    const answer = await app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro", quantity });
    assert.deepEqual(assertRefused(answer, 400, "invalid_request").details, [{ path: "quantity", message }]);
  }
});

Deno.test("every optional member of a body takes null, on every call", () => {
  const refusing = SURFACE.calls.filter(({ id, method }) =>
    // A catalog is a document of its own, and strict.
    method !== "GET" && id !== "applyCatalog"
  ).flatMap(({ id, input, inQuery = [] }) =>
    Object.entries<z.ZodType>((input as z.ZodObject | null)?.shape ?? {})
      .filter(([name, member]) =>
        !inQuery.includes(name) && member.safeParse(undefined).success && !member.safeParse(null).success
      )
      .map(([name]) => `${id}.${name}`)
  );
  assert.deepEqual(refusing, []);
});

Deno.test("what a subscription cannot be is refused after its plan was looked up, and changes nothing", async () => {
  const app = await appWithUser(service);
  const before = await pictureOf(app);
  const now = service.clock.now();
  const at = (ms: number) => new Date(now + ms).toISOString();
  const faults: [object, number, string][] = [
    [{ planId: "plan_none" }, 404, "not_found"],
    [{ planId: "plan_pro", startsAt: at(1) }, 400, "invalid_request"],
    [{ planId: "plan_pro", endsAt: at(0) }, 400, "invalid_request"],
    [{ planId: "plan_pro", endsAt: at(-1) }, 400, "invalid_request"],
    [{ planId: "plan_pro", customLimits: { lg_none: { quota: 1 } } }, 400, "invalid_request"],
    [{ planId: "plan_team", customLimits: { lg_chat: { quota: 1 } } }, 400, "invalid_request"],
    [{ planId: "plan_pro", provider: "p" }, 400, "invalid_request"],
    [{ planId: "plan_pro", externalId: "x" }, 400, "invalid_request"],
    [{ planId: "plan_pro", provider: "p", externalId: null }, 400, "invalid_request"],
  ];
  for (const [members, status, code] of faults) {
    const answer = await app.call("POST", "/subscriptions", { userId: "u", ...members });
    assertRefused(answer, status, code, JSON.stringify(members));
  }
  const proto = '{"userId":"u","planId":"plan_pro","customLimits":{"__proto__":{"quota":5}}}';
  assertRefused(await app.call("POST", "/subscriptions", proto), 400, "invalid_request");
  const many = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`lg_${at}`, { quota: 1 }]));
  const full = await app.call("POST", "/subscriptions", {
    userId: "u",
    planId: "plan_pro",
    customLimits: many,
  });
  const { message } = assertRefused(full, 400, "invalid_request");
  assert.equal(message, "customLimits: must name at most 1000 groups");
  const cancels: [object, number, string][] = [
    [{ userId: "u", endsAt: at(-1) }, 400, "invalid_request"],
    [{ userId: "u", provider: "p", externalId: "none" }, 404, "not_found"],
    [{ userId: "nobody" }, 404, "not_found"],
  ];
  for (const [members, status, code] of cancels) {
    assertRefused(await app.call("DELETE", "/subscriptions", members), status, code, JSON.stringify(members));
  }
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("options may be nested or flat, and the same member in both places is refused", async () => {
  const app = await appWithUser(service);
  const held = async (body: object) =>
    (await dataOf(app.call("POST", "/reserve", { ...CALL, ...body }))).groups[0].current;
  assert.equal(await held({ count: 3 }), 3);
  assert.equal(await held({ options: { count: 4 } }), 7);
  assert.equal(await held({ count: 1, options: { ttlSeconds: 60 } }), 8);
  assert.equal(await held({ count: null, options: { count: 1 } }), 9, "null is absent");
  assert.equal(await held({ count: 1, options: { count: null } }), 10, "null is absent");
  assert.equal(await held({ options: { userId: "other", event: "chat.x", unknown: 1 } }), 11, "not options");
  const before = await pictureOf(app);
  for (const member of ["count", "inputTokens", "inputCostCents", "ttlSeconds"]) {
    const body = { ...CALL, [member]: 60, options: { [member]: 60 } };
    const error = assertRefused(await app.call("POST", "/reserve", body), 400, "invalid_request");
    assert.ok(error.message.startsWith(member), error.message);
  }
  assertRefused(
    await app.call("POST", "/reserve", { ...CALL, options: { count: -1 } }),
    400,
    "invalid_request",
  );
  assert.deepEqual(await pictureOf(app), before);
  assert.equal(
    (await dataOf(app.call("POST", "/track", { ...CALL, options: { count: 2 } }))).counters[0].count,
    13,
  );
  const canUse = await dataOf(app.call("POST", "/can-use", { ...CALL, options: { count: 90 } }));
  assert.equal(canUse.allowed, false);
});

Deno.test("a start and anchor in 1970 and an end in the year 9999 are kept and metered by; earlier ones are refused", async () => {
  const app = await appWithUser(service);
  for (const planId of ["plan_pro", "plan_team"]) {
    const row = {
      userId: planId,
      planId,
      startsAt: "1970-01-01",
      cycleStart: "1970-01-31",
      endsAt: "9999-12-31",
    };
    const { startedAt, endsAt, cycleAnchorAt } = await dataOf(app.call("POST", "/subscriptions", row));
    assert.deepEqual([startedAt, endsAt, cycleAnchorAt], [
      "1970-01-01T00:00:00.000Z",
      "9999-12-31T00:00:00.000Z",
      "1970-01-31T00:00:00.000Z",
    ]);
    const { counters } = await dataOf(app.call("POST", "/track", { userId: planId, event: "image.x" }));
    assert.equal(counters[0].count, 1);
    for (const member of ["startsAt", "cycleStart"]) {
      const early = { ...row, [member]: "1969-12-31T23:59:59.999Z" };
      const error = assertRefused(await app.call("POST", "/subscriptions", early), 400, "invalid_request");
      assert.equal(error.details[0].path, member);
    }
  }
});
