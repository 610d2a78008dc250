// Short runs of the model against the whole service; the long ones are in model_long_test.ts.

import { assertMet, crash, passivate, run, runAll, sweep } from "./model_runs.ts";

Deno.test("every answer and every message is as the model predicts, whatever happens between two calls", async () => {
  const troubles = [[0.03, crash], [0.04, passivate], [0.04, sweep]] as const;
  const outcomes = await runAll({
    seed: 302,
    steps: 80,
    troubles,
    merges: true,
    stripe: true,
    reprices: true,
  });
  assertMet(
    outcomes,
    "commit recharged",
    "alias merged",
    "track matched",
    "grant 200",
    "mirror 200",
    "paidGrant 200",
    "refund 200",
    "messages: usage.threshold_reached",
    "messages: user.merged",
  );
});

Deno.test("every answer of users in trees is as the model predicts, whatever happens between two calls", async () => {
  const troubles = [[0.03, crash], [0.06, passivate], [0.04, sweep]] as const;
  const outcomes = await runAll({
    seed: 301,
    steps: 130,
    troubles,
    merges: true,
    trees: true,
    reprices: true,
  });
  assertMet(
    outcomes,
    "levels: a part is held",
    "levels: a part lapses",
    "levels: a late commit at every level",
    "levels: parts of a hold meet",
    "levels: a part settles where the user no longer is",
    "levels: refused above alone",
    "tree: a parent becomes an alias",
    "messages: caused by a user below",
    "shares: alone refuse",
    "shares: refuse too",
    "shares: a member's own limit",
    "shares: cleared as a plan is entered",
    "shares: a hold from before a reset settles",
  );
});

Deno.test("calls of runs are answered as the model predicts, whatever happens between two calls", async () => {
  const troubles = [[0.03, crash], [0.08, passivate], [0.04, sweep]] as const;
  const outcomes = await runAll({ seed: 304, steps: 150, troubles, merges: true, runs: true });
  assertMet(outcomes, "reserve run_limit_reached", "reserve run_ended", "merges: runs of from");
});

Deno.test("the cap on operations refuses reserve and track as the model predicts", async () => {
  const options = { catalog: "ladder", seed: 401, steps: 200, mode: "test", operationCap: 15 } as const;
  const outcomes = await run({ ...options, troubles: [[0.02, crash]] });
  assertMet(outcomes, "reserve test_quota_exceeded", "track test_quota_exceeded");
});
