// Short runs of the model against `decide` and `merge`; the long ones are in model_long_test.ts.

import assert from "node:assert/strict";
import { catalogs } from "../model/catalogs.ts";
import { drive } from "../model/drive.ts";
import { DecideSystem } from "./decide_system.ts";
import { testRuns } from "./model_runs.ts";

testRuns([1], 400);

Deno.test("a system that prices holds by the catalog in force, not by their own row, is found out", async () => {
  const catalog = catalogs.tiny;
  const system = new DecideSystem({ catalog });
  const run = drive({
    catalog,
    seed: 1,
    steps: 400,
    send: (request, nowMs) => system.send(request, nowMs),
    apply(document) {
      system.apply(document);
      const { models, priceRows } = system.catalog;
      system.catalog = { ...system.catalog, priceRows: priceRows.map((row) => models.get(row.id) ?? row) };
    },
  });
  await assert.rejects(run, /\(commit\): the system and the model differ\n.*(cents|current)/);
});
