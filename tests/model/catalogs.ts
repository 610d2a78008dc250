// Catalogs for the model's tests and for workloads: `example` (plans and packs of a usual product),
// `tiny` (quotas so small that every gate is met at once, all amount modes, metadata rules),
// `ladder` (plans made for changing between them: every policy, period, anchor and way of pairing), and
// `paced` of paced_catalog.ts (groups with periods of their own).
// Each has packs: with items in several units and without, of equal priority, of short life, of narrow rules.

import type {
  CatalogDocument,
  FeatureValues,
  Headroom,
  LimitGroup,
  MatchRule,
  ModelRow,
  Pack,
  PackItem,
  Plan,
  Unit,
} from "./document.ts";
import { paced } from "./paced_catalog.ts";
import { Random } from "./random.ts";
import { rerated } from "./rated_catalog.ts";
import { isGuard } from "./rules.ts";

const MODELS: ModelRow[] = [
  {
    id: "gpt-4o-mini",
    aliases: ["gpt-4o-mini-*", "gpt-4o*"],
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 15,
    cachedInputCentsPerMillionTokens: 7.5,
    outputCentsPerMillionTokens: 60,
  },
  { id: "flux-pro", aliases: ["flux"], modality: "image", amountMode: "per_call", centsPerCall: 5 },
  { id: "veo-3", modality: "video", amountMode: "per_unit", centsPerSecond: 40 },
];

function group(
  id: string,
  unit: Unit,
  quota: number,
  rules: (string | MatchRule)[],
  headroom?: Headroom,
): LimitGroup {
  const matches = rules.map((rule) => typeof rule === "string" ? { event: rule } : rule);
  return { id, label: `Label of ${id}`, unit, quota, matches, ...(headroom ? { headroom } : {}) };
}

/** Puts alerts at some groups, and says of some packs and items what is little. */
export function alerting(catalog: CatalogDocument, random: Random): CatalogDocument {
  const plans = catalog.plans.map((plan): Plan => ({
    ...plan,
    limits: plan.limits.map(({ alerts: _, ...group }) => ({
      ...group,
      ...(isGuard(group) ? {} : alertsOf(random, (group.period ?? plan.period).type)),
    })),
  }));
  const packs = catalog.packs?.map(({ lowAt: _, ...pack }): Pack => ({
    ...pack,
    ...(pack.items.length === 0 && random.chance(0.7) ? { lowAt: random.pick([0.5, 1, 2.000001, 5]) } : {}),
    items: pack.items.map(({ lowAt: _, ...item }) => ({
      ...item,
      ...(random.chance(0.7)
        ? { lowAt: Number((item.amount * random.pick([0.1, 0.5, 0.999])).toFixed(6)) }
        : {}),
    })),
  }));
  return { ...catalog, plans, ...(packs ? { packs } : {}) };
}

function alertsOf(random: Random, period: string): Pick<LimitGroup, "alerts"> {
  const percents = [0.000001, 10, 33.3, 50, 66.666667, 80, 90, 99.5, 100].filter(() => random.chance(0.3));
  const hasPace = period !== "lifetime" && period !== "session" && random.chance(0.5);
  const alerts = hasPace ? ["pace" as const, ...percents] : percents;
  return alerts.length === 0 ? {} : { alerts };
}

function plan(
  id: string,
  rank: number,
  period: `${Plan["period"]["type"]} ${Plan["period"]["anchor"]}`,
  onPlanChange: "carry" | "reset" | "block" | undefined,
  limits: LimitGroup[],
  headroom?: Headroom,
): Plan {
  const [type, anchor] = period.split(" ") as [Plan["period"]["type"], Plan["period"]["anchor"]];
  return {
    id: `plan_${id}`,
    name: id.charAt(0).toUpperCase() + id.slice(1),
    rank,
    period: { type, anchor },
    ...(onPlanChange ? { onPlanChange } : {}),
    ...(headroom ? { headroom } : {}),
    limits,
  };
}

function withFeatures(features: Record<string, FeatureValues>, plans: Plan[]): Plan[] {
  return plans.map((each) => ({ ...each, ...(features[each.id] ? { features: features[each.id]! } : {}) }));
}

