// Catalogs for the model's tests and for workloads: `example` (the shape of the specification's example),
// `tiny` (quotas so small that every gate is met at once, all amount modes, metadata rules), and
// `ladder` (plans made for changing between them: every policy, period, anchor and way of pairing).

import type { CatalogDocument, Headroom, LimitGroup, MatchRule, ModelRow, Plan, Unit } from "./document.ts";

const MODELS: ModelRow[] = [
  {
    id: "gpt-4o-mini",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 15,
    outputCentsPerMillionTokens: 60,
  },
  { id: "flux-pro", modality: "image", amountMode: "per_call", centsPerCall: 5 },
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

const SETTINGS = { promptLogging: true, promptLogRetentionDays: 30, reservationTtlSeconds: 600 };
const NOTHING_ELSE = { packs: [], composeTypes: [] };
const FLUX: MatchRule = { event: "image.render", metadata: { model: "flux-pro" } };

/** The plans of the specification's example. */
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
  ...NOTHING_ELSE,
};

/** Few units of everything: fractions, a quota of 0, both headrooms, groups that share a unit. */
export const tiny: CatalogDocument = {
  settings: { ...SETTINGS, promptLogging: false, reservationTtlSeconds: 60 },
  models: [
    {
      id: "small",
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: 333333.3,
      outputCentsPerMillionTokens: 1,
    },
    { id: "paint", modality: "image", amountMode: "per_call", centsPerCall: 0.7 },
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
  ...NOTHING_ELSE,
};

/** Plans to climb: pairing by id, by rules in another order, by first pattern, and not at all. */
export const ladder: CatalogDocument = {
  settings: SETTINGS,
  models: MODELS,
  plans: [
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
      group("lg_forever_chat", "tokens", 60, ["chat.*"]),
    ]),
    plan("weekly", 12, "weekly calendar", "carry", [
      group("lg_weekly_b", "count", 11, ["b.*"]),
      group("lg_weekly_a", "count", 13, ["a.*"]),
    ]),
  ],
  ...NOTHING_ELSE,
};

export const catalogs: Record<"example" | "tiny" | "ladder", CatalogDocument> = { example, tiny, ladder };
