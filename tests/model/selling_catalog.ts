// A catalog whose groups sell past their quota: some up to a maximum, some any amount. Other groups refuse. Some windows end
// in the middle of an hour.

import type { CatalogDocument, GroupPeriod, LimitGroup, Plan, Unit } from "./document.ts";
import { group as limitGroup, MODELS, named, packOf } from "./catalog_parts.ts";

const HOURLY: GroupPeriod = { type: "hourly", anchor: "subscription_start" };
const SESSION: GroupPeriod = { type: "session", seconds: 5400 };

function group(
  id: string,
  unit: Unit,
  quota: number,
  events: string[],
  overage?: number | null,
  period?: GroupPeriod,
): LimitGroup {
  return limitGroup(id, unit, quota, events, {
    ...(overage === undefined ? {} : { overage: { max: overage } }),
    ...(period ? { period } : {}),
  });
}

function plan(
  id: string,
  rank: number,
  period: Plan["period"],
  onPlanChange: NonNullable<Plan["onPlanChange"]>,
  limits: LimitGroup[],
): Plan {
  return named(id, { rank, period, onPlanChange, limits });
}

export const selling: CatalogDocument = {
  settings: { promptLogging: true, promptLogRetentionDays: 30, reservationTtlSeconds: 600 },
  models: MODELS,
  rates: [{ event: "image.*", perCall: 1.5 }, {
    event: "chat.*",
    perMillionInputTokens: 250000,
    minimum: 0.1,
  }],
  plans: [
    plan("metered", 10, { type: "daily", anchor: "subscription_start" }, "carry", [
      group("calls", "count", 4, ["*"], 6),
      group("images", "count", 9, ["image.*"]),
      group("tokens", "tokens", 10, ["chat.*"], null),
      group("cents", "cents", 3, ["video.*", "chat.*"], 2.5),
    ]),
    plan("open", 20, { type: "weekly", anchor: "calendar" }, "reset", [
      group("calls", "count", 5, ["*"], 3.5),
      group("images", "count", 2, ["image.*"], null),
      group("seconds", "seconds", 6, ["video.*"], null),
    ]),
    plan("brisk", 30, { type: "monthly", anchor: "subscription_start" }, "carry", [
      group("calls", "count", 3, ["*"], 8, HOURLY),
      group("session", "count", 4, ["image.*"], null, SESSION),
      group("credits", "credits", 5, ["image.*", "chat.*"], 4),
    ]),
    plan("halt", 15, { type: "hourly", anchor: "subscription_start" }, "block", [
      group("calls", "count", 4, ["image.*", "chat.*"], 5),
      group("credits", "credits", 6, ["*"], null),
    ]),
    plan("solid", 5, { type: "lifetime", anchor: "subscription_start" }, "carry", [
      group("calls", "count", 12, ["*"]),
      group("credits", "credits", 8, ["*"], 10),
      { ...group("rate", "count", 9, ["*"]), period: { type: "rolling", seconds: 10 } },
    ]),
  ],
  packs: [
    packOf("calls", "count", ["*"], { priority: 0 }),
    packOf("tokens", "tokens", ["chat.*"]),
    packOf("coins", "cents", ["*"], { priority: 100, defaultExpiryDays: 1 }),
    packOf("wallet", "credits", ["*"]),
  ],
  composeTypes: [],
};
