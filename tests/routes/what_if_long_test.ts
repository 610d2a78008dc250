// What if, over more workloads: under the catalog in force each counts what the service counted.

import assert from "node:assert/strict";
import { seedsFrom } from "../support/depth.ts";
import { serviceOfFile } from "./support.ts";
import { countBoth } from "./what_if_workload.ts";

const service = serviceOfFile();

Deno.test("under the catalog in force random workloads count what the service counted", async () => {
  let refused = 0;
  for (const seed of seedsFrom(2, 8)) {
    const { blocked, folded, counted } = await countBoth(service, seed, 400);
    assert.deepEqual(folded, counted, `seed ${seed}`);
    refused += blocked;
  }
  assert.ok(refused > 80, `${refused}`);
});
