// Short runs of the property of deliveries; order_long_test.ts goes further.

import { testOrder } from "./order_runs.ts";

for (const seed of [1, 2]) testOrder(seed, 45);
