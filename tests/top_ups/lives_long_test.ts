// The lives of lives_test.ts, many of them.

import { runLives } from "./run_lives.ts";

Deno.test("ten thousand lives: every top-up is paid once and granted once, or neither", async () => {
  await runLives(1_000, 10_000);
});
