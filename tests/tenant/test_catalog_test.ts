// Which catalog is in force in which mode, and that numbers of price rows mean the same in both.

import assert from "node:assert/strict";
import type { Mode } from "../../actors/port.ts";
import type { AppliedCatalog } from "../../src/storage/rows/registry_rows.ts";
import { hasTestCatalog, Registry } from "../../src/tenant/registry.ts";

const APP = {
  appId: "app_1",
  workspaceId: "ws_1",
  name: "App",
  identitySecret: "secret",
  oldIdentitySecrets: [],
  createdAt: 0,
};
const REALMS = (["live", "test"] as const).map((mode, place) => ({ realm: 1 + place, appId: "app_1", mode }));

const row = (id: string) => ({ id, modality: "image", amountMode: "per_call" }) as const;
const ROWS = ["a", "b", "c", "d"].map(row);

/** A catalog with the last of so many price rows in force. */
function catalog(mode: Mode, version: number, rows: number, removed = false): AppliedCatalog {
  const priceRows = ROWS.slice(0, rows);
  const document = removed ? {} : { models: priceRows.slice(-1) };
  return { appId: "app_1", mode, version, document, planOrder: [], priceRows, rateRows: [], removed };
}

/** Changes one after another, and then version and number of price rows in live and in test mode. */
const CASES: readonly (readonly [string, readonly AppliedCatalog[][], readonly [string, string]])[] = [
  ["none", [], ["0: 0", "0: 0"]],
  ["one for both", [[catalog("live", 1, 1)]], ["1: 1", "1: 1"]],
  ["one of test mode alone", [[catalog("test", 1, 1)]], ["0: 0", "1: 1"]],
  ["its own beside that of live mode", [[catalog("live", 1, 1)], [catalog("test", 2, 2)]], ["1: 1", "2: 2"]],
  [
    "live mode changes alone",
    [[catalog("live", 1, 1)], [catalog("test", 2, 2)], [catalog("live", 3, 3)]],
    ["3: 3", "2: 2"],
  ],
  [
    "a dropped one leaves its numbers",
    [[catalog("live", 1, 1)], [catalog("test", 2, 2, true)]],
    ["1: 1", "1: 2"],
  ],
  [
    "the next one of live mode has them too",
    [[catalog("live", 1, 1)], [catalog("test", 2, 2, true)], [catalog("live", 3, 3)]],
    ["3: 3", "3: 3"],
  ],
  [
    "a promoted one",
    [[catalog("live", 1, 1), catalog("test", 2, 2)], [catalog("live", 3, 2), catalog("test", 2, 2, true)]],
    ["3: 2", "3: 2"],
  ],
];

for (const [name, changes, expected] of CASES) {
  Deno.test(`each mode has its catalog: ${name}`, () => {
    const registry = new Registry({ now: () => 0 });
    registry.admit({ apps: [APP], realms: REALMS }, 1);
    for (const [place, catalogs] of changes.entries()) registry.admit({ catalogs }, 2 + place);
    const app = registry.apps.get("app_1");
    assert.ok(app !== undefined);
    const { live, test } = app.realms;
    const shown = ({ catalog: { version, priceRows } }: typeof live) => `${version}: ${priceRows.length}`;
    assert.deepEqual([shown(live), shown(test)], expected);
    const isOwn = hasTestCatalog(app);
    assert.equal(isOwn, test.applied !== null && test.applied.mode === "test");
    // Rows of one number are of one model in every catalog.
    for (const { catalog: { priceRows } } of [live, test]) {
      assert.deepEqual(priceRows.map(({ id }) => id), ROWS.slice(0, priceRows.length).map(({ id }) => id));
    }
  });
}
