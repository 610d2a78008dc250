// Fit: a call is made smaller until it is allowed. By hand, and against an oracle in random cases: plain reserves.

import assert from "node:assert/strict";
import type { CatalogDocument, LimitGroupDocument } from "../../../src/domain/catalog/catalog.ts";
import { decide } from "../../../src/domain/decide.ts";
import type { Fit, ReserveAnswer, ReserveInput } from "../../../src/domain/metering/reserve.ts";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import { Random } from "../../model/random.ts";
import { far } from "../../support/depth.ts";
import { countedIds } from "../decide_system.ts";
import { groupOf, PACKS, planOf, Scene } from "../scene.ts";
import { callOf, sizeOf } from "../scene_input.ts";

const MODELS = ["large", "small", "tiny", "unpriced"];
const PRICED = [["large", 4_000], ["small", 400], ["tiny", 13]] as const;

/** Plans of a user and of the account above it, with quotas, headroom, overage, shares and guards. */
function catalogOf(random: Random): CatalogDocument {
  const maybe = <Value>(chance: number, value: () => Value): Value[] =>
    random.chance(chance) ? [value()] : [];
  const quota = () => random.pick([0, 40, 777.5, 5_000, 60_000]);
  const more = (): Partial<LimitGroupDocument> =>
    random.pick<() => Partial<LimitGroupDocument>>([
      () => ({}),
      () => ({ headroom: { mode: "percent", value: 50 } }),
      () => ({ headroom: { mode: "multiplier", value: 1.5 } }),
      () => ({ overage: { max: random.pick([10, 2_000, null]) } }),
      () => ({ perMember: { quota: random.pick([200, 1_500]) } }),
    ])();
  const limits = (): LimitGroupDocument[] => [
    ...maybe(0.7, () => ({ ...groupOf("tokens", quota(), "tokens"), ...more() })),
    ...maybe(0.4, () => ({ ...groupOf("cents", quota() / 20, "cents"), ...more() })),
    ...maybe(0.4, () => ({ ...groupOf("credits", quota() / 10, "credits"), ...more() })),
    ...maybe(0.3, () => ({
      ...groupOf("large", quota(), "tokens"),
      matches: [{ event: "x.*", metadata: { model: "large" } }],
    })),
    ...maybe(0.3, () => ({
      ...groupOf("pace", 9_000, "tokens"),
      period: { type: "rolling", seconds: 60 } as const,
    })),
    ...maybe(0.3, () => ({
      ...groupOf("inFlight", 12_000, "tokens"),
      period: { type: "concurrent" } as const,
    })),
  ];
  return {
    models: PRICED.map(([id, price]) => ({
      id,
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: price,
      outputCentsPerMillionTokens: price * 3,
    })),
    rates: random.chance(0.5) ? [{ event: "x.*", perMillionOutputTokens: 90_000, perCall: 2.5 }] : [],
    plans: [planOf("A", {}, { limits: limits() }), planOf("account", {}, { limits: limits() })],
    packs: PACKS,
  };
}

/** A user, maybe with an account above it, and its run if it has one. */
interface Case {
  readonly scene: Scene;
  readonly account: Scene | null;
  readonly runId: string | null;
}

function newCase(random: Random): Case {
  const { plans, packs, ...more } = catalogOf(random);
  const scene = new Scene(plans ?? [], undefined, packs, { ...more, isAudited: false });
  if (random.chance(0.9)) scene.subscribe("A");
  const account = random.chance(0.3)
    ? new Scene([], undefined, [], { key: 8, id: "a", beside: scene })
    : null;
  account?.subscribe("account");
  scene.under(account);
  for (const user of account === null ? [scene] : [scene, account]) {
    for (const pack of ["tokens", "cents"]) {
      if (random.chance(0.3)) user.fund(pack, random.pick([3, 900, 20_000]));
    }
  }
  for (let uses = random.whole(0, 2); uses > 0; uses--) {
    scene.reserve({ inputTokens: random.whole(1, 3_000) }, {
      event: "x.make",
      metadata: { model: "small" },
    });
  }
  const limits = [{ unit: "tokens", event: "*", quota: amountOf(random.pick([100, 4_000])) } as const];
  const run = { limits, name: null, ttlMs: 3_600_000, parentRunId: null, metadata: null };
  return { scene, account, runId: random.chance(0.2) ? scene.ask("openRun", run).run.id : null };
}

function answerOf({ scene, account }: Case, input: ReserveInput): ReserveAnswer {
  const context = {
    now: scene.now,
    catalog: scene.catalog,
    ids: countedIds(900),
    balancesLeft: null,
    outbox: null,
  };
  const above = account === null ? [] : [account.state];
  const { result } = decide(scene.state, "reserve", input, context, above);
  assert.ok(result.ok);
  return result.answer;
}

/** What a plain reserve of this model and size answers. */
function plain(each: Case, { fit: _, ...input }: ReserveInput, model: string | null, tokens: number) {
  const members = { ...input.metadata?.members, ...model === null ? {} : { model } };
  const metadata = model === null ? input.metadata : { text: JSON.stringify(members), members };
  const size = { ...input.size, maxOutputTokens: amountOf(tokens) };
  return answerOf(each, { ...input, metadata, size });
}

