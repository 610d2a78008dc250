// Runs of `decide` and `merge` under the model's workload: every answer is as the model predicts, and the books balance
// after every step. `model_test.ts` makes short runs, `model_long_test.ts` long ones.

import assert from "node:assert/strict";
import { DecideSystem } from "./decide_system.ts";
import { catalogs, offers } from "../model/catalogs.ts";
import type { CatalogDocument } from "../model/document.ts";
import { drive, type Webhooks } from "../model/drive.ts";
import { moneyCatalogs } from "../model/money_catalogs.ts";
import { Workload } from "../model/workload.ts";

/** What one run is made of. */
interface Run {
  readonly catalog: CatalogDocument;
  readonly seed: number;
  readonly steps: number;
}

/** What happens on the way of a run. */
interface How {
  readonly merges?: boolean;
  readonly stripe?: boolean;
  readonly runs?: boolean;
  readonly trees?: boolean;
  readonly reloadEvery?: number;
  readonly reprices?: boolean;
}

/** A kind of run, by the sentence that it proves. */
const RUNS: Readonly<Record<string, (run: Run) => Promise<void> | void>> = {
  "decide answers as the model predicts, with balanced books": async (run) => {
    const system = await answersAsPredicted(run);
    assert.ok(system.auditor.counters.size > 5);
  },
  "a state that is loaded again answers like a state that stayed in memory": async (run) => {
    await answersAsPredicted(run, { reloadEvery: 3, stripe: true });
  },
  "holds keep their prices and alerts fire once while catalogs change, users merge and states are loaded again":
    async (run) => {
      await answersAsPredicted(run, { merges: true, stripe: true, reloadEvery: 3, reprices: true });
    },
  "settling at each due moment gives what settling at the next call gives": (run) => lazyEqualsEager(run),
  "settling at each due moment gives what settling at the next call gives, at every level of trees": (run) =>
    lazyEqualsEager(run, true),
  "merges answer as the model predicts, with balanced books": async (run) => {
    const system = await answersAsPredicted(run, { merges: true, stripe: true });
    assert.ok(system.aliases.size > 0);
  },
  "merged users that are loaded again answer as those that stayed": async (run) => {
    await answersAsPredicted(run, { merges: true, reloadEvery: 3 });
  },
  "calls of runs answer as the model predicts, with balanced books": async (run) => {
    await answersAsPredicted(run, { runs: true });
  },
  "runs move with merged users, and are loaded again like runs that stayed": async (run) => {
    await answersAsPredicted(run, { runs: true, merges: true, reloadEvery: 3, reprices: true });
  },
  "trees answer as the model predicts, and every level adds up": async (run) => {
    await answersAsPredicted(run, { trees: true, stripe: true });
  },
  "trees whose users merge, are loaded again and get other prices answer as the model predicts": async (
    run,
  ) => {
    await answersAsPredicted(run, {
      trees: true,
      merges: true,
      stripe: true,
      reloadEvery: 3,
      reprices: true,
    });
  },
};

/** Ways of a run on the catalog of what plans offer beside quotas. */
const OFFERED: readonly How[] = [
  { stripe: true },
  { merges: true, stripe: true, reloadEvery: 3, reprices: true },
  { trees: true, merges: true, stripe: true },
];

/** Ways of a run on each catalog of how a product earns. */
const EARNED: readonly How[] = [
  { stripe: true, runs: true, reloadEvery: 3, reprices: true },
  { merges: true, stripe: true },
  { trees: true, reprices: true },
];

