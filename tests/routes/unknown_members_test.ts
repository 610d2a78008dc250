// Members that a metering call does not have: mistaken amounts are refused with the right member, all others are warnings.

import assert from "node:assert/strict";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import type { Answer } from "../support/test_service.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const CATALOG = {
  plans: [{
    id: "plan_pro",
    name: "Pro",
    rank: 1,
    period: { type: "monthly", anchor: "calendar" },
    limits: [{ id: "lg_all", label: "All", unit: "count", quota: 1000, matches: [{ event: "*" }] }],
  }],
};
const CALL = { userId: "u", event: "image.render" };

async function newApp() {
  const app = await service.newApp(CATALOG);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  const hold = async (): Promise<string> => (await dataOf(app.call("POST", "/reserve", CALL))).reservationId;
  return { app, hold };
}

Deno.test("a mistaken amount is refused with the right member, at the top and in options, and null is absent", async () => {
  const { app } = await newApp();
  const settle = { reservationId: "rsv_1_unknown" };
  const rows: [path: string, body: object, name: string, value: unknown, says: RegExp][] = [
    ["/reserve", CALL, "max_tokens", 5, /use maxOutputTokens$/],
    ["/reserve", CALL, "maxTokens", 5, /use maxOutputTokens$/],
    ["/reserve", CALL, "max_output_tokens", 5, /use maxOutputTokens$/],
    ["/reserve", CALL, "input_tokens", 5, /use inputTokens$/],
    ["/reserve", CALL, "output_tokens", 5, /use maxOutputTokens/],
    ["/reserve", CALL, "user_id", "u", /use userId$/],
    ["/reserve", CALL, "ttl", 60, /use ttlSeconds$/],
    ["/reserve", CALL, "amount", 5, /use count$/],
    ["/reserve", CALL, "units", 5, /use count$/],
    ["/reserve", CALL, "model", "gpt", /use metadata\.model$/],
    ["/reserve", CALL, "input_cost_cents", 5, /use inputCostCents$/],
    ["/reserve", CALL, "costCents", 5, /use inputCostCents$/],
    ["/reserve", CALL, "usage", {}, /use usage of commit/],
    ["/can-use", CALL, "ttl", 60, /use ttlSeconds of reserve$/],
    ["/can-use", CALL, "max_tokens", 5, /use maxOutputTokens$/],
    ["/explain", CALL, "actual", { count: 1 }, /use actual of commit$/],
    ["/track", CALL, "maxOutputTokens", 5, /usage\.outputTokens; maxOutputTokens belongs to reserve$/],
    ["/track", CALL, "output_tokens", 5, /use usage\.outputTokens$/],
    ["/commit", settle, "inputTokens", 5, /use usage\.inputTokens$/],
    ["/commit", settle, "count", 5, /use actual\.count$/],
    ["/commit", settle, "model", "gpt", /use metadata\.model of reserve$/],
    ["/release", settle, "tokens", 5, /of commit; a release counts nothing$/],
  ];
  for (const [path, body, name, value, says] of rows) {
    for (const sent of [{ ...body, [name]: value }, { ...body, options: { [name]: value } }]) {
      const { details } = assertRefused(await app.call("POST", path, sent), 400, "invalid_request");
      assert.deepEqual(details.map(({ path }: { path: string }) => path), [name], path);
      assert.match(details[0].message, says, `${path} ${name}`);
    }
  }
  const { allowed, warnings } = await dataOf(app.call("POST", "/reserve", { ...CALL, max_tokens: null }));
  assert.deepEqual([allowed, warnings], [true, undefined]);
  const nested = await app.call("POST", "/reserve", { ...CALL, options: { quantity: 5 } });
  assert.equal(assertRefused(nested, 400, "invalid_request").details[0].path, "options.quantity");
});

