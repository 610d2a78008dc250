// The OpenAPI document: valid, complete, and true. It is held against a validator, against the routes, and against
// calls and answers of a tour through every operation.

import assert from "node:assert/strict";
import type { ValidateFunction } from "ajv/dist/2020.js";
import type { z } from "zod";
import { Validator } from "npm:@seriousme/openapi-schema-validator@2.11.0";
import { bodyOf, MESSAGE_TYPES, type MessageData } from "../../../src/domain/state/message.ts";
import { REFUSAL_CODES, type RefusalCode } from "../../../src/domain/values/refusal.ts";
import { makeApp } from "../../../routes/app.ts";
import { SURFACE } from "../../../routes/surface.ts";
import { STATUS } from "../../../routes/http/errors.ts";
import { toOpenApi30 } from "../../../routes/reference/openapi_3_0.ts";
import { TOOL_SERVER_PATH } from "../../../routes/mcp/serve.ts";
import { Counts } from "../../../src/cluster/counts.ts";
import type { Service } from "../../../src/cluster/service.ts";
import { DOCUMENTED } from "../../support/documented.ts";
import {
  ajv,
  bodyMembers,
  document,
  examples,
  operationObjects,
  validatorAt,
  validatorsOf30,
} from "./document.ts";
import { makeTour } from "./tour.ts";

Deno.test("the document is valid OpenAPI 3.1", async () => {
  const result = await new Validator().validate(structuredClone(document));
  assert.deepEqual(result.errors ?? [], []);
  assert.equal(result.valid, true);
  assert.match(document.openapi, /^3\.1\./);
});

Deno.test("the validator finds a fault where there is one", async () => {
  const faulty = structuredClone(document);
  faulty.paths["/api/v1/reserve"].post.responses["200"].description = 7;
  assert.equal((await new Validator().validate(faulty)).valid, false);
});

Deno.test("every route of the service is in the document, and nothing else", () => {
  const shown = [...operationObjects()].map(({ path, method }) => `${method.toUpperCase()} ${path}`);
  // Mounting needs no running service.
  const { routes } = makeApp(
    { counts: new Counts(), spans: null, handlePassed: () => {} } as unknown as Service,
    null,
  );
  const isOther = (path: string) =>
    path.startsWith("/docs/") || path === TOOL_SERVER_PATH || ["/openai/*", "/anthropic/*"].includes(path);
  // A preflight belongs to the call that it asks for.
  const mounted = routes.filter(({ method, path }) => method !== "OPTIONS" && !isOther(path))
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  assert.deepEqual(shown.toSorted(), mounted.toSorted());
});

Deno.test("every type of message is a webhook of the document, whose schema takes the bodies that are sent", () => {
  assert.deepEqual(Object.keys(document.webhooks), MESSAGE_TYPES);
  const origin = { appId: "app_1", mode: "live" as const };
  for (const type of MESSAGE_TYPES) {
    const validate = validatorAt("webhooks", type, "post", "requestBody");
    const takes = (value: unknown): boolean => validate(value);
    const body = JSON.parse(bodyOf({ type, at: 0, data: SAID[type] }, origin));
    assert.ok(takes(body), `${type}: ${ajv.errorsText(validate.errors)}`);
    for (const name of Object.keys(body.data)) {
      const { [name]: _, ...others } = body.data;
      assert.equal(takes({ ...body, data: others }), false, `${type} without ${name}`);
    }
    assert.equal(takes({ ...body, type: "other" }), false);
  }
});

Deno.test("every operation has a name of its own, every error code and every key class is shown", () => {
  const all = [...operationObjects()];
  const names = all.map(({ operation }) => operation.operationId);
  assert.equal(new Set(names).size, names.length);
  // The record of errors lists every code; what counts are the answers and their own records.
  const { Error: _, ...records } = document.components.schemas;
  const text = JSON.stringify([all.map(({ operation }) => operation.responses), records]);
  // Another method of a path is not an operation, so its error is on no operation.
  const codes = REFUSAL_CODES.filter((code) => code !== "method_not_allowed");
  assert.deepEqual(codes.filter((code) => !text.includes(`"${code}"`)), []);
  const used = new Set(all.flatMap(({ operation }) => operation.security.flatMap(Object.keys)));
  assert.deepEqual([...used].toSorted(), Object.keys(document.components.securitySchemes).toSorted());
});

Deno.test("the examples are what the service answers now", async () => {
  assert.deepEqual(await makeTour(), examples);
});