/** Registers a test for each kind of run, over every catalog and with each of these seeds. */
export function testRuns(seeds: readonly number[], steps: number): void {
  for (const [sentence, run] of Object.entries(RUNS)) {
    Deno.test(`${sentence}, over ${steps} steps`, async () => {
      for (const [name, catalog] of Object.entries(catalogs)) {
        for (const seed of seeds) {
          try {
            await run({ catalog, seed, steps });
          } catch (error) {
            throw new Error(`catalog "${name}", seed ${seed}`, { cause: error });
          }
        }
      }
    });
  }
  for (const [name, catalog] of Object.entries(moneyCatalogs)) {
    Deno.test(`the money of the catalog "${name}" is as the model predicts, over ${steps} steps`, async () => {
      for (const seed of seeds) {
        for (const how of EARNED) await answersAsPredicted({ catalog, seed, steps }, how);
      }
    });
  }
  Deno.test(`what plans offer beside quotas answers as the model predicts, over ${steps} steps`, async () => {
    for (const seed of seeds) {
      for (const how of OFFERED) await answersAsPredicted({ catalog: offers, seed, steps }, how);
      for (const trees of [false, true]) lazyEqualsEager({ catalog: offers, seed, steps }, trees);
    }
  });
}

async function answersAsPredicted(
  { catalog, seed, steps }: Run,
  how: How = {},
): Promise<DecideSystem> {
  const system = new DecideSystem({ catalog, ...how });
  const { merges = false, stripe = false, trees = false, runs = false, reprices = false } = how;
  const webhooks = webhooksOf(system);
  await drive({
    catalog,
    seed,
    steps,
    merges,
    stripe,
    runs,
    trees,
    webhooks,
    send: (request, nowMs) => system.send(request, nowMs),
    ...(reprices ? { apply: (document) => system.apply(document) } : {}),
  });
  return system;
}

/** The webhooks of a system made of the pure domain. */
export function webhooksOf(system: DecideSystem): Webhooks {
  let seen = 0;
  return {
    every: 1,
    settle: (nowMs) => system.settleEagerly(nowMs),
    listen(listeners) {
      system.listeners = listeners;
    },
    recorded() {
      const rows = system.messages.slice(seen);
      seen = system.messages.length;
      return rows.map(({ webhookId, body }) => ({ webhookId, ...JSON.parse(body) }));
    },
  };
}

/** Whether what is due is settled at its moment or at the next call makes no visible difference. */
function lazyEqualsEager({ catalog, seed, steps }: Run, trees = false): void {
  const lazy = new DecideSystem({ catalog, trees });
  const eager = new DecideSystem({ catalog, trees, eager: true });
  // In trees ids grow over all users, so those of what fell due show when it was settled.
  const plain = (value: unknown) => trees ? withoutIdsOfDue(value) : value;
  for (const system of [lazy, eager]) system.listeners = [{ webhookId: "whk_1", events: ["*"] }];
  const workload = new Workload({ catalog, seed, stripe: true, runs: true, trees });
  for (let index = 0; index < steps; index++) {
    const step = workload.next();
    // A cursor is an id of the one that made it.
    if (trees) delete step.request.input["cursor"];
    const late = lazy.send(structuredClone(step.request), workload.nowMs);
    const prompt = eager.send(structuredClone(step.request), workload.nowMs);
    assert.deepEqual(plain(prompt), plain(late), `step ${index}`);
    workload.observe(step, late);
  }
  lazy.settleEagerly(workload.nowMs);
  eager.settleEagerly(workload.nowMs);
  assert.deepEqual(plain(booksOf(eager)), plain(booksOf(lazy)));
}

/** The value with all ids of history, ledger rows and messages alike. */
function withoutIdsOfDue(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll(/\b(sbe|cle|whm)_\w+/g, "$1");
  if (value instanceof Map) return new Map([...value].map(([key, each]) => [key, withoutIdsOfDue(each)]));
  if (Array.isArray(value)) return value.map(withoutIdsOfDue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutIdsOfDue(each)]));
}

/** Everything that was written, without the marks that say when to look next. */
function booksOf(system: DecideSystem) {
  return {
    counters: system.auditor.counters,
    reservations: system.auditor.reservations,
    events: system.events.map(({ id }) => id).sort(),
    history: system.history,
    operations: system.operations,
    entitlements: [...system.states.values()].map(({ user }) => user.entitlement),
    subscriptions: [...system.states.values()].map(({ subscriptions }) => subscriptions),
    messages: Map.groupBy(
      system.messages.map(({ id, userKey, body }) => ({ id, userKey, body })),
      ({ userKey }) => userKey,
    ),
  };
}
