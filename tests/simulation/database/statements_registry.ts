// Statements of the registry: workspaces, apps, keys, catalogs, realms, its version, and what is counted for workspaces.

import type { Param } from "../../../src/storage/database.ts";
import type { Fields } from "../../support/memory_store.ts";
import type { Lock } from "./locks.ts";
import { by, numbersOf, textsOf } from "./params.ts";
import type { Entry } from "./statements.ts";
import type { SimTables } from "./tables.ts";

const VERSION: Lock = { key: "registry", isShared: false };
const NOTHING: Fields[] = [];

function read(start: string, run: (tables: SimTables, params: readonly Param[]) => Fields[]): Entry {
  return [start, { kind: "read", run }];
}

/** Rows of a table that were written after a version; their names are those that the statement gives them. */
function changed(start: string, table: string): Entry {
  return read(
    start,
    (tables, [since]) =>
      tables.list(table, ({ changedIn }) => Number(changedIn) > Number(since)).sort(by("createdAt")),
  );
}

/** Writes a row with the statement's parameters as columns, in their order. */
function put(start: string, table: string, columns: readonly string[], mutable: readonly string[]): Entry {
  return [start, {
    kind: "write",
    make: (params) => (tables) => {
      const row = Object.fromEntries(columns.map((name, place) => [name, params[place] ?? null]));
      const key = String(params[0]);
      const [before] = tables.list(table, (each) => each[columns[0] as string] === params[0]);
      const kept = before ?? row;
      const values = Object.fromEntries(mutable.map((name) => [name, row[name] ?? null]));
      tables.put(table, key, { ...kept, ...values });
      return NOTHING;
    },
  }];
}

/** The columns of a catalog beside its app. */
const CATALOG = ["version", "document", "planOrder", "priceRows", "rateRows", "appliedAt", "changedIn"];

const ROWS: readonly Entry[] = [
  changed('changed workspaces: select id as "workspaceId"', "workspaces"),
  changed('changed apps: select id as "appId"', "apps"),
  changed('changed API keys: select id as "keyId"', "keys"),
  read(`changed catalogs: select app_id as "appId", 'live' as mode, version`, (tables, [since]) => {
    const rowsOf = (table: string, members: Fields) =>
      tables.list(table, ({ changedIn }) => Number(changedIn) > Number(since))
        .map((row) => ({ ...row, ...members }));
    const ofTest = rowsOf("test_catalogs", { mode: "test" });
    return [...rowsOf("catalogs", { mode: "live", removed: false }), ...ofTest];
  }),
  read('realms: select r.realm, r.app_id as "appId", r.mode from realms r join apps', (tables, [since]) => {
    const apps = new Set(
      tables.list("apps", ({ changedIn }) => Number(changedIn) > Number(since)).map(({ appId }) => appId),
    );
    return tables.list("realms", ({ appId }) => apps.has(appId as string));
  }),
  read("moved cells: select c.cell, s.name as store from cells c join stores s", () => []),
  put("write a workspace: insert into workspaces (id, name", "workspaces", [
    "workspaceId",
    "name",
    "operationCap",
    "testOperationCap",
    "aiBudgetCents",
    "testCreditBalanceCap",
    "createdAt",
    "changedIn",
  ], ["name", "operationCap", "testOperationCap", "aiBudgetCents", "testCreditBalanceCap", "changedIn"]),
  put("write an API key: insert into keys (id, app_id", "keys", [
    "keyId",
    "appId",
    "class",
    "mode",
    "hash",
    "prefix",
    "name",
    "createdAt",
    "createdBy",
    "validUntil",
    "revokedAt",
    "changedIn",
  ], ["validUntil", "revokedAt", "changedIn"]),
  ["last uses of API keys: update keys k set last_used_at_ms", {
    kind: "write",
    make: () => () => NOTHING,
  }],
  read("last uses of an app's API keys: select id, last_used_at_ms as at from keys", () => []),
  put("write a catalog: insert into catalogs (app_id, version", "catalogs", ["appId", ...CATALOG], CATALOG),
  put(
    "write a catalog of test mode: insert into test_catalogs (app_id, version",
    "test_catalogs",
    ["appId", ...CATALOG, "removed"],
    [...CATALOG, "removed"],
  ),
  ["keep a version of a catalog: insert into catalog_versions", {
    kind: "write",
    make: ([appId, version]) => (tables) => {
      const key = { appId: String(appId), version: Number(version) };
      tables.put("catalog_versions", JSON.stringify(key), key);
      return NOTHING;
    },
  }],
  ["remove old versions of a catalog: delete from catalog_versions", {
    kind: "write",
    make: ([appId, kept]) => (tables) => {
      const versions = tables.list("catalog_versions", (row) => row.appId === appId)
        .map(({ version }) => Number(version)).sort((a, b) => b - a);
      const last = versions[Number(kept)] ?? 0;
      tables.remove("catalog_versions", (row) => row.appId === appId && Number(row.version) <= last);
      return NOTHING;
    },
  }],
  read(
    'clocks of realms: select realm, clock_offset_ms as "offsetMs", coalesce(m.at_ms - clock_offset_ms, 0)',
    (tables, [realms]) =>
      tables.list("realms", ({ realm }) => numbersOf(realms).includes(realm as number))
        .map((row) => ({ realm: row.realm as number, offsetMs: row.clockOffsetMs as number, usedMs: 0 })),
  ),
];

const TOTALS: readonly Entry[] = [
  read(
    "issued balances of realms: select realm, issued from unnest($1::text::int[]) as listed",
    (tables, [realms]) =>
      tables.list("credit_issues", ({ realm }) => numbersOf(realms).includes(realm as number)),
  ),
  read(
    'operations: select workspace_id as "workspaceId", mode, month, used',
    (tables, [workspaces, month]) => {
      const asked = textsOf(workspaces);
      return tables.list(
        "operations",
        (row) => asked.includes(row.workspace_id as string) && String(row.month) >= String(month),
      )
        .map((row) => ({ ...row, workspaceId: row.workspace_id as string }));
    },
  ),
  read('spending: select workspace_id as "workspaceId", month, cents', (tables, [workspaces, month]) => {
    const asked = textsOf(workspaces);
    return tables.list(
      "ai_spend",
      (row) => asked.includes(row.workspace_id as string) && String(row.month) >= String(month),
    )
      .map((row) => ({ ...row, workspaceId: row.workspace_id as string }));
  }),
  read(
    'spending at the gateway: select workspace_id as "workspaceId", app_id as "appId", month, cents from unnest',
    (tables, [workspaces, month]) => {
      const asked = textsOf(workspaces);
      return tables.list(
        "gateway_spend",
        (row) => asked.includes(row.workspace_id as string) && String(row.month) >= String(month),
      ).map((row) => ({ ...row, workspaceId: row.workspace_id as string, appId: row.app_id as string }));
    },
  ),
];

export const REGISTRY: readonly Entry[] = [
  ["lock the registry version: select version from registry for update", {
    kind: "write",
    locks: () => [VERSION],
    make: () => ({ version }) => [{ version }],
  }],
  read("registry version: select version from registry", ({ version }) => [{ version }]),
  ["set the registry version: update registry set version = $1", {
    kind: "write",
    make: ([version]) => (tables) => {
      tables.version = Number(version);
      return NOTHING;
    },
  }],
  ...ROWS,
  ...TOTALS,
];
