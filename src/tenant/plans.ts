// The public listing of an app's plans: oldest first, without archived plans, prices and the policy for plan changes.

import type { AppRealm } from "./registry.ts";

/** The plans on offer in a mode. */
export function listPlans({ applied }: Pick<AppRealm, "applied">) {
  const order = applied?.planOrder ?? [];
  const documents = applied?.document.plans ?? [];
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
        ...limit.overage === undefined ? {} : { overage: limit.overage },
        ...limit.perMember === undefined ? {} : { perMember: limit.perMember },
        ...limit.period === undefined ? {} : { period: limit.period },
      })),
      ...plan.includes === undefined ? {} : { includes: plan.includes },
      ...plan.features === undefined ? {} : { features: plan.features },
    }));
}
