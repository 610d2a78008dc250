// The workload with merges, tried on the model itself behind made-up ids: every case of a merge is met, users come
// and go, and a system that errs in a merge is found out.

import assert from "node:assert/strict";
import { catalogs } from "./catalogs.ts";
import type { ModelReply, ModelRequest, WireData } from "./document.ts";
import { drive, type Outcomes, unmetBy } from "./drive.ts";
import { isDeep, seedsFrom } from "../support/depth.ts";
import { shadow } from "./shadow.ts";

/** Outcomes of merges, with how often a run of 2,000 steps over all catalogs must meet each. */
const OUTCOMES = {
  "merges: open holds on from": 5,
  "merges: holds on credits of from": 3,
  "merges: summed, equal windows": 2,
  "merges: summed, different windows": 4,
  "merges: summed, past windows": 2,
  "merges: carried": 8,
  "merges: unpaired": 4,
  "merges: default ended": 30,
  "merges: two defaults kept": 1,
  "merges: paid duplicates kept": 15,
  "merges: several rows of one key": 40,
  "merges: dedupe, plain": 8,
  "merges: dedupe, with overage": 2,
  "merges: dedupe, revoked": 1,
  "merges: dedupe, the survivor of to is expired": 2,
  "merges: dedupe, nothing left but not expired": 1,
  "merges: held part of a closed copy": 4,
  "merges: refund to a balance with overage": 1,
  "merges: repointed alias": 20,
  "merges: already merged": 20,
  "merges: conflict": 10,
  "merges: cycle": 15,
  "merges: late commit of a hold that lapsed before the merge": 8,
  "merges: promoted after a merge": 4,
  "alias after its dry run": 20,
  "alias alias_conflict": 4,
  "alias alias_cycle": 8,
  "alias skipped_consent_required": 10,
  "aliasBatch ok": 12,
  "aliasBatch alias_conflict": 2,
  "aliasBatch alias_cycle": 5,
  "aliasBatch invalid_request": 2,
  "customer duplicates": 15,
};

/** How many of the steps of those counts a run makes. */
const SHARE = isDeep ? 1 : 0.5;

Deno.test("a workload with merges meets every case of them, and equals itself by seed", async () => {
  const catalog = catalogs.tiny;
  const again = () => drive({ catalog, seed: 2, steps: 500, merges: true, send: shadow(catalog) });
  assert.deepEqual(await again(), await again());
  for (const seed of seedsFrom(3, 1)) {
    const met: Outcomes = new Map();
    for (const [name, catalog] of Object.entries(catalogs)) {
      const steps = 2000 * SHARE;
      const outcomes = await drive({ catalog, seed, steps, merges: true, send: shadow(catalog) });
      for (const [outcome, times] of outcomes) met.set(outcome, (met.get(outcome) ?? 0) + times);
      const merged = outcomes.get("merges: merged") ?? 0;
      assert.ok(merged >= 15 * SHARE && merged <= 45 * SHARE, `${name}, seed ${seed}: ${merged} merges`);
    }
    for (const [outcome, times] of Object.entries(OUTCOMES)) {
      const seen = met.get(outcome) ?? 0;
      assert.ok(seen >= times * SHARE, `seed ${seed}: "${outcome}" ${seen} times of ${times * SHARE}`);
    }
  }
});

Deno.test("with invalid requests every alias call is refused somewhere", async () => {
  const catalog = catalogs.ladder;
  const run = { catalog, seed: 1, steps: 4000, merges: true, invalid: true, send: shadow(catalog) };
  const wanted = ["alias", "aliasBatch", "customer"].map((op) => `${op} invalid_request`);
  assert.deepEqual(await unmetBy([run], wanted), []);
});

Deno.test("aliases are named as often as canonical ids", async () => {
  const catalog = catalogs.example;
  const honest = shadow(catalog);
  const canonical = new Map<string, string>();
  const named = { alias: 0, canonical: 0 };
  const send = (request: ModelRequest, nowMs: number) => {
    const { userId } = request.input;
    const reply = honest(request, nowMs);
    const { canonicalId, aliases = [] } = reply.data ?? {};
    if (request.op === "customer") {
      for (const alias of aliases as string[]) canonical.set(alias, String(canonicalId));
    } else if (canonical.has(String(userId))) named.alias += 1;
    else if ([...canonical.values()].includes(String(userId))) named.canonical += 1;
    return reply;
  };
  await drive({ catalog, seed: 5, steps: 2500, merges: true, send });
  assert.ok(named.alias > 150 && named.canonical > 150, JSON.stringify(named));
});

Deno.test("at the cap merges are refused, and a batch stops", async () => {
  for (const mode of ["live", "test"] as const) {
    const code = mode === "live" ? "workspace_limit_reached" : "test_quota_exceeded";
    const met: Outcomes = new Map();
    for (const [name, catalog] of Object.entries(catalogs)) {
      for (const seed of [10]) {
        const options = { mode, operationCap: 40 };
        const send = shadow(catalog, options);
        const outcomes = await drive({ catalog, seed, steps: 1200 * SHARE, merges: true, ...options, send });
        for (const [outcome, times] of outcomes) met.set(outcome, (met.get(outcome) ?? 0) + times);
        assert.ok((outcomes.get("merges: merged") ?? 0) > 0, name);
      }
    }
    const least = {
      "merges: cap reached at alias": 6,
      "merges: batch stopped by the cap": 1,
      [`alias ${code}`]: 6,
      [`aliasBatch ${code}`]: 6,
    };
    for (const [outcome, times] of Object.entries(least)) {
      const seen = met.get(outcome) ?? 0;
      assert.ok(seen >= times, `${mode}: "${outcome}" ${seen} times of ${times}`);
    }
  }
});

/** What a system does wrong, by the operation whose answer shows it. */
const FAULTS: Record<string, { op: string; spoil: (data: WireData) => void; found: RegExp }> = {
  "loses the aliases of an alias": {
    op: "customer",
    spoil: (data) => data["aliases"] = (data["aliases"] as string[]).slice(-2),
    found: /data.aliases\[\d+\]: expected/,
  },
  "bills a repeated call": {
    op: "alias",
    spoil: (data) => data["billableOperations"] = data["alreadyMerged"] ? 1 : data["billableOperations"],
    found: /billableOperations: expected 0, observed 1/,
  },
  "gives an old merge a new id": {
    op: "alias",
    spoil: (data) => data["mergeId"] = data["alreadyMerged"] && !data["dryRun"] ? "mrg_0" : data["mergeId"],
    found: /mergeId: expected/,
  },
  "shows an alias as the user": {
    op: "usage",
    spoil: (data) => data["userId"] = "user-4",
    found: /userId: expected/,
  },
};

for (const [name, { op, spoil, found }] of Object.entries(FAULTS)) {
  Deno.test(`a system that ${name} is found out`, async () => {
    const honest = shadow(catalogs.tiny);
    const send = (request: ModelRequest, nowMs: number): ModelReply => {
      const reply = honest(request, nowMs);
      if (request.op === op && reply.data) spoil(reply.data);
      return reply;
    };
    await assert.rejects(drive({ catalog: catalogs.tiny, seed: 3, steps: 2000, merges: true, send }), found);
  });
}
