// The catalog of workspaces whose limit groups have periods of their own: calendar periods, a session, rates and a
// concurrency limit. Every plan has the same groups, so that a user finds what it used under any of them.

import type { CatalogDocument, LimitGroup, Plan } from "../model/document.ts";

function group(
  id: string,
  quota: number,
  period?: NonNullable<LimitGroup["period"]>,
  { unit = "count", event = "*" }: { unit?: LimitGroup["unit"]; event?: string } = {},
): LimitGroup {
  const own = period === undefined ? {} : { period };
  return { id, label: `Label of ${id}`, unit, quota, matches: [{ event }], ...own };
}

/** Quotas are small, so that each limit refuses now and then. */
function plan(id: string, rank: number, onPlanChange: "carry" | "reset" | "block", more: number): Plan {
  return {
    id: `plan_${id}`,
    name: id.charAt(0).toUpperCase() + id.slice(1),
    rank,
    period: { type: "monthly", anchor: "subscription_start" },
    onPlanChange,
    limits: [
      group("lg_all", 200 * more),
      group("lg_hour", 40 * more, { type: "hourly", anchor: "calendar" }),
      group("lg_session", 12 * more, { type: "session", seconds: 60 }, { event: "image.*" }),
      group("lg_rate", 6 * more, { type: "rolling", seconds: 10 }),
      group("lg_tokens", 20 * more, { type: "rolling", seconds: 60 }, { unit: "tokens" }),
      group("lg_open", 4 * more, { type: "concurrent" }),
    ],
  };
}

export const WINDOWS_CATALOG: CatalogDocument = {
  plans: [plan("slow", 1, "carry", 1), plan("quick", 2, "reset", 2), plan("fixed", 3, "block", 1.5)],
  packs: [{
    id: "cpk_images",
    name: "Images",
    kind: "per_type",
    items: [{ id: "images", label: "Images", unit: "count", amount: 20, matches: [{ event: "image.*" }] }],
  }],
};