/** Fits a call, as plain reserves say; whether it was allowed. Adds why no more fits. */
function checkCase(each: Case, random: Random, limiting: Map<string, number>): boolean {
  const most = random.pick([1, 2, 50, 1_000, 9_999, 1_000_000]);
  const least = random.whole(1, Math.min(most, 300));
  const named = random.chance(0.6) ? random.pick(MODELS) : null;
  const others = MODELS.filter(() => random.chance(0.4));
  const fit: Fit = { minOutputTokens: amountOf(least), models: others };
  const input: ReserveInput = {
    ...callOf(0, { event: "x.make", metadata: named === null ? { size: "s" } : { model: named } }),
    size: sizeOf({ inputTokens: random.whole(0, 2_000), maxOutputTokens: most }),
    ttlMs: null,
    runId: each.runId,
    fit,
  };
  const answer = answerOf(each, input);
  const models = [...named === null ? [] : [named], ...others.filter((model) => model !== named)];
  const candidates: (string | null)[] = models.length === 0 ? [null] : models;
  const { fitted, ...rest } = answer;
  const place = fitted === undefined ? candidates.length : candidates.indexOf(fitted.model);
  assert.ok(place >= 0, `no candidate: ${fitted?.model}`);
  for (const model of candidates.slice(0, place)) {
    for (const tokens of [least, random.whole(least, most), most]) {
      assert.ok(!plain(each, input, model, tokens).allowed, `${model} passes with ${tokens}`);
    }
  }
  if (fitted === undefined) {
    assert.deepEqual(rest, plain(each, input, candidates[0] ?? null, least));
    return false;
  }
  const found = candidates[place] as string | null;
  const tokens = numberOf(fitted.maxOutputTokens);
  assert.ok(Number.isInteger(tokens) && tokens >= least && tokens <= most);
  assert.deepEqual(rest, plain(each, input, found, tokens));
  if (tokens === most) return true;
  const { allowed, reasons } = plain(each, input, found, tokens + 1);
  assert.ok(!allowed, `${tokens + 1} would pass too`);
  for (const reason of reasons) limiting.set(reason, (limiting.get(reason) ?? 0) + 1);
  return true;
}

/** What the cases must have met as the limit of a fitted call, each often enough. */
const LIMITS = [
  "limit_reached",
  "reservation_headroom_exceeded",
  "member_limit_reached",
  "run_limit_reached",
  "rate_limit_reached",
  "concurrency_limit_reached",
];

Deno.test("the largest answer of the first model that passes is held, as plain reserves say", () => {
  const random = new Random(20_261_126);
  const limiting = new Map<string, number>();
  let fitted = 0;
  const cases = far(4_000);
  for (let done = 0; done < cases;) {
    const each = newCase(random);
    for (let times = 0; times < 20; times++, done++) fitted += Number(checkCase(each, random, limiting));
  }
  assert.ok(fitted > cases / 4 && fitted < cases * 0.9, `${fitted} of ${cases} were allowed`);
  for (const limit of LIMITS) {
    assert.ok((limiting.get(limit) ?? 0) > cases / 2_000, `${limit}: ${limiting.get(limit)}`);
  }
});

/** A user with a cent, and models that are paid for their output alone. */
function sceneOfOneCent(): Scene {
  const scene = new Scene([planOf("A", {}, { limits: [groupOf("cents", 1, "cents")] })], undefined, [], {
    models: PRICED.map(([id, price]) => ({
      id,
      modality: "text",
      amountMode: "per_token",
      outputCentsPerMillionTokens: price,
    })),
    isCompared: false,
  });
  scene.subscribe("A");
  return scene;
}

Deno.test("credits that pay alone pay for a longer answer where the shortest one needs nothing of their unit", () => {
  const pennies = {
    id: "penny",
    modality: "text",
    amountMode: "per_token",
    outputCentsPerMillionTokens: 0.1,
  } as const;
  const scene = new Scene([planOf("A", {}, { limits: [] })], undefined, PACKS, {
    models: [pennies],
    isCompared: false,
  });
  scene.fund("cents", 0.000002);
  const ask = (most: number, least = 1) =>
    scene.ask("reserve", {
      ...callOf(0, { event: "x.penny" }),
      size: sizeOf({ maxOutputTokens: most }),
      ttlMs: null,
      fit: { minOutputTokens: amountOf(least), models: [] },
    });
  assert.equal(ask(4).fitted, undefined);
  assert.equal(ask(900, 25).fitted, undefined);
  assert.deepEqual(ask(900).fitted, { model: "penny", maxOutputTokens: amountOf(24) });
});

Deno.test("a fitted call keeps its other metadata and is priced as the model it was fitted to", () => {
  const scene = sceneOfOneCent();
  const { fitted, hold } = scene.ask("reserve", {
    ...callOf(0, { event: "x.make", metadata: { model: "large", place: "here" } }),
    size: sizeOf({ maxOutputTokens: 5_000 }),
    ttlMs: null,
    fit: { minOutputTokens: amountOf(1_000), models: ["small"] },
  });
  assert.deepEqual(fitted, { model: "small", maxOutputTokens: amountOf(2_500) });
  const row = scene.state.reservations.get(hold?.reservationId ?? "");
  assert.equal(row?.metadata, '{"model":"small","place":"here"}');
  assert.equal(row?.amounts.cents, amountOf(1));
});

Deno.test("where the call itself names its model, other models decide the price in its place and need one too", () => {
  const scene = sceneOfOneCent();
  const { fitted, hold } = scene.ask("reserve", {
    ...callOf(0, { event: "x.make", metadata: { model: "large" } }),
    model: "large",
    size: sizeOf({ maxOutputTokens: 5_000 }),
    ttlMs: null,
    fit: { minOutputTokens: amountOf(1_000), models: ["unpriced", "small"] },
  });
  assert.deepEqual(fitted, { model: "small", maxOutputTokens: amountOf(2_500) });
  assert.equal(scene.state.reservations.get(hold?.reservationId ?? "")?.amounts.cents, amountOf(1));
});