Deno.test("every operation that answers JSON has an example", () => {
  // Texts and lines, and what differs from store to store: an examination, a list of processes, roles of the database.
  const others = new Set(["getMetrics", "getOpenapi", "getReference", "examine", "showCluster"].concat(
    ["listReaders", "createReader", "removeReader", "listStores", "splitStore", "whatIf"],
  ));
  const lacking = DOCUMENTED.filter(({ id, isForeign }) =>
    !isForeign && !others.has(id) && examples[id]?.success === undefined
  );
  assert.deepEqual(lacking.map(({ id }) => id), []);
});

Deno.test("calls and answers of the tour match the schemas of the document", () => {
  checkTour(validatorAt);
});

Deno.test("the form of 3.0 is valid OpenAPI 3.0, and calls and answers of the tour match it too", async () => {
  const form = JSON.parse(JSON.stringify(toOpenApi30(document)));
  const { errors = [], valid } = await new Validator().validate(structuredClone(form));
  assert.deepEqual(errors, []);
  assert.equal(valid, true);
  assert.match(form.openapi, /^3\.0\./);
  checkTour(validatorsOf30(form));
});

Deno.test("a client that checks answers against the form of 3.0 takes a value that a later version adds", () => {
  const validate = validatorsOf30(toOpenApi30(document))(
    "paths",
    "/api/v1/reserve",
    "post",
    "responses",
    "200",
  );
  const answer = (reasons: unknown[]) => ({ ok: true, data: { allowed: false, matched: true, reasons } });
  const takes = (value: unknown): boolean => validate(value);
  assert.ok(takes(answer(["a_new_reason"])));
  assert.equal(takes(answer([7])), false);
});

/** Holds every call and every answer that the tour recorded against the schema at its place. */
function checkTour(validatorAt: (...place: string[]) => ValidateFunction): void {
  for (const { path, method, operation } of operationObjects()) {
    const { success, refusals = {} } = examples[operation.operationId] ?? {};
    const check = (value: unknown, ...place: string[]) => {
      const validate = validatorAt("paths", path, method, ...place);
      assert.ok(validate(value), `${operation.operationId} ${place}: ${ajv.errorsText(validate.errors)}`);
    };
    if (success !== undefined) check(success.answer, "responses", "200");
    if (success?.body !== undefined) check(success.body, "requestBody");
    for (const [code, refusal] of Object.entries(refusals)) {
      check(refusal, "responses", String(STATUS[code as RefusalCode]));
    }
  }
}

const CREDITS: MessageData["credits.low"] = {
  userId: "u",
  balanceId: "crb_1_x",
  packId: "cpk",
  packItemId: null,
  remaining: 0.5,
  externalRef: null,
};
const SUBSCRIPTION: MessageData["subscription.created"] = {
  userId: "u",
  subscriptionId: "sub_1",
  planId: "plan_pro",
  previousPlanId: null,
  reason: null,
};

const TOP_UP: MessageData["topup.paid"] = {
  userId: "u",
  topUpId: null,
  packId: "cpk_images",
  quantity: 1,
  amount: 500,
  currency: "eur",
  reason: "max_per_month",
};

const OVERAGE = {
  userId: "u",
  groupId: "lg",
  unit: "count",
  period: { start: "2026-01-01T00:00:00.000Z", end: "2026-02-01T00:00:00.000Z" },
} as const;

/** What a message of each type says. */
const SAID: MessageData = {
  "usage.threshold_reached": {
    userId: "u",
    groupId: "lg",
    label: "Images",
    unit: "count",
    thresholdPercent: 80,
    quota: 100,
    current: 81,
    period: { start: "2026-01-01T00:00:00.000Z", end: null },
  },
  "usage.pace_exceeded": {
    userId: "u",
    groupId: "lg",
    label: "Images",
    unit: "count",
    projectedAt: "2026-01-20T12:00:00.000Z",
    quota: 100,
    current: 81,
    period: { start: "2026-01-01T00:00:00.000Z", end: "2026-02-01T00:00:00.000Z" },
  },
  "usage.overage": { ...OVERAGE, hour: "2026-01-10T12:00:00.000Z", amount: 3, total: 10 },
  "usage.overage_started": { ...OVERAGE, max: null, overage: 3 },
  "usage.cap_reached": { ...OVERAGE, max: 10, overage: 10 },
  "credits.granted": CREDITS,
  "credits.low": CREDITS,
  "credits.depleted": CREDITS,
  "credits.expired": CREDITS,
  "credits.revoked": CREDITS,
  "subscription.created": SUBSCRIPTION,
  "subscription.plan_changed": SUBSCRIPTION,
  "subscription.canceled": SUBSCRIPTION,
  "subscription.reactivated": SUBSCRIPTION,
  "subscription.ended": SUBSCRIPTION,
  "subscription.merged": SUBSCRIPTION,
  "subscription.promoted": SUBSCRIPTION,
  "user.merged": { from: "a", to: "b", mergeId: "mrg_1" },
  "reservation.expired": { userId: "u", reservationId: "rsv_1_x", event: "image.render" },
  "topup.paid": TOP_UP,
  "topup.failed": TOP_UP,
  "topup.capped": TOP_UP,
  "person.erased": { jobId: "job_1" },
  ping: {},
};

