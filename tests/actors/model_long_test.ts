// Long runs of the model against the whole service.

import assert from "node:assert/strict";
import { far } from "../support/depth.ts";
import { assertMet, crash, passivate, run, runAll, sweep } from "./model_runs.ts";

const STEPS = far(200, 2_400);

Deno.test("every answer and every message is as the model predicts", async () => {
  const outcomes = await runAll({ seed: 109, steps: STEPS });
  assertMet(outcomes, "commit recharged", "commit overflow", "users promoted", "users reactivated");
  const messages = ["usage.threshold_reached", "credits.low", "credits.expired", "reservation.expired"];
  assertMet(outcomes, ...messages.map((type) => `messages: ${type}`), "messages: no webhook wants it");
});

Deno.test("every answer is as the model predicts while users are merged", async () => {
  const outcomes = await runAll({ seed: 111, steps: far(300), merges: true, stripe: true });
  assert.ok((outcomes.get("alias merged") ?? 0) > 10);
});

Deno.test("holds keep their prices over catalogs, crashes and merges", async () => {
  const troubles = [[0.02, crash], [0.03, passivate], [0.02, sweep]] as const;
  const outcomes = await runAll({ seed: 107, steps: STEPS, troubles, merges: true, reprices: true });
  assertMet(
    outcomes,
    "prices: a hold keeps prices that have changed",
    "prices: an unpriced call is refused",
    "commit unpriced_model",
    "track unpriced_model",
    "track limit_reached",
    "commit invalid_request",
  );
});

Deno.test("no answer changes by a crash anywhere, nor by passivating and sweeping", async () => {
  const troubles = [[0.02, crash], [0.06, passivate], [0.04, sweep]] as const;
  for (const how of [{ stripe: true }, { trees: true }, { runs: true }]) {
    await runAll({ seed: 301, steps: far(80), troubles, merges: true, ...how });
  }
});

Deno.test("the cap on operations refuses reserve and track as the model predicts, also after a crash", async () => {
  const troubles = [[0.02, crash]] as const;
  for (const mode of ["live", "test"] as const) {
    const options = {
      catalog: "ladder",
      seed: 402,
      steps: far(200),
      mode,
      operationCap: 20,
    } as const;
    const outcomes = await run({ ...options, troubles });
    const code = mode === "live" ? "workspace_limit_reached" : "test_quota_exceeded";
    assertMet(outcomes, `reserve ${code}`, `track ${code}`);
  }
});
