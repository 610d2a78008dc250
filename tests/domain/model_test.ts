// Short runs of the model against `decide` and `merge`; the long ones are in model_long_test.ts.

import assert from "node:assert/strict";
import { catalogs, offers } from "../model/catalogs.ts";
import type { CatalogDocument, GroupPeriod, Input, ModelRequest } from "../model/document.ts";
import type { Recorded } from "../model/messages.ts";
import { drive, type DriveOptions, unmetBy } from "../model/drive.ts";
import { UserState } from "../../src/domain/state/user.ts";
import { DecideSystem } from "./decide_system.ts";
import { testRuns, webhooksOf } from "./model_runs.ts";
import { isOfProvider } from "./provider_calls.ts";

testRuns([2], 120);

/** A run of a system of its own. */
interface Run extends Omit<DriveOptions, "send" | "apply" | "webhooks"> {
  /** Whether catalogs of other prices are applied on the way. */
  readonly reprices?: boolean;
  /** Whether the messages are looked at too. */
  readonly listens?: boolean;
}

/** The same runs over each catalog. */
function overAll(run: Omit<Run, "catalog">, hows: readonly Partial<Run>[] = [{}]): Run[] {
  return Object.values(catalogs).flatMap((catalog) => hows.map((how) => ({ catalog, ...run, ...how })));
}

/**
 * Fails unless each outcome is met by one of the runs; they end as soon as all are. First come those that meet all in few
 * steps; the others are for the day on which a change of the workload moves an outcome.
 */
async function assertMeets(wanted: readonly string[], runs: readonly Run[]): Promise<void> {
  const driven = function* () {
    for (const { reprices = false, listens = false, ...run } of runs) {
      const system = new DecideSystem(run);
      const send: DriveOptions["send"] = (request, nowMs) => system.send(request, nowMs);
      const apply = reprices ? { apply: (next: CatalogDocument) => system.apply(next) } : {};
      yield { ...run, send, ...apply, ...(listens ? { webhooks: webhooksOf(system) } : {}) };
    }
  };
  assert.deepEqual(await unmetBy(driven(), wanted), []);
}

Deno.test("a system that prices holds by the catalog in force, not by their own row, is found out", async () => {
  const catalog = catalogs.tiny;
  const system = new DecideSystem({ catalog });
  const run = drive({
    catalog,
    seed: 1,
    steps: 400,
    send: (request, nowMs) => system.send(request, nowMs),
    apply(document) {
      system.apply(document);
      const { models, priceRows } = system.catalog;
      system.catalog = { ...system.catalog, priceRows: priceRows.map((row) => models.get(row.id) ?? row) };
    },
  });
  await assert.rejects(run, /\(commit\): the system and the model differ\n.*(cents|current)/);
});

Deno.test("a workload meets every way in which a call is priced and explained, and changes of prices", async () => {
  const wanted = [
    ...["per_token", "per_call", "per_unit", "unpriced"].map((mode) =>
      `prices: a commit with usage, ${mode}`
    ),
    "prices: a hold keeps prices that have changed",
    "prices: an unpriced call is refused",
    "commit unpriced_model",
    "track unpriced_model",
    ...["matched", "event", "holds of a group"].map((what) => `explain: ${what}`),
  ];
  const run = { seed: 2, steps: 1000, reprices: true };
  const { example, paced } = catalogs;
  const first = [{ ...run, catalog: paced, steps: 150 }, { ...run, catalog: example }];
  await assertMeets(wanted, [...first, ...overAll(run)]);
});

Deno.test("a workload meets every message, and every way in which an alert fires or stays silent", async () => {
  const types = ["usage.threshold_reached", "user.merged", "reservation.expired"];
  const credits = ["granted", "low", "depleted", "expired", "revoked"].map((what) => `credits.${what}`);
  const plans = ["created", "plan_changed", "canceled", "reactivated", "ended", "merged", "promoted"];
  const wanted = [
    ...[...types, ...credits, ...plans.map((what) => `subscription.${what}`)],
    ...["no webhook wants it", "credits lapse with nothing left", "low again", "depleted again"],
  ].map((name) => `messages: ${name}`);
  const alerts = [
    "by usage",
    "in a window that is over",
    "as a plan is entered",
    "after the catalog moved it",
    "by a lower quota",
    "armed again by a raised quota",
    "none by a block",
    "by pace",
    "the pace again",
    "the pace armed again",
  ];
  for (const how of [...alerts, "reached again"]) wanted.push(`alerts: ${how}`);
  const run = { seed: 3, steps: 1000, merges: true, reprices: true, listens: true };
  const { example, ladder } = catalogs;
  const first = [{ ...run, catalog: example, steps: 200 }, { ...run, catalog: ladder }];
  await assertMeets(wanted, [...first, ...overAll(run)]);
});