/** Values of every kind, at the bounds and past them. */
const VALUES = [
  null,
  true,
  "",
  "x",
  "a*",
  "*a",
  "line\nbreak",
  "😀".repeat(200),
  "x".repeat(201),
  "analytics",
  "2026-01-15T12:00:00Z",
  "2026-01-15T12:00:00+01:00",
  "2026-02-30T12:00:00Z",
  "2026-01-15",
  -1,
  0,
  1,
  10.5,
  1e13,
  {},
  { a: 1 },
  { a: {} },
  { lg_pro_images: { quota: 5 } },
  { count: 1, tokens: -1 },
  [],
  [{ from: "a", to: "b" }],
];

/** What the schemas of the reference cannot say: members that exclude or need each other, or go by the pack. */
const BEYOND_SCHEMAS = new Set([
  "at",
  "extra",
  "actual",
  "costCents",
  "providerUsage",
  "cacheWriteTokens",
  "cacheWrite1hTokens",
  "provider",
  "externalId",
  "quantity",
  "pairs",
  "advanceSeconds",
  "now",
]);

Deno.test("the document has what linters require: servers, ids of webhooks, and whole schemas of errors", () => {
  assert.deepEqual(document.servers, [{ url: "/" }]);
  const hooks = Object.values(document.webhooks as Record<string, { post: { operationId: string } }>);
  assert.equal(new Set(hooks.map(({ post }) => post.operationId)).size, MESSAGE_TYPES.length);
  for (const { path, operation } of operationObjects()) {
    const responses = Object.entries(operation.responses as Record<string, { content: Content }>);
    const refused = responses.filter(([status]) => status.startsWith("4"));
    assert.ok(refused.length > 0, path);
    if (/^\/(?:openai|anthropic)/.test(path)) continue;
    for (const [, { content }] of refused) {
      assert.deepEqual(Object.keys(content["application/json"].schema), ["$ref"], path);
    }
  }
});

type Content = { "application/json": { schema: object } };

Deno.test("every documented member is taken although it is a common mistake on other calls", () => {
  for (const { slips, id, path, input } of SURFACE.calls) {
    if (slips === undefined) continue;
    const { options, ...members } = bodyMembers(`/api${path}`);
    const shown = [...Object.keys(members), ...Object.keys(options?.properties ?? {})];
    const known = Object.keys((input as z.ZodObject).shape);
    assert.deepEqual(shown.filter((name) => !known.includes(name)), [], id);
  }
});

Deno.test("the document takes and refuses the bodies that the service takes and refuses", () => {
  let compared = 0;
  for (const { id, method, path, input, access, signedBody } of SURFACE.calls) {
    if (input === null || access === "admin" || signedBody !== undefined) continue;
    const body = examples[id]?.success?.body as Record<string, unknown> | undefined;
    if (body === undefined) continue;
    const documented = `/api${path.replace(/:(\w+)/g, "{$1}")}`;
    const validate = validatorAt("paths", documented, method.toLowerCase(), "requestBody");
    const { parameters } = examples[id]?.success ?? {};
    for (const name of Object.keys(bodyMembers(documented, method.toLowerCase()))) {
      if (name === "options" || BEYOND_SCHEMAS.has(name)) continue;
      for (const value of [undefined, ...VALUES]) {
        const changed: Record<string, unknown> = { ...body, [name]: value };
        if (value === undefined) delete changed[name];
        const takes: boolean = input.safeParse({ ...parameters, ...changed }).success;
        assert.equal(validate(changed), takes, `${id} with ${name}: ${JSON.stringify(value)}`);
        compared += 1;
      }
    }
  }
  assert.ok(compared > 1000, `compared ${compared}`);
});
