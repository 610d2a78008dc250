// Catalogs of an app, with the admin token.

import { failure, success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import * as contract from "../contract/catalogs.ts";
import { timeText } from "../contract/fields.ts";
import type { AdminWorld } from "../../src/tenant/admin.ts";
import { applyCatalog, dropTestCatalog, promoteCatalog } from "../../src/tenant/catalogs.ts";
import { hasTestCatalog } from "../../src/tenant/registry.ts";
import { listVersions, readVersionDocument } from "../../src/storage/stores/catalog_store.ts";
import { appOf, unknown } from "./admin.ts";

const endpoint = keylessEndpointsOn<AdminWorld>();

/** Catalogs in force, and their versions. */
export const CATALOG_ENDPOINTS: readonly KeylessEndpoint<AdminWorld>[] = [
  endpoint(contract.getCatalog, ({ world, input }) => {
    const app = appOf(world, input.appId);
    const { applied } = app.realms[input.mode ?? "live"];
    const testOnly = input.mode === "test" ? { testOnly: hasTestCatalog(app) } : {};
    return success({ version: applied?.version ?? 0, ...testOnly, ...applied?.document });
  }),
  endpoint(
    contract.applyCatalog,
    async ({ world, who, input: { appId, dryRun, mode = "live", catalog } }) => {
      const { document, expectedVersion } = catalog;
      const options = { mode, isDryRun: dryRun === "true", expectedVersion, who };
      const result = await applyCatalog(world, appOf(world, appId), document, options);
      return "code" in result ? failure(result) : success(result);
    },
  ),
  endpoint(contract.dropCatalog, async ({ world, input }) => {
    const result = await dropTestCatalog(world, appOf(world, input.appId));
    return "code" in result ? failure(result) : success(result);
  }),
  endpoint(contract.promoteCatalog, async ({ world, who, input: { appId, expectedVersion = null } }) => {
    const result = await promoteCatalog(world, appOf(world, appId), { expectedVersion, who });
    return "code" in result ? failure(result) : success(result);
  }),
  endpoint(contract.listCatalogVersions, async ({ world, input }) => {
    const versions = await listVersions(world.database, appOf(world, input.appId).record.appId);
    return success(
      versions.map(({ version, at, who, changes, mode }) => ({
        version,
        at: timeText(at),
        who,
        changes: [...changes],
        mode,
      })),
    );
  }),
  endpoint(contract.getCatalogVersion, async ({ world, input: { appId, version } }) => {
    const document = await readVersionDocument(world.database, appOf(world, appId).record.appId, version);
    return success({ version, ...document ?? unknown("Version") });
  }),
];
