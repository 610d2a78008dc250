// The bugs that are planted in worlds of several nodes: in a file of its own, to run beside simulation_long_test.ts.

import { PLANTED } from "./planted/bugs.ts";
import { testFinds } from "./planted/hunt.ts";

for (const bug of PLANTED) if (bug.nodes !== undefined) testFinds(bug);
