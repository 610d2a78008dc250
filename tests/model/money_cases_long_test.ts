// Workloads over the catalogs of money meet every case of their rules.

import assert from "node:assert/strict";
import { unmetBy } from "./drive.ts";
import { moneyCatalogs } from "./money_catalogs.ts";
import { shadow } from "./shadow.ts";

type Name = keyof typeof moneyCatalogs;

/** Cases that a workload over a catalog must meet. */
const CASES: Record<Name, string[]> = {
  rated: [
    ...["rated", "unrated, and covered", "unrated", "a rated call that costs nothing"].map((what) =>
      `rates: ${what}`
    ),
    ...["reserve", "track", "commit", "canUse"].map((op) => `${op} unrated_event`),
  ],
  selling: [
    ...["overage_started", "cap_reached", "overage"].map((what) => `messages: usage.${what}`),
    ...[
      "held",
      "settled",
      "settled after its window",
      "sold by a commit",
      "a commit gives some back",
      "a commit past the most that is sold",
      "left behind by carry",
      "a total of several hours",
      "a cap is set",
      "a cap is set below what is sold",
    ].map((what) => `overage: ${what}`),
  ],
  including: [
    "begun",
    "use is carried",
    "more seats",
    "fewer seats take nothing",
    "left within its window",
    "found again",
    "a hold follows",
    "rolled over",
    "a rollover is cut",
    "a refund to a rollover",
    "nothing in a later window of a trial",
  ].map((what) => `includes: ${what}`),
};

for (const [name, cases] of Object.entries(CASES) as [Name, string[]][]) {
  Deno.test(`workloads over the catalog "${name}" meet every case`, async () => {
    const catalog = moneyCatalogs[name];
    const runs = function* () {
      for (const how of [{}, { merges: true }]) {
        for (const seed of [1, 2]) yield { catalog, seed, steps: 1200, ...how, send: shadow(catalog) };
      }
    };
    assert.deepEqual(await unmetBy(runs(), cases), []);
  });
}
