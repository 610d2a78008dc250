// DATABASE_URL with one server and with several.

import assert from "node:assert/strict";
import { readServerAddress } from "../../src/process/server_address.ts";

const READ: readonly [text: string, names: readonly string[], needsPrimary: boolean][] = [
  ["postgres://ann:pw@db:5433/shop", ["db:5433"], false],
  ["postgres://ann@db/shop?target_session_attrs=read-write", ["db"], true],
  ["postgresql://ann:p%40@a:1,b:2/shop?target_session_attrs=primary&sslmode=require", ["a:1", "b:2"], true],
  ["postgres://a,[::1]:2,10.0.0.1/shop", ["a", "[::1]:2", "10.0.0.1"], true],
  ["postgres:///shop?host=/run/postgresql", ["/run/postgresql"], false],
  ["postgres://ann@%2Frun%2Fpostgresql/shop", ["/run/postgresql"], false],
];

Deno.test("an address names its servers in order, and several ask for the primary", () => {
  for (const [text, names, needsPrimary] of READ) {
    const read = readServerAddress(text);
    assert.ok(typeof read === "object", text);
    assert.deepEqual([read.servers.map(({ name }) => name), read.needsPrimary], [names, needsPrimary], text);
  }
});

Deno.test("each server of a list keeps user, name and options, without the choice of a primary", () => {
  const read = readServerAddress("postgres://ann:pw@a:1,b/shop?target_session_attrs=primary&sslmode=require");
  assert.deepEqual(typeof read === "object" && read.servers.map(({ address }) => address), [
    "postgres://ann:pw@a:1/shop?sslmode=require",
    "postgres://ann:pw@b/shop?sslmode=require",
  ]);
});

Deno.test("an address that cannot be used says what is wrong", () => {
  const faults: readonly [string, RegExp][] = [
    ["mysql://db/shop", /^must be a URL such as/],
    ["db", /^must be a URL such as/],
    ["postgres://a:x,b/shop", /^must be a URL such as/],
    ["postgres://a,,b/shop", /empty host/],
    ["postgres://a,b/shop?target_session_attrs=standby", /^target_session_attrs must be primary/],
    ["postgres://a,b/shop?target_session_attrs=any", /^target_session_attrs must be primary/],
    [`postgres://${"a,".repeat(16)}a/shop`, /more than 16/],
  ];
  for (const [text, fault] of faults) assert.match(String(readServerAddress(text)), fault, text);
});
