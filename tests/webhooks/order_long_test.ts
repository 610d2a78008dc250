// Long runs of the property of deliveries, on whichever store the tests run.

import { testOrder } from "./order_runs.ts";

for (let seed = 100; seed < 120; seed++) testOrder(seed, 150);
