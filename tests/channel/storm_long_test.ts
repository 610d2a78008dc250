// Storms over channels, many of them.

import { seedsFrom } from "../support/depth.ts";
import { storm } from "./storm.ts";

for (const seed of seedsFrom(1_000, 20)) {
  Deno.test(`in a storm no call runs twice, and none that did not run ran: seed ${seed}`, () => storm(seed));
}
