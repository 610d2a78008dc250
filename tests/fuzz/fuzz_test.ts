// A short fuzzing with a fixed seed in every run of the suite; `deno task fuzz` searches on with others.

import assert from "node:assert/strict";
import { fuzz } from "./run.ts";
import { curlOf, routesOf } from "./requests.ts";
import { openScene } from "./scene.ts";

const SEED = 20_261_121;
const BURSTS = 3;

Deno.test("generated requests to every route find no 500, no leak, no drift, and no trace of a refusal", async () => {
  const scene = await openScene();
  try {
    const report = await fuzz(scene, SEED, ({ bursts }) => bursts < BURSTS);
    const found = report.findings.map(({ text, request, answer }) =>
      `${text}\n${request === null ? "" : curlOf(request, null)}\n${answer?.text ?? ""}`
    );
    assert.deepEqual(found, []);
    // A generator that only made refusals would find nothing: most routes must have been passed.
    const names = routesOf(scene).filter(({ method }) => method !== "OPTIONS")
      .map(({ method, path }) => `${method} ${path}`);
    const missed = names.filter((name) => !report.succeeded.has(name));
    assert.ok(missed.length < names.length / 3, `Never answered with success: ${missed.join(", ")}`);
    assert.ok((report.statuses.get(503) ?? 0) < report.requests / 20);
  } finally {
    await scene.close();
  }
});
