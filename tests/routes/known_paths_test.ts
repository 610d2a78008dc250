// The router that remembers answers: it gives what the library's own gives, the first time and again.

import assert from "node:assert/strict";
import { TrieRouter } from "hono/router/trie-router";
import { KnownPathRouter } from "../../routes/http/known_paths.ts";

const ROUTES = [
  ["POST", "/api/v1/reserve"],
  ["GET", "/api/v1/users/:id"],
  ["GET", "/api/v1/users/all"],
  ["DELETE", "/api/v1/users/:id"],
  ["ALL", "/api/v1/open"],
  ["GET", "/files/*"],
  ["GET", "/files/list"],
] as const;
const PATHS = [...new Set(ROUTES.map(([, path]) => path)), "/api/v1/users/7", "/files/a/b", "/nowhere", "/"];
const METHODS = ["GET", "POST", "DELETE", "BREW"];

Deno.test("every path is answered as by the library's router, the first time and again", () => {
  const [own, library] = [new KnownPathRouter<string>(), new TrieRouter<string>()];
  for (const [method, path] of ROUTES) {
    for (const router of [own, library]) router.add(method, path, `${method} ${path}`);
  }
  for (const path of [...PATHS, ...PATHS]) {
    for (const method of METHODS) {
      assert.deepEqual(own.match(method, path), library.match(method, path), `${method} ${path}`);
    }
  }
});

Deno.test("a route that is added later counts for a path that was asked for before", () => {
  const router = new KnownPathRouter<string>();
  router.add("GET", "/a", "own");
  assert.equal(router.match("GET", "/a")[0].length, 1);
  router.add("GET", "/:any", "any");
  assert.deepEqual(router.match("GET", "/a")[0].map(([handler]) => handler), ["own", "any"]);
});
