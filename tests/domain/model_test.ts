// Short runs of the model against `decide` and `merge`; the long ones are in model_long_test.ts.

import { testRuns } from "./model_runs.ts";

testRuns([1], 400);
