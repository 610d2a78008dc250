// Credits as a unit: calls are held and settled by their rates, in limit groups, balances, shares and runs.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import type { CatalogDocument, PackDocument, PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import type { RateDocument } from "../../../src/domain/catalog/rate_row.ts";
import { HoldTexts, readHold, textOfHold } from "../../../src/domain/state/hold_text.ts";
import type { Reservation } from "../../../src/domain/state/reservation.ts";
import { NO_USAGE } from "../../../src/domain/pricing/usage.ts";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import { type Call, type Final, groupOf, planOf, Scene, type Size, sizeOf } from "../scene.ts";
import { correctionOf, usageOf } from "../scene_input.ts";

const RATES: readonly RateDocument[] = [
  { event: "image", perImage: 5 },
  { event: "chat", perMillionInputTokens: 200, perMillionOutputTokens: 800, minimum: 0.1 },
  { event: "mixed", perCall: 1, perCent: 2 },
  { event: "resold", perCent: 1.5 },
  { event: "film", perSecond: 10 },
  { event: "all", perCall: 1, perMillionInputTokens: 200 },
];
const MODELS = [
  {
    id: "m",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 100,
    outputCentsPerMillionTokens: 400,
  },
  { id: "painter", modality: "image", amountMode: "per_call", centsPerImage: 4 },
] as const;
const CREDITS: PackDocument = {
  id: "credits",
  name: "Credits",
  kind: "generic",
  unit: "credits",
  matches: [{ event: "*" }],
  items: [],
};

/** A user with a plan of so many credits, and a bought balance. */
function sceneOf(quota: number | null, bought = 0, more: Partial<CatalogDocument> = {}): Scene {
  const plans: PlanDocument[] = quota === null
    ? []
    : [planOf("p", {}, { limits: [groupOf("c", quota, "credits", "*")] })];
  const scene = new Scene(plans, undefined, [CREDITS], {
    rates: RATES,
    models: MODELS,
    ...more,
    isCompared: false,
  });
  if (quota !== null) scene.subscribe("p");
  if (bought > 0) scene.fund("credits", bought);
  return scene;
}

const credits = ({ credits: shown }: { credits: { total: bigint; rated: boolean } | null }) =>
  shown === null ? null : [numberOf(shown.total), shown.rated];

function commit(scene: Scene, reservationId: string, { extra, actual, costCents, usage }: Final = {}) {
  return scene.ask("commit", {
    reservationId,
    extra: correctionOf(extra),
    actual: correctionOf(actual),
    costCents: costCents === undefined ? null : amountOf(costCents),
    usage: usageOf(usage),
  });
}

const on = (event: string, model?: string): Call => ({
  event,
  ...model === undefined ? {} : { metadata: { model } },
});

