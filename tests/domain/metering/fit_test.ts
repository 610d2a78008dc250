// Fit: a call is made smaller until it is allowed. By hand, and against an oracle in random cases: plain reserves.

import assert from "node:assert/strict";
import type { CatalogDocument } from "../../../src/domain/catalog/catalog.ts";
import { decide } from "../../../src/domain/decide.ts";
import type { Fit, ReserveAnswer, ReserveInput } from "../../../src/domain/metering/reserve.ts";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import { Random } from "../../model/random.ts";
import { isDeep } from "../../support/depth.ts";
import { countedIds } from "../decide_system.ts";
import { groupOf, PACKS, planOf, Scene } from "../scene.ts";
import { callOf, sizeOf } from "../scene_input.ts";

const MODELS = ["large", "small", "tiny", "unpriced"];
const PRICED = [["large", 4_000], ["small", 400], ["tiny", 13]] as const;

/** A plan with room in tokens, cents and credits, and two guards. */
function catalogOf(random: Random): CatalogDocument {
  const maybe = <Value>(chance: number, value: Value): Value[] => random.chance(chance) ? [value] : [];
  const quota = () => random.pick([0, 40, 777.5, 5_000, 60_000]);
  const headroom = random.chance(0.2) ? { headroom: { type: "percent", value: 10 } as const } : {};
  return {
    models: PRICED.map(([id, price]) => ({
      id,
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: price,
      outputCentsPerMillionTokens: price * 3,
    })),
    rates: random.chance(0.5) ? [{ event: "x.*", perMillionOutputTokens: 90_000, perCall: 2.5 }] : [],
    plans: [planOf("A", {}, {
      limits: [
        ...maybe(0.7, { ...groupOf("tokens", quota(), "tokens"), ...headroom }),
        ...maybe(0.5, groupOf("cents", quota() / 20, "cents")),
        ...maybe(0.5, groupOf("credits", quota() / 10, "credits")),
        ...maybe(
          0.3,
          { ...groupOf("pace", 9_000, "tokens"), window: { type: "rolling", seconds: 60 } } as never,
        ),
        ...maybe(0.2, {
          ...groupOf("large", quota(), "tokens"),
          matches: [{ event: "x.*", metadata: { model: "large" } }],
        }),
      ],
    })],
    packs: PACKS,
  };
}

function newCase(random: Random) {
  const { plans, packs, ...more } = catalogOf(random);
  const scene = new Scene(plans ?? [], undefined, packs, { ...more, isAudited: false });
  if (random.chance(0.9)) scene.subscribe("A");
  for (const pack of ["tokens", "cents"]) {
    if (random.chance(0.3)) scene.fund(pack, random.pick([3, 900, 20_000]));
  }
  for (let uses = random.whole(0, 2); uses > 0; uses--) {
    scene.reserve({ inputTokens: random.whole(1, 3_000) }, {
      event: "x.make",
      metadata: { model: "small" },
    });
  }
  return scene;
}

function answerOf(scene: Scene, input: ReserveInput): ReserveAnswer {
  const context = {
    now: scene.now,
    catalog: scene.catalog,
    ids: countedIds(900),
    balancesLeft: null,
    outbox: null,
  };
  const { result } = decide(scene.state, "reserve", input, context);
  assert.ok(result.ok);
  return result.answer;
}

/** What a plain reserve of this model and size answers. */
function plain(scene: Scene, { fit: _, ...input }: ReserveInput, model: string | null, tokens: number) {
  const members = { ...input.metadata?.members, ...model === null ? {} : { model } };
  const metadata = model === null ? input.metadata : { text: JSON.stringify(members), members };
  const size = { ...input.size, maxOutputTokens: amountOf(tokens) };
  return answerOf(scene, { ...input, metadata, size });
}

function checkCase(scene: Scene, random: Random): boolean {
  const most = random.pick([1, 2, 50, 1_000, 9_999, 1_000_000]);
  const least = random.whole(1, Math.min(most, 300));
  const named = random.chance(0.6) ? random.pick(MODELS) : null;
  const others = MODELS.filter(() => random.chance(0.4));
  const fit: Fit = { minOutputTokens: amountOf(least), models: others };
  const input: ReserveInput = {
    ...callOf(0, { event: "x.make", metadata: named === null ? { size: "s" } : { model: named } }),
    size: sizeOf({ inputTokens: random.whole(0, 2_000), maxOutputTokens: most }),
    ttlMs: null,
    fit,
  };
  const answer = answerOf(scene, input);
  const models = [...named === null ? [] : [named], ...others.filter((model) => model !== named)];
  const candidates: (string | null)[] = models.length === 0 ? [null] : models;
  const found = candidates.find((model) => plain(scene, input, model, least).allowed);
  const { fitted, ...rest } = answer;
  if (found === undefined) {
    assert.equal(fitted, undefined);
    assert.deepEqual(rest, plain(scene, input, candidates[0] ?? null, least));
    return false;
  }
  assert.ok(fitted !== undefined);
  const tokens = numberOf(fitted.maxOutputTokens);
  assert.equal(fitted.model, found ?? "make");
  assert.ok(Number.isInteger(tokens) && tokens >= least && tokens <= most);
  assert.deepEqual(rest, plain(scene, input, found, tokens));
  assert.ok(
    tokens === most || !plain(scene, input, found, tokens + 1).allowed,
    `${tokens + 1} would pass too`,
  );
  return true;
}

Deno.test("the largest answer of the first model that passes is held, as plain reserves say", () => {
  const random = new Random(20_261_126);
  let fitted = 0;
  const cases = isDeep ? 100_000 : 4_000;
  for (let done = 0; done < cases;) {
    const scene = newCase(random);
    for (let times = 0; times < 20; times++, done++) fitted += Number(checkCase(scene, random));
  }
  assert.ok(fitted > cases / 4 && fitted < cases * 0.9, `${fitted} of ${cases} were allowed`);
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
