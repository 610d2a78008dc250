// Subscriptions and their history.

import { decimalOf, parseAmount } from "../../domain/values/amount.ts";
import type { Subscription, SubscriptionEvent } from "../../domain/state/subscription.ts";
import type { ColumnValue } from "../database.ts";
import { column, mapped, table } from "./columns.ts";

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
