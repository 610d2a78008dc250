// Long runs of the model against `decide` and `merge`.

import { seedsFrom } from "../support/depth.ts";
import { testRuns } from "./model_runs.ts";

testRuns(seedsFrom(2, 1), 500);
