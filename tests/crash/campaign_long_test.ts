// A short campaign as a test: moments that chance alone rarely meets. On a server commits are cut in their middle, their
// answers are lost on the way, and a server of our own is killed; the embedded store is killed while it writes its files.

import assert from "node:assert/strict";
import { type CampaignOptions, type CampaignReport, runCampaign } from "./campaign.ts";
import { far, isDeep, roundsOf } from "../support/depth.ts";
import { testServerUrl } from "../support/test_store.ts";

/** Far beyond what a campaign needs, on a busy machine too. */
const LIMIT_MS = 600_000;
const FAULTS = roundsOf(2);
/** A deep campaign chooses as many as it likes. */
const MEMBERS = isDeep ? {} : { members: 2 };

async function run(
  options: Pick<CampaignOptions, "store" | "server" | "faults" | "isWired" | "databases" | "members">,
  kinds: readonly string[],
): Promise<CampaignReport> {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const untilMs = performance.now() + LIMIT_MS;
  const pace = isDeep ? "hard" : "calm";
  const all = { ...options, kinds: new Set(kinds), seed, untilMs, pace, progress: () => {} } as const;
  const report = await runCampaign(all, new AbortController().signal);
  assert.equal(report.failure, null, JSON.stringify(report, null, 2));
  return report;
}

const isServer = testServerUrl() !== null;

Deno.test({
  name: "commits cut in their middle and commits without their answers leave every earlier answer true",
  ignore: !isServer,
  fn: async () => {
    const { faults } = await run(
      { store: "postgres", server: testServerUrl(), faults: FAULTS, isWired: true, ...MEMBERS },
      ["commit", "answers"],
    );
    assert.equal(faults, FAULTS);
  },
});

Deno.test({
  name: "the last drains come undone with the server, and every answer stands",
  ignore: !isServer,
  fn: async () => {
    const { faults } = await run({ store: "postgres", server: null, faults: 1, ...MEMBERS }, ["tail"]);
    assert.equal(faults, 1);
  },
});

Deno.test({
  name:
    "what is done to one of two databases leaves every call to the other answered, and none of its rows there",
  ignore: !isServer,
  fn: async () => {
    const { faults } = await run(
      {
        ...{ store: "postgres", server: testServerUrl(), faults: far(1), isWired: true },
        ...{ databases: 2, members: 2 },
      },
      ["refuse", "cut", "silent"],
    );
    assert.equal(faults, far(1));
  },
});

Deno.test("kill -9 of the embedded store while it writes its files leaves every answer standing", async () => {
  const { faults } = await run({ store: "embedded", server: null, faults: 1 }, ["disk"]);
  assert.equal(faults, 1);
});