/** A pack; without items it has `more.unit` and `more.matches`. */
function pack(id: string, name: string, more: Partial<Pack>): Pack {
  return { id: `cpk_${id}`, name, kind: "per_type", items: [], ...more };
}

function item(id: string, unit: Unit, amount: number, rules: (string | MatchRule)[]): PackItem {
  const { label, matches } = group(id, unit, amount, rules);
  return { id: `cpi_${id}`, label, unit, amount, matches };
}

const SETTINGS = { promptLogging: true, promptLogRetentionDays: 30, reservationTtlSeconds: 600 };
const NOTHING_ELSE = { composeTypes: [] };
const FLUX: MatchRule = { event: "image.render", metadata: { model: "flux-pro" } };

/** Plans and packs of a usual product. */
export const example: CatalogDocument = {
  settings: SETTINGS,
  models: MODELS,
  plans: [
    plan("free", 0, "monthly calendar", "block", [group("lg_free_images", "count", 10, ["image.*"])]),
    plan("pro", 10, "monthly subscription_start", "carry", [
      group("lg_pro_images", "count", 100, ["image.*"]),
      group("lg_pro_premium", "count", 20, [FLUX]),
      group("lg_pro_tokens", "tokens", 100000, ["chat.*", "compose.*"]),
      group("lg_pro_video", "seconds", 60, ["video.*"]),
      group("lg_pro_budget", "cents", 2000, ["chat.*", "video.*"]),
    ]),
    plan("team", 20, "daily calendar", "reset", [
      group("lg_team_images", "count", 50, ["image.*"]),
      group("lg_team_agents", "count", 1000, ["agent.step"], { mode: "multiplier", value: 2 }),
    ], { mode: "percent", value: 90 }),
    plan("trial", 1, "lifetime subscription_start", "carry", [group("lg_trial_all", "count", 5, ["*"])]),
  ],
  packs: [
    pack("image_topup", "Image Top-Up", {
      priority: 100,
      defaultExpiryDays: null,
      items: [item("topup_images", "count", 50, ["image.*"])],
    }),
    pack("creator_bundle", "Creator Bundle", {
      priority: 100,
      defaultExpiryDays: 90,
      items: [
        item("bundle_images", "count", 10, [FLUX]),
        item("bundle_video", "seconds", 5, ["video.veo-3"]),
      ],
    }),
    pack("wallet", "Wallet", {
      kind: "generic",
      priority: 0,
      defaultExpiryDays: 365,
      unit: "count",
      matches: [{ event: "*" }],
    }),
  ],
  ...NOTHING_ELSE,
};

