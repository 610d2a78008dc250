// A catalog whose plans come with packs: of one and of several parts, in windows of the plan and of their own, with and
// without rollovers; beside trials, seats and add-ons.

import type { CatalogDocument, Include, Plan } from "./document.ts";
import { group, MODELS, named, pack } from "./catalog_parts.ts";

function plan(
  id: string,
  rank: number,
  period: `${Plan["period"]["type"]} ${Plan["period"]["anchor"]}`,
  includes: Include[],
  more: Partial<Plan> & Pick<Plan, "limits">,
): Plan {
  const [type, anchor] = period.split(" ") as [Plan["period"]["type"], Plan["period"]["anchor"]];
  return named(id, { rank, period: { type, anchor }, includes, ...more });
}

const ANY = [{ event: "*" }];
const HOURLY = { type: "hourly", anchor: "calendar" } as const;

export const including: CatalogDocument = {
  settings: { promptLogging: true, promptLogRetentionDays: 30, reservationTtlSeconds: 600 },
  models: MODELS,
  plans: [
    plan("hours", 10, "hourly subscription_start", [
      { packId: "cpk_coins", quantity: 5, rollover: { max: 8, periods: 2 } },
    ], { onPlanChange: "carry", perSeat: true, limits: [group("calls", "count", 1, ["*"])] }),
    plan("days", 20, "daily calendar", [
      { packId: "cpk_bag", rollover: { max: 4, periods: 3 }, period: HOURLY },
      { packId: "cpk_coins", quantity: 7.5, rollover: { max: 6, periods: 1 } },
    ], {
      onPlanChange: "reset",
      limits: [group("calls", "count", 2, ["*"]), group("tokens", "tokens", 3, ["chat.*"])],
    }),
    plan("weeks", 30, "weekly subscription_start", [
      { packId: "cpk_purse", quantity: 4, period: { type: "hourly", anchor: "subscription_start" } },
    ], {
      onPlanChange: "block",
      limits: [group("calls", "count", 0, ["*"])],
      trial: { days: 1, thenPlanId: "plan_hours" },
    }),
    plan("life", 5, "lifetime subscription_start", [{ packId: "cpk_coins", quantity: 12 }], {
      onPlanChange: "carry",
      limits: [group("calls", "count", 0, ["*"])],
    }),
    plan("first", 15, "hourly calendar", [
      { packId: "cpk_bag" },
      { packId: "cpk_coins", quantity: 3, rollover: { max: 3, periods: 12 } },
    ], {
      onPlanChange: "carry",
      limits: [group("calls", "count", 1, ["image.*"])],
      trial: { days: 0.1, thenPlanId: null },
    }),
    plan("more", 50, "daily calendar", [{ packId: "cpk_coins", quantity: 2, period: HOURLY }], {
      addon: true,
      perSeat: true,
      limits: [group("calls", "count", 1, ["*"])],
    }),
    plan("bare", 12, "monthly calendar", [], { limits: [group("calls", "count", 3, ["*"])] }),
  ],
  packs: [
    pack("coins", { unit: "count", matches: ANY, priority: 10 }),
    // Of the unit and the rules of another pack.
    pack("purse", { unit: "count", matches: ANY, priority: 10 }),
    pack("bag", {
      kind: "per_type",
      items: [
        { id: "cpi_images", label: "Images", unit: "count", amount: 3, matches: [{ event: "image.*" }] },
        { id: "cpi_tokens", label: "Tokens", unit: "tokens", amount: 4.5, matches: [{ event: "chat.*" }] },
      ],
    }),
    pack("spare", { unit: "count", matches: ANY, priority: 10, defaultExpiryDays: 1 }),
  ],
  composeTypes: [],
};
