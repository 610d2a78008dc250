// Long runs of the model against `decide` and `merge`, over several seeds.

import { testRuns } from "./model_runs.ts";

testRuns([1, 2, 3], 1_500);
