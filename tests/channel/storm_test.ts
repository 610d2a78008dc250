// Storms over channels, a few of them. The long form has many.

import { storm } from "./storm.ts";

Deno.test("in a storm no call runs twice, none that did not run ran, and channels come back", async () => {
  for (let seed = 1; seed <= 4; seed++) await storm(seed);
});
