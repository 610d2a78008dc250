// Changes of the registry: decided from a fresh read, one after another, and answered when every member that may answer
// anything has them in force.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { LEASE_LIMITS, REGISTRY_LIMITS } from "../../src/process/limits.ts";
import type { Database } from "../../src/storage/database.ts";
import { claimCells, freeCells } from "../../src/storage/nodes/cell_store.ts";
import { endNode, insertNode } from "../../src/storage/nodes/node_store.ts";
import { Registry } from "../../src/tenant/registry.ts";
import type { ApiKey, Workspace } from "../../src/storage/rows/registry_rows.ts";
import { RegistryChanges, Unconfirmed } from "../../src/tenant/registry_changes.ts";
import { LONER } from "../storage/sample.ts";
import { testServerUrl, withStore } from "../support/test_store.ts";

const NOW = Date.UTC(2026, 0, 1);
const clock = { now: () => NOW };
const APP = {
  appId: "app_1",
  workspaceId: "ws_1",
  name: "A",
  identitySecret: "s",
  oldIdentitySecrets: [],
  createdAt: NOW,
};
const REALMS = [{ realm: 1, appId: "app_1", mode: "live" }, {
  realm: 2,
  appId: "app_1",
  mode: "test",
}] as const;

function workspace(row: Partial<Workspace> = {}): Workspace {
  return {
    workspaceId: "ws_1",
    name: "W",
    operationCap: null,
    testOperationCap: null,
    aiBudgetCents: null,
    testCreditBalanceCap: null,
    ...row,
  };
}

function key(row: Partial<ApiKey> = {}): ApiKey {
  return {
    keyId: "key_1",
    appId: "app_1",
    class: "secret",
    mode: "live",
    hash: "h",
    prefix: "sk_live_",
    createdAt: NOW,
    name: null,
    createdBy: null,
    validUntil: null,
    revokedAt: null,
    ...row,
  };
}

/** A member's registry and its changes; `announce` does what a test says. */
function memberOn(database: Database, term: number, announce: (version: number) => Promise<void>) {
  const registry = new Registry(clock);
  return { registry, changes: new RegistryChanges({ registry, database, term, clock, announce }) };
}

/** A member that confirms at once, as its beat would. */
function confirming(database: Database, term: number) {
  return memberOn(database, term, async (version) => {
    await database.query("update members set registry_version = $2::bigint where term = $1::bigint", [
      term,
      version,
    ]);
  });
}

Deno.test("a change sees what another member changed before, and counts on from its version", () =>
  withStore(async ({ database }) => {
    const first = confirming(database, 1);
    const second = confirming(database, 2);
    await first.changes.change(null, () => ({ rows: { workspaces: [workspace()] }, answer: null }));
    const seen = await second.changes.change(null, () => {
      const known = second.registry.workspaces.get("ws_1") as Workspace;
      return { rows: { workspaces: [{ ...known, operationCap: 5 }] }, answer: known };
    });
    assert.deepEqual([seen, second.registry.version], [workspace(), 2]);
    await first.changes.reach(2);
    assert.deepEqual(first.registry.workspaces.get("ws_1"), workspace({ operationCap: 5 }));
  }));

Deno.test("changes that come together are made one after another, each from the one before", () =>
  withStore(async ({ database }) => {
    const members = [1, 2].map((term) => confirming(database, term));
    await members[0]?.changes.change(
      null,
      () => ({ rows: { workspaces: [workspace({ operationCap: 0 })] }, answer: 0 }),
    );
    await Promise.all([...members, ...members].map(({ registry, changes }) =>
      changes.change(null, () => {
        const known = registry.workspaces.get("ws_1") as Workspace;
        const next = { ...known, operationCap: (known.operationCap as number) + 1 };
        return { rows: { workspaces: [next] }, answer: 0 };
      })
    ));
    const fresh = confirming(database, 3);
    await fresh.changes.catchUp();
    assert.deepEqual([fresh.registry.workspaces.get("ws_1")?.operationCap, fresh.registry.version], [4, 5]);
  }));

Deno.test("a change that its decision refuses changes nothing and makes no version", () =>
  withStore(async ({ database }) => {
    const { registry, changes } = confirming(database, 1);
    const refusal = new Error("refused");
    await assert.rejects(changes.change(null, () => Promise.reject(refusal)), refusal);
    assert.equal(
      await changes.change(null, () => ({ rows: { workspaces: [] }, answer: "refused" })),
      "refused",
    );
    await changes.catchUp();
    assert.equal(registry.version, 0);
  }));

