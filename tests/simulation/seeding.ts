// What the simulated database holds before the first process starts: one workspace, one app, its keys and catalog.

import { hashOf } from "src/registry.ts";
import type { CatalogDocument } from "tests/model/document.ts";
import { SECRET_KEY } from "tests/simulation/process.ts";
import type { SimTables } from "tests/simulation/database/tables.ts";

/** The realm of the one app in live mode. */
export const REALM = 1;

/** Writes the app. */
export function seedApp(tables: SimTables, catalog: CatalogDocument, createdAt: number): void {
  tables.put("workspaces", "ws_1", {
    workspaceId: "ws_1",
    name: "Simulated",
    operationCap: null,
    testOperationCap: null,
    aiBudgetCents: null,
    testCreditBalanceCap: null,
  });
  tables.put("apps", "app_1", {
    appId: "app_1",
    workspaceId: "ws_1",
    name: "Simulated",
    identitySecret: "identity-secret",
    createdAt,
  });
  tables.put("keys", "key_1", {
    keyId: "key_1",
    appId: "app_1",
    class: "secret",
    mode: "live",
    hash: hashOf(SECRET_KEY),
    prefix: "sk_live_simu",
    createdAt,
    revokedAt: null,
  });
  tables.put("catalogs", "app_1", {
    appId: "app_1",
    version: 1,
    document: JSON.stringify(catalog),
    planOrder: JSON.stringify(catalog.plans.map(({ id }) => id)),
  });
  for (const [index, mode] of ["live", "test"].entries()) {
    tables.put("realms", String(index + 1), { realm: index + 1, appId: "app_1", mode, clockOffsetMs: 0 });
  }
}
