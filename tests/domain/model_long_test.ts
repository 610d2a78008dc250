// Long runs of the model against `decide` and `merge`.

import { isDeep } from "../support/depth.ts";
import { testRuns } from "./model_runs.ts";

testRuns(isDeep ? [1, 2, 3] : [2], isDeep ? 1_500 : 1_000);