Deno.test("a workload meets every way in which a provider reports a subscription, grants and refunds", async () => {
  const told = [
    "new",
    "new and over",
    "reported unchanged",
    "another end",
    "another plan",
    "an ended one comes back",
  ];
  const over = ["over now", "over since before", "over, reported again", "over and never known"];
  const besides = [
    "another plan, under open holds",
    "a row with custom limits",
    "beside a default subscription",
  ];
  const balances = ["that is active", "that is expired", "that is revoked"];
  const refunds = ["held balance", "partly used balance", ...balances.map((which) => `balance ${which}`)];
  const wanted = [
    ...[...told, ...over, ...besides].map((what) => `stripe: ${what}`),
    ...refunds.map((what) => `stripe: refund of a ${what}`),
    ...["nothing", "several packs"].map((what) => `stripe: refund of ${what}`),
    ...["again", "nothing", "something", "a part"].map((what) => `stripe: reinstated ${what}`),
    ...["mirror not_found", "paidGrant credit_pack_not_found", "paidGrant invalid_quantity"],
  ];
  const run = { seed: 9, steps: 700, stripe: true, listens: true };
  const { ladder, paced } = catalogs;
  const first = [{ ...run, catalog: ladder, seed: 11, steps: 150 }, { ...run, catalog: paced, seed: 14 }];
  await assertMeets(wanted, [...first, ...overAll(run)]);
});

Deno.test("a workload meets every way in which a run counts, refuses and ends", async () => {
  const wanted = [
    ...["alone refuse", "refuse too", "a commit", "a late commit", "a call with an ended run"],
    "an inner run ends with the outer one",
  ].map((name) => `runs: ${name}`);
  for (const op of ["reserve", "track", "canUse"]) {
    wanted.push(...["run_limit_reached", "run_ended", "not_found"].map((code) => `${op} ${code}`));
  }
  wanted.push("createRun run_ended", "endRun run_ended");
  wanted.push("merges: runs of from");
  await assertMeets(wanted, overAll({ seed: 4, steps: 1000, runs: true }, [{ merges: true }, { users: 2 }]));
});

Deno.test("a workload meets every way in which guards refuse, slots are settled, and sessions begin and go on", async () => {
  const reasons = ["rate_limit_reached", "concurrency_limit_reached"];
  const wanted = [
    ...reasons.flatMap((reason) => [`${reason} alone`, `${reason}, and others`]).map((what) =>
      `guards: ${what}`
    ),
    ...[
      "refused above",
      "without a quota group beside",
      "a hold follows, rate",
      "a hold follows, concurrency",
    ]
      .map((what) => `guards: ${what}`),
    ...["carried", "a settlement in its slot", "a settlement after its slot"].map((what) => `rates: ${what}`),
    ...[
      "the first one begins",
      "another one begins",
      "carried",
      "ended by a reset",
      "blocked",
      "none to block",
    ]
      .map((what) => `sessions: ${what}`),
    ...["rates added", "two sessions run"].map((what) => `merges: ${what}`),
    ...reasons.map((reason) => `canUse ${reason}`),
    "track rate_limit_reached",
  ];
  const hows = [
    { seed: 7, trees: true, steps: 250 },
    { seed: 4, merges: true, stripe: true },
    { seed: 5, trees: true },
    { seed: 3 },
  ];
  await assertMeets(wanted, hows.map((how) => ({ catalog: catalogs.paced, steps: 1000, ...how })));
});

/** What a system does wrong with guards, and the difference that shows it. */
const GUARD_MISTAKES: Record<string, { mistake: (catalog: CatalogDocument) => void; found: RegExp }> = {
  "counts a rate in seconds that are too few": {
    mistake: ({ plans }) => change(plans, "rolling", { type: "rolling", seconds: 2 }),
    found: /current|count|allowed|status|retryAfterMs/,
  },
  "has no limit of concurrency": {
    mistake: ({ plans }) => change(plans, "concurrent", { type: "lifetime", anchor: "calendar" }),
    found: /current|count|allowed|status|groups|window/,
  },
  "begins a session on the hour": {
    mistake: ({ plans }) => change(plans, "session", { type: "hourly", anchor: "calendar" }),
    found: /period|resetsAt/,
  },
};

