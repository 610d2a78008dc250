// Settings as a person meets them: an error about an unknown variable names the nearest, and no variable that the
// project reads is unknown.

import assert from "node:assert/strict";
import {
  ConfigError,
  isLoopback,
  readConfig,
  refuseSharedTokens,
  refuseUnknown,
} from "../../src/process/settings.ts";
import { stripeKeyOf } from "../../src/process/stripe_keys.ts";
import { FOLDERS, sourceFiles, textOf } from "../structure/sources.ts";

const TOKEN = "0123456789abcdef";

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

Deno.test("a variable that does not begin with HOLDFAST_ is ignored", () => {
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
    [
      "HOLDFAST_DATABASES",
      "eu1=http://secret@127.0.0.1/x",
      /^Cannot start: HOLDFAST_DATABASES "eu1" must be a URL[^@]+@host[^@]+$/,
    ],
    ["HOLDFAST_ADMIN_TOKEN", "short", /must have at least 16/],
    ["STRIPE_API_KEY_LIVE__app_1", "sk_test_x", /must be a key of live mode/],
    ["STRIPE_API_KEY_TEST", "rk_live_x", /must be a key of test mode/],
    ["STRIPE_API_KEY_LIVE_app_1", "sk_live_x", /is not a setting; write STRIPE_API_KEY_LIVE__<appId>/],
    ["STRIPE_API_BASE", "http://stripe.example.com", /must be an origin/],
    ["STRIPE_API_BASE", "https://stripe.example.com/v1", /must be an origin/],
    ["HOLDFAST_LOG_LEVEL", "loud", /must be one of debug, info/],
    ["HOLDFAST_CLUSTER_ADDRESS", "10.0.0.5", /must be host:port/],
    ["HOLDFAST_CLUSTER_ADDRESS", "0.0.0.0:7000", /as other processes reach it/],
    ["HOLDFAST_CLUSTER_ADDRESS", "::1:7000", /must be host:port/],
    ["HOLDFAST_ADMIN_LISTEN", "8001", /must be host:port, such as 127.0.0.1:8001/],
    ["HOLDFAST_ADMIN_LISTEN", "::1:8001", /must be host:port/],
    ["HOLDFAST_ADMIN_LISTEN", "127.0.0.1:70000", /must be host:port/],
    ["HOLDFAST_SHARE_PORT", "yes", /must be true or false/],
    ["HOLDFAST_WEBHOOKS_ALLOW_PRIVATE", "1", /must be true or false/],
    ["HOLDFAST_GATEWAY_READ_ON_SECONDS", "61", /must be a number from 0 to 60/],
    ["ANTHROPIC_BASE_URL", "x", /must be a URL such as/],
    ["HOLDFAST_UPSTREAMS", "eu", /must be a JSON list of servers/],
    ["HOLDFAST_UPSTREAMS", '[{"name":"eu","kind":"gemini"}]', /must be a JSON list of servers/],
    ["HOLDFAST_CELLS", "3", /must be none, or unset/],
    ["HOLDFAST_CELLS", "none", /needs DATABASE_URL/],
    ["HOLDFAST_CONSOLE", "true", /must be on or off/],
    ["HOLDFAST_SUPPORT_SEES_PROMPTS", "yes", /must be true or false/],
    ["HOLDFAST_AGENT_GRANTS", "-5", /must be a number of units/],
    ["HOLDFAST_SUPPORT_TOKEN", "short", /must have at least 16/],
    ["HOLDFAST_CONSOLE_TOKENS", "ann:admin", /must be name:role:token,... .*; entry 1 is not/],
    ["HOLDFAST_CONSOLE_TOKENS", `ann:owner:${TOKEN}`, /entry 1 is not/],
    ["HOLDFAST_CONSOLE_TOKENS", `ann:admin:${TOKEN},`, /entry 2 is not/],
    ["HOLDFAST_CONSOLE_TOKENS", `ann:admin:${TOKEN},bob:admin:tooshort`, /that of entry 2 is shorter/],
    ["HOLDFAST_CONSOLE_TOKENS", `ann:admin:${TOKEN},ann:support:${TOKEN}2`, /name each person once; entry 2/],
    ["HOLDFAST_CONSOLE_TOKENS", `admin:support:${TOKEN}`, /must not use the name "admin"/],
    ["HOLDFAST_CONSOLE_TOKENS", `ann:admin:${TOKEN},bob:admin:${TOKEN}`, /a duplicate token/],
  ];
  for (const [name, value, meant] of rows) {
    assert.throws(() => readConfig({ [name]: value }), ({ message }: Error) => {
      assert.ok(message.startsWith(`Cannot start: ${name} `), message);
      assert.match(message, meant);
      assert.ok(!message.includes(TOKEN) && !message.includes("tooshort"), "no token is shown");
      return true;
    });
  }
});