Deno.test("a hold takes its credits and a commit settles them: only usage, cents of the rate and credits change them", () => {
  const rows: [call: Call, size: Size, final: Final, held: number, settled: number, rated: boolean][] = [
    [on("image"), { count: 2 }, {}, 10, 10, true],
    [on("image"), { count: 2 }, { actual: { count: 3 } }, 10, 10, true],
    [on("image"), { count: 2 }, { usage: { calls: 1 } }, 10, 5, true],
    [on("image"), { count: 2 }, { usage: { seconds: 1 }, actual: { count: 4 } }, 10, 20, true],
    [on("image"), {}, { costCents: 70, extra: { tokens: 9, cents: 3 } }, 5, 5, true],
    [on("image"), {}, { actual: { credits: 0.5 } }, 5, 0.5, true],
    [on("image"), {}, { extra: { credits: -9 } }, 5, 0, true],
    [
      on("chat"),
      { inputTokens: 1000, maxOutputTokens: 1000 },
      { usage: { inputTokens: 1000, outputTokens: 500 } },
      1,
      0.6,
      true,
    ],
    [on("chat"), { inputTokens: 1000, maxOutputTokens: 1000 }, { usage: { calls: 1 } }, 1, 1, true],
    [on("chat"), { inputTokens: 100 }, { usage: { inputTokens: 0 } }, 0.1, 0.1, true],
    [on("film"), { quantity: 8 }, { usage: { seconds: 6 } }, 80, 60, true],
    [on("resold", "m"), { inputTokens: 10_000 }, { usage: { inputTokens: 20_000 } }, 1.5, 3, true],
    [on("resold", "m"), { inputTokens: 10_000 }, { costCents: 50 }, 1.5, 1.5, true],
    [on("resold"), { inputCostCents: 4 }, { extra: { cents: 2 } }, 6, 9, true],
    [on("resold"), {}, { actual: { cents: 2 } }, 0, 3, true],
    [on("resold"), {}, { usage: { inputTokens: 5 } }, 0, 0, false],
    [on("resold", "painter"), { count: 2 }, { actual: { count: 3 } }, 12, 12, true],
    [on("mixed"), { count: 3, inputCostCents: 4 }, { actual: { cents: 1 } }, 11, 5, true],
    [on("mixed"), { count: 3 }, {}, 0, 0, false],
    [on("mixed"), { count: 3 }, { actual: { cents: 1 } }, 0, 5, true],
    [on("all"), { inputTokens: 1000 }, { usage: { calls: 4 } }, 1.2, 4.2, true],
    [on("all"), { inputTokens: 1000 }, { usage: { seconds: 5, outputTokens: 9 } }, 1.2, 1, true],
    [on("other"), {}, { usage: { calls: 3 } }, 0, 0, false],
    [on("other"), {}, { actual: { credits: 2 } }, 0, 2, false],
  ];
  for (const [call, size, final, held, settled, rated] of rows) {
    const what = JSON.stringify([call, size, final]);
    const scene = sceneOf(1000);
    const id = scene.hold(size, call);
    assert.equal(scene.counts().c, held, `held ${what}`);
    const answer = commit(scene, id, final);
    assert.deepEqual(credits(answer), [settled, rated], what);
    assert.equal(scene.counts().c, settled, `counted ${what}`);
    const isSaid = rated || settled > 0;
    assert.equal(scene.event().costCredits, isSaid ? amountOf(settled) : undefined, `event ${what}`);
    assert.equal(answer.warnings.includes("unrated_event"), !isSaid, `warned ${what}`);
  }
});

Deno.test("can-use, reserve and explain say one estimate, track what the work cost", () => {
  const scene = sceneOf(1000);
  const size = { inputTokens: 1000, maxOutputTokens: 1000 };
  assert.deepEqual(credits(scene.canUse(size, on("chat"))), [1, true]);
  const { rate } = scene.explain(size, on("chat"));
  assert.deepEqual(
    rate?.parts.map(({ part, amount, credits }) => [part, numberOf(amount), numberOf(credits)]),
    [
      ["perMillionInputTokens", 1000, 0.2],
      ["perMillionOutputTokens", 1000, 0.8],
    ],
  );
  assert.deepEqual([rate?.total, rate?.row?.document.event], [amountOf(1), "chat"]);
  const mixed = scene.explain({ count: 2, inputCostCents: 3 }, on("mixed")).rate;
  assert.deepEqual(mixed?.parts.map(({ part, credits }) => [part, numberOf(credits)]), [
    ["perCall", 2],
    ["perCent", 6],
  ]);
  scene.track({ quantity: 3 }, on("image"));
  assert.equal(scene.counts().c, 15, "count, else quantity");
  scene.track({}, { ...on("chat"), usage: { inputTokens: 500, outputTokens: 500 } });
  assert.equal(scene.counts().c, 15.5);
});