Deno.test("a change about a workspace is made by the owner of its cell alone", () =>
  withStore(async ({ database }) => {
    const { registry, changes } = confirming(database, 1);
    const change = () => changes.change(3, () => ({ rows: { workspaces: [workspace()] }, answer: "made" }));
    await assert.rejects(change(), Unavailable);
    assert.equal(registry.workspaces.size, 0);
    await claimCells(database, [3], null, 1);
    assert.equal(await change(), "made");
    await freeCells(database, { term: 1, batches: [0, 0], clockMs: NOW, sides: new Map([[3, null]]) });
    await assert.rejects(change(), Unavailable);
  }));

/** Makes a change while another member has not confirmed it; `look` runs each time before the change looks again. */
async function changeBeside(database: Database, looks: (() => Promise<void>)[]): Promise<number> {
  const { changes } = confirming(database, 1);
  await insertNode(database, 1, LONER);
  await insertNode(database, 2, LONER);
  const { setTimeout: real } = globalThis;
  let waits = 0;
  globalThis.setTimeout = ((run: () => void, ms = 0) => {
    if (ms !== REGISTRY_LIMITS.lookEveryMs) return real(run, ms);
    const look = looks[waits++];
    if (look === undefined) throw new Error("The change waits for a process that it need not wait for");
    void look().then(run);
    return 0;
  }) as typeof setTimeout;
  try {
    await changes.change(null, () => ({ rows: { workspaces: [workspace()] }, answer: null }));
    return waits;
  } finally {
    globalThis.setTimeout = real;
  }
}

for (
  const [what, sql] of [
    ["has it in force", "update members set registry_version = 1 where term = 2"],
    [
      "has been silent for as long as it may answer",
      `update members set seen_at = seen_at - interval '${LEASE_LIMITS.validMs} milliseconds' where term = 2`,
    ],
    ["has ended", null],
  ] as const
) {
  Deno.test(`a change waits for a living member until that one ${what}`, () =>
    withStore(async ({ database }) => {
      const nothing = () => Promise.resolve();
      const end = async () => {
        if (sql === null) await endNode(database, 2);
        else await database.query(sql);
      };
      assert.equal(await changeBeside(database, [nothing, end]), 2);
    }));
}

Deno.test("a change that a process never confirms is in force, and says after its limit that it may be repeated", () =>
  withStore(async ({ database }) => {
    const { now } = performance;
    const later = () => {
      performance.now = () => now.call(performance) + REGISTRY_LIMITS.confirmMs + 1;
      return Promise.resolve();
    };
    try {
      await assert.rejects(changeBeside(database, [later]), Unconfirmed);
    } finally {
      performance.now = now;
    }
    const fresh = confirming(database, 3);
    await fresh.changes.catchUp();
    assert.equal(fresh.registry.workspaces.size, 1);
  }));

Deno.test({
  name: "a change that waits for another one which does not end is refused in the end, and may be sent again",
  ignore: testServerUrl() === null,
  fn: () =>
    withStore(async ({ database }) => {
      const limits = REGISTRY_LIMITS as { confirmMs: number };
      const { confirmMs } = limits;
      limits.confirmMs = 50;
      const { changes } = confirming(database, 1);
      const change = () =>
        changes.change(null, () => ({ rows: { workspaces: [workspace()] }, answer: "made" }));
      try {
        await database.transaction(async (session) => {
          await session.query("select 1 from registry for update");
          await assert.rejects(change(), Unavailable);
        });
        assert.equal(await change(), "made");
      } finally {
        limits.confirmMs = confirmMs;
      }
    }),
});

Deno.test("rows of a read that a later one has overtaken change nothing: a revoked key stays revoked", () => {
  const registry = new Registry(clock);
  const rows = { workspaces: [workspace()], apps: [APP], realms: REALMS, keys: [key()] };
  registry.admit(rows, 1);
  assert.equal(registry.callerById("key_1")?.app.record.appId, "app_1");
  registry.admit({ keys: [key({ revokedAt: NOW })] }, 2);
  assert.equal(registry.callerById("key_1"), null);
  registry.admit(rows, 1);
  assert.deepEqual([registry.callerById("key_1"), registry.version], [null, 2]);
});

Deno.test("members that ask for a version at the same moment share one read", () =>
  withStore(async ({ database }) => {
    await confirming(database, 1).changes.change(
      null,
      () => ({ rows: { workspaces: [workspace()] }, answer: 0 }),
    );
    let reads = 0;
    const counted: Database = {
      ...database,
      transaction: (work) => {
        reads += 1;
        return database.transaction(work);
      },
    };
    const { registry, changes } = confirming(counted, 2);
    await Promise.all([changes.reach(1), changes.reach(1), changes.reach(1)]);
    assert.deepEqual([reads, registry.version], [1, 1]);
  }));
