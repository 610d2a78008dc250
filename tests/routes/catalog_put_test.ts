// Putting a catalog: what GET answered can be put back, a catalog that moved is refused, and changes say what they are
// of.

import { changedLimits } from "../support/limits.ts";
import assert from "node:assert/strict";
import { REGISTRY_LIMITS } from "../../src/process/limits.ts";
import { ADMIN_TOKEN, type Answer, send } from "../support/test_service.ts";
import { assertRefused, CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

function catalogOf(appId: string, method: string, body?: unknown, query = ""): Promise<Answer> {
  const path = `/api/admin/v1/apps/${appId}/catalog${query}`;
  return send(service.http, method, path, body, { key: ADMIN_TOKEN });
}

Deno.test("what GET answered can be put back, with the address of a schema", async () => {
  const { appId } = await service.newApp(CATALOG);
  const shown = await dataOf(catalogOf(appId, "GET"));
  const back = { $schema: "./catalog.schema.json", ...shown };
  assert.deepEqual(await dataOf(catalogOf(appId, "PUT", back)), { version: 1, changes: [] });
});

Deno.test("a repeated PUT or promotion is answered once every member has what the call before may have applied", async () => {
  const { appId } = await service.newApp(CATALOG);
  const promote = () =>
    send(service.http, "POST", `/api/admin/v1/apps/${appId}/catalog/promote`, {}, { key: ADMIN_TOKEN });
  const repeated = [
    () => catalogOf(appId, "PUT", CATALOG),
    () => catalogOf(appId, "PUT", { ...CATALOG, expectedVersion: 7 }),
    promote,
  ];
  const { database } = service.store;
  await database.query(
    `insert into members (term, share, fingerprints, registry_version, started_at, seen_at)
     values (999999, 0, '{}', 0, now(), now())`,
  );
  try {
    using _limits = changedLimits(REGISTRY_LIMITS, { confirmMs: 0 });
    for (const again of repeated) {
      const { message } = assertRefused(await again(), 503, "unavailable");
      assert.match(message, /not yet confirmed/);
    }
  } finally {
    await database.query("delete from members where term = 999999");
  }
  assertRefused(await promote(), 404, "not_found");
  assert.deepEqual(await dataOf(catalogOf(appId, "PUT", CATALOG)), { version: 1, changes: [] });
});

Deno.test("a catalog that moved since it was read is refused", async () => {
  const { appId } = await service.newApp(CATALOG);
  const changed = { ...CATALOG, settings: { ...CATALOG.settings, promptLogging: true } };
  for (const query of ["", "?dryRun=true"]) {
    const answer = await catalogOf(appId, "PUT", { ...changed, expectedVersion: 7 }, query);
    const { message } = assertRefused(answer, 409, "catalog_in_use");
    assert.match(message, /Catalog changed.*expectedVersion/);
  }
  const applied = await dataOf(catalogOf(appId, "PUT", { ...changed, expectedVersion: 1 }));
  assert.deepEqual(applied, {
    version: 2,
    changes: [{ path: "settings.promptLogging", change: "changed", id: "settings" }],
  });
  assertRefused(
    await catalogOf(appId, "PUT", { ...CATALOG, expectedVersion: 1 }),
    409,
    "catalog_in_use",
  );
  const wrong = assertRefused(
    await catalogOf(appId, "PUT", { ...CATALOG, expectedVersion: "1" }),
    400,
    "invalid_request",
  );
  assert.equal(wrong.details[0].path, "expectedVersion");
});

Deno.test("a change has the id of the innermost thing around it", async () => {
  const { appId } = await service.newApp(CATALOG);
  const [pro, team] = CATALOG.plans;
  const [images, ...others] = pro?.limits ?? [];
  const plans = [{ ...pro, limits: [{ ...images, quota: 7 }, ...others], name: "Pro 2" }, {
    ...team,
    id: "plan_x",
  }];
  const { changes } = await dataOf(catalogOf(appId, "PUT", { ...CATALOG, plans }, "?dryRun=true"));
  const found = changes.map(({ path, change, id }: Record<string, string>) => `${path} ${change} ${id}`);
  assert.deepEqual(found.sort(), [
    "plans[0].limits[0].quota changed lg_images",
    "plans[0].name changed plan_pro",
    "plans[1] added plan_x",
    "plans[1] removed plan_team",
  ]);
});
