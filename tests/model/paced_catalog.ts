// A catalog whose groups have periods of their own: calendars, sessions, rates and concurrency, beside groups that count
// by the plan's. Its plans pair by id, by rules and not at all, and some match a call with guards alone.

import type { CatalogDocument, GroupPeriod, LimitGroup, Plan, Unit } from "./document.ts";
import { group as limitGroup, MODELS, named, packOf } from "./catalog_parts.ts";

const DAILY: GroupPeriod = { type: "daily", anchor: "subscription_start" };
const DAY: GroupPeriod = { type: "daily", anchor: "calendar" };
const FLIGHT: GroupPeriod = { type: "concurrent" };
const HOUR: GroupPeriod = { type: "hourly", anchor: "calendar" };
const HOURLY: GroupPeriod = { type: "hourly", anchor: "subscription_start" };
const LIFE: GroupPeriod = { type: "lifetime", anchor: "calendar" };
const YEARLY: GroupPeriod = { type: "yearly", anchor: "subscription_start" };

function session(seconds: number): GroupPeriod {
  return { type: "session", seconds };
}

function rate(seconds: number): GroupPeriod {
  return { type: "rolling", seconds };
}

function group(id: string, quota: number, unit: Unit, events: string[], period?: GroupPeriod): LimitGroup {
  return limitGroup(id, unit, quota, events, period ? { period } : {});
}

function plan(
  id: string,
  rank: number,
  period: Plan["period"],
  onPlanChange: Plan["onPlanChange"],
  limits: LimitGroup[],
): Plan {
  return named(id, { rank, period, ...(onPlanChange ? { onPlanChange } : {}), limits });
}

export const paced: CatalogDocument = {
  settings: { promptLogging: true, promptLogRetentionDays: 30, reservationTtlSeconds: 60 },
  models: MODELS,
  plans: [
    plan("brisk", 10, { type: "daily", anchor: "subscription_start" }, "carry", [
      group("calls", 40, "count", ["*"]),
      group("hour", 12, "count", ["image.*"], HOUR),
      group("rate", 4, "count", ["*"], rate(5)),
      group("tokens_a_minute", 12.5, "tokens", ["chat.*"], rate(60)),
      group("flight", 3, "count", ["*"], FLIGHT),
      group("session", 6, "count", ["image.*"], session(300)),
      group("year", 30, "cents", ["video.*", "image.*"], YEARLY),
    ]),
    {
      ...plan("steady", 20, { type: "monthly", anchor: "calendar" }, "reset", [
        group("session", 9, "count", ["image.*", "chat.*"], session(300)),
        group("rate", 3, "count", ["*"], rate(5)),
        group("flight", 2, "count", ["image.*"], FLIGHT),
        group("flying_tokens", 20, "tokens", ["chat.*"], FLIGHT),
        group("day", 25, "tokens", ["chat.*"], DAY),
      ]),
      headroom: { mode: "percent", value: 80 },
    },
    plan("halt", 30, { type: "weekly", anchor: "subscription_start" }, "block", [
      group("short", 5, "seconds", ["video.*"], session(60)),
      group("session", 7, "count", ["image.*"], session(300)),
      group("other_rate", 6, "count", ["*"], rate(5)),
      group("minute", 10, "count", ["image.*"], rate(60)),
      group("week", 30, "count", ["image.*"]),
      // Where only guards match.
      group("chats", 1, "count", ["chat.*"], FLIGHT),
    ]),
    plan("trickle", 5, { type: "lifetime", anchor: "subscription_start" }, undefined, [
      group("calls", 60, "count", ["image.*", "chat.*"]),
      // The id of other plans' rate, with other seconds.
      group("rate", 2, "count", ["image.*"], rate(1)),
      group("daily", 8, "count", ["image.*"], DAILY),
      group("year", 20, "cents", ["*"], LIFE),
      group("flight", 2, "count", ["*"], FLIGHT),
    ]),
    plan("bare", 1, { type: "hourly", anchor: "calendar" }, "carry", [
      group("rate", 5, "count", ["*"], rate(5)),
      group("flight", 2, "count", ["*"], FLIGHT),
      group("films", 4, "seconds", ["video.*"], FLIGHT),
    ]),
    plan("mirror", 20, { type: "yearly", anchor: "calendar" }, "carry", [
      group("pictures", 6, "count", ["image.*"], session(300)),
      group("chat", 15, "tokens", ["chat.*"], session(60)),
      group("daily", 9, "count", ["image.*"], HOURLY),
      group("rate", 4, "count", ["*"], rate(5)),
      group("cents_a_minute", 5, "cents", ["image.*", "video.*"], rate(30)),
      group("none", 0, "cents", ["image.paint"], rate(10)),
      group("seconds", 30, "seconds", ["video.*"]),
    ]),
  ],
  packs: [
    packOf("calls", "count", ["*"], { priority: 0 }),
    packOf("tokens", "tokens", ["chat.*"]),
    packOf("coins", "cents", ["*"], { priority: 100, defaultExpiryDays: 1 }),
    {
      id: "cpk_bag",
      name: "bag",
      kind: "per_type",
      items: [
        {
          id: "cpi_images",
          label: "Images",
          unit: "count",
          amount: 3,
          matches: [{ event: "image.*" }],
        },
        { id: "cpi_films", label: "Films", unit: "seconds", amount: 2.5, matches: [{ event: "video.*" }] },
      ],
    },
  ],
  composeTypes: [],
};
