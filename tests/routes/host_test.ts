// The header Host: whatever it says, it is no part of the path and makes no fault of ours.

import assert from "node:assert/strict";
import { send } from "../support/test_service.ts";
import { appWithUser, assertRefused, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const BAD = [
  "%%%",
  "a b",
  "[::1",
  "x:99999999",
  "x:65536",
  "x/../y",
  "x/api/v1/plans?",
  "x?y",
  "x#y",
  "u@x",
  "\xff",
  "x, y",
  "1.2.3.4.5",
];
const GOOD = [
  "x",
  "x:1",
  "api.example.com",
  "API_1.example.com:8443",
  "[::1]:80",
  "127.0.0.1:8000",
  "localhost",
];

/** A request whose address is made of its Host, as the runtime does. */
function addressed(host: string, path: string, init: RequestInit = {}): Request {
  const request = new Request(`http://service.test${path}`, { ...init, headers: { ...init.headers, host } });
  Object.defineProperty(request, "url", { value: `http://${host}${path}` });
  return request;
}

Deno.test("a Host that is none is refused on every path before anything else, and is no part of the path", async () => {
  const app = await appWithUser(service);
  const authorization = `Bearer ${app.secretLive}`;
  const paths = [
    "/healthz",
    "/api/v1/plans",
    "/api/v1/users/u",
    "/api/v1/export-download?token=x",
    "/nothing",
    "/api/admin/v1/apps",
  ];
  for (const host of BAD) {
    for (const path of paths) {
      const response = await service.http.fetch(addressed(host, path, { headers: { authorization } }));
      const answer = { status: response.status, headers: response.headers, body: await response.json() };
      assertRefused(answer, 400, "invalid_request", `${host} ${path}`);
    }
  }
});

Deno.test("a host is taken with and without a port, and as an address", async () => {
  const app = await appWithUser(service);
  for (const host of GOOD) {
    const headers = { host };
    assert.equal((await app.call("GET", "/users/u", undefined, { headers })).status, 200, host);
    assert.equal((await send(service.http, "GET", "/healthz", undefined, { headers })).status, 200, host);
  }
});

Deno.test("an address in full with a port that is none is refused where the answer would name it", async () => {
  const app = await appWithUser(service);
  const init = {
    method: "POST",
    headers: { authorization: `Bearer ${app.secretLive}` },
    body: '{"distinctId":"u"}',
  };
  const request = new Request("http://service.test/api/v1/export-person", init);
  Object.defineProperty(request, "url", { value: "http://x:99999999/api/v1/export-person" });
  const response = await service.http.fetch(request);
  const answer = { status: response.status, headers: response.headers, body: await response.json() };
  assertRefused(answer, 400, "invalid_request");
});