function change(plans: CatalogDocument["plans"], type: string, period: GroupPeriod): void {
  for (const group of plans.flatMap(({ limits }) => limits)) {
    if (group.period?.type === type) group.period = period;
  }
}

for (const [name, { mistake, found }] of Object.entries(GUARD_MISTAKES)) {
  Deno.test(`a system that ${name} is found out`, async () => {
    const catalog = structuredClone(catalogs.paced);
    mistake(catalog);
    const system = new DecideSystem({ catalog });
    const send = (request: ModelRequest, nowMs: number) => system.send(request, nowMs);
    await assert.rejects(drive({ catalog: catalogs.paced, seed: 1, steps: 400, send }), found);
  });
}
Deno.test("a workload meets every way in which a share counts, refuses and is cleared", async () => {
  const wanted = ["reserve", "track", "canUse"].map((op) => `${op} member_limit_reached`);
  wanted.push(
    ...["alone refuse", "refuse too", "a member's own limit", "cleared as a plan is entered"].map((what) =>
      `shares: ${what}`
    ),
    "shares: a hold from before a reset settles",
    "shares: a late commit",
    "shares: accounts become one",
    "shares: members become one",
  );
  const run = { seed: 4, steps: 1000, trees: true, merges: true };
  const { ladder, tiny } = catalogs;
  const first = [{ ...run, catalog: ladder, steps: 250 }, { ...run, catalog: tiny }];
  await assertMeets(wanted, [...first, ...overAll(run)]);
});

Deno.test("a system that lets each member use all of a group is found out", async () => {
  const catalog = catalogs.tiny;
  const plans = catalog.plans.map((plan) => ({
    ...plan,
    limits: plan.limits.map(({ perMember: _, ...group }) => group),
  }));
  const system = new DecideSystem({ catalog: { ...catalog, plans }, trees: true });
  const send = (request: ModelRequest, nowMs: number) => system.send(request, nowMs);
  await assert.rejects(drive({ catalog, seed: 1, steps: 400, trees: true, send }), /member|reasons/);
});

Deno.test("a system that keeps shares as a plan is entered by reset is found out", async () => {
  const catalog = catalogs.tiny;
  const system = new DecideSystem({ catalog, trees: true });
  const { apply } = UserState.prototype;
  const send = (request: ModelRequest, nowMs: number) => {
    UserState.prototype.apply = function (changes) {
      apply.call(
        this,
        changes.map((change) =>
          change.table === "users" ? { ...change, row: { ...change.row, shareResets: null } } : change
        ),
      );
    };
    try {
      return system.send(request, nowMs);
    } finally {
      UserState.prototype.apply = apply;
    }
  };
  const run = drive({ catalog, seed: 1, steps: 1000, trees: true, send });
  await assert.rejects(run, /member.count: expected|member_limit_reached/);
});

/** What a system does wrong with runs, and the difference that shows it. */
const RUN_MISTAKES: Record<string, { mistake: (request: ModelRequest) => ModelRequest; found: RegExp }> = {
  "counts a track in no run": {
    mistake: ({ op, input: { runId, ...input } }) => ({
      op,
      input: op === "track" ? input : { ...input, runId },
    }),
    found: /\(track\)[^]*(runs|status)/,
  },
  "opens inner runs beside the outer one": {
    mistake: ({ op, input: { parentRunId: _, ...input } }) => ({ op, input }),
    found: /\(createRun\)[^]*parentRunId/,
  },
};

for (const [name, { mistake, found }] of Object.entries(RUN_MISTAKES)) {
  Deno.test(`a system that ${name} is found out`, async () => {
    const catalog = catalogs.tiny;
    const system = new DecideSystem({ catalog });
    const send = (request: ModelRequest, nowMs: number) => system.send(mistake(request), nowMs);
    await assert.rejects(drive({ catalog, seed: 1, steps: 400, runs: true, send }), found);
  });
}