/** Few units of everything: fractions, a quota of 0, both headrooms, groups that share a unit. */
export const tiny: CatalogDocument = {
  settings: { ...SETTINGS, promptLogging: false, reservationTtlSeconds: 60 },
  models: [
    {
      id: "small",
      aliases: ["small-*"],
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: 333333.3,
      cacheWriteCentsPerMillionTokens: 400000,
      cacheWrite1hCentsPerMillionTokens: 700000.7,
      outputCentsPerMillionTokens: 250000,
      reasoningCentsPerMillionTokens: 300000.123456,
      tiers: [
        { aboveInputTokens: 5, inputCentsPerMillionTokens: 500000, outputCentsPerMillionTokens: 410000.1 },
        { aboveInputTokens: 2.5, cachedInputCentsPerMillionTokens: 90000, reasoningCentsPerMillionTokens: 1 },
      ],
    },
    { id: "paint", aliases: ["sm*"], modality: "image", amountMode: "per_call", centsPerImage: 0.7 },
    { id: "film", modality: "video", amountMode: "per_unit", centsPerSecond: 1.1 },
    { id: "voice", modality: "audio", amountMode: "per_unit", centsPerSecond: 0.333333 },
  ],
  plans: [
    plan("tiny", 10, "daily subscription_start", "carry", [
      group("lg_calls", "count", 3, ["*"]),
      group("lg_images", "count", 2.5, ["image.*", "picture"]),
      group("lg_fast", "count", 1, [{ event: "image.*", metadata: { fast: "true", size: "5" } }]),
      group("lg_tokens", "tokens", 10.5, ["chat.*"]),
      group("lg_seconds", "seconds", 5, ["video.*", "audio.*"]),
      group("lg_cents", "cents", 7.5, ["chat.*", "video.*", "audio.*", "image.*"]),
    ]),
    plan("percent", 20, "weekly calendar", "reset", [
      group("lg_calls", "count", 5, ["*"]),
      group("lg_tokens", "tokens", 10, ["chat.*"], { mode: "multiplier", value: 3 }),
      group("lg_seconds", "seconds", 7, ["video.*", "audio.*"], { mode: "percent", value: 100 }),
      group("lg_none", "cents", 0, ["image.paint"]),
    ], { mode: "percent", value: 70 }),
    plan("multiple", 30, "monthly subscription_start", "block", [
      group("lg_calls", "count", 6, ["*"]),
      group("lg_images", "count", 4, ["image.*"], { mode: "percent", value: 50 }),
      group("lg_seconds", "seconds", 6, ["audio.*", "video.*"]),
      group("lg_cents", "cents", 12.25, ["chat.*", "video.*", "audio.*", "image.*"]),
    ], { mode: "multiplier", value: 1.5 }),
    plan("once", 5, "lifetime calendar", "carry", [
      group("lg_calls", "count", 4, ["image.*", "chat.*"]),
      group("lg_budget", "cents", 5, ["*"]),
    ]),
  ],
  packs: [
    pack("mixed", "Mixed Bag", {
      items: [
        item("mixed_calls", "count", 2, ["*"]),
        item("mixed_tokens", "tokens", 4.5, ["chat.*"]),
        item("mixed_seconds", "seconds", 3, ["video.*", "audio.*"]),
        item("mixed_cents", "cents", 2.25, ["chat.*", "video.*", "image.*"]),
      ],
    }),
    // 43.2 seconds.
    pack("flash", "Flash", {
      defaultExpiryDays: 0.0005,
      items: [
        item("flash_images", "count", 3, ["image.*"]),
        item("flash_audio", "seconds", 2.5, ["audio.*"]),
      ],
    }),
    pack("narrow", "Narrow", {
      priority: 200,
      items: [
        item("narrow_fast", "count", 1.5, [
          { event: "image.*", metadata: { fast: "true", size: "5" } },
          { event: "picture" },
        ]),
      ],
    }),
    pack("purse", "Purse", { kind: "generic", unit: "tokens", matches: [{ event: "chat.*" }] }),
    pack("coins", "Coins", {
      kind: "generic",
      priority: 100,
      defaultExpiryDays: 1,
      unit: "cents",
      matches: [{ event: "*" }],
    }),
    pack("calls", "Calls", { kind: "generic", priority: 0, unit: "count", matches: [{ event: "*" }] }),
    pack("gone", "Gone", { archived: true, items: [item("gone", "count", 5, ["*"])] }),
  ],
  ...NOTHING_ELSE,
};