Deno.test("an unrated event warns where credits are counted, and is as before elsewhere", () => {
  const counted = sceneOf(10);
  assert.deepEqual(counted.canUse({}, on("other")).warnings, ["unrated_event"]);
  assert.deepEqual(counted.canUse({}, on("image")).warnings, []);
  const bought = sceneOf(null, 10);
  assert.deepEqual(bought.canUse({}, on("other")).warnings, ["unrated_event"]);
  const film = { quantity: 2 };
  assert.deepEqual(counted.canUse({ ...film, count: 1 }, on("image")).warnings, ["quantity_not_counted"]);
  assert.deepEqual(sceneOf(100).canUse(film, on("film")).warnings, [], "the rate takes the quantity");
  assert.deepEqual(sceneOf(null, 100).canUse(film, on("film")).warnings, []);
  const neither = sceneOf(null);
  assert.deepEqual(neither.canUse({}, on("other")).warnings, []);
  const { runId } = openRun(neither, 5);
  const input = { event: "other", metadata: null, size: sizeOf({}), runId };
  assert.deepEqual(neither.ask("canUse", input).warnings, ["unrated_event"]);
});

function openRun(scene: Scene, quota: number): { runId: string } {
  const { run } = scene.ask("openRun", {
    limits: [{ unit: "credits", event: "*", quota: amountOf(quota) }],
    name: null,
    ttlMs: 60_000,
    parentRunId: null,
    metadata: null,
  });
  return { runId: run.id };
}

Deno.test("the plan pays first, then balances; without a group of the plan balances pay alone", () => {
  const scene = sceneOf(12, 100);
  assert.equal(scene.track(2, on("image")), "matched");
  assert.equal(scene.track(2, on("image")), "matched");
  assert.equal(scene.counts().c, 12);
  assert.deepEqual(scene.ledger(1).map(([, ...entry]) => entry), [[-8, "event_committed"]]);
  const alone = sceneOf(null, 7);
  assert.equal(alone.track(1, on("image")), "matched_credits_only");
  assert.equal(alone.track(1, on("image")), "no_subscription");
  const zero = sceneOf(0, 7);
  assert.equal(zero.track(1, on("image")), "matched", "quota 0 lets balances alone pay");
  assert.equal(zero.track(1, on("image")), "blocked");
});

Deno.test("a hold keeps its rate, whatever the catalog says later", () => {
  const plans = [planOf("p", {}, { limits: [groupOf("c", 1000, "credits", "*")] })];
  const changes: (readonly RateDocument[])[] = [
    [],
    [{ event: "chat", perCall: 77 }],
    [{ event: "*", perCall: 1 }, ...RATES],
  ];
  for (const rates of changes) {
    const scene = sceneOf(1000);
    const before = scene.hold({ inputTokens: 1000, maxOutputTokens: 1000 }, on("chat"));
    const unrated = scene.hold({}, on("other"));
    scene.reprice(plans, { rates, models: MODELS });
    assert.equal(scene.commit(unrated, { usage: { calls: 1 } }).groups.c, 1, "only the other hold");
    const answer = commit(scene, before, { usage: { inputTokens: 5000 } });
    assert.deepEqual(credits(answer), rates.length === 0 ? null : [1, true]);
    assert.equal(scene.counts().c, 1, "by 200 a million");
  }
});

Deno.test("a late commit charges credits again; a release and a lapse give them back", () => {
  const scene = sceneOf(10, 10);
  const released = scene.hold(3, on("image"));
  assert.equal(scene.counts().c, 10);
  scene.release(released);
  assert.equal(scene.counts().c, 0);
  const late = scene.hold(2, { ...on("image"), ttlMs: 1000 });
  scene.wait(2);
  assert.equal(scene.counts().c, 0);
  assert.equal(scene.commit(late).recharged, true);
  assert.equal(scene.counts().c, 10);
});

Deno.test("a run's limit in credits refuses what it has no room for", () => {
  const scene = sceneOf(1000);
  const { runId } = openRun(scene, 12);
  const input = (count: number) => ({
    event: "image",
    metadata: null,
    size: sizeOf({ count }),
    runId,
    ttlMs: null,
  });
  const first = scene.ask("reserve", input(2));
  assert.equal(first.allowed, true);
  assert.deepEqual(scene.ask("reserve", input(1)).reasons, ["run_limit_reached"]);
  scene.commit(first.hold?.reservationId as string, { actual: { credits: 4 } });
  const { runs } = scene.ask("reserve", input(1));
  assert.deepEqual(runs[0]?.limits.map(({ count, held }) => [numberOf(count), numberOf(held)]), [[9, 5]]);
});

