// Lives at a Stripe where everything goes wrong that may: never two payments for a top-up, never a payment without its grant,
// never a grant without its payment.

import assert from "node:assert/strict";
import { runLives } from "./run_lives.ts";

Deno.test("whatever is lost, repeated, late or killed, every top-up is paid once and granted once, or neither", async () => {
  const met = await runLives(1, 500);
  for (const what of ["granted", "refunded", "failed", "canceled", "crash", "new key", "orphan"]) {
    assert.ok((met[what] ?? 0) > 5, `${what}: ${met[what] ?? 0} times`);
  }
});
