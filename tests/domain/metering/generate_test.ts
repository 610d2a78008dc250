// Generations: what one takes from plan and credits, and what is recorded of it.

import assert from "node:assert/strict";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import type { MeteringEvent } from "../../../src/domain/state/event.ts";
import type { GenerateInput } from "../../../src/domain/metering/generate.ts";
import { centsOf, NO_USAGE } from "../../../src/domain/pricing/usage.ts";
import { compileCatalog, type PackDocument, type PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import type { Unit } from "../../../src/domain/catalog/plan.ts";
import type { GroupPeriod } from "../../../src/domain/values/period.ts";
import { Scene } from "../scene.ts";

type Group = [id: string, unit: Unit, quota: number, event?: string];

function planOf(groups: readonly Group[]): PlanDocument {
  return {
    id: "p",
    name: "p",
    rank: 1,
    period: { type: "monthly", anchor: "calendar" },
    limits: groups.map(([id, unit, quota, event = "compose.*"]) => ({
      id,
      label: id,
      unit,
      quota,
      matches: [{ event }],
    })),
  };
}

function packOf(unit: Unit, event = "*"): PackDocument {
  return { id: `cpk_${unit}`, name: unit, kind: "generic", unit, matches: [{ event }], items: [] };
}

/** A scene whose user holds a plan of these groups, and balances of these units. */
function sceneOf(groups: readonly Group[] | null, credits: Partial<Record<Unit, number>> = {}): Scene {
  const units = Object.keys(credits) as Unit[];
  const plans = groups === null ? [] : [planOf(groups)];
  const scene = new Scene(plans, undefined, units.map((unit) => packOf(unit)));
  if (groups !== null) scene.subscribe("p");
  for (const unit of units) {
    scene.ask("grant", {
      pack: unit,
      quantity: amountOf(credits[unit] as number),
      externalRef: null,
      expiresAt: null,
      source: "grant",
      notes: null,
    });
  }
  return scene;
}

function inputOf(more: Partial<GenerateInput> = {}): GenerateInput {
  const members = { type: "recap", model: "mini" };
  return {
    ...members,
    event: "compose.recap",
    metadata: { text: JSON.stringify(members), members },
    inputTokens: amountOf(100),
    outputTokens: amountOf(50),
    costCents: amountOf(3),
    usage: NO_USAGE,
    prompt: "a prompt",
    response: "a response",
    askedOf: 7,
    ...more,
  };
}

/** Generates; what was decided, in plain numbers. */
function generate(scene: Scene, more: Partial<GenerateInput> = {}) {
  const { result, operations, changes } = scene.do("generate", inputOf(more));
  assert.ok(result.ok);
  const event = changes.find(({ table }) => table === "events")?.row as MeteringEvent;
  return { answer: result.answer, operations, changes, event };
}

function countersOf(scene: Scene): Record<string, [count: number, costCents: number]> {
  const { counters } = scene.ask("usage", { event: null });
  return Object.fromEntries(
    counters.map(({ group, counter }) => [group.id, [numberOf(counter.count), numberOf(counter.costCents)]]),
  );
}

function remainingOf(scene: Scene): Record<string, number> {
  const { balances } = scene.ask("credits", { event: null });
  return Object.fromEntries(balances.map(({ row }) => [row.unit, numberOf(row.remaining)]));
}

Deno.test("a generation counts tokens, cents and one call in the groups that cover it, and no seconds", () => {
  const scene = sceneOf([
    ["t", "tokens", 1000],
    ["c", "cents", 100],
    ["n", "count", 10],
    ["s", "seconds", 10],
    ["other", "tokens", 1000, "chat.*"],
  ]);
  const { operations, event, answer } = generate(scene);
  assert.deepEqual(countersOf(scene), { t: [150, 3], c: [3, 3], n: [1, 3], s: [0, 3], other: [0, 0] });
  assert.equal(operations, 1);
  assert.equal(answer.matchStatus, "matched");
  assert.deepEqual(event.lines.map(({ groupId }) => groupId), ["t", "c", "n", "s"]);
  assert.deepEqual(event.uncovered, {});
});

Deno.test("the event and the generation are recorded with the same ids, cost and moment", () => {
  const scene = sceneOf([["t", "tokens", 1000]]);
  const { changes, answer, event } = generate(scene);
  assert.deepEqual(
    { type: event.type, costCents: event.costCents, metadata: event.metadata, quantity: event.quantity },
    {
      type: "compose.recap",
      costCents: amountOf(3),
      metadata: '{"type":"recap","model":"mini"}',
      quantity: amountOf(1),
    },
  );
  const rows = changes.filter(({ table }) => table === "generations").map(({ row }) => row);
  assert.deepEqual(rows, [{
    id: answer.generationId,
    userKey: 7,
    realm: 1,
    type: "recap",
    model: "mini",
    inputTokens: amountOf(100),
    outputTokens: amountOf(50),
    costCents: amountOf(3),
    eventId: event.id,
    at: scene.now,
  }]);
  assert.equal(answer.eventId, event.id);
  assert.match(answer.generationId, /^gen_/);
});

Deno.test("the plan pays up to its quota, then credits, and the rest goes past the quota", () => {
  const plans: [quota: number, credits: number, count: number, remaining: number][] = [
    [1000, 500, 150, 500],
    [150, 500, 150, 500],
    [100, 500, 100, 450],
    [0, 150, 0, 0],
    [100, 20, 130, 0],
    [0, 0.5, 149.5, 0],
  ];
  for (const [quota, credits, count, remaining] of plans) {
    const scene = sceneOf([["t", "tokens", quota]], { tokens: credits });
    const { answer, operations } = generate(scene);
    const note = `quota ${quota}, credits ${credits}`;
    assert.deepEqual(countersOf(scene), { t: [count, 3] }, note);
    assert.deepEqual(remainingOf(scene), { tokens: remaining }, note);
    assert.deepEqual([answer.matchStatus, operations], ["matched", 1], note);
  }
});

Deno.test("the smallest room of a unit's groups is what the plan pays in each of them", () => {
  const scene = sceneOf([["a", "tokens", 1000], ["b", "tokens", 40]], { tokens: 100 });
  generate(scene);
  assert.deepEqual(countersOf(scene), { a: [50, 3], b: [50, 3] });
  assert.deepEqual(remainingOf(scene), { tokens: 0 });
});

Deno.test("headroom does not hold work back that is done", () => {
  const scene = new Scene([{
    ...planOf([["t", "tokens", 1000]]),
    headroom: { mode: "percent", value: 5 },
  }]);
  scene.subscribe("p");
  generate(scene);
  assert.deepEqual(countersOf(scene), { t: [150, 3] });
});

Deno.test("without a group credits pay what they cover in full, in the unit of the best balance", () => {
  const rows: [
    credits: Partial<Record<Unit, number>>,
    left: Partial<Record<Unit, number>>,
    status: string,
  ][] = [
    [{ tokens: 150 }, { tokens: 0 }, "matched_credits_only"],
    [{ tokens: 149 }, { tokens: 149 }, ""],
    [{ tokens: 149, cents: 5 }, { tokens: 149, cents: 2 }, "matched_credits_only"],
    [{ count: 4 }, { count: 3 }, "matched_credits_only"],
    [{ seconds: 100 }, { seconds: 100 }, ""],
    [{}, {}, ""],
  ];
  for (const [credits, left, status] of rows) {
    for (const plan of [null, [["chat", "tokens", 10, "chat.*"]]] as const) {
      const scene = sceneOf(plan as readonly Group[] | null, credits);
      const { answer, operations, event } = generate(scene);
      const expected = status || (plan === null ? "no_subscription" : "unmatched");
      const note = `${JSON.stringify(credits)} ${expected}`;
      assert.equal(answer.matchStatus, expected, note);
      assert.deepEqual(remainingOf(scene), left, note);
      assert.equal(operations, status === "" ? 0 : 1, note);
      assert.deepEqual([event.lines, event.uncovered], [[], {}], note);
      assert.equal(event.costCents, amountOf(3), note);
    }
  }
});

Deno.test("credits that were spent have a ledger entry that names the event", () => {
  const scene = sceneOf([["t", "tokens", 100]], { tokens: 500 });
  const { changes, event } = generate(scene);
  const entries = changes.filter(({ table }) => table === "credit_ledger").map(({ row }) => row);
  assert.equal(entries.length, 1);
  const [{ delta, reason, eventId, reservationId }] = entries as unknown as [Record<string, unknown>];
  assert.deepEqual(
    { delta, reason, eventId, reservationId },
    { delta: amountOf(-50), reason: "event_committed", eventId: event.id, reservationId: null },
  );
});

Deno.test("a first generation of an unknown user records the user too", () => {
  const { changes } = generate(sceneOf(null));
  assert.deepEqual(changes.map(({ table }) => table).sort(), [
    "events",
    "generations",
    "user_summaries",
    "users",
  ]);
});

Deno.test("the texts are logged where the app logs, and not of a user who was erased meanwhile", () => {
  const logOf = (promptLogging: boolean, more: Partial<GenerateInput> = {}) => {
    const scene = sceneOf([["t", "tokens", 1000]]);
    scene.catalog = compileCatalog(
      { plans: [planOf([["t", "tokens", 1000]])], settings: { promptLogging } },
      1,
    );
    const { changes, event } = generate(scene, more);
    return changes.filter(({ table }) => table === "event_logs").map(({ row }) => {
      const { eventId, prompt, response } = row as unknown as Record<string, unknown>;
      assert.equal(eventId, event.id);
      return [prompt, response];
    });
  };
  assert.deepEqual(logOf(true), [["a prompt", "a response"]]);
  assert.deepEqual(logOf(false), []);
  assert.deepEqual(logOf(true, { askedOf: 8 }), []);
});

Deno.test("a generation costs what its tokens cost, rounded once", () => {
  const rows: [input: number, output: number, inPrice: number, outPrice: number, cents: number][] = [
    [1000, 500, 15, 60, 0.045],
    [1, 0, 15, 60, 0.000015],
    [0, 0, 15, 60, 0],
    [1, 1, 0.4, 0.1, 0.000001],
    [1, 1, 0.2, 0.2, 0],
    [1e12, 1e12, 1e6, 1e6, 2e12],
  ];
  for (const [input, output, inPrice, outPrice, cents] of rows) {
    const { models } = compileCatalog({
      models: [{
        id: "m",
        modality: "text",
        amountMode: "per_token",
        inputCentsPerMillionTokens: inPrice,
        outputCentsPerMillionTokens: outPrice,
      }],
    }, 1);
    const model = models.get("m");
    assert.ok(model !== undefined);
    assert.equal(
      numberOf(centsOf(model, { ...NO_USAGE, inputTokens: amountOf(input), outputTokens: amountOf(output) })),
      cents,
    );
  }
});

Deno.test("a model without an output price costs its input alone", () => {
  const { models } = compileCatalog({
    models: [{ id: "m", modality: "text", amountMode: "per_token", inputCentsPerMillionTokens: 10 }],
  }, 1);
  const model = models.get("m");
  assert.ok(model !== undefined);
  const million = amountOf(1_000_000);
  assert.equal(numberOf(centsOf(model, { ...NO_USAGE, inputTokens: million, outputTokens: million })), 10);
});

Deno.test("a generation counts in rates and running windows, begins no session, and is never in flight", () => {
  const { limits: [group] } = planOf([["all", "tokens", 1000]]);
  const periods: Record<string, GroupPeriod> = {
    rate: { type: "rolling", seconds: 60 },
    open: { type: "concurrent" },
    session: { type: "session", seconds: 600 },
    day: { type: "daily", anchor: "calendar" },
  };
  const own = Object.entries(periods).map(([id, period]) => ({ ...group, id, label: id, period }));
  const plan = { ...planOf([]), limits: [group, ...own] as PlanDocument["limits"] };
  const scene = new Scene([plan], undefined, [packOf("tokens")], { isCompared: false });
  scene.subscribe("p");
  const counts = () =>
    Object.fromEntries(Object.entries(countersOf(scene)).map(([id, [count]]) => [id, count]));
  assert.deepEqual(generate(scene).event.lines.map(({ groupId }) => groupId), ["all", "rate", "day"]);
  assert.deepEqual(counts(), { all: 150, rate: 150, open: 0, session: 0, day: 150 });
  scene.track({ inputTokens: 10 }, { event: "compose.recap" });
  assert.deepEqual(counts(), { all: 160, rate: 160, open: 0, session: 10, day: 160 });
  generate(scene, { inputTokens: amountOf(2000) });
  assert.deepEqual(counts(), { all: 2210, rate: 2210, open: 0, session: 2060, day: 2210 });
  scene.wait(61);
  assert.deepEqual(counts(), { all: 2210, rate: 0, open: 0, session: 2060, day: 2210 });
  scene.wait(86_400);
  assert.deepEqual(counts(), { all: 2210, rate: 0, open: 0, session: 0, day: 0 });
});

Deno.test("where guards alone cover a generation they count it if credits pay, and else not", () => {
  const { limits: [group] } = planOf([["rate", "tokens", 10]]);
  const plan = {
    ...planOf([]),
    limits: [{ ...group, period: { type: "rolling", seconds: 60 } }],
  } as PlanDocument;
  for (const [credits, status, count] of [[0, "unmatched", 0], [500, "matched_credits_only", 150]] as const) {
    const scene = new Scene([plan], undefined, [packOf("tokens")], { isCompared: false });
    scene.subscribe("p");
    if (credits > 0) {
      const more = { externalRef: null, expiresAt: null, source: "grant", notes: null } as const;
      scene.ask("grant", { pack: "tokens", quantity: amountOf(credits), ...more });
    }
    assert.equal(generate(scene).answer.matchStatus, status);
    assert.deepEqual(countersOf(scene)["rate"], [count, 0]);
  }
});
