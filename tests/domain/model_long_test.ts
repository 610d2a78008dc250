// Long runs of the model against `decide` and `merge`.

import { far } from "../support/depth.ts";
import { testRuns } from "./model_runs.ts";

testRuns([4], far(300, 4_000));
