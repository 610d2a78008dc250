// The plans and credits of a user while recorded events are decided anew. The history of its subscriptions says which plan
// each row had at a moment, and the ledger of its credits what was left then.

import type { CreditBalance } from "./state/credit.ts";
import type { SubscribeInput } from "./plans/subscribe.ts";
import type { Catalog } from "./catalog/catalog.ts";
import type { Subscription, SubscriptionEvent } from "./state/subscription.ts";
import type { Millis } from "./values/period.ts";

/** What is known of a user's plans and credits. */
export interface KnownPlans {
  /** As they are now. */
  readonly subscriptions: readonly Subscription[];
  /** Oldest first. */
  readonly history: readonly SubscriptionEvent[];
  /** Bought or granted credits, with what was left of each at the start of the fold; all of it for a later grant. */
  readonly balances: readonly CreditBalance[];
}

/** Something that happens to a user within the span. */
export type Step =
  & { readonly at: Millis }
  & (
    | { readonly kind: "subscribe"; readonly input: SubscribeInput }
    | { readonly kind: "end"; readonly row: Pick<Subscription, "provider" | "externalId"> }
    | { readonly kind: "credits"; readonly balance: CreditBalance }
  );

/** The rows that a user begins with, and what happens then, in the order of time. */
export interface FoldedPlans {
  readonly subscriptions: readonly Subscription[];
  readonly balances: readonly CreditBalance[];
  readonly steps: readonly Step[];
}

/** Says with which plans and credits a user begins at a moment, and how they change afterwards. */
export function plansFrom(known: KnownPlans, from: Millis, catalog: Catalog): FoldedPlans {
  const steps: Step[] = [];
  const subscriptions = known.subscriptions.flatMap((row) => {
    const history = known.history.filter((event) => event.subscriptionId === row.id);
    for (const event of history) {
      const step = event.at < from ? null : stepOf(row, event, history, catalog);
      if (step !== null) steps.push(step);
    }
    return hadBegun(row, history, from) ? [asOf(row, history, from)] : [];
  });
  const balances = known.balances.map(untilRevoked);
  for (const balance of balances) {
    if (balance.grantedAt >= from) steps.push({ at: balance.grantedAt, kind: "credits", balance });
  }
  return {
    subscriptions,
    balances: balances.filter(({ grantedAt }) => grantedAt < from),
    steps: steps.toSorted((one, other) => one.at - other.at),
  };
}

/** Whether a row was there; one without the time of its making was there from its start on. */
function hadBegun(row: Subscription, history: readonly SubscriptionEvent[], from: Millis): boolean {
  const created = history.find(({ type }) => type === "created");
  return (created?.at ?? row.startedAt) < from;
}

/** Returns a row at a moment in the past: with the plan of then, and its end unless it came back later. */
function asOf(row: Subscription, history: readonly SubscriptionEvent[], at: Millis): Subscription {
  const change = history.find((event) => event.at >= at && event.type === "plan_changed");
  const planId = change?.previousPlanId ?? row.planId;
  const last = history.findLast((event) => event.at < at && ENDING.has(event.type));
  const wasEnded = last?.type === "ended" || (row.ended && row.endsAt !== null && row.endsAt <= at);
  return { ...bare(row, planId), ...wasEnded ? { ended: true, endsAt: at } : endAfter(row, history, at) };
}

/** The events that say whether a row is over. */
const ENDING: ReadonlySet<string> = new Set(["created", "plan_changed", "reactivated", "ended"]);

/** The end of a row that runs; none where it comes back after that. */
function endAfter(row: Subscription, history: readonly SubscriptionEvent[], at: Millis) {
  const comesBack = history.some((event) => event.at >= at && event.type === "reactivated");
  return { ended: false, endsAt: comesBack ? null : row.endsAt };
}

/** A row without what may change it by time alone: its history says what did. */
function bare(row: Subscription, planId: string): Subscription {
  return {
    ...row,
    planId,
    customLimits: planId === row.planId ? row.customLimits : {},
    scheduled: null,
    trial: null,
    providerTrialEndsAt: null,
  };
}

function stepOf(
  row: Subscription,
  { type, planId, at }: SubscriptionEvent,
  history: readonly SubscriptionEvent[],
  catalog: Catalog,
): Step | null {
  const { provider, externalId, startedAt, cycleAnchorAt, quantity, customLimits } = row;
  if (type === "ended") return { at, kind: "end", row: { provider, externalId } };
  if (type !== "created" && type !== "plan_changed" && type !== "reactivated") return null;
  const { endsAt } = endAfter(row, history, at + 1);
  const groups = new Set(catalog.plans.get(planId)?.groups.map(({ id }) => id));
  const limits = Object.entries(planId === row.planId ? customLimits : {}).filter(([id]) => groups.has(id));
  return {
    at,
    kind: "subscribe",
    input: {
      plan: planId,
      provider,
      externalId,
      customLimits: Object.fromEntries(limits),
      customFeatures: undefined,
      startsAt: Math.min(startedAt, at),
      endsAt: endsAt !== null && endsAt <= at ? null : endsAt,
      cycleStart: cycleAnchorAt,
      quantity,
      trial: undefined,
    },
  };
}

/** Revoked credits are spendable until then. What their messages say was sent already. */
function untilRevoked(balance: CreditBalance): CreditBalance {
  const { revokedAt, expiresAt } = balance;
  const ends = revokedAt === null ? expiresAt : Math.min(revokedAt, expiresAt ?? Infinity);
  return { ...balance, revokedAt: null, revokedAmount: 0n, expiresAt: ends, held: 0n, notified: 7 };
}
