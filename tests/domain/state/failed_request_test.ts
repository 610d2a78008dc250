// Failed requests: what is shown of a body, and how alike requests become one row.

import assert from "node:assert/strict";
import {
  addUpFailed,
  failedKindOf,
  type FailedRequest,
  failedRowOf,
  REQUEST_IDS_MAX,
  shownBody,
  unknownKey,
} from "../../../src/domain/state/failed_request.ts";

const HOUR = 3_600_000;

function failed(of: Partial<FailedRequest> = {}): FailedRequest {
  return {
    key: { appId: "app", mode: "live", keyId: "key", keyPrefix: "sk_live_abcd" },
    method: "POST",
    route: "/api/v1/track",
    status: 400,
    code: "invalid_request",
    requestId: "r",
    at: HOUR,
    realmAt: HOUR,
    path: "/api/v1/track",
    message: "is required",
    userId: "u",
    body: null,
    ...of,
  };
}

Deno.test("a shown body hides what people wrote, at any depth, and ends after 500 characters", () => {
  const long = "x".repeat(10_000);
  for (
    const [members, shown] of [
      [{ userId: "u", count: 1, ok: null }, '{"userId":"u","count":1,"ok":null}'],
      [
        { prompt: "p", response: { a: 1 }, messages: [1] },
        '{"prompt":"[hidden]","response":"[hidden]","messages":"[hidden]"}',
      ],
      [{ events: [{ a: 1, metadata: { b: 2 } }, []] }, '{"events":[{"a":1,"metadata":"[hidden]"},[]]}'],
      [{ options: { input: "i", tools: 1 } }, '{"options":{"input":"[hidden]","tools":"[hidden]"}}'],
      [{ a: undefined, b: 'q"' }, '{"a":null,"b":"q\\""}'],
      [{ [long]: 1 }, `{"${long}`.slice(0, 500)],
      [{ a: long, prompt: 1 }, `{"a":"${long}`.slice(0, 500)],
      [{ a: `${"x".repeat(493)}😀` }, `{"a":"${"x".repeat(493)}\uFFFD`],
    ] as const
  ) assert.equal(shownBody(members), shown);
});

Deno.test("a body is read no further than it is shown", () => {
  let reads = 0;
  const counted = {
    get a() {
      reads += 1;
      return "x".repeat(100);
    },
  };
  shownBody({ list: Array.from({ length: 1_000 }, () => counted) });
  assert.ok(reads < 10);
});

Deno.test("alike requests of a key and hour are one row, which shows the newest and keeps its ids", () => {
  const first = failedRowOf(failed({ requestId: "r0", userId: "one" }));
  let row = first;
  for (let index = 1; index <= 30; index++) {
    row = addUpFailed(row, failedRowOf(failed({ requestId: `r${index}`, at: HOUR + index, userId: "two" })));
  }
  assert.equal(failedKindOf(row), failedKindOf(first));
  const { count, firstAt, lastAt, userId, requestIds } = row;
  assert.deepEqual({ count, firstAt, lastAt, userId }, {
    count: 31,
    firstAt: HOUR,
    lastAt: HOUR + 30,
    userId: "two",
  });
  assert.equal(requestIds.length, REQUEST_IDS_MAX);
  assert.deepEqual(requestIds.slice(0, 2), ["r30", "r29"]);
  assert.equal(addUpFailed(row, first).userId, "two");
});

Deno.test("another key, mode, route, method, status, code or hour is another row", () => {
  const { key } = failed();
  const others = [
    failed({ key: { ...key, keyId: "other" } }),
    failed({ key: { ...key, mode: "test" } }),
    failed({ route: "/api/v1/commit" }),
    failed({ method: "GET" }),
    failed({ status: 404 }),
    failed({ code: "not_found" }),
    failed({ at: 2 * HOUR }),
  ];
  assert.equal(new Set([failed(), ...others].map((each) => failedKindOf(failedRowOf(each)))).size, 8);
});

Deno.test("of an unknown key a row has its first characters and nothing else that the caller sent", () => {
  const row = failedRowOf(
    failed({ key: unknownKey("sk_live_Secret0123"), body: "{}", path: "/api/v1/users/u" }),
  );
  assert.deepEqual([row.keyPrefix, row.path, row.userId, row.body], ["sk_live_Secr", row.route, null, null]);
});
