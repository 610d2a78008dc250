// Schedule: ask ahead for one change of a subscription's plan, or drop it. Time makes the change, at its own moment, as an
// upsert would. Another request replaces it, and every other change or end of the row drops it.

import type { Millis } from "../values/period.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { invalidField, type Refusal, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { findPlan } from "../catalog/catalog.ts";
import type { Plan } from "../catalog/plan.ts";
import { rowToCancel } from "./cancel.ts";
import { refreshEntitlement } from "./entitlement.ts";
import { featuresOf } from "./features.ts";
import { NEEDS_IDS, type SubscriptionAnswer } from "./subscribe.ts";
import { windowAmong } from "./windows.ts";
import { findRow, historyRow, isActive, onPlan, type Subscription } from "../state/subscription.ts";

/** The input of `POST /v1/subscriptions` with `at`, and of `DELETE /v1/subscriptions/scheduled`. */
export interface ScheduleInput {
  /** Names the row together with `externalId`. Both are null for the default row; to drop, also for the only active one. */
  readonly provider: string | null;
  readonly externalId: string | null;
  /** The plan by its id or name, and when; null drops the change. */
  readonly change: { readonly plan: string; readonly at: Millis | "period_end" } | null;
}

const NO_ROW = "Subscription not found";
const NO_DEFAULT_ROW =
  `${NO_ROW}: the user has none without provider and externalId; send those of the one to change`;

/** Decides a change that is asked for ahead. */
export function schedule(draft: Draft, input: ScheduleInput, context: Context): Result<SubscriptionAnswer> {
  const found = input.change === null
    ? rowWithChange(draft, input, context)
    : findRow(draft.subscriptions(), input, context);
  if (found === null || !("planId" in found)) {
    return refused(found ?? refusal("not_found", input.provider === null ? NO_DEFAULT_ROW : NO_ROW));
  }
  const scheduled = input.change === null ? null : changeOf(draft, found, input.change, context);
  if (scheduled !== null && "code" in scheduled) return refused(scheduled);
  const row: Subscription = { ...found, scheduled };
  draft.putSubscription(row);
  return answered({ userId: draft.user.id, row });
}

function rowWithChange(draft: Draft, input: ScheduleInput, context: Context): Subscription | Refusal {
  const row = rowToCancel(draft, input, context);
  if ("code" in row || row.scheduled !== null) return row;
  return refusal("not_found", "The subscription has no scheduled change");
}

function changeOf(
  draft: Draft,
  row: Subscription,
  { plan: name, at }: NonNullable<ScheduleInput["change"]>,
  { catalog, now }: Context,
): NonNullable<Subscription["scheduled"]> | Refusal {
  const plan = findPlan(catalog, name);
  if (plan === null || plan.archived) return refusal("not_found", `Plan not found: ${name}`);
  if (!isActive(row, now)) return refusal("not_found", "The subscription has ended");
  if (plan.addon && row.provider === null) return invalidField("provider", NEEDS_IDS);
  if (plan.id === row.planId) return invalidField("planId", "must be another plan than the present one");
  const moment = at === "period_end" ? periodEnd(draft, row, catalog.plans.get(row.planId), now) : at;
  if (moment === null) return invalidField("at", "must be a time: the plan's period has no end");
  if (moment <= now) return invalidField("at", "must be in the future");
  return { at: moment, planId: plan.id };
}

function periodEnd(draft: Draft, row: Subscription, plan: Plan | undefined, now: Millis): Millis | null {
  return plan === undefined ? null : windowAmong(draft, row, plan, now).end;
}

/**
 * Changes a row's plan as of a moment at which time says so.
 *
 * @param reason for the history
 */
export function changePlan(
  draft: Draft,
  before: Subscription,
  planId: string,
  context: Context,
  reason: "scheduled" | "trial_ended",
): void {
  const row = onPlan(before, planId, context.now);
  draft.putSubscription(row);
  const written = historyRow(row, "plan_changed", context, reason);
  draft.appendSubscriptionEvent({ ...written, previousPlanId: before.planId }, featuresOf(draft, context));
  // If the primary row ends at this moment, its own end follows and decides what comes after it.
  const primary = draft.subscription(draft.user.entitlement?.subscriptionId ?? "");
  const endsNow = primary !== undefined && !primary.ended && !isActive(primary, context.now);
  if (!endsNow) refreshEntitlement(draft, context, context.now);
}