Deno.test("the address of operators may be any of the machine's, and may have brackets", () => {
  const rows: [text: string, host: string, port: number][] = [
    ["127.0.0.1:8001", "127.0.0.1", 8001],
    ["[::1]:0", "::1", 0],
    ["0.0.0.0:8001", "0.0.0.0", 8001],
    ["inside.test:8001", "inside.test", 8001],
  ];
  for (const [text, host, port] of rows) {
    assert.deepEqual(readConfig({ HOLDFAST_ADMIN_LISTEN: text }).adminListen, { host, port });
  }
  assert.equal(readConfig({}).adminListen, null);
  for (const host of ["127.0.0.1", "127.1.2.3", "::1", "localhost"]) assert.ok(isLoopback(host), host);
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.evil.test", "1270.0.0.1"]) {
    assert.ok(!isLoopback(host), host);
  }
});

Deno.test("everybody who may sign in has a token of their own, which the admin token is not either", () => {
  const rows: [settings: Record<string, string>, named: string][] = [
    [{ HOLDFAST_ADMIN_TOKEN: TOKEN, HOLDFAST_SUPPORT_TOKEN: TOKEN }, "HOLDFAST_SUPPORT_TOKEN"],
    [
      { HOLDFAST_ADMIN_TOKEN: TOKEN, HOLDFAST_CONSOLE_TOKENS: `ann:admin:${TOKEN}` },
      "HOLDFAST_CONSOLE_TOKENS",
    ],
    [
      { HOLDFAST_SUPPORT_TOKEN: TOKEN, HOLDFAST_CONSOLE_TOKENS: `ann:admin:${TOKEN}` },
      "HOLDFAST_CONSOLE_TOKENS",
    ],
  ];
  for (const [settings, named] of rows) {
    assert.throws(
      () => readConfig(settings),
      new ConfigError(
        `Cannot start: ${named} has a duplicate token; give each person a different one`,
      ),
    );
  }
  const support = { name: "support", role: "support", token: TOKEN } as const;
  // Where the settings name none, the admin token comes from the data folder.
  assert.throws(() => refuseSharedTokens([support], TOKEN), ConfigError);
  refuseSharedTokens([support], null);
  const { console } = readConfig({
    HOLDFAST_ADMIN_TOKEN: TOKEN,
    HOLDFAST_SUPPORT_TOKEN: `${TOKEN}2`,
    HOLDFAST_CONSOLE_TOKENS: `ann:admin:${TOKEN}3, bob@x.org:support:${TOKEN}4`,
  });
  assert.deepEqual(console, {
    isOn: true,
    supportSeesPrompts: false,
    agentGrants: 100,
    operators: [
      { name: "support", role: "support", token: `${TOKEN}2` },
      { name: "ann", role: "admin", token: `${TOKEN}3` },
      { name: "bob@x.org", role: "support", token: `${TOKEN}4` },
    ],
  });
});

Deno.test("a process is a front, shares its port and has an address for the others only where a setting asks for it", () => {
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

Deno.test("further model servers have the keys of the variables that they name", () => {
  const upstream = { name: "eu", kind: "openai", baseUrl: "http://127.0.0.1:1/v1", keyVariable: "EU_KEY" };
  const other = { ...upstream, name: "us", keyVariable: "US_KEY" };
  const read = (list: unknown[]) => readConfig({ HOLDFAST_UPSTREAMS: JSON.stringify(list), EU_KEY: "k" });
  const servers = read([upstream, other]).features.upstreams.map((
    { name, server },
  ) => [name, server?.apiKey]);
  assert.deepEqual(servers, [["eu", "k"], ["us", undefined]]);
  assert.throws(() => read([upstream, upstream]), /HOLDFAST_UPSTREAMS names the server "eu" twice/);
});

Deno.test("a key of Stripe is that of its app, or without a suffix that of the only app with Stripe in the mode", () => {
  const { stripe } = readConfig({
    STRIPE_API_KEY_LIVE: "sk_live_shared",
    STRIPE_API_KEY_LIVE__app_2: "rk_live_own",
    STRIPE_API_KEY_TEST__app_1: "sk_test_one",
    STRIPE_API_BASE: "http://127.0.0.1:12111",
    STRIPE_API_KEY: "of another program",
  }).features;
  const keyOf = (mode: "live" | "test", appId: string, ...apps: string[]) =>
    stripeKeyOf(stripe, mode, appId, () => apps);
  assert.equal(keyOf("live", "app_1", "app_1"), "sk_live_shared");
  assert.equal(keyOf("live", "app_1", "app_1", "app_3"), null);
  assert.equal(keyOf("live", "app_1", "app_3"), null);
  assert.equal(keyOf("live", "app_2", "app_1", "app_3"), "rk_live_own");
  assert.equal(keyOf("test", "app_1"), "sk_test_one");
  assert.equal(keyOf("test", "app_2", "app_2"), null);
  assert.equal(stripe.base, "http://127.0.0.1:12111");
});