/** Wrong handling of a provider's request, and the difference that shows it. */
const MISTAKEN: Record<string, { mistake: (input: Input) => Input; found: RegExp }> = {
  "keeps the first end of a subscription": {
    mistake: ({ endsAt: _, ...input }) => input,
    found: /\(mirror\)[^]*endsAt: expected/,
  },
  "ends a subscription at the time of the report": {
    mistake: ({ endedAt: _, ...input }) => input,
    found: /\(mirror\)[^]*endsAt: expected/,
  },
  "grants one pack where three were paid for": {
    mistake: (input) => ({ ...input, packs: 1 }),
    found: /\(paidGrant\)[^]*remaining: expected/,
  },
  "refunds another grant": {
    mistake: (input) =>
      "reason" in input && "externalRef" in input ? { ...input, externalRef: "none" } : input,
    found: /\(refund\)[^]*balanceIds/,
  },
};

for (const [name, { mistake, found }] of Object.entries(MISTAKEN)) {
  Deno.test(`a system that ${name} is found out`, async () => {
    const catalog = catalogs.tiny;
    const system = new DecideSystem({ catalog });
    const send = ({ op, input }: ModelRequest, nowMs: number) =>
      system.send({ op, input: isOfProvider(op) ? mistake(input) : input }, nowMs);
    await assert.rejects(drive({ catalog, seed: 1, steps: 400, stripe: true, send }), found);
  });
}

/** A fault in one message of a type, and the difference that shows it. */
const FAULTS: Record<string, { type: string; spoil: (message: Recorded) => Recorded[]; found: RegExp }> = {
  "loses a message": { type: "credits.depleted", spoil: () => [], found: /expected about|never recorded/ },
  "records a message twice": {
    type: "usage.threshold_reached",
    spoil: (message) => [message, message],
    found: /expected about/,
  },
  "reports the remaining amount of before": {
    type: "credits.low",
    spoil: (message) => [{ ...message, data: { ...message.data, remaining: 1e6 } }],
    found: /remaining: expected/,
  },
  "reports a lapsed hold at the time of the sweep": {
    type: "reservation.expired",
    spoil: (
      message,
    ) => [{ ...message, timestamp: new Date(Date.parse(message.timestamp) + 1).toISOString() }],
    found: /timestamp: expected/,
  },
  "reports the wrong window": {
    type: "usage.threshold_reached",
    spoil: (
      message,
    ) => [{ ...message, data: { ...message.data, period: { start: message.timestamp, end: null } } }],
    found: /period.end: expected/,
  },
  "records for another webhook": {
    type: "subscription.created",
    spoil: (message) => [{ ...message, webhookId: "usage" }],
    found: /for usage: .*expected about/,
  },
};

for (const [name, { type, spoil, found }] of Object.entries(FAULTS)) {
  Deno.test(`a system that ${name} is found out`, async () => {
    const catalog = catalogs.tiny;
    const system = new DecideSystem({ catalog });
    const webhooks = webhooksOf(system);
    const recorded = async () =>
      (await webhooks.recorded()).flatMap((message) => message.type === type ? spoil(message) : [message]);
    const send = (request: ModelRequest, nowMs: number) => system.send(request, nowMs);
    await assert.rejects(
      drive({ catalog, seed: 1, steps: 400, send, webhooks: { ...webhooks, recorded } }),
      found,
    );
  });
}

Deno.test("a system that records two messages of a user in the wrong order is found out", async () => {
  const catalog = catalogs.tiny;
  const system = new DecideSystem({ catalog });
  const webhooks = webhooksOf(system);
  let late: Recorded | undefined;
  const recorded = async () => {
    const messages = [...await webhooks.recorded()];
    const passed = late;
    late = passed === undefined ? messages.pop() : undefined;
    return passed === undefined ? messages : [...messages, passed];
  };
  const send = (request: ModelRequest, nowMs: number) => system.send(request, nowMs);
  const run = drive({ catalog, seed: 1, steps: 400, send, webhooks: { ...webhooks, recorded } });
  await assert.rejects(run, /expected about/);
});

Deno.test("a workload meets what plans offer beside quotas: trials, add-ons, and changes that are asked for ahead", async () => {
  const trials = ["begun", "used", "ended by another plan"].map((what) => `trials: ${what}`);
  const scheduled = ["the plan changes", "replaced", "dropped by a call", "dropped by another change"]
    .map((what) => `scheduled: ${what}`);
  const wanted = [
    ...trials,
    ...scheduled,
    "trial_ended: the plan changes",
    "trial_ended: the row ends",
    "add-ons: a quota is added",
  ];
  const seeds = [3, 2, 1];
  await assertMeets(wanted, seeds.map((seed) => ({ catalog: offers, seed, steps: 1000, stripe: true })));
});
