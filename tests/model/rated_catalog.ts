// A catalog that sells credits: a rate card with every kind of part, groups and packs in credits beside others, and events
// that nothing rates.

import type { CatalogDocument, Plan, RateRow } from "./document.ts";
import type { Random } from "./random.ts";
import { group, MODELS, named, packOf } from "./catalog_parts.ts";

function plan(id: string, rank: number, type: Plan["period"]["type"], more: Partial<Plan>): Plan {
  return named(id, { rank, period: { type, anchor: "subscription_start" }, limits: [], ...more });
}

export const rated: CatalogDocument = {
  settings: { promptLogging: true, promptLogRetentionDays: 30, reservationTtlSeconds: 60 },
  models: MODELS.map((row) =>
    row.id === "small" ? { ...row, cachedInputCentsPerMillionTokens: 100000 } : row
  ),
  rates: [
    { event: "image.*", metadata: { fast: "true" }, perImage: 2.5, minimum: 1 },
    { event: "image.*", perCall: 1.2 },
    {
      event: "chat.*",
      perMillionInputTokens: 200000.3,
      perMillionCachedInputTokens: 90000,
      perMillionOutputTokens: 600000,
      minimum: 0.4,
    },
    { event: "video.*", perSecond: 1 },
    { event: "audio.*", perCent: 0.7, minimum: 0.25 },
    { event: "step", perCall: 0.1, perSecond: 0.333333, perMillionInputTokens: 1234.5 },
    { event: "idle", minimum: 0 },
  ],
  plans: [
    plan("coins", 10, "daily", {
      onPlanChange: "carry",
      limits: [
        group("credits", "credits", 12, ["*"]),
        group("calls", "count", 30, ["*"]),
        group("fast", "credits", 5, [], {
          matches: [{ event: "image.*", metadata: { fast: "true" } }, { event: "step" }],
        }),
      ],
    }),
    plan("purse", 20, "weekly", {
      onPlanChange: "reset",
      headroom: { mode: "percent", value: 80 },
      limits: [
        group("credits", "credits", 20, ["image.*", "chat.*", "audio.*"]),
        group("films", "seconds", 20, ["video.*"]),
        group("budget", "cents", 9, ["chat.*", "audio.*", "video.*"]),
      ],
    }),
    plan("empty", 5, "monthly", { limits: [group("credits", "credits", 0, ["*"])] }),
    plan("paced", 30, "monthly", {
      onPlanChange: "block",
      limits: [
        group("credits", "credits", 40, ["*"]),
        group("rate", "credits", 6, ["*"], { period: { type: "rolling", seconds: 5 } }),
        group("flying", "credits", 9, ["image.*", "chat.*"], { period: { type: "concurrent" } }),
      ],
    }),
  ],
  packs: [
    packOf("wallet", "credits", ["*"]),
    packOf("pictures", "credits", ["image.*"], { priority: 50, defaultExpiryDays: 1 }),
    packOf("cents", "cents", ["*"]),
    {
      id: "cpk_bag",
      name: "bag",
      kind: "per_type",
      items: [
        {
          id: "cpi_credits",
          label: "Credits",
          unit: "credits",
          amount: 7.5,
          matches: [{ event: "chat.*" }, { event: "audio.*" }, { event: "other.thing" }],
        },
        { id: "cpi_calls", label: "Calls", unit: "count", amount: 3, matches: [{ event: "*" }] },
      ],
    },
  ],
  composeTypes: [],
};

/** The rate card with other figures, and some rows gone. */
export function rerated(rates: RateRow[], random: Random): RateRow[] {
  const factor = () => random.pick([0, 0.5, 1, 1.000001, 2]);
  return rates.filter(() => random.chance(0.85)).map((row) => {
    const { event, metadata, ...figures } = row;
    const changed = Object.entries(figures).map(([name, figure]) =>
      [name, Number((figure * factor()).toFixed(6))] as const
    );
    return { event, ...(metadata ? { metadata } : {}), ...Object.fromEntries(changed) };
  });
}
