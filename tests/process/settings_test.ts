// Settings as a person meets them: a variable that nobody knows names the one that was meant, and no variable that the
// project reads is unknown.

import assert from "node:assert/strict";
import { ConfigError, readConfig, refuseUnknown } from "../../src/process/settings.ts";
import { FOLDERS, sourceFiles, textOf } from "../structure/sources.ts";

const MEANT: readonly (readonly [string, string])[] = [
  ["HOLDFAST_ADMIN_TOKN", "HOLDFAST_ADMIN_TOKEN"],
  ["HOLDFAST_LOGLEVEL", "HOLDFAST_LOG_LEVEL"],
  ["HOLDFAST_DATADIR", "HOLDFAST_DATA_DIR"],
  ["HOLDFAST_PORT", "PORT"],
  ["HOLDFAST_DATABASE_URL", "DATABASE_URL"],
  ["HOLDFAST_OPENAI_KEY", "OPENAI_API_KEY"],
  ["HOLDFAST_HOSTNAME", "HOLDFAST_HOST"],
];

for (const [name, meant] of MEANT) {
  Deno.test(`${name} stops the start, and ${meant} is what was meant`, () => {
    assert.throws(
      () => refuseUnknown({ PATH: "/bin", [name]: "x" }),
      new ConfigError(`Cannot start: ${name} is not a setting; did you mean ${meant}?`),
    );
    refuseUnknown({ [name]: "", [meant]: "x" });
  });
}

Deno.test("what does not begin with HOLDFAST_ is none of our business", () => {
  refuseUnknown({ HOLDFASTER: "x", PORTS: "1", holdfast_x: "1", DATABASE_URLS: "x" });
});

Deno.test("every variable of ours that the project reads is known", async () => {
  const names = new Set<string>();
  for (const path of await sourceFiles(...FOLDERS)) {
    for (const [name] of (await textOf(path)).matchAll(/\bHOLDFAST_[A-Z_]*[A-Z]\b/g)) names.add(name);
  }
  const made = new Set(MEANT.map(([name]) => name));
  const read = [...names].filter((name) => !made.has(name));
  assert.ok(read.includes("HOLDFAST_KEY") && read.includes("HOLDFAST_TEST_DATABASE_URL"));
  refuseUnknown(Object.fromEntries(read.map((name) => [name, "x"])));
});

Deno.test("a bad setting is named with what it must be", () => {
  const rows: [name: string, value: string, meant: RegExp][] = [
    ["PORT", "70000", /must be a port number from 0 to/],
    ["PORT", "-1", /must be a port number/],
    ["DATABASE_URL", "foo", /must be a URL/],
    ["DATABASE_URL", "http://127.0.0.1/x", /must be a URL/],
    ["HOLDFAST_ADMIN_TOKEN", "short", /must have at least 16/],
    ["HOLDFAST_LOG_LEVEL", "loud", /must be one of debug, info/],
    ["HOLDFAST_CLUSTER_ADDRESS", "10.0.0.5", /must be host:port/],
    ["HOLDFAST_CLUSTER_ADDRESS", "0.0.0.0:7000", /as other processes reach it/],
    ["HOLDFAST_CLUSTER_ADDRESS", "::1:7000", /must be host:port/],
    ["HOLDFAST_SHARE_PORT", "yes", /must be true or false/],
    ["HOLDFAST_WEBHOOKS_ALLOW_PRIVATE", "1", /must be true or false/],
    ["HOLDFAST_CELLS", "3", /must be none, or unset/],
    ["HOLDFAST_CELLS", "none", /needs DATABASE_URL/],
  ];
  for (const [name, value, meant] of rows) {
    assert.throws(() => readConfig({ [name]: value }), ({ message }: Error) => {
      assert.ok(message.startsWith(`Cannot start: ${name} `), message);
      assert.match(message, meant);
      return true;
    });
  }
});

Deno.test("a process is a front, shares its port and has an address for the others only where it is told so", () => {
  const alone = readConfig({});
  assert.deepEqual([alone.clusterAddress, alone.sharesPort, alone.isFront], [null, false, false]);
  const front = readConfig({
    DATABASE_URL: "postgres://postgres@127.0.0.1/x",
    HOLDFAST_CLUSTER_ADDRESS: "[fd00::5]:7000",
    HOLDFAST_SHARE_PORT: "true",
    HOLDFAST_CELLS: "none",
  });
  assert.deepEqual([front.clusterAddress, front.sharesPort, front.isFront], ["[fd00::5]:7000", true, true]);
});
