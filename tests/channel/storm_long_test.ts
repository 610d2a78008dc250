// Storms over channels, many of them.

import { storm } from "./storm.ts";

for (let seed = 1_000; seed < 1_150; seed++) {
  Deno.test(`in a storm no call runs twice, and none that did not run ran: seed ${seed}`, () => storm(seed));
}
