// Subscriptions and their history.

import { decimalOf, parseAmount } from "../../domain/values/amount.ts";
import type {
  ScheduledChange,
  Subscription,
  SubscriptionEvent,
  Trial,
} from "../../domain/state/subscription.ts";
import type { ColumnValue } from "../database.ts";
import { column, type Later, mapped, spread, table } from "./columns.ts";

/** What rows of older versions have for a column of trials, seats and changes ahead. */
const NONE_BEFORE: Later = { since: 32, value: null };

export const SUBSCRIPTIONS = table<Subscription>("subscriptions", 1, {
  id: column("id"),
  userKey: column("user_key", { mutable: true }),
  planId: column("plan_id", { mutable: true }),
  provider: column("provider"),
  externalId: column("external_id"),
  startedAt: column("started_at_ms"),
  endsAt: column("ends_at_ms", { mutable: true }),
  ended: column("ended", { mutable: true }),
  cycleAnchorAt: column("cycle_anchor_at_ms", { mutable: true }),
  customLimits: mapped("custom_limits", textOfLimits, limitsOf, { mutable: true }),
  customFeatures: mapped("custom_features", textOfFeatures, featuresOf, {
    mutable: true,
    later: { since: 31, value: null },
  }),
  quantity: column("quantity", { mutable: true, later: { since: 32, value: 1 } }),
  scheduled: spread<ScheduledChange | null>(
    {
      scheduled_at_ms: { of: (change) => change?.at ?? null, later: NONE_BEFORE },
      scheduled_plan_id: { of: (change) => change?.planId ?? null, later: NONE_BEFORE },
    },
    ({ scheduled_at_ms: at, scheduled_plan_id: planId }) =>
      at === null ? null : { at: at as number, planId: planId as string },
  ),
  trial: spread<Trial | null>(
    {
      trial_ends_at_ms: { of: (trial) => trial?.endsAt ?? null, later: NONE_BEFORE },
      then_plan_id: { of: (trial) => trial?.thenPlanId ?? null, later: NONE_BEFORE },
    },
    ({ trial_ends_at_ms: endsAt, then_plan_id: thenPlanId }) =>
      endsAt === null ? null : { endsAt: endsAt as number, thenPlanId: thenPlanId as string | null },
  ),
  trials: mapped(
    "trials",
    (ids) => ids.length === 0 ? null : JSON.stringify(ids),
    (text) => text === null ? [] : JSON.parse(text as string),
    { mutable: true, later: NONE_BEFORE },
  ),
  firstHeld: mapped(
    "first_held",
    (held) => Object.keys(held).length === 0 ? null : JSON.stringify(Object.entries(held)),
    (text) => text === null ? {} : Object.fromEntries(JSON.parse(text as string)),
    { mutable: true, later: NONE_BEFORE },
  ),
  trialCredits: mapped(
    "trial_credits",
    (windows) => Object.keys(windows).length === 0 ? null : JSON.stringify(Object.entries(windows)),
    (text) => text === null ? {} : Object.fromEntries(JSON.parse(text as string)),
    { mutable: true, later: { since: 34, value: null } },
  ),
  providerTrialEndsAt: column("provider_trial_ends_at_ms", {
    mutable: true,
    later: { since: 34, value: null },
  }),
});

/** Encodes limits as JSON: [[groupId, "quota"], ...]. */
function textOfLimits(limits: Subscription["customLimits"]): string {
  return JSON.stringify(Object.entries(limits).map(([group, quota]) => [group, decimalOf(quota)]));
}

function limitsOf(value: ColumnValue): Subscription["customLimits"] {
  const limits = JSON.parse(value as string) as [string, string][];
  return Object.fromEntries(limits.map(([group, quota]) => [group, parseAmount(quota)]));
}

/** Encodes features as JSON: [[key, value], ...]; null for none. */
function textOfFeatures(features: Subscription["customFeatures"]): string | null {
  const entries = Object.entries(features);
  return entries.length === 0 ? null : JSON.stringify(entries);
}

function featuresOf(value: ColumnValue): Subscription["customFeatures"] {
  return value === null ? {} : Object.fromEntries(JSON.parse(value as string));
}

export const SUBSCRIPTION_EVENTS = table<SubscriptionEvent>("subscription_events", 1, {
  id: column("id"),
  userKey: column("user_key"),
  type: column("type"),
  subscriptionId: column("subscription_id"),
  planId: column("plan_id"),
  previousPlanId: column("previous_plan_id"),
  reason: column("reason"),
  at: column("at_ms"),
});
