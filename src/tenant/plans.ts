// The public listing of an app's plans: oldest first, without archived plans, prices and the policy for plan changes.

import type { App } from "./registry.ts";

/** The plans on offer. Both modes share them. */
export function listPlans(app: App) {
  const order = app.applied?.planOrder ?? [];
  const documents = app.applied?.document.plans ?? [];
  return [...documents]
    .filter((plan) => plan.archived !== true)
    .sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id))
    .map((plan) => ({
      id: plan.id,
      name: plan.name,
      period: { type: plan.period.type, anchor: plan.period.anchor },
      ...plan.addon === true ? { addon: true } : {},
      ...plan.trial === undefined ? {} : { trial: { days: plan.trial.days } },
      limits: plan.limits.map((limit) => ({
        id: limit.id,
        label: limit.label,
        unit: limit.unit,
        quota: limit.quota,
        event: limit.matches[0]?.event ?? "",
        matches: limit.matches,
        ...limit.perMember === undefined ? {} : { perMember: limit.perMember },
        ...limit.period === undefined ? {} : { period: limit.period },
      })),
      ...plan.includes === undefined ? {} : { includes: plan.includes },
      ...plan.features === undefined ? {} : { features: plan.features },
    }));
}
