// The doctor's verdicts as a table: sound facts, one thing wrong with them, and what the doctor says of it.

import assert from "node:assert/strict";
import {
  checkFeatures,
  checkGateway,
  checkStore,
  type TermFacts,
  worstOf,
} from "../../src/operations/doctor/checks.ts";
import type { ClusterFacts, NodeFacts } from "../../src/cluster/examine.ts";
import type { StoreFacts } from "../../src/operations/doctor/facts.ts";
import { NO_FEATURES } from "../../src/process/features.ts";
import { DOCTOR_LIMITS, RUNTIME_LIMITS } from "../../src/process/limits.ts";

const SUMMARY = {
  users: 3,
  counters: 4,
  balances: 2,
  holds: 1,
  events: 5,
  undrainedBatches: 0,
  drifts: 0,
  isWhole: true,
};

/** A live node that owns half of the cells; all cells of nodes 7 and 8 are owned. */
function memberOf(term: number, changed: Partial<NodeFacts> = {}): NodeFacts {
  return {
    term,
    address: `10.0.0.${term}:7000`,
    share: 1,
    fingerprints: { schema: "0012_members", HOLDFAST_PUBLIC_URL: "unset" },
    registryVersion: 4,
    livedMs: 60_000,
    silentMs: 900,
    hasEnded: false,
    cells: Array.from({ length: 32 }, (_, index) => 2 * index + term % 2),
    ...changed,
  };
}

const MEMBERS = [memberOf(7), memberOf(8), memberOf(9, { share: 0, cells: [] })];
function splitOf(split: Partial<ClusterFacts["splits"][number]>): { cluster: ClusterFacts } {
  return {
    cluster: { ...CLUSTER, splits: [{ to: "eu2", state: "planned", cells: [], left: [], ...split }] },
  };
}

const CLUSTER: ClusterFacts = { registryVersion: 4, nodes: MEMBERS, free: [], splits: [] };
const clusterOf = (...nodes: NodeFacts[]) => ({ cluster: { ...CLUSTER, nodes } });
const STANDBY = { name: "db2", state: "streaming", syncState: "sync" };
const SOUND: StoreFacts = {
  database: {
    kind: "postgres",
    version: "15.20",
    roundTripMs: 0.31,
    fsync: true,
    synchronousCommit: "on",
    replication: { configured: "on", names: "*", standbys: [STANDBY] },
    checkpoints: { timed: 40, requested: 7, maxWalMegabytes: 1_024, timeoutSeconds: 300, compression: "off" },
  },
  migrations: { applied: ["0001_core", "0002_credits"], missing: [], changed: [], unknown: [] },
  cluster: CLUSTER,
  skewMs: -3,
  backlog: { journalBatches: 2, overdueUsers: 0, historyMoves: 0, openErasures: 1, lateErasures: 0 },
  drift: { summary: SUMMARY, first: null },
  oldPrices: [],
  webhooks: { enabled: 2, failing: [], oldestMs: 61_000 },
  unhandled: [],
  lateTopUps: [],
};
const FAILING = { appId: "app_1", webhookId: "whk_1", since: 0, isDisabled: false };
const OLD_PRICES = Array.from(
  { length: 21 },
  (_, at) => ({ appId: at < 2 ? "app_1" : "app_2", model: `m${at}` }),
);
const VIEW = { term: 7, reaches: () => true };
const IDLE: TermFacts = { backlogChanges: 0, backlogBytes: 0, waitingChanges: 0, view: VIEW };
const { database, migrations, backlog } = SOUND as StoreFacts & { backlog: object };

Deno.test("sound facts are ok in every check, for the writer and from beside it", () => {
  for (const term of [IDLE, null]) {
    const checks = checkStore(SOUND, term);
    assert.deepEqual(
      checks.map(({ name, verdict }) => `${verdict} ${name}`),
      [
        "ok database",
        "ok standbys",
        "ok migrations",
        "ok members",
        "ok clock",
        "ok backlog",
        "ok drift",
        "ok prices",
        "ok webhooks",
        "ok stripe",
        "ok top-ups",
      ],
    );
    assert.ok(checks.every(({ advice }) => advice === null));
    assert.equal(worstOf(checks), "ok");
  }
});

