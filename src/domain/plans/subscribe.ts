// Subscribe: write the subscription row of a user, by (provider, external id), or the default row without both. The same
// plan again changes neither start, anchor nor counters. Another plan keeps the start and clears custom limits and features. A call
// without `endsAt` clears an end, so that a canceled subscription comes back, with the usage it had.

import type { Millis } from "../values/period.ts";
import type { Amount } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { invalidField, type Refusal, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { findPlan } from "../catalog/catalog.ts";
import type { FeatureValues } from "../catalog/feature.ts";
import type { Plan } from "../catalog/plan.ts";
import { refreshEntitlement } from "./entitlement.ts";
import { customFault, featuresOf } from "./features.ts";
import { findRow, historyRow, isActive, type Subscription } from "../state/subscription.ts";

/** The input of `POST /v1/subscriptions`. */
export interface SubscribeInput {
  /** A plan's id or name. */
  readonly plan: string;
  /** The key of the row together with `externalId`; both are null for the default row. */
  readonly provider: string | null;
  readonly externalId: string | null;
  /** Quotas by group id; undefined keeps those of the row, null or an empty object clears them. */
  readonly customLimits: Readonly<Record<string, Amount>> | null | undefined;
  /** Features by key; undefined keeps those of the row, null or an empty object clears them. */
  readonly customFeatures: FeatureValues | null | undefined;
  /** The start of a new row, ignored otherwise; null for now. */
  readonly startsAt: Millis | null;
  /** null for no end; clears an earlier one. */
  readonly endsAt: Millis | null;
  /** The anchor of its windows: undefined keeps it, null returns to the start. Ignored by calendar periods. */
  readonly cycleStart: Millis | null | undefined;
}

export interface SubscriptionAnswer {
  /** The canonical user's. */
  readonly userId: string;
  readonly row: Subscription;
}

/** Decides an upsert: a new row, the same plan again, or another plan on the same row. */
export function subscribe(
  draft: Draft,
  input: SubscribeInput,
  context: Context,
): Result<SubscriptionAnswer> {
  const before = findRow(draft.subscriptions(), input, context);
  const plan = findPlan(context.catalog, input.plan);
  const fault = checkInput(input, plan, before, context);
  if (fault !== null) return refused(fault);
  const row = before === null
    ? createRow(draft, input, plan as Plan, context)
    : updateRow(draft, input, plan as Plan, before, context);
  draft.putSubscription(row);
  refreshEntitlement(draft, context, context.now);
  return answered({ userId: draft.user.id, row });
}

/** The earliest start or anchor: an earlier one is nearly always a language's empty value, sent by mistake. */
const EPOCH_MS: Millis = 0;

function checkInput(
  input: SubscribeInput,
  plan: Plan | null,
  before: Subscription | null,
  { now, catalog }: Context,
): Refusal | null {
  const { startsAt, endsAt, cycleStart, customLimits } = input;
  for (const [path, at] of Object.entries({ startsAt, cycleStart })) {
    if (typeof at === "number" && at < EPOCH_MS) return invalidField(path, "must not be before 1970-01-01");
  }
  if (startsAt !== null && startsAt > now) return invalidField("startsAt", "must not be in the future");
  if (endsAt !== null && endsAt <= now) return invalidField("endsAt", "must be in the future");
  const isOnPlan = before !== null && isActive(before, now) && before.planId === plan?.id;
  if (plan === null || (plan.archived && !isOnPlan)) {
    return refusal("not_found", `Plan not found: ${input.plan}`);
  }
  for (const groupId of Object.keys(customLimits ?? {})) {
    if (!plan.groups.some((group) => group.id === groupId)) {
      return invalidField(`customLimits.${groupId}`, "not a limit group of the plan");
    }
  }
  return customFault(input.customFeatures ?? {}, catalog);
}

/** The part of the input that becomes a row. */
export type RowInput = Omit<SubscribeInput, "plan">;

/** Makes a new row with its history; the caller puts it. */
export function createRow(draft: Draft, input: RowInput, plan: Plan, context: Context): Subscription {
  const row: Subscription = {
    id: context.ids.next("subscription"),
    userKey: draft.user.key,
    planId: plan.id,
    provider: input.provider,
    externalId: input.externalId,
    startedAt: input.startsAt ?? context.now,
    endsAt: input.endsAt,
    ended: false,
    cycleAnchorAt: input.cycleStart ?? null,
    customLimits: input.customLimits ?? {},
    customFeatures: input.customFeatures ?? {},
  };
  draft.appendSubscriptionEvent(historyRow(row, "created", context));
  return row;
}

/**
 * Changes a row and its history; the caller puts it. The start stays, the end is the input's, and another plan clears
 * custom limits and features unless the input has some.
 */
export function updateRow(
  draft: Draft,
  input: RowInput,
  plan: Plan,
  before: Subscription,
  context: Context,
): Subscription {
  const changesPlan = before.planId !== plan.id;
  const kept = changesPlan ? { customLimits: {}, customFeatures: {} } : before;
  const row: Subscription = {
    ...before,
    planId: plan.id,
    endsAt: input.endsAt,
    ended: false,
    cycleAnchorAt: input.cycleStart === undefined ? before.cycleAnchorAt : input.cycleStart,
    customLimits: input.customLimits === undefined ? kept.customLimits : input.customLimits ?? {},
    customFeatures: input.customFeatures === undefined ? kept.customFeatures : input.customFeatures ?? {},
  };
  const comesBack = !isActive(before, context.now) || (before.endsAt !== null && input.endsAt === null);
  if (comesBack) {
    draft.appendSubscriptionEvent(historyRow({ ...row, planId: before.planId }, "reactivated", context));
  }
  if (changesPlan) {
    // The message has the features after the change.
    draft.putSubscription(row);
    draft.appendSubscriptionEvent({
      ...historyRow(row, "plan_changed", context),
      previousPlanId: before.planId,
    }, featuresOf(draft, context));
  }
  return row;
}
