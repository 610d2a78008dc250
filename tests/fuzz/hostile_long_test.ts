// The table of hostile bodies, sent to every route that takes one: whatever a member or the whole body is,
// the answer is a documented one, no prototype is polluted, the books add up, and a refusal left no trace.

import assert from "node:assert/strict";
import type { z } from "zod";
import { bookFaults, changedTables, digestOf } from "./books.ts";
import { faultsOf, type FuzzAnswer } from "./oracle.ts";
import { type FuzzRequest, type Route, routesOf } from "./requests.ts";
import { assertNothingFound, breathe, send } from "./run.ts";
import { type FuzzScene, openScene } from "./scene.ts";
import { ADMIN_TOKEN } from "../support/test_service.ts";

const DEPTH = 10_000;
const UNITS = "😀".repeat(50);

/** JSON texts of members that are no fault of their own: some are taken, some refused. */
const MEMBERS: Readonly<Record<string, string>> = {
  "a member of prototypes": '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
  "the name of a prototype": '"__proto__"',
  "the name of a constructor": '"constructor"',
  "arrays 10,000 deep": "[".repeat(DEPTH) + "]".repeat(DEPTH),
  "objects 10,000 deep": '{"a":'.repeat(DEPTH) + "1" + "}".repeat(DEPTH),
  "half a million numbers": `[${"0,".repeat(499_999)}0]`,
  "a huge number": "1e308",
  "a number past all numbers": "1e999",
  "a number next to nothing": "1e-400",
  "a negative zero": "-0",
  "a number that has no double": "9007199254740993",
  "forty digits": "1234567890123456789012345678901234567890",
  "forty decimals": "0.1234567890123456789012345678901234567890",
  "a megabyte of text": `"${"x".repeat(1_000_000)}"`,
  "text in pairs of surrogates": `"${UNITS}"`,
  "a member twice": '"a","userId":"user_b","event":"image.x"',
  "an object that answers toString": '{"toString":1,"valueOf":null,"length":-1}',
};

/** JSON texts that make a body `invalid_request` at any place in it. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  "a NUL": '"a\\u0000b"',
  "a lone surrogate": '"\\ud800"',
  "surrogates in the wrong order": '"\\udc00\\ud800"',
  "a NUL in a name": '{"a\\u0000":1}',
};

const encode = (text: string) => new TextEncoder().encode(text);

/** Bodies that are wrong as a whole, made of a good one, and the status of each. */
const BODIES: readonly [name: string, body: (good: string) => Uint8Array<ArrayBuffer>, status: number][] = [
  ["bytes that are no UTF-8", (good) => new Uint8Array([...encode(good.slice(0, -1)), 0xff, 0x7d]), 400],
  ["UTF-16", (good) => new Uint8Array([0xff, 0xfe, ...[...good].flatMap((c) => [c.charCodeAt(0), 0])]), 400],
  ["a gzip header", (good) => new Uint8Array([0x1f, 0x8b, 8, 0, ...encode(good)]), 400],
  ["an array around it", (good) => encode(`[${good}]`), 400],
  ["half of it", (good) => encode(good.slice(0, Math.max(1, good.length >> 1))), 400],
  ["two of them", (good) => encode(good + good), 400],
  ["a NUL after it", (good) => encode(`${good}\0`), 400],
  ["a comment", (good) => encode(`/**/${good}`), 400],
  ["nothing but brackets", () => encode("[".repeat(1_000_000)), 400],
  ["a million numbers", () => encode(`[${"0,".repeat(999_999)}0]`), 413],
  ["more than a MiB", (good) => encode(`${good}${" ".repeat(1024 * 1024)}`), 413],
];

let opened: FuzzScene | null = null;
Deno.test.beforeAll(async () => {
  opened = await openScene();
});
Deno.test.afterAll(() => opened?.close());

function scene(): FuzzScene {
  if (opened === null) throw new Error("The scene is not open");
  return opened;
}

/** Routes that read a body. */
function withBody(): Route[] {
  return routesOf(scene()).filter(({ method, schema }) => method !== "GET" && schema !== null);
}

function membersOf({ schema, path }: Route): string[] {
  if (path.endsWith("/catalog")) return ["settings", "plans"];
  let definition = (schema as z.ZodType)._zod.def as unknown as { shape?: object; in?: z.ZodType };
  while (definition.in !== undefined) definition = definition.in._zod.def as unknown as typeof definition;
  return Object.keys(definition.shape ?? {});
}

/** Whether the elements of a call are calls: its body may be larger. */
function isBatch({ path }: Route): boolean {
  return path.endsWith("/track/batch") || path.endsWith("/v1/batch");
}

/** Whether a route takes any body and asks for its signature, which none of these requests has. */
function isSigned({ path }: Route): boolean {
  return path.includes("/v1/stripe/");
}

/** Some of a list, others at each turn. */
function inTurn<T>(list: readonly T[], turn: number, count: number): T[] {
  return Array.from({ length: count }, (_, at) => list[(turn * 5 + at * 3) % list.length] as T);
}