/** Plans to climb: pairing by id, by rules in another order, by first pattern, and not at all. */
export const ladder: CatalogDocument = {
  settings: SETTINGS,
  models: MODELS,
  featureDefaults: { sso: false, seats: 1, tier: "none" },
  plans: withFeatures({
    plan_first: { sso: true, seats: 3 },
    plan_second: { models: ["small", "large"], "export.pdf": true },
    plan_third: { seats: 0, tier: "third" },
    plan_forever: {},
  }, [
    plan("ground", 0, "monthly calendar", "block", [
      group("lg_ground_a", "count", 5, ["a.*"]),
      group("lg_ground_b", "count", 5, ["b.*"]),
    ]),
    plan("first", 10, "monthly subscription_start", "carry", [
      group("lg_same", "count", 20, ["a.*"]),
      group("lg_first_rules", "count", 15, ["b.*", FLUX]),
      group("lg_first_pattern", "count", 12, ["a.*", "c"]),
      group("lg_first_alone", "tokens", 50, ["chat.*"]),
    ]),
    plan("second", 20, "weekly subscription_start", undefined, [
      group("lg_same", "count", 10, ["b.*"]),
      group("lg_second_rules", "count", 9, [FLUX, "b.*"]),
      group("lg_second_pattern", "count", 8, ["a.*", { event: "d", metadata: { x: "1" } }]),
      group("lg_second_other", "count", 7, ["a.*", "e"]),
      group("lg_second_video", "seconds", 6, ["video.*"]),
    ]),
    plan("third", 20, "daily calendar", "reset", [
      group("lg_same", "count", 6, ["a.*"]),
      group("lg_third_tokens", "tokens", 30, ["chat.*"]),
    ]),
    plan("fourth", 30, "daily subscription_start", "carry", [
      group("lg_fourth_a", "count", 8, ["a.*"]),
      group("lg_fourth_b", "count", 8, ["b.*", "c"]),
      group("lg_fourth_tokens", "tokens", 40, ["chat.*", "compose.*"]),
    ]),
    plan("forever", 15, "lifetime subscription_start", "carry", [
      group("lg_forever_a", "count", 25, ["a.*"]),
      // The id of other plans' group, in another unit.
      group("lg_same", "tokens", 60, ["chat.*"]),
    ]),
    plan("weekly", 12, "weekly calendar", "carry", [
      group("lg_weekly_b", "count", 11, ["b.*"]),
      group("lg_weekly_a", "count", 13, ["a.*"]),
    ]),
  ]),
  packs: [
    pack("letters", "Letters", {
      priority: 50,
      defaultExpiryDays: 30,
      items: [item("letters_a", "count", 4, ["a.*"]), item("letters_b", "count", 3, ["b.*", FLUX])],
    }),
    pack("week", "Week", {
      kind: "generic",
      priority: 50,
      defaultExpiryDays: 7,
      unit: "count",
      matches: [{ event: "a.*" }, { event: "c" }, { event: "d", metadata: { x: "1" } }],
    }),
    pack("talk", "Talk", {
      kind: "generic",
      unit: "tokens",
      matches: [{ event: "chat.*" }, { event: "compose.*" }],
    }),
    // 86.4 seconds.
    pack("spot", "Spot", {
      defaultExpiryDays: 0.001,
      items: [
        item("spot_video", "seconds", 4, ["video.*"]),
        item("spot_flux", "count", 2, [FLUX]),
        item("spot_talk", "tokens", 12.5, ["chat.*"]),
      ],
    }),
    pack("cents", "Cents", { unit: "cents", matches: [{ event: "video.*" }, { event: "e" }] }),
    pack("gone", "Gone", { archived: true, unit: "count", matches: [{ event: "*" }] }),
  ],
  ...NOTHING_ELSE,
};

/** Limits how much of some groups each member may use. */
export function sharing(catalog: CatalogDocument, random: Random): CatalogDocument {
  const plans = catalog.plans.map((plan): Plan => ({
    ...plan,
    limits: plan.limits.map((group) => {
      const quota = Math.round(group.quota * random.pick([0.3, 0.6, 1]) * 10) / 10;
      return random.chance(0.4) && !isGuard(group) ? { ...group, perMember: { quota } } : group;
    }),
  }));
  return { ...catalog, plans };
}

