// Long runs of the property of deliveries, on whichever store the tests run.

import { seedsFrom } from "../support/depth.ts";
import { testOrder } from "./order_runs.ts";

for (const seed of seedsFrom(100, 1)) testOrder(seed, 150);