/** A body whose other members are valid, so that the hostile one is reached. */
function goodMembers(): Record<string, string> {
  return {
    userId: "user_a",
    event: "image.x",
    distinctId: "user_a",
    from: "user_x",
    to: "user_y",
    alias: "user_z",
    planId: "plan_pro",
    packId: "cpk_wallet",
    type: "usage-recap",
    name: "Name",
    class: "secret",
    mode: "live",
    dryRun: "true",
  };
}

/** A body with one hostile member, as text: no object could hold some of them. */
function bodyWith(names: readonly string[], hostile: string, json: string): string {
  const good = goodMembers();
  const members = names.filter((name) => name !== hostile && good[name] !== undefined)
    .map((name) => `"${name}":${good[name] === "true" ? "true" : JSON.stringify(good[name])}`);
  return `{${[...members, `"${hostile}":${json}`].join()}}`;
}

function requestTo(route: Route, body: string): FuzzRequest {
  const { app, playground } = scene();
  const isAdmin = route.path.startsWith("/api/admin/");
  const isTest = route.path.includes("test-clock");
  const key = isAdmin ? ADMIN_TOKEN : isTest ? app.secretTest : app.secretLive;
  const id = route.path.includes("/workspaces/") ? playground.workspaceId : playground.appId;
  const path = route.path.replaceAll(/:\w+/g, id);
  return { route, method: route.method, path, headers: { authorization: `Bearer ${key}` }, body };
}

async function judged(request: FuzzRequest, note: string): Promise<FuzzAnswer> {
  const answer = await send(scene(), request);
  assert.deepEqual(
    faultsOf(request, answer, scene()),
    [],
    `${note}: ${answer.status} ${answer.text.slice(0, 500)}`,
  );
  return answer;
}

Deno.test("hostile members of every body are taken or refused as documented, and pollute nothing", async () => {
  let turn = 0;
  for (const route of withBody()) {
    const names = [...membersOf(route), "unknown", "options", "__proto__"];
    for (const [what, json] of Object.entries(MEMBERS)) {
      // Some members of each route in turn: what they miss, the fuzzing finds.
      for (const name of inTurn(names, turn++, json.length > 10_000 ? 1 : 2)) {
        await judged(requestTo(route, bodyWith(names, name, json)), `${route.path}: ${what} in ${name}`);
      }
    }
  }
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  assert.deepEqual(await bookFaults(scene()), []);
});

Deno.test("forbidden characters in any member, and bodies that are none, are refused and leave no trace", async () => {
  const before = await digestOf(scene());
  let turn = 0;
  for (const route of withBody()) {
    const names = membersOf(route);
    for (const [what, json] of Object.entries(FORBIDDEN)) {
      for (const name of inTurn([...names, "unknown", "options"], turn++, 2)) {
        const note = `${route.path}: ${what} in ${name}`;
        const { status } = await judged(requestTo(route, bodyWith(names, name, json)), note);
        assert.equal(status, isSigned(route) ? 401 : 400, note);
      }
    }
    for (const [what, bodyOf, expected] of BODIES) {
      const request = requestTo(route, "");
      const body = bodyOf(bodyWith(names, "unknown", "1"));
      const length = String(body.byteLength);
      const headers = { ...request.headers, "content-length": length };
      const init = { method: request.method, headers, body };
      const response = await scene().service.http.fetch(
        new Request(`http://service.test${request.path}`, init),
      );
      const answer = { status: response.status, headers: response.headers, text: await response.text() };
      await breathe();
      assert.deepEqual(faultsOf(request, answer, scene()), [], `${route.path}: ${what}`);
      // A batch may be larger; what is in it is wrong all the same.
      // No body is read for an app without a secret of Stripe. A batch may have a million bytes, but not so many values.
      const status = isSigned(route) ? 401 : expected === 413 && isBatch(route) ? 400 : expected;
      assert.equal(answer.status, status, `${route.path}: ${what}: ${answer.text.slice(0, 300)}`);
    }
  }
  assert.deepEqual(changedTables(before, await digestOf(scene())), []);
});

Deno.test("hostile addresses of every route are answered as documented", async () => {
  const texts = [
    "%00",
    "%ff",
    "%ED%A0%80",
    "..%2f..%2f",
    "%2e%2e",
    "__proto__",
    "constructor",
    "%F0%9F%98%80",
    "a".repeat(60_000),
  ];
  const queries = [
    ...texts.map((text) => `?userId=${text}`),
    `?${"userId=a&".repeat(5_000)}`,
    "?__proto__=1",
    "?=&&=",
    "?%00",
  ];
  for (const [turn, route] of routesOf(scene()).entries()) {
    const placed = texts.map((text) => route.path.replaceAll(/:\w+/g, text));
    const queried = inTurn(queries, turn, 4).map((query) => route.path.replaceAll(/:\w+/g, "x") + query);
    for (const path of [...route.path.includes(":") ? placed : [], ...queried]) {
      const request = { ...requestTo(route, "{}"), path };
      await judged(route.method === "GET" ? { ...request, body: null } : request, path.slice(0, 200));
    }
  }
});

Deno.test("generated requests to every route find no 500, no leak, no drift, and no trace of a refusal", async () => {
  await assertNothingFound(scene(), 20_261_122, 5);
});
