// The first page: a page for people, JSON for programs, and nothing from another host.

import assert from "node:assert/strict";
import { send } from "../support/test_service.ts";
import { dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

function home(accept?: string) {
  const headers: Record<string, string> = accept === undefined ? {} : { accept };
  return send(service.http, "GET", "/", undefined, { headers });
}

Deno.test("a browser gets a page whose links work, under a policy that loads nothing", async () => {
  const { status, body, headers } = await home(BROWSER);
  assert.equal(status, 200);
  assert.match(headers.get("content-type") ?? "", /^text\/html/);
  const policy = headers.get("content-security-policy") ?? "";
  assert.ok(policy.startsWith("default-src 'none'"), policy);
  assert.ok(!/script|unsafe|http/.test(policy), policy);
  const links = [...String(body).matchAll(/href="([^"]*)"/g)].map(([, link]) => link as string);
  assert.deepEqual(links.filter((link) => !link.startsWith("/")), ["data:,"]);
  for (const link of links.filter((link) => link.startsWith("/"))) {
    assert.equal((await send(service.http, "GET", link, undefined, {})).status, 200, link);
  }
});

Deno.test("a program gets JSON with the same links", async () => {
  for (const accept of [undefined, "*/*", "application/json", "application/json, text/html;q=0.5"]) {
    const { links } = await dataOf(home(accept));
    assert.deepEqual(links, { reference: "/docs", document: "/api/openapi.json", health: "/healthz" });
  }
});