/** A store on a server with a replica, a setting or both. */
function replicated(changed: Partial<StoreFacts["database"]["replication"]>): Partial<StoreFacts> {
  return { database: { ...database, replication: { ...database.replication, ...changed } } };
}

Deno.test("a synchronous standby is named with its state, and a setting that sessions raise is shown", () => {
  const hidden = { name: "", state: null, syncState: null };
  const sound: readonly [Partial<StoreFacts>, string][] = [
    [{}, "db2 (sync, streaming); synchronous_commit on; synchronous_standby_names *"],
    [
      replicated({ configured: "local", names: "", standbys: [] }),
      "none; synchronous_commit local, raised to on; synchronous_standby_names empty",
    ],
    [
      replicated({ standbys: [hidden] }),
      "one whose state this role may not see (grant pg_monitor); synchronous_commit on; synchronous_standby_names *",
    ],
    [{ database: { ...database, kind: "embedded" } }, "the embedded store has none"],
  ];
  for (const [changed, found] of sound) {
    const check = checkStore({ ...SOUND, ...changed }, null).find(({ name }) => name === "standbys");
    assert.deepEqual([check?.verdict, check?.found], ["ok", found]);
  }
});

/** What is wrong, as seen by the writer (true) or from beside it, and the one verdict that changes. */
const TROUBLES: readonly (readonly [Partial<StoreFacts>, boolean, string, RegExp])[] = [
  [{ database: { ...database, version: "14.1" } }, true, "fail database", /14\.1/],
  [{ database: { ...database, fsync: false } }, true, "fail database", /fsync off/],
  [
    { database: { ...database, checkpoints: { ...database.checkpoints, requested: 41 } } },
    false,
    "warn database",
    /41 of 81 checkpoints because the log was full/,
  ],
  [{ database: { ...database, synchronousCommit: "off" } }, true, "fail database", /synchronous_commit off/],
  [{ database: { ...database, roundTripMs: 45 } }, true, "warn database", /45\.0 ms/],
  [replicated({ names: "" }), true, "warn standbys", /db2 .*names empty/],
  [replicated({ standbys: [] }), true, "fail standbys", /^none; .*names \*/],
  [replicated({ standbys: [{ ...STANDBY, syncState: "async" }] }), true, "fail standbys", /db2 \(async/],
  [{ migrations: { ...migrations, missing: ["0003_x"] } }, true, "fail migrations", /not applied: 0003_x/],
  [{ migrations: { ...migrations, unknown: ["0009_y"] } }, true, "fail migrations", /newer program.*0009_y/],
  [{ migrations: { ...migrations, changed: ["0001_z"] } }, true, "fail migrations", /another text: 0001_z/],
  [splitOf({ left: [40] }), true, "warn members", /^cell 40 to be handed over to "eu2"$/],
  [splitOf({ cells: [40], state: "released" }), true, "fail members", /^"eu2" does not serve cell 40 yet/],
  [clusterOf(), false, "warn members", /no process serves/],
  [clusterOf(memberOf(7, { silentMs: 3_000 })), false, "warn members", /no process serves/],
  [
    { cluster: { ...CLUSTER, free: [3, 4, 5, 9] } },
    true,
    "fail members",
    /^cells 3 to 5, 9 without an owner/,
  ],
  [
    clusterOf(
      memberOf(7),
      memberOf(8, { cells: [], hasEnded: true }),
      memberOf(3, { hasEnded: true, cells: [5] }),
    ),
    true,
    "fail members",
    /^cell 5 without an owner: calls .* 503$/,
  ],
  [
    clusterOf(memberOf(7), memberOf(8, { silentMs: 9_400, cells: [] })),
    true,
    "warn members",
    /^process 8 \(10\.0\.0\.8:7000\) has been silent for 9 s$/,
  ],
  [
    clusterOf(memberOf(7), memberOf(8, { registryVersion: 3 })),
    true,
    "warn members",
    /^process 8 .* version 3 .* 4 is/,
  ],
  [
    clusterOf(
      memberOf(7),
      memberOf(8),
      memberOf(9, { fingerprints: { schema: "0013_x", HOLDFAST_PUBLIC_URL: "unset" } }),
    ),
    false,
    "warn members",
    /^processes differ in schema: 7, 8 against 9$/,
  ],
  [{ skewMs: DOCTOR_LIMITS.skewWarnMs + 1 }, true, "warn clock", /1001 ms ahead of/],
  [{ skewMs: -DOCTOR_LIMITS.skewFailMs - 1 }, false, "fail clock", /30001 ms behind/],
  [{ backlog: { ...backlog, overdueUsers: 4 } as never }, true, "warn backlog", /users overdue 4,/],
  [
    { backlog: { ...backlog, overdueUsers: 1000 } as never },
    false,
    "warn backlog",
    /users overdue 1000 or more,/,
  ],
  [{ backlog: { ...backlog, lateErasures: 1 } as never }, true, "warn backlog", /erasures open 1$/],
  [{ backlog: null }, false, "warn backlog", /skipped: migrations pending/],
  [{ drift: null }, false, "warn drift", /skipped: migrations pending/],
  [{ drift: { fault: "no time" } }, true, "warn drift", /could not be proved: no time/],
  [
    { drift: { summary: { ...SUMMARY, drifts: 2, isWhole: false }, first: "user 2: counter" } },
    true,
    "fail drift",
    /2 in a sample: users 3,.*first user 2: counter/,
  ],
  [{ oldPrices: null }, false, "warn prices", /skipped: migrations pending/],
  [{ oldPrices: OLD_PRICES.slice(0, 3) }, true, "warn prices", /90 days ago: app_1: m0, m1; app_2: m2$/],
  [{ oldPrices: OLD_PRICES }, true, "warn prices", /^21 last .*m18, m19; and others$/],
  [{ webhooks: null }, false, "warn webhooks", /skipped: migrations pending/],
  [{ lateTopUps: null }, false, "warn top-ups", /skipped: migrations pending/],
  [
    { lateTopUps: [{ appId: "app_1", mode: "live", messages: 2 }] },
    true,
    "warn top-ups",
    /more than a day: app_1 live 2/,
  ],
  [{ unhandled: null }, false, "warn stripe", /skipped: migrations pending/],
  [
    {
      unhandled: [{ appId: "app_1", mode: "live", messages: 3 }, {
        appId: "app_2",
        mode: "test",
        messages: 1,
      }],
    },
    false,
    "warn stripe",
    /not handled: app_1 live 3, app_2 test 1/,
  ],
  [
    { webhooks: { enabled: 2, failing: [FAILING, { ...FAILING, isDisabled: true }], oldestMs: null } },
    true,
    "warn webhooks",
    /^enabled 2, no pending message; .*: whk_1 of app_1, whk_1 of app_1 \(disabled\)$/,
  ],
  [
    { webhooks: { enabled: 2, failing: [], oldestMs: DOCTOR_LIMITS.webhookLateMs } },
    false,
    "warn webhooks",
    /the oldest message has been pending 60 minutes$/,
  ],
  [
    { webhooks: { enabled: 2, failing: [], oldestMs: 60 * 86_400_000 } },
    false,
    "warn webhooks",
    /has been pending 60 days$/,
  ],
];

Deno.test("each trouble changes its own verdict and no other, and comes with advice", () => {
  for (const [trouble, isWriter, expected, found] of TROUBLES) {
    const checks = checkStore({ ...SOUND, ...trouble }, isWriter ? IDLE : null);
    const troubled = checks.filter(({ verdict }) => verdict !== "ok");
    assert.deepEqual(troubled.map(({ name, verdict }) => `${verdict} ${name}`), [expected]);
    assert.match(troubled[0]?.found ?? "", found);
    assert.ok((troubled[0]?.advice ?? "").length > 0);
    assert.equal(worstOf(checks), expected.split(" ")[0]);
  }
});

Deno.test("prices that were never checked are not said to be checked lately", () => {
  for (
    const [prices, checked, says] of [
      [3, 0, "none of 3 was ever checked against a price file"],
      [3, 1, "none was checked more than 90 days ago"],
      [0, 0, "none was checked more than 90 days ago"],
    ] as const
  ) {
    const checks = checkStore({ ...SOUND, priceChecks: { prices, checked } }, IDLE);
    const { verdict, found } = checks.find(({ name }) => name === "prices") ?? assert.fail();
    assert.deepEqual([verdict, found], ["ok", says]);
  }
});

Deno.test("a term with bounds that are half full gets a warning, and a term at a bound fails", () => {
  const { backlogChangesMax, backlogBytesMax, waitingChangesMax } = RUNTIME_LIMITS;
  const bounds = {
    backlogChanges: backlogChangesMax,
    backlogBytes: backlogBytesMax,
    waitingChanges: waitingChangesMax,
  };
  for (const [name, max] of Object.entries(bounds)) {
    for (const [share, verdict] of [[0.49, "ok"], [0.5, "warn"], [0.99, "warn"], [1, "fail"]] as const) {
      const checks = checkStore(SOUND, { ...IDLE, [name]: max * share });
      assert.equal(worstOf(checks), verdict, `${name} ${share}`);
    }
  }
});

Deno.test("what waits for sweeps is no trouble while no process serves the store", () => {
  const facts = {
    ...SOUND,
    ...clusterOf(),
    backlog: { ...backlog, overdueUsers: 9, lateErasures: 9 } as StoreFacts["backlog"],
  };
  const checks = checkStore(facts, null).filter(({ verdict }) => verdict !== "ok");
  assert.deepEqual(checks.map(({ name }) => name), ["members"]);
});

Deno.test("a node without a channel to another one is reported, and a silent node without cells is soon history", () => {
  const lonely = { ...IDLE, view: { term: 7, reaches: (term: number) => term !== 9 } };
  const check = checkStore(SOUND, lonely).find(({ name }) => name === "members");
  assert.equal(check?.verdict, "warn");
  assert.match(check?.found ?? "", /^process 9 \(10\.0\.0\.9:7000\) cannot be reached from here$/);
  const gone = clusterOf(...MEMBERS, memberOf(5, { cells: [], silentMs: 60_000 }));
  assert.equal(worstOf(checkStore({ ...SOUND, ...gone }, IDLE)), "ok");
});

Deno.test("the only node of the embedded store is the process that has its folder", () => {
  const facts = {
    ...SOUND,
    ...clusterOf(memberOf(7, { silentMs: 1e9 })),
    database: { ...database, kind: "embedded" as const },
  };
  assert.equal(worstOf(checkStore(facts, IDLE)), "ok");
  assert.equal(worstOf(checkStore(facts, null)), "warn");
});

Deno.test("features say what is on, and only a missing privacy secret is a warning", () => {
  assert.equal(checkFeatures(NO_FEATURES).verdict, "warn");
  const check = checkFeatures({ ...NO_FEATURES, privacySecret: "x" });
  assert.equal(check.verdict, "ok");
  assert.match(check.found, /analytics on, export off, compose off/);
});

Deno.test("the gateways are shown, and apps are named whose test keys spend real money", () => {
  const server = { apiKey: "k", baseUrl: null };
  const off = checkGateway(NO_FEATURES, { openApps: ["app_1"] });
  assert.deepEqual([off.verdict, off.found], ["ok", "for OpenAI off, for Anthropic off"]);
  const upstreams = [{ name: "eu", kind: "openai" as const, keyVariable: "K", server: null }];
  const on = { ...NO_FEATURES, anthropicServer: server, upstreams };
  const sound = checkGateway(on, { namedServers: [{ appId: "app_1", upstream: "eu" }] });
  assert.deepEqual([sound.verdict, sound.found], [
    "ok",
    "for OpenAI off, for Anthropic on, eu without a key",
  ]);
  for (
    const [apps, found] of [[["app_1"], /of app_1 has no gateway/], [
      ["app_1", "app_2"],
      /app_1 and of other apps/,
    ]] as const
  ) {
    const check = checkGateway(on, { openApps: apps });
    assert.equal(check.verdict, "warn");
    assert.match(check.found, found);
    assert.match(check.advice ?? "", /Test keys of such an app spend real money/);
  }
});

Deno.test("a server that a catalog names and the service lacks is a warning, also while every gateway is off", () => {
  const check = checkGateway(NO_FEATURES, { namedServers: [{ appId: "app_1", upstream: "us" }] });
  assert.equal(check.verdict, "warn");
  assert.match(check.found, /of app_1 names the server "us", which this service lacks/);
});
