// What the simulated database holds before the first process starts: one workspace, one app, its keys and catalog.

import type { Mode } from "../../actors/port.ts";
import { hashOf } from "../../src/secrets/hash.ts";
import type { CatalogDocument } from "../model/document.ts";
import type { SimTables } from "./database/tables.ts";
import { secretKeyOf } from "./process.ts";

/** What the one workspace may do in the one mode that is used; null = no limit. */
export interface Caps {
  readonly mode: Mode;
  readonly operationCap: number | null;
  readonly testCreditBalanceCap: number | null;
}

/** Writes the app. */
export function seedApp(tables: SimTables, catalog: CatalogDocument, createdAt: number, caps: Caps): void {
  const { mode, operationCap, testCreditBalanceCap } = caps;
  tables.put("workspaces", "ws_1", {
    workspaceId: "ws_1",
    name: "Simulated",
    operationCap: mode === "live" ? operationCap : null,
    testOperationCap: mode === "test" ? operationCap : null,
    aiBudgetCents: null,
    testCreditBalanceCap,
  });
  tables.put("apps", "app_1", {
    appId: "app_1",
    workspaceId: "ws_1",
    name: "Simulated",
    identitySecret: "identity-secret",
    oldIdentitySecrets: "[]",
    createdAt,
  });
  tables.put("keys", "key_1", {
    keyId: "key_1",
    appId: "app_1",
    class: "secret",
    mode,
    hash: hashOf(secretKeyOf(mode)),
    prefix: secretKeyOf(mode).slice(0, 12),
    createdAt,
    revokedAt: null,
  });
  tables.put("catalogs", "app_1", {
    appId: "app_1",
    version: 1,
    document: JSON.stringify(catalog),
    planOrder: JSON.stringify(catalog.plans.map(({ id }) => id)),
    priceRows: JSON.stringify(catalog.models ?? []),
  });
  for (const [index, each] of ["live", "test"].entries()) {
    tables.put("realms", String(index + 1), {
      realm: index + 1,
      appId: "app_1",
      mode: each,
      clockOffsetMs: 0,
    });
  }
}
