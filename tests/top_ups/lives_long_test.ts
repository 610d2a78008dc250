// The lives of lives_test.ts, many of them.

import { far } from "../support/depth.ts";
import { runLives } from "./run_lives.ts";

Deno.test("thousands of lives: every top-up is paid once and granted once, or neither", async () => {
  await runLives(1_000, far(2_000));
});