Deno.test("any other unknown member is a warning of each metering call, and changes nothing else", async () => {
  const { app, hold } = await newApp();
  const told = async (path: string, body: object) => {
    const sent = { ...body, metdata: { a: 1 }, options: { colour: "red", nothing: null } };
    const plain = await dataOf(app.call("POST", path, body));
    const { warnings, ...rest } = await dataOf(app.call("POST", path, sent));
    assert.deepEqual(warnings, ["unknown_member: metdata", "unknown_member: colour"], path);
    assert.equal(plain.warnings, undefined);
    assert.deepEqual(Object.keys(rest).sort(), Object.keys(plain).sort(), path);
  };
  for (const path of ["/reserve", "/can-use", "/explain", "/track"]) await told(path, CALL);
  for (const path of ["/commit", "/release"]) {
    const sent = { reservationId: await hold(), metdata: 1, ttlSeconds: 60, userId: "u" };
    const { warnings } = await dataOf(app.call("POST", path, sent));
    assert.deepEqual(warnings, ["unknown_member: metdata", "unknown_member: ttlSeconds"], path);
  }
});

Deno.test("an event of a batch has its own warnings and refusals, and the batch has those beside its events", async () => {
  const { app } = await newApp();
  const events = [CALL, { ...CALL, metdata: 1 }, { ...CALL, amount: 3 }, {
    ...CALL,
    idempotencyKey: "k",
    metdata: 1,
  }];
  for (const headers of [{}, { "idempotency-key": "batch" }]) {
    const { results, warnings } = await dataOf(
      app.call("POST", "/track/batch", { events, foo: 1 }, { headers }),
    );
    assert.deepEqual(warnings, ["unknown_member: foo"]);
    const shown = results.map((each: Answer["body"]) => each.ok ? each.data.warnings : each.error.message);
    assert.deepEqual(shown.slice(0, 2), [undefined, ["unknown_member: metdata"]]);
    assert.match(shown[2], /^amount: unknown parameter; use count$/);
    assert.deepEqual(shown[3], ["unknown_member: metdata"]);
  }
  const refused = await app.call("POST", "/track/batch", { events, inputTokens: 5 });
  const { details } = assertRefused(refused, 400, "invalid_request");
  assert.match(details[0].message, /in each event$/);
});

Deno.test("warnings are bounded in number and length", async () => {
  const { app } = await newApp();
  const names = Array.from({ length: REQUEST_LIMITS.unknownMembersShownMax + 3 }, (_, i) => `foo${i}`);
  const long = "x".repeat(100_000);
  const sent = { [long]: 1, ...Object.fromEntries(names.map((name) => [name, 1])) };
  const { warnings } = await dataOf(app.call("POST", "/track", { ...CALL, ...sent }));
  assert.equal(warnings.length, REQUEST_LIMITS.unknownMembersShownMax + 1);
  assert.ok(warnings.every((warning: string) => warning.length < 100));
  assert.equal(warnings.at(-1), "unknown_members_left_out: 4");
});

Deno.test("a kept answer is repeated with its warnings", async () => {
  const { app } = await newApp();
  const send = () =>
    app.call("POST", "/track", { ...CALL, metdata: 1 }, { headers: { "idempotency-key": "once" } });
  const first = await dataOf(send());
  assert.deepEqual(first.warnings, ["unknown_member: metdata"]);
  assert.deepEqual(await dataOf(send()), first);
});

Deno.test("unknown members of extra, actual and usage are refused by their own paths", async () => {
  const { app, hold } = await newApp();
  const reservationId = await hold();
  const sent = { reservationId, extra: { images: 1, count: 1 }, actual: { output_tokens: 1, foo: null } };
  const { details } = assertRefused(await app.call("POST", "/commit", sent), 400, "invalid_request");
  assert.deepEqual(details, [
    {
      path: "extra.images",
      message:
        "unknown parameter; extra has count, tokens, outputTokens, cents, outputCostCents, seconds, credits",
    },
    {
      path: "actual.output_tokens",
      message: "unknown parameter; actual has count, tokens, cents, seconds, credits",
    },
    { path: "actual.foo", message: "unknown parameter; actual has count, tokens, cents, seconds, credits" },
  ]);
  await dataOf(app.call("POST", "/commit", { reservationId, extra: { count: 1 } }));
});

Deno.test("a quantity that no group or balance counts is a warning of reserve and can-use, before unknown members", async () => {
  const { app } = await newApp();
  for (const path of ["/reserve", "/can-use"]) {
    const { warnings } = await dataOf(app.call("POST", path, { ...CALL, quantity: 1000, metdata: 1 }));
    assert.deepEqual(warnings, ["quantity_not_counted", "unknown_member: metdata"]);
  }
});