Deno.test("shares of an account count a member's credits", () => {
  const group = { ...groupOf("c", 100, "credits", "*"), perMember: { quota: 10 } };
  const account = new Scene([planOf("p", {}, { limits: [group] })], undefined, [], {
    id: "acme",
    key: 1,
    rates: RATES,
    isCompared: false,
  });
  account.subscribe("p");
  const member = new Scene([], undefined, [], { id: "ann", key: 2, beside: account, isCompared: false });
  member.under(account);
  const id = member.hold(2, on("image"));
  assert.equal(member.reason(1, on("image")), "member_limit_reached");
  member.commit(id, { usage: { calls: 1 } });
  assert.equal(member.reason(1, on("image")), "ok");
});

Deno.test("turns in any order never take a credits group above its quota", () => {
  const step = fc.record({
    what: fc.constantFrom("hold", "track", "commit", "release"),
    event: fc.constantFrom("image", "chat", "film", "mixed", "other"),
    size: fc.record({
      count: fc.integer({ min: 1, max: 3 }),
      inputTokens: fc.nat(9000),
      inputCostCents: fc.nat(5),
    }),
    pick: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const scene = sceneOf(40, 15);
      const open: string[] = [];
      for (const { what, event, size, pick } of steps) {
        if (what === "hold") open.push(...[scene.reserve(size, on(event))].filter((id) => id !== null));
        else if (what === "track") scene.track(size, on(event));
        else {
          for (const id of open.splice(pick % (open.length + 1), 1)) {
            if (what === "commit") scene.commit(id);
            else scene.release(id);
          }
        }
        assert.ok((scene.counts().c ?? 0) <= 40);
      }
    }),
    { numRuns: 60 },
  );
});

Deno.test("a hold's text is as it was for a catalog without rates, and keeps the rate with them", () => {
  const texts = new HoldTexts();
  const held = (scene: Scene, call: Call): Reservation => {
    const id = scene.hold(2, call);
    return scene.changes.findLast(({ table, row }) =>
      table === "reservations" && "id" in row && row.id === id
    )
      ?.row as Reservation;
  };
  const plain = held(sceneOf(1000, 0, { rates: [] }), on("image"));
  assert.equal(Object.hasOwn(plain, "rate"), false);
  const fields = textOfHold(plain, texts).split("\n");
  assert.deepEqual(fields.slice(4, 14), ["", "2000000", "0", "1000000", "2000000", "0", "0", "-1", "0", "1"]);
  const rated = held(sceneOf(1000), on("image"));
  const text = textOfHold(rated, texts);
  assert.equal(text.split("\n")[11], "-1$0,0,10000000");
  assert.deepEqual(readHold(rated.id, rated.userKey, text, new HoldTexts()), rated);
});

Deno.test("a generation counts the credits of its report", () => {
  const rates = [{ event: "compose.*", perCall: 2, perMillionInputTokens: 200, perMillionOutputTokens: 800 }];
  const scene = sceneOf(1000, 0, { rates });
  const members = { type: "recap", model: "m" };
  const tokens = amountOf(1000);
  scene.ask("generate", {
    ...members,
    event: "compose.recap",
    metadata: { text: JSON.stringify(members), members },
    inputTokens: tokens,
    outputTokens: tokens,
    costCents: amountOf(0.5),
    usage: { ...NO_USAGE, inputTokens: tokens, outputTokens: tokens },
    prompt: null,
    response: null,
    askedOf: scene.state.user.key,
  });
  assert.equal(scene.counts().c, 3);
  assert.equal(scene.event().costCredits, amountOf(3));
});