/** Plans that are sold by the seat. Workloads use seats with this catalog alone. */
const sold: CatalogDocument = {
  settings: SETTINGS,
  models: MODELS,
  plans: [
    plan("basic", 0, "monthly calendar", "carry", [
      group("lg_same", "count", 4, ["a.*"]),
      group("lg_basic_b", "count", 5, ["b.*"]),
    ]),
    {
      ...plan("seats", 10, "weekly subscription_start", "carry", [
        group("lg_same", "count", 3, ["a.*"]),
        group("lg_seats_tokens", "tokens", 9, ["chat.*"]),
      ], { mode: "percent", value: 90 }),
      perSeat: true,
      trial: { days: 2, thenPlanId: "plan_basic" },
    },
    {
      ...plan("large", 20, "daily subscription_start", "block", [
        group("lg_same", "count", 6, ["a.*"]),
        group("lg_large_b", "count", 3, ["b.*"]),
      ]),
      trial: { days: 1, thenPlanId: null },
    },
    {
      ...plan("fresh", 15, "monthly subscription_start", "reset", [
        group("lg_fresh_a", "count", 7, ["a.*"]),
        group("lg_fresh_tokens", "tokens", 12, ["chat.*"]),
      ]),
      trial: { days: 1, thenPlanId: "plan_once" },
    },
    {
      ...plan("more", 50, "monthly calendar", "carry", [
        group("lg_same", "count", 2, ["a.*"]),
        group("lg_seats_tokens", "count", 2, ["chat.*"]),
        group("lg_once_b", "count", 3, ["b.*"]),
      ]),
      addon: true,
      perSeat: true,
      trial: { days: 1, thenPlanId: null },
    },
    plan("once", 5, "lifetime subscription_start", "carry", [
      group("lg_same", "count", 15, ["a.*"]),
      group("lg_once_b", "count", 9, ["b.*"]),
    ]),
  ],
  packs: [
    pack("letters", "Letters", { priority: 50, items: [item("letters_a", "count", 4, ["a.*"])] }),
  ],
  ...NOTHING_ELSE,
};

/** The catalog with other alerts, other amounts that are little, and some other quotas. */
export function realerted(catalog: CatalogDocument, random: Random): CatalogDocument {
  const next = alerting(catalog, random);
  for (const group of next.plans.flatMap(({ limits }) => limits)) {
    if (!random.chance(0.3)) continue;
    const factor = random.pick([0.4, 0.7, 1.5]);
    const changed = (quota: number) => Math.round(quota * factor * 10) / 10;
    group.quota = changed(group.quota);
    if (group.perMember) group.perMember = { quota: changed(group.perMember.quota) };
  }
  return next;
}

/** The catalog with other prices, some models gone and unpriced calls taken otherwise; plans and packs stay. */
export function repriced(catalog: CatalogDocument, random: Random): CatalogDocument {
  const price = () => random.pick([0, 0.000001, 250000, 1e6 / 3, random.whole(1, 900_000)]);
  const models = (catalog.models ?? []).filter(() => random.chance(0.85)).map((row): ModelRow => {
    if (random.chance(0.3)) return row;
    if (row.amountMode === "per_unit") return { ...row, centsPerSecond: random.whole(1, 30) / 10 };
    if (row.amountMode === "per_call") {
      const { centsPerCall: _call, centsPerImage: _image, ...rest } = row;
      const name = random.pick(["centsPerCall", "centsPerImage"] as const);
      return { ...rest, [name]: random.whole(1, 20) / 10 };
    }
    return {
      id: row.id,
      ...(random.chance(0.5) && row.aliases ? { aliases: row.aliases } : {}),
      modality: row.modality,
      amountMode: row.amountMode,
      inputCentsPerMillionTokens: price(),
      outputCentsPerMillionTokens: price(),
      ...(random.chance(0.5) ? { cachedInputCentsPerMillionTokens: price() } : {}),
      ...(random.chance(0.5) ? { reasoningCentsPerMillionTokens: price() } : {}),
      ...(random.chance(0.5)
        ? { tiers: [{ aboveInputTokens: random.whole(0, 8), inputCentsPerMillionTokens: price() }] }
        : {}),
    };
  });
  const unpricedModels = random.pick(["warn", "warn", "refuse"] as const);
  const { rates } = catalog;
  return {
    ...catalog,
    models,
    ...(rates === undefined ? {} : { rates: rerated(rates, random) }),
    settings: { ...catalog.settings, unpricedModels },
  };
}

export const catalogs: Record<"example" | "tiny" | "ladder" | "paced", CatalogDocument> = {
  example: sharing(alerting(example, new Random(1)), new Random(4)),
  tiny: sharing(alerting(tiny, new Random(2)), new Random(5)),
  ladder: sharing(alerting(ladder, new Random(3)), new Random(6)),
  paced: sharing(alerting(paced, new Random(4)), new Random(7)),
};

/** A catalog of everything that plans may offer beside quotas. */
export const offers: CatalogDocument = alerting(sold, new Random(4));
