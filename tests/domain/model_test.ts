// Short runs of the model against `decide` and `merge`; the long ones are in model_long_test.ts.

import assert from "node:assert/strict";
import { catalogs } from "../model/catalogs.ts";
import type { ModelRequest } from "../model/document.ts";
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

Deno.test("a workload meets every way in which a call is priced and explained, and changes of prices", async () => {
  const met = new Map<string, number>();
  for (const catalog of Object.values(catalogs)) {
    const system = new DecideSystem({ catalog });
    const send = (request: ModelRequest, nowMs: number) => system.send(request, nowMs);
    const outcomes = await drive({
      catalog,
      seed: 2,
      steps: 1000,
      send,
      apply: (next) => system.apply(next),
    });
    for (const [name, times] of outcomes) met.set(name, (met.get(name) ?? 0) + times);
  }
  const wanted = [
    ...["per_token", "per_call", "per_unit", "unpriced"].map((mode) =>
      `prices: a commit with usage, ${mode}`
    ),
    "prices: a hold keeps prices that have changed",
    "prices: an unpriced call is refused",
    "commit unpriced_model",
    "track unpriced_model",
    ...["matched", "event", "holds of a group"].map((what) => `explain: ${what}`),
  ];
  assert.deepEqual(wanted.filter((name) => !met.get(name)), []);
});
